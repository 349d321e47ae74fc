//! What to type to store the collection in the advised way.

use seekscope_doctor::wording::{mongosh, mongosh_collection};
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
    let target = document.target.as_ref();
    let asked = target.map_or("", |target| target.uri.as_str());
    let uri = advice.write_uri.as_deref().unwrap_or(asked);
    let keys = way.keys.as_deref().unwrap_or("{}");
    let mut lines = Vec::new();
    if way.creates_index && way.kind != WayKind::Buckets {
        let each = std::iter::once(keys).chain(way.more_keys.iter().map(String::as_str));
        let collection = mongosh_collection(&advice.namespace);
        lines.extend(each.map(|keys| mongosh(uri, &format!("{collection}.createIndex({keys})"))));
    }
    match way.kind {
        WayKind::Present | WayKind::Indexes | WayKind::GrowingId => {}
        WayKind::Index | WayKind::Covering => {
            let old = way.replaces.as_deref();
            lines.extend(
                old.into_iter()
                    .flat_map(|old| removal(uri, &advice.namespace, old)),
            );
        }
        WayKind::Order => {
            let (uri, namespace) = (shell_quoted(uri), shell_quoted(&advice.namespace));
            let by = shell_quoted(keys);
            lines.push(format!(
                "seekscope reorder {uri} {namespace} --by {by} --apply --quiesced"
            ));
        }
        WayKind::Buckets => lines.push(mongosh(uri, &migration(advice, way, keys))),
        WayKind::Compressor => lines.extend(
            way.compressor
                .as_deref()
                .map(|name| mongosh(uri, &compressed_copy(advice, name))),
        ),
    }
    lines
}

/// Returns the lines that remove an index of no more use. Pasted with the others they do nothing: queries that were not seen
/// may need it.
fn removal(uri: &str, namespace: &str, old: &str) -> [String; 2] {
    let collection = mongosh_collection(namespace);
    let hide = mongosh(uri, &format!("{collection}.hideIndex({old})"));
    let drop = mongosh(uri, &format!("{collection}.dropIndex({old})"));
    [
        format!(
            "# Hide the old index (unhideIndex undoes this at once) and check whether anything gets slower: {hide}"
        ),
        format!("# Once you are sure that nothing has become slower, drop it: {drop}"),
    ]
}

/// Returns a script that makes buckets of the present documents in a collection beside the present one, with the stages
/// of the trial.
fn migration(advice: &AdviceRecord, way: &StoringWay, keys: &str) -> String {
    let from = mongosh_collection(&advice.namespace);
    let to = mongosh_collection(&format!("{}_buckets", advice.namespace));
    let span_ms = way.bucket_ms.unwrap_or(1);
    format!(
        "const from = {from}, to = {to}; \
         if (to.exists()) throw new Error(to.getFullName() + \" exists already: rename it or drop it first\"); \
         const keys = Object.keys({keys}), time = keys.pop(), each = (name, value) => \
         Object.fromEntries(keys.map((k, n) => [name(k, n), value(k, n)])); \
         const number = {{$divide: [{{$toLong: \"$\" + time}}, {span_ms}]}}, \
         start = {{$toDate: {{$multiply: [{{$floor: number}}, {span_ms}]}}}}, \
         id = each((k, n) => \"k\" + n, k => \"$\" + k), \
         without = each(k => \"samples.\" + k, () => 0), \
         kept = each(k => k, (k, n) => \"$_id.k\" + n); \
         from.aggregate([{{$sort: {{[time]: 1}}}}, {{$group: {{_id: {{start: start, ...id}}, samples: {{$push: \
         \"$$ROOT\"}}}}}}, {{$sort: {{_id: 1}}}}, {{$project: {{\"samples._id\": 0, ...without}}}}, {{$project: {{_id: 0, \
         [time]: \"$_id.start\", samples: 1, ...kept}}}}, {{$out: to.getName()}}], {{allowDiskUse: true}}); \
         to.createIndex({keys})"
    )
}

