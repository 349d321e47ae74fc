//! What checkpoints cost, and which dirty limit would bound them on this disk.
//!
//! From the trace, where a checkpoint is what its threads wrote and synced; else from the server's
//! counters, which tell when one had ended and how long it took.

mod counted;
mod dirty_limit;

use std::ops::RangeInclusive;

use seekscope_pattern::Checkpoint;
use seekscope_stats::{Quantiles, median};
use serde::{Deserialize, Serialize};

use crate::Evidence;
pub(crate) use counted::{
    extra_per_s as extra_in_checkpoints, sides as sides_of_checkpoints,
    split as split_by_checkpoints,
};
pub use dirty_limit::DirtyLimit;
pub(crate) use dirty_limit::{CACHE_BYTES_MAX, DIRTY_BYTES};

const OF_TRACE: &str = "trace";
const OF_COUNTERS: &str = "serverStatus";

/// See the module.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckpointAnswer {
    /// In the order of time, from the trace or else from the server's counters.
    pub checkpoints: Vec<Checkpoint>,
    /// "trace" or "serverStatus".
    pub source: String,
    pub median_s: f64,
    pub longest_s: f64,
    /// Journal syncs while a checkpoint ran and otherwise, 99th percentile, ns.
    pub journal_during_p99_ns: Option<u64>,
    pub journal_otherwise_p99_ns: Option<u64>,
    /// Reads of application threads, likewise.
    pub reads_during_p99_ns: Option<u64>,
    pub reads_otherwise_p99_ns: Option<u64>,
    /// Operations per second while checkpoints ran over otherwise (1: no difference).
    pub throughput_ratio: Option<f64>,
    pub dirty_limit: Option<DirtyLimit>,
}

impl CheckpointAnswer {
    /// Time in which a checkpoint ran, s.
    pub fn total_s(&self) -> f64 {
        self.checkpoints.iter().map(seconds).sum()
    }

    /// The time in which checkpoints would have been seen, s.
    pub(crate) fn covered_s(&self, evidence: &Evidence<'_>) -> Option<f64> {
        if self.source == OF_TRACE {
            evidence.observed_s()
        } else {
            evidence.counted_s()
        }
    }

    /// … CLOCK_MONOTONIC ns.
    fn covered_ns(&self, evidence: &Evidence<'_>) -> RangeInclusive<u64> {
        let phase = evidence.document.phases.first();
        match phase.filter(|_| self.source == OF_TRACE) {
            Some(phase) => phase.started_ns..=phase.ended_ns,
            None => 0..=u64::MAX,
        }
    }

    /// Did one run at that moment (CLOCK_MONOTONIC ns)?
    pub(crate) fn runs_at(&self, t_ns: u64) -> bool {
        let at = self.checkpoints.partition_point(|c| c.ended_ns < t_ns);
        self.checkpoints
            .get(at)
            .is_some_and(|c| c.started_ns <= t_ns)
    }
}

/// How long it took, s.
pub(crate) fn seconds(checkpoint: &Checkpoint) -> f64 {
    checkpoint.ended_ns.saturating_sub(checkpoint.started_ns) as f64 / 1e9
}

pub(super) fn checkpoints(evidence: &Evidence<'_>) -> Option<CheckpointAnswer> {
    let traced = evidence
        .device_use
        .filter(|found| !found.checkpoints.is_empty());
    let of_trace = traced.map(|found| (found.checkpoints.clone(), OF_TRACE));
    let of_counters = || Some((counted::checkpoints(evidence)?, OF_COUNTERS));
    // A trace that was ended early did not see those that came later.
    let (checkpoints, source) = if evidence.counters_outlast_trace() {
        of_counters().or(of_trace)
    } else {
        of_trace.or_else(of_counters)
    }?;
    let lengths: Vec<f64> = checkpoints.iter().map(seconds).collect();
    let mut answer = CheckpointAnswer {
        source: source.into(),
        median_s: median(&lengths)?,
        longest_s: lengths.iter().copied().fold(0.0, f64::max),
        checkpoints,
        ..CheckpointAnswer::default()
    };
    if let Some(found) = traced {
        let p99 = |latency: &Quantiles| (latency.count > 0).then_some(latency.p99);
        answer.journal_during_p99_ns = p99(&found.journal_during_ns);
        answer.journal_otherwise_p99_ns = p99(&found.journal_otherwise_ns);
        answer.reads_during_p99_ns = p99(&found.reads_during_ns);
        answer.reads_otherwise_p99_ns = p99(&found.reads_otherwise_ns);
    }
    answer.throughput_ratio = counted::throughput_ratio(evidence, &answer);
    answer.dirty_limit = dirty_limit::dirty_limit(evidence, &answer);
    Some(answer)
}

#[cfg(test)]
mod tests;
