//! Shows the numbers, section by section. There is no table without rows: what was not measured is not shown.

mod device;
mod files;
mod latency_text;
mod recording;
mod requests;
mod reuse;
mod threads;

pub(super) use device::{disks, file_and_disk, queues};
pub(super) use files::{latencies, reads, shapes, writes};
pub(crate) use latency_text::LatencyText;
pub(crate) use recording::{coverage, recording_facts};
pub(super) use requests::counted_requests;
pub(super) use reuse::{cache_size_steps, cache_sizes};
pub(super) use threads::{roles, threads};

/// Shown for a number that needs calls when there were none.
const NONE: &str = "none";
