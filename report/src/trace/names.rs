//! Names files and times in tables and sentences.

use seekscope_pattern::{CacheCounts, Transfers};
use seekscope_run::{FileRecord, PathState};

use crate::escape::shortened;

const SENTENCE_NAME_CHARS: usize = 80;

/// Returns namespace and name, of several members' files with the member in front; marks a file that was deleted.
pub(super) fn file_name(file: &FileRecord) -> String {
    let deleted = match file.path_state {
        PathState::Deleted => ", deleted",
        _ => "",
    };
    match file.labelled_namespace() {
        Some(namespace) => format!("{namespace} ({}{deleted})", file.name()),
        None if deleted.is_empty() => file.labelled_name(),
        None => format!("{} (deleted)", file.labelled_name()),
    }
}

/// Returns [`file_name`], shortened for sentences.
pub(super) fn short_name(file: &FileRecord) -> String {
    shortened(&file_name(file), SENTENCE_NAME_CHARS)
}

/// Returns the number of reads for which the source of the bytes is known.
pub(super) fn known_outcomes(cache: &CacheCounts) -> u64 {
    cache.hits + cache.misses + cache.waited_for_others + cache.direct
}

/// Returns the share of reads that the page cache served; `None` where no outcome is known.
pub(super) fn hit_share(cache: &CacheCounts) -> Option<f64> {
    let known = known_outcomes(cache);
    (known > 0).then(|| cache.hits as f64 / known as f64)
}

/// Returns the sum of all latencies, ns; each of several parallel calls counts.
pub(super) fn time_in(transfers: &Transfers) -> u64 {
    transfers
        .latency_ns
        .mean
        .saturating_mul(transfers.latency_ns.count)
}
