//! What one file was asked for of late.

use std::collections::VecDeque;

use seekscope_run::IoEvent;
use seekscope_stats::quantile_sorted;

use super::counts::Counts;
use super::heat::HeatMap;
use super::recent::Recent;

/// Calls that latency and pattern are taken from.
const CALLS_KEPT: usize = 512;

/// One call, as far as it is needed.
#[derive(Debug, Clone, Copy)]
struct Call {
    read: bool,
    /// `None` for syncs and where it is not known.
    offset: Option<u64>,
    bytes: u64,
    latency_ns: u64,
}

/// Bounded whatever the rate.
#[derive(Debug, Clone)]
pub(super) struct FileActivity {
    /// Number of the slice of time of its last call.
    pub(super) last_slice: u64,
    pub(super) counts: Recent<Counts>,
    pub(super) heat: HeatMap,
    calls: VecDeque<Call>,
}

impl FileActivity {
    /// Keeps counts of `slices` slices of time.
    pub(super) fn new(slices: u64) -> Self {
        Self {
            last_slice: 0,
            counts: Recent::new(slices),
            heat: HeatMap::new(),
            calls: VecDeque::new(),
        }
    }

    pub(super) fn count(&mut self, slice: u64, event: &IoEvent) {
        self.last_slice = self.last_slice.max(slice);
        self.counts.at(slice).count(event);
        let transfer = event.op.is_read() || event.op.is_write();
        let offset = event.offset.filter(|_| transfer);
        if let Some(offset) = offset {
            self.heat.count(slice, offset);
        }
        if self.calls.len() == CALLS_KEPT {
            self.calls.pop_front();
        }
        self.calls.push_back(Call {
            read: event.op.is_read(),
            offset,
            bytes: event.bytes(),
            latency_ns: event.latency_ns,
        });
    }

    /// Median and 99th percentile of the calls kept, ns.
    pub(super) fn latency_ns(&self) -> Option<(u64, u64)> {
        let mut sorted: Vec<u64> = self.calls.iter().map(|call| call.latency_ns).collect();
        sorted.sort_unstable();
        Some((
            quantile_sorted(&sorted, 0.5)?,
            quantile_sorted(&sorted, 0.99)?,
        ))
    }

    /// One word for how the calls kept follow one another: reads, if there are any among them.
    pub(super) fn pattern(&self) -> &'static str {
        let reads = self.calls.iter().any(|call| call.read);
        let accesses = self.calls.iter().filter(|call| call.read == reads);
        let placed = accesses.filter_map(|call| Some((call.offset?, call.bytes)));
        super::pattern_word(placed)
    }
}
