//! `index.unused`: an index that no query has used, and that every write pays for; and `index.write-cost`: several of
//! them that much of the writing is for, seen for less time.

use seekscope_run::units::{format_bytes, whole};
use seekscope_run::{CollectionFacts, Finding, IndexFacts};

use super::Detector;
use crate::wording::{duration, javascript_text, mongosh, mongosh_collection, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["index.unused", "index.write-cost"],
    detect,
};

/// The server counts from its start; a report may use an index once a week.
const COUNTED_S_MIN: f64 = 7.0 * 86_400.0;
/// Smaller indexes cost next to nothing.
const BYTES_MIN: u64 = 64 << 20;
/// How many make a finding of their own, however short the server has counted.
const TOGETHER_MIN: usize = 3;
/// Documents inserted and deleted per second, each of which changes every index.
const CHANGED_PER_S_MIN: f64 = 100.0;
/// Share of what is written to the collection and its indexes.
const WRITTEN_SHARE_MIN: f64 = 0.2;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let indexes = collections.iter().flat_map(|collection| {
        collection
            .indexes
            .iter()
            .map(|index| (&collection.namespace, index))
    });
    let each = indexes
        .filter(|(_, index)| is_unused(index))
        .map(|(namespace, index)| finding(evidence, answers, namespace, index));
    let costly = collections
        .iter()
        .filter_map(|collection| together(evidence, answers, collection));
    each.chain(costly).collect()
}

fn is_unused(index: &IndexFacts) -> bool {
    nobody_used(index)
        && index.counted_s.is_some_and(|s| s >= COUNTED_S_MIN)
        && index.bytes >= BYTES_MIN
}

fn nobody_used(index: &IndexFacts) -> bool {
    index.uses == Some(0) && index.name != "_id_" && !index.building && !index.has_a_duty()
}

/// Returns a finding of a collection's indexes that nobody used so far, as far as much is written to them.
fn together(
    evidence: &Evidence<'_>,
    answers: &Answers,
    collection: &CollectionFacts,
) -> Option<Finding> {
    let indexes = collection.indexes.iter();
    let unused: Vec<&IndexFacts> = indexes
        .filter(|index| nobody_used(index) && !is_unused(index))
        .collect();
    let rate = |what: &str| evidence.status_rate(&[&format!("metrics.document.{what}")]);
    let changed = rate("inserted").unwrap_or(0.0) + rate("deleted").unwrap_or(0.0);
    if unused.len() < TOGETHER_MIN || changed < CHANGED_PER_S_MIN {
        return None;
    }
    let namespace = &collection.namespace;
    let (mut written, mut all) = (0.0, 0.0);
    for user in answers.device_users.iter().filter(|user| user.writes) {
        let name = user.namespace.as_deref().unwrap_or_default();
        let index = match name.strip_prefix(namespace.as_str()) {
            Some("") => None,
            Some(rest) if rest.starts_with('/') => Some(&rest[1..]),
            _ => continue,
        };
        all += user.bytes_per_s;
        if index.is_some_and(|name| unused.iter().any(|index| index.name == name)) {
            written += user.bytes_per_s;
        }
    }
    let share = written / all.max(1.0);
    if share < WRITTEN_SHARE_MIN {
        return None;
    }
    let counted_s = unused.iter().filter_map(|index| index.counted_s);
    let counted = duration(counted_s.reduce(f64::min)?);
    let names: Vec<&str> = unused.iter().map(|index| index.name.as_str()).collect();
    let writing_s = evidence.writing_to_s_per_hour(collection);
    Some(Finding {
        id: "index.write-cost".into(),
        title: format!(
            "Each new document of {namespace} is entered into {} indexes that no query has used so far",
            unused.len()
        ),
        subject: namespace.clone(),
        evidence: vec![
            format!(
                "{} of what was written to the collection's files, {}/s of {}/s, went to these indexes, while {changed:.0} \
                 documents per second were inserted or deleted (trace, serverStatus).",
                percent(share),
                format_bytes(whole(written)),
                format_bytes(whole(all))
            ),
            format!(
                "No query used them in the {counted} that the server has counted: {} ($indexStats of this member).",
                names.join(", ")
            ),
        ]
        .into_iter()
        .chain(writing_s.map(|s| {
            format!(
                "Its writes took {} per hour (top); if no query needs these indexes, that share of it is spared.",
                duration(s)
            )
        }))
        .collect(),
        saves_s_per_hour: writing_s.map(|s| s * share),
        confidence: "low".into(),
        risk: DROPPING_RISK.into(),
        command: mongosh(
            evidence.uri(),
            &format!(
                "{}.aggregate([{{$indexStats: {{}}}}])",
                mongosh_collection(namespace)
            ),
        ),
        ..Finding::default()
    })
}

const DROPPING_RISK: &str = "Queries on other members and rare reports may need it all the same: look at every member, \
     then hide it (MongoDB 4.4 and later) before dropping it. A hidden index is kept up to date: what it costs is spared \
     when it is dropped.";

