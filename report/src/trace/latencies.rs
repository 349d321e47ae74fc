//! Collects whole distributions of latencies by what a call found, as events pass.

use hdrhistogram::Histogram;
use seekscope_run::{CacheOutcome, IoEvent, IoKind, IoLayer, latency_histogram};

use crate::html::charts::LineChart;
use crate::html::percentiles;

/// Id of the figure.
pub(super) const ID: &str = "chart-latency";

const LABELS: [&str; 7] = [
    "reads from the page cache",
    "reads from the disk",
    "reads that waited for other reads",
    "direct reads",
    "reads of unknown origin",
    "writes",
    "syncs",
];

/// One histogram per label.
pub(super) struct Latencies([Histogram<u64>; LABELS.len()]);

impl Latencies {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| latency_histogram()))
    }

    /// Counts a call; requests of disks are ignored.
    pub(super) fn count(&mut self, event: &IoEvent) {
        if event.op.layer() == IoLayer::Device {
            return;
        }
        let index = match (event.op.kind(), event.cache_outcome()) {
            (IoKind::Read, Some(CacheOutcome::Hit)) => 0,
            (IoKind::Read, Some(CacheOutcome::Miss)) => 1,
            (IoKind::Read, Some(CacheOutcome::WaitedForOthers)) => 2,
            (IoKind::Read, Some(CacheOutcome::Direct)) => 3,
            (IoKind::Read, None) => 4,
            (IoKind::Write, _) => 5,
            (IoKind::Sync, _) => 6,
            (IoKind::Discard, _) => return,
        };
        self.0[index].saturating_record(event.latency_ns);
    }

    /// Returns a curve for each kind that occurs.
    pub(super) fn chart(&self) -> Option<LineChart> {
        percentiles::chart(ID, LABELS.into_iter().zip(&self.0))
    }
}
