//! `index.unused`: an index that no query has used, and that every write pays for.

use seekscope_run::units::format_bytes;
use seekscope_run::{Finding, IndexFacts};

use super::Detector;
use crate::wording::{duration, javascript_text, mongosh, mongosh_collection};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["index.unused"],
    detect,
};

/// The server counts from its start; a report may use an index once a week.
const COUNTED_S_MIN: f64 = 7.0 * 86_400.0;
/// Smaller indexes cost next to nothing.
const BYTES_MIN: u64 = 64 << 20;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let indexes = collections.iter().flat_map(|collection| {
        collection
            .indexes
            .iter()
            .map(|index| (&collection.namespace, index))
    });
    indexes
        .filter(|(_, index)| is_unused(index))
        .map(|(namespace, index)| finding(evidence, answers, namespace, index))
        .collect()
}

fn is_unused(index: &IndexFacts) -> bool {
    index.uses == Some(0)
        && index.counted_s.is_some_and(|s| s >= COUNTED_S_MIN)
        && index.bytes >= BYTES_MIN
        && index.name != "_id_"
        && !index.building
}

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
        risk: "Queries on other members, rare reports, and unique or expiring (TTL) indexes need it all \
               the same: look at every member, then hide it (MongoDB 4.4 and later) before dropping it."
            .into(),
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
    use seekscope_run::CollectionFacts;

    use super::*;
    use crate::testing::{GIB, Recording};

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
    }
}
