//! The numbers, section by section. A table without rows does not exist: what was not measured is
//! not shown.

mod device;
mod files;
mod recording;
mod reuse;
mod threads;

use seekscope_run::units::format_ns;
use seekscope_stats::Quantiles;

use crate::table::Cell;

pub(super) use device::{disks, file_and_disk, queues};
pub(super) use files::{latencies, reads, shapes, writes};
pub(crate) use recording::{coverage, recording_facts};
pub(super) use reuse::{cache_size_steps, cache_sizes};
pub(super) use threads::{roles, threads};

/// Where a number needs calls and there were none.
const NONE: &str = "none";

/// Median and 99th percentile.
fn p50_p99(latency_ns: &Quantiles) -> [Cell; 2] {
    let known = latency_ns.count > 0;
    [latency_ns.p50, latency_ns.p99].map(|ns| Cell::or(known.then(|| format_ns(ns)), NONE))
}