/// Returns a script that copies the documents to a collection beside the present one, with its options and indexes and
/// another compressor.
fn compressed_copy(advice: &AdviceRecord, compressor: &str) -> String {
    let from = mongosh_collection(&advice.namespace);
    let to = mongosh_collection(&format!("{}_{compressor}", advice.namespace));
    format!(
        "const from = {from}, to = {to}; \
         if (to.exists()) throw new Error(to.getFullName() + \" exists already: rename it or drop it first\"); \
         const options = from.exists().options || {{}}, database = to.getDB(); \
         const settings = (((options.storageEngine || {{}}).wiredTiger || {{}}).configString || \"\").split(\",\"); \
         const kept = settings.filter(setting => setting && !setting.startsWith(\"block_compressor=\")); \
         options.storageEngine = {{wiredTiger: {{configString: [...kept, \"block_compressor={compressor}\"].join()}}}}; \
         const plain = options.collation ? {{collation: {{locale: \"simple\"}}}} : {{}}; \
         database.createCollection(to.getName(), options); \
         from.getIndexes().filter(index => index.name !== \"_id_\").forEach(({{v, ns, key, ...rest}}) => \
         to.createIndex(key, {{...plain, ...rest}})); \
         from.aggregate([{{$out: to.getName()}}], {{allowDiskUse: true, bypassDocumentValidation: true}})"
    )
}

#[cfg(test)]
mod tests {
    use seekscope_run::{AdviceVerdict, TargetFacts};

    use super::*;

    fn told(way: StoringWay) -> Vec<String> {
        let mut document = RunDocument::begin("advise", Vec::new());
        document.target = Some(TargetFacts {
            uri: "mongodb://h/".into(),
            ..TargetFacts::default()
        });
        let advice = AdviceRecord {
            namespace: "shop.o\"r".into(),
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
    fn an_index_is_made_and_the_old_one_goes_later() {
        let index = |keys: &str, replaces: Option<&str>| {
            told(StoringWay {
                kind: WayKind::Index,
                keys: Some(keys.into()),
                creates_index: true,
                replaces: replaces.map(Into::into),
                ..StoringWay::default()
            })
        };
        let lines = index("{ \"b\": 1 }", Some("{ \"c\": 1 }"));
        assert!(
            lines[0].contains("getCollection(\"o\\\"r\").createIndex({ \"b\": 1 })"),
            "{lines:?}"
        );
        assert!(lines[1].starts_with("# Hide"), "{lines:?}");
        assert!(lines[1].contains("hideIndex({ \"c\": 1 })"), "{lines:?}");
        assert!(lines[2].starts_with("# Once"), "{lines:?}");
        assert!(lines[2].contains("dropIndex({ \"c\": 1 })"), "{lines:?}");
        let several = told(StoringWay {
            kind: WayKind::Indexes,
            keys: Some("{ \"b\": 1 }".into()),
            more_keys: vec!["{ \"c\": 1 }".into()],
            creates_index: true,
            ..StoringWay::default()
        });
        let made = ["createIndex({ \"b\": 1 })", "createIndex({ \"c\": 1 })"];
        assert_eq!(several.len(), 2);
        assert!(
            several
                .iter()
                .zip(made)
                .all(|(line, made)| line.contains(made)),
            "{several:?}"
        );
    }

    #[test]
    fn an_order_needs_its_index_and_is_made() {
        let order = |creates_index| {
            told(StoringWay {
                kind: WayKind::Order,
                keys: Some("{ \"b\": 1 }".into()),
                creates_index,
                ..StoringWay::default()
            })
        };
        let reorder =
            "seekscope reorder mongodb://h/ 'shop.o\"r' --by '{ \"b\": 1 }' --apply --quiesced";
        assert_eq!(order(false), [reorder]);
        let lines = order(true);
        assert!(lines[0].contains("createIndex"), "{lines:?}");
        assert_eq!(lines[1], reorder);
    }

    #[test]
    fn a_compressed_copy_overwrites_nothing() {
        let lines = told(StoringWay {
            kind: WayKind::Compressor,
            compressor: Some("zstd".into()),
            ..StoringWay::default()
        });
        let script = &lines[0];
        assert!(
            script.find("throw") < script.find("createCollection"),
            "{script}"
        );
        assert!(
            script.contains("block_compressor=zstd") && script.contains("o\\\"r_zstd"),
            "{script}"
        );
    }

    #[test]
    fn buckets_overwrite_nothing_and_get_their_index() {
        let lines = told(StoringWay {
            kind: WayKind::Buckets,
            keys: Some("{ \"m.d\": 1, \"ts\": 1 }".into()),
            creates_index: true,
            bucket_ms: Some(60_000),
            ..StoringWay::default()
        });
        let [script] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        let at = |part: &str| {
            script
                .find(part)
                .unwrap_or_else(|| panic!("{part}: {script}"))
        };
        assert!(at("if (to.exists()) throw") < at("$out"));
        assert!(at("$out") < at("to.createIndex({ \"m.d\": 1, \"ts\": 1 })"));
        assert!(at("$floor") < at("\"samples._id\": 0"));
    }
}
