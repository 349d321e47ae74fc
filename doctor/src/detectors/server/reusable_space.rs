//! `space.reusable`: much of a large file is free, and something can be done about it.

use seekscope_run::units::format_bytes;
use seekscope_run::{Finding, Gain};

use super::Detector;
use crate::answers::SpaceAnswer;
use crate::namespaces::is_internal;
use crate::wording::{mongosh, percent};
use crate::{Answers, Evidence};

pub(super) const DETECTOR: Detector = Detector {
    ids: &["space.reusable"],
    detect,
};

/// Smallest free share. Every file that is written to has some; `compact` itself begins at a fifth.
const FREE_SHARE_MIN: f64 = 0.25;
/// Fewest free bytes; less is not worth the effort.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// Files of the storage engine itself, which no command compacts.
const ENGINE_FILES: &str = "WiredTiger";
/// Share of the volume; less makes no difference to it.
const VOLUME_SHARE_MIN: f64 = 0.005;

fn detect(evidence: &Evidence<'_>, answers: &Answers) -> Vec<Finding> {
    let volume_bytes = evidence.device().map_or(0, |device| device.size_bytes);
    let large = answers.space.iter().filter(|answer| {
        !is_internal(&answer.name)
            && !answer.name.starts_with(ENGINE_FILES)
            && answer.free_share() >= FREE_SHARE_MIN
            && answer.free_bytes >= FREE_BYTES_MIN
            && answer.free_bytes as f64 >= VOLUME_SHARE_MIN * volume_bytes as f64
    });
    large.map(|answer| finding(evidence, answer)).collect()
}

fn finding(evidence: &Evidence<'_>, answer: &SpaceAnswer) -> Finding {
    let free = format_bytes(answer.free_bytes);
    let share = percent(answer.free_share());
    let mut sentences = vec![format!(
        "{free} of {} are free for reuse ({share}); they go into new documents, not back to the \
         filesystem (layout or collStats).",
        format_bytes(answer.file_bytes)
    )];
    sentences.push(answer.advice.clone());
    Finding {
        id: "space.reusable".into(),
        subject: answer.name.clone(),
        title: format!("{share} of the file of {} is empty: {free}", answer.name),
        evidence: sentences,
        gain: gain(answer),
        confidence: if answer.compact_gives_bytes.is_some() { "medium" } else { "low" }.into(),
        risk: match answer.compact_begins {
            Some(false) => "A rewrite needs room for a copy, and reads and writes all of it.",
            _ => {
                "compact takes a lock on its collection before MongoDB 4.4 and is load on the disk in all \
                 releases; a secondary first."
            }
        }
        .into(),
        command: command(evidence, answer),
        ..Finding::default()
    }
}

fn gain(answer: &SpaceAnswer) -> Option<Gain> {
    let best = answer.compact_gives_bytes?;
    let least = answer.compact_gives_at_least_bytes()?;
    Some(Gain {
        value: (best + least) as f64 / 2.0,
        low: least as f64,
        high: best as f64,
        unit: "bytes".into(),
    })
}

/// Returns the command. An index is compacted with its collection. Where `compact` would give up, a
/// collection can be rewritten; an index would have to be rebuilt.
fn command(evidence: &Evidence<'_>, answer: &SpaceAnswer) -> String {
    let (namespace, is_index) = match answer.name.split_once('/') {
        Some((namespace, _)) => (namespace, true),
        None => (answer.name.as_str(), false),
    };
    // The name of a file that belongs to no collection is `collection-7.wt`.
    let known = !namespace.ends_with(".wt");
    let Some((database, collection)) = namespace.split_once('.').filter(|_| known) else {
        return String::new();
    };
    match (answer.compact_begins, is_index) {
        (Some(false), true) => return String::new(),
        (Some(false), false) => {
            return evidence.reorder(namespace).unwrap_or_default();
        }
        _ => {}
    }
    let [database, collection] = [database, collection].map(crate::wording::javascript_text);
    let script = format!("db.getSiblingDB({database}).runCommand({{compact: {collection}}})");
    mongosh(evidence.uri(), &script)
}

#[cfg(test)]
mod tests {
    use seekscope_run::LayoutFile;

    use super::*;
    use crate::testing::{GIB, Recording};

    fn with_free(free_bytes: u64) -> Recording {
        let mut recording = Recording::new();
        recording.layout(LayoutFile {
            namespace: Some("shop.orders".into()),
            file_bytes: 20 * GIB,
            free_bytes,
            free_in_first_80_percent_bytes: Some(free_bytes),
            free_in_first_90_percent_bytes: Some(free_bytes),
            ..LayoutFile::default()
        });
        recording
    }

    #[test]
    fn ill() {
        let found = with_free(12 * GIB).findings(&DETECTOR);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].title,
            "60 % of the file of shop.orders is empty: 12.0 GiB"
        );
        let gain = found[0].gain.as_ref().unwrap();
        assert!(
            gain.low < gain.value && gain.high == (12 * GIB) as f64,
            "{gain:?}"
        );
        assert!(found[0].command.contains("compact"), "{found:?}");
    }

    #[test]
    fn where_compact_would_give_up_it_is_not_proposed() {
        let with = |index: Option<&str>| {
            let mut recording = Recording::new();
            recording.layout(LayoutFile {
                namespace: Some("shop.orders".into()),
                index: index.map(String::from),
                file_bytes: 20 * GIB,
                free_bytes: 12 * GIB,
                free_in_first_80_percent_bytes: Some(0),
                free_in_first_90_percent_bytes: Some(0),
                ..LayoutFile::default()
            });
            let found = recording.findings(&DETECTOR).remove(0);
            assert!(!found.risk.contains("compact"), "{found:?}");
            found.command
        };
        assert_eq!(
            with(None),
            "seekscope reorder mongodb://db1:27017/ shop.orders"
        );
        assert_eq!(with(Some("a_1")), "");
    }

    #[test]
    fn healthy() {
        assert_eq!(Recording::new().findings(&DETECTOR), []);
        assert_eq!(with_free(3 * GIB).findings(&DETECTOR), []);
        let mut small = with_free(12 * GIB);
        small.device().size_bytes = 8_000 * GIB;
        assert_eq!(small.findings(&DETECTOR), []);
    }
}
