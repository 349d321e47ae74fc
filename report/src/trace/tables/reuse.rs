//! Shows what a cache of a given size would have to read.

use seekscope_pattern::ReuseDistances;
use seekscope_run::units::{format_bytes, format_count};

use super::super::TraceReportInput;
use crate::numbers::format_share;
use crate::table::Table;

/// The most rows: each size is a power of two times the one before.
const ROWS_MAX: usize = 10;

/// Returns sizes from the smallest that serves anything to the one that serves all it can, evenly spaced.
pub(in super::super) fn cache_size_steps(reuse: &ReuseDistances) -> Vec<u64> {
    let mut sizes: Vec<u64> = reuse
        .distances
        .iter()
        .map(|d| {
            d.distance_bytes
                .checked_next_power_of_two()
                .unwrap_or(u64::MAX)
        })
        .collect();
    sizes.dedup();
    sizes
}

/// Returns miss ratios of LRU caches.
pub(in super::super) fn cache_sizes(input: &TraceReportInput<'_>) -> Option<Table> {
    let reuse = &input.analysis.reuse;
    let sizes = cache_size_steps(reuse);
    let step = sizes.len().div_ceil(ROWS_MAX).max(1);
    let mut table = Table::new(0, &["cache", "misses of the pages read", "page reads"]);
    // The largest comes last, whatever the step.
    for &size in sizes.iter().rev().step_by(step).rev() {
        if let Some(ratio) = reuse.miss_ratio(size) {
            table.row([
                format_bytes(size).into(),
                format_share(ratio).into(),
                format_count(reuse.references).into(),
            ]);
        }
    }
    table.or_nothing()
}