fn finding(
    evidence: &Evidence<'_>,
    answers: &Answers,
    namespace: &str,
    index: &IndexFacts,
) -> Finding {
    let subject = format!("{namespace}/{}", index.name);
    let counted = duration(index.counted_s.unwrap_or(0.0));
    let mut sentences = vec![format!(
        "No query used {} of {} in {counted} ($indexStats of this member).",
        index.keys,
        format_bytes(index.bytes)
    )];
    let users = answers
        .device_users
        .iter()
        .filter(|user| user.namespace.as_ref() == Some(&subject));
    let waiting = users
        .map(|user| user.waiting_s_per_s * 3600.0)
        .reduce(|a, b| a + b);
    sentences.extend(waiting.map(|s| {
        format!(
            "Reading and writing it takes {} of waiting per hour (trace).",
            duration(s)
        )
    }));
    Finding {
        id: "index.unused".into(),
        title: format!(
            "The index {} of {namespace} was not used in {counted}, and takes {}",
            index.name,
            format_bytes(index.bytes)
        ),
        subject,
        evidence: sentences,
        saves_s_per_hour: waiting,
        confidence: "low".into(),
        risk: DROPPING_RISK.into(),
        command: mongosh(
            evidence.uri(),
            &format!(
                "{}.hideIndex({})",
                mongosh_collection(namespace),
                javascript_text(&index.name)
            ),
        ),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRole, IndexOption};

    use super::*;
    use crate::testing::{Call, GIB, Recording};

    fn with_index(index: IndexFacts) -> Recording {
        let mut recording = Recording::new();
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            indexes: vec![index],
            ..CollectionFacts::default()
        }];
        recording
    }

    fn unused() -> IndexFacts {
        IndexFacts {
            name: "legacy_1".into(),
            keys: r#"{"legacy":1}"#.into(),
            bytes: GIB,
            uses: Some(0),
            counted_s: Some(30.0 * 86_400.0),
            ..IndexFacts::default()
        }
    }

    #[test]
    fn ill() {
        let found = with_index(unused()).findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject, "shop.orders/legacy_1");
        assert!(
            found[0].command.contains(r#"hideIndex("legacy_1")"#),
            "{found:?}"
        );
    }

    /// Inserts into a collection with this many indexes that nobody used, each of which is written as much as it.
    fn inserting(indexes: usize, used: u64, inserted: f64) -> Vec<Finding> {
        let index = |n: usize| IndexFacts {
            name: format!("f{n}_1"),
            bytes: 1 << 20,
            uses: Some(used),
            counted_s: Some(45.0),
            ..IndexFacts::default()
        };
        let mut recording = with_index(unused());
        recording.examined().collections[0].writing_ns = Some(40_000_000_000);
        recording.examined().collections[0].indexes = (0..indexes).map(index).collect();
        recording.rising("metrics.document.inserted", inserted);
        let tid = recording.thread("WTEvict");
        let names = (0..indexes).map(|n| format!("f{n}_1"));
        for name in std::iter::once(None).chain(names.map(Some)) {
            let path = format!("{}.wt", name.as_deref().unwrap_or("collection"));
            let role = match name {
                Some(_) => FileRole::Index,
                None => FileRole::Collection,
            };
            let namespace = name.map_or("shop.orders".into(), |name| format!("shop.orders/{name}"));
            let file_id = recording.file(&path, role, Some(&namespace));
            for second in 0..50_u32 {
                recording.write(Call {
                    tid,
                    file_id,
                    at_s: f64::from(second),
                    offset: u64::from(second) << 20,
                    bytes: 1 << 20,
                    latency_s: 1e-4,
                });
            }
        }
        recording.findings(&DETECTOR)
    }

    #[test]
    fn indexes_that_much_is_written_to_are_named_however_short_they_were_counted() {
        let found = inserting(4, 0, 2_500.0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].id, "index.write-cost");
        assert!(
            found[0].evidence[0].starts_with("80 % of what was written"),
            "{found:?}"
        );
        assert!(found[0].evidence[1].contains("in the 45.0 s"), "{found:?}");
        let saved = found[0].saves_s_per_hour.unwrap();
        assert!((saved - 40.0 * 60.0 * 0.8).abs() < 100.0, "{saved}");
        assert_eq!(inserting(4, 7, 2_500.0), []);
        assert_eq!(inserting(4, 0, 5.0), []);
        assert_eq!(inserting(2, 0, 2_500.0), []);
    }

    #[test]
    fn healthy() {
        let change = |change: fn(&mut IndexFacts)| {
            let mut index = unused();
            change(&mut index);
            with_index(index).findings(&DETECTOR)
        };
        assert_eq!(change(|index| index.uses = Some(1)), []);
        assert_eq!(change(|index| index.uses = None), []);
        assert_eq!(change(|index| index.counted_s = Some(3600.0)), []);
        assert_eq!(change(|index| index.bytes = 4096), []);
        assert_eq!(change(|index| index.name = "_id_".into()), []);
        let unique = change(|index| index.options = vec![IndexOption::Unique]);
        assert_eq!(unique, [], "it keeps others from being the same");
    }
}
