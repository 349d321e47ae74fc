//! What to type to store the collection in the advised way.

use seekscope_doctor::wording::{javascript_text, mongosh, mongosh_collection};
use seekscope_run::{AdviceRecord, RunDocument, StoringWay, WayKind, shell_quoted};

/// Returns the lines to type; none where everything is best left as it is.
pub(super) fn commands(document: &RunDocument, advice: &AdviceRecord) -> Vec<String> {
    let way = advice
        .verdict
        .as_ref()
        .and_then(|verdict| advice.ways.get(verdict.way));
    let Some(way) = way else {
        return Vec::new();
    };
    let uri = document
        .target
        .as_ref()
        .map_or("", |target| target.uri.as_str());
    let collection = mongosh_collection(&advice.namespace);
    let keys = way.keys.as_deref().unwrap_or("{}");
    match way.kind {
        WayKind::Present => Vec::new(),
        WayKind::Index => {
            let create = format!("{collection}.createIndex({keys})");
            let mut lines = vec![mongosh(uri, &create)];
            if let Some(old) = &way.replaces {
                lines.push(mongosh(uri, &format!("{collection}.dropIndex({old})")));
            }
            lines
        }
        WayKind::Order => {
            let mut lines = Vec::new();
            if !advice
                .collection
                .indexes
                .iter()
                .any(|known| begins(known, keys))
            {
                lines.push(mongosh(uri, &format!("{collection}.createIndex({keys})")));
            }
            let (uri, namespace) = (shell_quoted(uri), shell_quoted(&advice.namespace));
            let by = shell_quoted(keys);
            lines.push(format!("seekscope reorder {uri} {namespace} --by {by}"));
            lines
        }
        WayKind::Buckets => vec![mongosh(uri, &migration(advice, way, keys))],
    }
}

/// Returns whether an index has these keys or begins with them. Both are texts as a server's document prints itself.
fn begins(known: &str, keys: &str) -> bool {
    known.starts_with(keys.trim_end_matches('}').trim_end())
}

/// Returns a script that makes buckets of the present documents in a collection beside the present one.
fn migration(advice: &AdviceRecord, way: &StoringWay, keys: &str) -> String {
    let collection = mongosh_collection(&advice.namespace);
    let name = advice
        .namespace
        .split_once('.')
        .map_or("", |(_, name)| name);
    let buckets = javascript_text(&format!("{name}_buckets"));
    let span_ms = way.bucket_ms.unwrap_or(1);
    format!(
        "const keys = Object.keys({keys}), time = keys.pop(); \
         const ms = {{$toLong: \"$\" + time}}, start = {{$toDate: {{$subtract: [ms, {{$mod: [ms, {span_ms}]}}]}}}}; \
         const id = Object.fromEntries(keys.map((k, n) => [\"k\" + n, \"$\" + k])); \
         const kept = Object.fromEntries(keys.map((k, n) => [k, \"$_id.k\" + n])); \
         {collection}.aggregate([{{$sort: {{[time]: 1}}}}, {{$group: {{_id: {{...id, start: start}}, samples: \
         {{$push: \"$$ROOT\"}}}}}}, {{$sort: {{\"_id.start\": 1}}}}, {{$project: {{_id: 0, ...kept, [time]: \
         \"$_id.start\", samples: 1}}}}, {{$out: {buckets}}}], {{allowDiskUse: true}})"
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{AdviceVerdict, AdvisedCollection, TargetFacts};

    use super::*;

    fn told(way: StoringWay) -> Vec<String> {
        let mut document = RunDocument::begin("advise", Vec::new());
        document.target = Some(TargetFacts {
            uri: "mongodb://h/".into(),
            ..TargetFacts::default()
        });
        let advice = AdviceRecord {
            namespace: "shop.o\"r".into(),
            collection: AdvisedCollection {
                indexes: vec!["{ \"a\": 1, \"b\": 1 }".into()],
                ..AdvisedCollection::default()
            },
            ways: vec![StoringWay::default(), way],
            verdict: Some(AdviceVerdict {
                way: 1,
                also: Vec::new(),
            }),
            ..AdviceRecord::default()
        };
        commands(&document, &advice)
    }

    #[test]
    fn an_index_is_made_before_the_old_one_goes() {
        let lines = told(StoringWay {
            kind: WayKind::Index,
            keys: Some("{ \"b\": 1 }".into()),
            replaces: Some("{ \"c\": 1 }".into()),
            ..StoringWay::default()
        });
        assert!(
            lines[0].contains("getCollection(\"o\\\"r\").createIndex({ \"b\": 1 })"),
            "{lines:?}"
        );
        assert!(lines[1].contains("dropIndex({ \"c\": 1 })"), "{lines:?}");
    }

    #[test]
    fn an_order_needs_its_index() {
        let order = |keys: &str| {
            told(StoringWay {
                kind: WayKind::Order,
                keys: Some(keys.into()),
                ..StoringWay::default()
            })
        };
        assert_eq!(order("{ \"a\": 1 }").len(), 1);
        let lines = order("{ \"b\": 1 }");
        assert!(lines[0].contains("createIndex"), "{lines:?}");
        assert_eq!(
            lines[1],
            "seekscope reorder mongodb://h/ 'shop.o\"r' --by '{ \"b\": 1 }'"
        );
    }
}
