//! Tracks the recent activity on one file.

use std::collections::VecDeque;

use hdrhistogram::Histogram;
use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_run::IoEvent;
use seekscope_run::latency::LATENCY_NS_MAX;

use super::counts::Counts;
use super::heat::HeatMap;
use super::recent::Recent;

/// Number of last calls kept, from which the pattern is derived.
const CALLS_KEPT: usize = 256;
/// Shown for a file that is only synced, or whose offsets are not known.
const NO_PATTERN: &str = "-";

/// Latencies of a slice of time, kept to 1 %.
#[derive(Debug, Clone)]
struct Latencies(Histogram<u32>);

impl Default for Latencies {
    fn default() -> Self {
        Self(latencies())
    }
}

/// Returns a histogram that grows with its largest value, to some ten kilobytes.
fn latencies() -> Histogram<u32> {
    match Histogram::new(2) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("a number of digits that the library accepts"),
    }
}

/// Activity of a file, in bounded memory whatever the rate.
#[derive(Debug, Clone)]
pub(super) struct FileActivity {
    /// Number of the slice of time of its last call.
    pub(super) last_slice: u64,
    pub(super) counts: Recent<Counts>,
    pub(super) heat: HeatMap,
    latencies: Recent<Latencies>,
    calls: VecDeque<IoEvent>,
}

impl FileActivity {
    /// Creates an activity that keeps counts of `slices` slices of time.
    pub(super) fn new(slices: u64) -> Self {
        Self {
            last_slice: 0,
            counts: Recent::new(slices),
            heat: HeatMap::new(),
            latencies: Recent::new(slices),
            calls: VecDeque::new(),
        }
    }

    pub(super) fn count(&mut self, slice: u64, event: &IoEvent) {
        self.last_slice = self.last_slice.max(slice);
        self.counts.at(slice).count(event);
        let latency_ns = event.latency_ns.min(LATENCY_NS_MAX);
        // The histogram grows for every value up to the longest.
        let _ = self.latencies.at(slice).0.record(latency_ns);
        let transfer = event.op.is_read() || event.op.is_write();
        let offset = event.offset.filter(|_| transfer);
        if let Some(offset) = offset {
            self.heat.count(slice, offset);
        }
        if self.calls.len() == CALLS_KEPT {
            self.calls.pop_front();
        }
        self.calls.push_back(*event);
    }

    /// Returns median and 99th percentile of the calls in the slices from `first` on, ns.
    pub(super) fn latency_ns(&self, first: u64) -> Option<(u64, u64)> {
        let mut all = latencies();
        for (_, slice) in self.latencies.since(first) {
            // Both grow as needed, so nothing can be out of range.
            let _ = all.add(&slice.0);
        }
        let quantile = |q| all.value_at_quantile(q);
        (!all.is_empty()).then(|| (quantile(0.5), quantile(0.99)))
    }

    /// Returns one word for the pattern of the last calls that ended from `first_ns` on: of reads, if there
    /// are any among them.
    pub(super) fn pattern(&self, first_ns: u64) -> &'static str {
        let mut analyser = TraceAnalyser::new(AnalysisOptions {
            slices_max: 1,
            files_max: 1,
            reorder_events: CALLS_KEPT,
            ..AnalysisOptions::default()
        });
        let recent = |call: &&IoEvent| call.t_ns.saturating_add(call.latency_ns) >= first_ns;
        let calls = self.calls.iter().filter(recent);
        calls.for_each(|call| analyser.push(call));
        let analysis = analyser.finish(&[], &[]);
        let file = analysis.files.first();
        let pattern = file.and_then(|f| f.reads.pattern.as_ref().or(f.writes.pattern.as_ref()));
        pattern.map_or(NO_PATTERN, |pattern| pattern.kind.name())
    }
}
