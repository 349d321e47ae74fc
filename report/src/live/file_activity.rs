//! What one file was asked for of late.

use std::collections::VecDeque;

use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
use seekscope_run::IoEvent;
use seekscope_stats::quantile_sorted;

use super::counts::Counts;
use super::heat::HeatMap;
use super::recent::Recent;

/// Calls that latency and pattern are taken from.
const CALLS_KEPT: usize = 256;
/// Of a file that is only synced, or whose offsets are not known.
const NO_PATTERN: &str = "-";

/// Bounded whatever the rate.
#[derive(Debug, Clone)]
pub(super) struct FileActivity {
    /// Number of the slice of time of its last call.
    pub(super) last_slice: u64,
    pub(super) counts: Recent<Counts>,
    pub(super) heat: HeatMap,
    calls: VecDeque<IoEvent>,
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
        self.calls.push_back(*event);
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
        let mut analyser = TraceAnalyser::new(AnalysisOptions {
            slices_max: 1,
            files_max: 1,
            reorder_events: CALLS_KEPT,
            ..AnalysisOptions::default()
        });
        self.calls.iter().for_each(|call| analyser.push(call));
        let analysis = analyser.finish(&[], &[]);
        let file = analysis.files.first();
        let pattern = file.and_then(|f| f.reads.pattern.as_ref().or(f.writes.pattern.as_ref()));
        pattern.map_or(NO_PATTERN, |pattern| pattern.kind.name())
    }
}
