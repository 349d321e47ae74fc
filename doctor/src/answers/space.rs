//! Reports free bytes inside files, where they are, and what `compact` would give back.
//!
//! What `compact` does is WiredTiger's rule (`src/block/block_compact.c`, the same from 2.9 to 11): it moves
//! blocks from the last fifth or tenth of a file into holes before it, then truncates the file, and repeats
//! this while the rule holds for what is left.

use std::collections::HashSet;

use schemars::JsonSchema;
use seekscope_run::units::format_bytes;
use seekscope_run::{CollectionFacts, LayoutFile, labelled};
use serde::{Deserialize, Serialize};

use crate::Evidence;
use crate::wording::{duration, percent};

/// Files up to this size are skipped by `compact`, and this much must be free for it to begin.
const COMPACT_BYTES_MIN: u64 = 1 << 20;
/// The free share below which nothing need be done: new documents go into the holes.
const FREE_SHARE_MIN: f64 = 0.1;

/// The space in one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SpaceAnswer {
    /// `database.collection` or `database.collection/index`; else the file's name.
    pub name: String,
    pub file_bytes: u64,
    pub free_bytes: u64,
    /// Free bytes at the end of the file, which can simply be truncated; null if unknown.
    pub free_at_end_bytes: Option<u64>,
    /// Bytes that `compact` can give back at best; WiredTiger gives up if less than 20 % of the file is free in
    /// its first 80 % and less than 10 % in its first 90 %. null if it would do nothing or that is unknown.
    pub compact_gives_bytes: Option<u64>,
    /// Whether `compact` would begin at all; null if unknown.
    pub compact_begins: Option<bool>,
    /// Bytes that a rewrite (`reorder`, resync) gives back.
    pub rewrite_gives_bytes: u64,
    /// One sentence for people.
    pub advice: String,
}

/// Returns the files, the most free bytes first.
pub(super) fn space(evidence: &Evidence<'_>) -> Vec<SpaceAnswer> {
    let walked = evidence.layout_files().iter();
    let measured = walked.filter(|file| file.not_measured.is_none() && file.file_bytes > 0);
    let mut answers: Vec<SpaceAnswer> = measured.map(of_walked).collect();
    let known: HashSet<String> = answers.iter().map(|a| a.name.clone()).collect();
    let collections = evidence.examined().map_or(&[][..], |m| &m.collections);
    let told = collections.iter().flat_map(of_told);
    answers.extend(told.filter(|answer| !known.contains(&answer.name)));
    answers.sort_by_key(|answer| std::cmp::Reverse(answer.free_bytes));
    answers
}

impl SpaceAnswer {
    /// Returns the free share (0..=1) of the file.
    pub fn free_share(&self) -> f64 {
        self.free_bytes as f64 / self.file_bytes.max(1) as f64
    }

    /// Returns what `compact` gives back at least if it begins at all: it ends when less than a tenth of what
    /// is left is free.
    pub fn compact_gives_at_least_bytes(&self) -> Option<u64> {
        let used = self.file_bytes.saturating_sub(self.free_bytes);
        let best = self.compact_gives_bytes?;
        Some(best.saturating_sub(used / 9))
    }
}

/// Returns the name used in answers and findings.
pub(crate) fn name_of(file: &LayoutFile) -> String {
    let name = match (&file.namespace, &file.index) {
        (Some(namespace), Some(index)) => format!("{namespace}/{index}"),
        (Some(namespace), None) => namespace.clone(),
        (None, _) => file.file.clone(),
    };
    labelled(file.member.as_deref(), &name)
}

fn of_walked(file: &LayoutFile) -> SpaceAnswer {
    let compact = compacts(file);
    let mut answer = SpaceAnswer {
        name: name_of(file),
        file_bytes: file.file_bytes,
        free_bytes: file.free_bytes,
        free_at_end_bytes: file.free_at_end_bytes,
        compact_gives_bytes: compact.and_then(|begins| begins.then_some(file.free_bytes)),
        compact_begins: compact,
        rewrite_gives_bytes: file.free_bytes,
        advice: String::new(),
    };
    answer.advice = advice(&answer, compact, scan_times(file).as_deref());
    answer
}

/// Returns whether `compact` would begin. `None` where unknown.
fn compacts(file: &LayoutFile) -> Option<bool> {
    let tenth = file.file_bytes / 10;
    if file.file_bytes <= COMPACT_BYTES_MIN || file.free_bytes < tenth {
        return Some(false);
    }
    let first_80 = file.free_in_first_80_percent_bytes?;
    let first_90 = file.free_in_first_90_percent_bytes?;
    let enough = |free: u64, needed: u64| free > COMPACT_BYTES_MIN && free >= needed;
    Some(enough(first_80, 2 * tenth) || enough(first_90, tenth))
}

