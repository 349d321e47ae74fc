//! What files and times are called in tables and sentences.

use seekscope_pattern::{CacheCounts, Transfers};
use seekscope_run::{FileRecord, PathState};

use crate::escape::shortened;

const SENTENCE_NAME_CHARS: usize = 80;

/// Namespace and name; a file that was deleted says so.
pub(super) fn file_name(file: &FileRecord) -> String {
    let deleted = match file.path_state {
        PathState::Deleted => ", deleted",
        _ => "",
    };
    match &file.namespace {
        Some(namespace) => format!("{namespace} ({}{deleted})", file.name()),
        None if deleted.is_empty() => file.name().to_string(),
        None => format!("{} (deleted)", file.name()),
    }
}

/// [`file_name`], as short as a sentence needs it.
pub(super) fn short_name(file: &FileRecord) -> String {
    shortened(&file_name(file), SENTENCE_NAME_CHARS)
}

/// Reads of which it is known where their bytes came from.
pub(super) fn known_outcomes(cache: &CacheCounts) -> u64 {
    cache.hits + cache.misses + cache.waited_for_others + cache.direct
}

/// Share of reads that the page cache had; `None` where it is not known of any.
pub(super) fn hit_share(cache: &CacheCounts) -> Option<f64> {
    let known = known_outcomes(cache);
    (known > 0).then(|| cache.hits as f64 / known as f64)
}

/// Sum of all latencies, ns; calls side by side count each.
pub(super) fn time_in(transfers: &Transfers) -> u64 {
    transfers
        .latency_ns
        .mean
        .saturating_mul(transfers.latency_ns.count)
}