fn scan_times(file: &LayoutFile) -> Option<String> {
    let scan = file.predicted_scan.as_ref()?;
    Some(format!(
        "a cold scan takes {} now, {} after compact and {} after a rewrite",
        duration(scan.now_s),
        duration(scan.after_compact_s),
        duration(scan.ordered_s)
    ))
}

/// Builds answers from the server's own statistics: how much is free, not where.
fn of_told(collection: &CollectionFacts) -> Vec<SpaceAnswer> {
    let own = (
        collection.namespace.clone(),
        collection.storage_bytes,
        collection.reusable_bytes,
    );
    let indexes = collection.indexes.iter().map(|index| {
        let name = format!("{}/{}", collection.namespace, index.name);
        (name, index.bytes, index.reusable_bytes)
    });
    let files = std::iter::once(own).chain(indexes);
    files
        .filter_map(|(name, file_bytes, free_bytes)| {
            let free_bytes = free_bytes.filter(|_| file_bytes > 0)?;
            let compact = (free_bytes < file_bytes / 10).then_some(false);
            let mut answer = SpaceAnswer {
                name,
                file_bytes,
                free_bytes,
                compact_begins: compact,
                rewrite_gives_bytes: free_bytes,
                ..SpaceAnswer::default()
            };
            answer.advice = advice(&answer, compact, None);
            Some(answer)
        })
        .collect()
}

fn advice(answer: &SpaceAnswer, compact: Option<bool>, scan_times: Option<&str>) -> String {
    let free = format_bytes(answer.free_bytes);
    if answer.free_share() < FREE_SHARE_MIN {
        return format!(
            "Leave it: {free} ({}) are free, which new documents will use.",
            percent(answer.free_share())
        );
    }
    let mut text = match compact {
        Some(true) => format!(
            "compact gives back {} to {free}",
            format_bytes(answer.compact_gives_at_least_bytes().unwrap_or(0))
        ),
        Some(false) => format!(
            "compact would give up, for too little of the free {free} lies before the file's end, where \
             it moves blocks to; a rewrite gives it back"
        ),
        None => format!(
            "compact gives back {free} at most, and nothing where the holes lie at the file's end; \
             `seekscope layout` on the server's host tells which"
        ),
    };
    if let Some(times) = scan_times {
        text.push_str("; ");
        text.push_str(times);
    }
    text.push('.');
    text
}

#[cfg(test)]
mod tests {
    use seekscope_run::{IndexFacts, PredictedScan};

    use super::*;
    use crate::testing::Recording;

    const MIB: u64 = 1 << 20;

    fn file(first_80: u64, first_90: u64) -> LayoutFile {
        LayoutFile {
            file: "collection-1.wt".into(),
            namespace: Some("shop.orders".into()),
            file_bytes: 100 * MIB,
            free_bytes: 30 * MIB,
            free_in_first_80_percent_bytes: Some(first_80 * MIB),
            free_in_first_90_percent_bytes: Some(first_90 * MIB),
            ..LayoutFile::default()
        }
    }

    #[test]
    fn compact_begins_by_where_the_holes_are() {
        assert_eq!(compacts(&file(20, 20)), Some(true));
        assert_eq!(
            compacts(&file(19, 19)),
            Some(true),
            "a tenth of the first 90 %"
        );
        assert_eq!(compacts(&file(5, 9)), Some(false));
        let mut unknown = file(0, 0);
        unknown.free_in_first_80_percent_bytes = None;
        assert_eq!(compacts(&unknown), None);
        unknown.free_bytes = MIB;
        assert_eq!(compacts(&unknown), Some(false));
    }

    #[test]
    fn walked_files_go_before_what_the_server_tells() {
        let mut recording = Recording::new();
        let mut walked = file(30, 30);
        walked.predicted_scan = Some(PredictedScan {
            now_s: 30.0,
            after_compact_s: 25.0,
            ordered_s: 2.0,
            ..PredictedScan::default()
        });
        recording.layout(walked);
        recording.examined().collections = vec![CollectionFacts {
            namespace: "shop.orders".into(),
            storage_bytes: 1,
            reusable_bytes: Some(1),
            indexes: vec![IndexFacts {
                name: "a_1".into(),
                bytes: 80 * MIB,
                reusable_bytes: Some(40 * MIB),
                ..IndexFacts::default()
            }],
            ..CollectionFacts::default()
        }];
        let answers = recording.examine(|_, answers| answers.space.clone());
        let names: Vec<&str> = answers.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, ["shop.orders/a_1", "shop.orders"]);
        assert_eq!(answers[0].compact_gives_bytes, None);
        assert_eq!(answers[1].compact_gives_bytes, Some(30 * MIB));
        let at_least = answers[1].compact_gives_at_least_bytes().unwrap();
        assert!((22 * MIB..23 * MIB).contains(&at_least), "{at_least}");
        assert!(
            answers[1].advice.contains("25.0 s after compact"),
            "{}",
            answers[1].advice
        );
    }
}
