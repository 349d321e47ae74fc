//! Works out what checkpoints cost, and which dirty limit would bound them on this disk.
//!
//! Their number and durations come from the server's own counters where available, else from the trace, where
//! a checkpoint is what its threads wrote and synced. `joined` adds what the trace saw to the counted ones,
//! and says where the two disagree.

mod counted;
mod dirty_limit;
mod joined;

use std::ops::RangeInclusive;

use schemars::JsonSchema;
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

/// The cost of checkpoints, and what would bound it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CheckpointAnswer {
    /// The checkpoints in order of time.
    pub checkpoints: Vec<Checkpoint>,
    /// Source of number and durations: "serverStatus", or "trace" where the server does not report them. What
    /// was written and synced is from the trace either way.
    #[schemars(extend("enum" = ["serverStatus", "trace"]))]
    pub source: String,
    #[schemars(range(min = 0))]
    pub median_s: f64,
    #[schemars(range(min = 0))]
    pub longest_s: f64,
    /// True if the last one had not ended when the observation did: its full duration is unknown.
    pub last_is_under_way: bool,
    /// A message where trace and counters differ, with both figures.
    pub disagreement: Option<String>,
    /// 99th percentile of journal syncs while a checkpoint ran.
    pub journal_during_p99_ns: Option<u64>,
    /// 99th percentile of journal syncs otherwise.
    pub journal_otherwise_p99_ns: Option<u64>,
    /// 99th percentile of reads by application threads while a checkpoint ran.
    pub reads_during_p99_ns: Option<u64>,
    /// 99th percentile of reads by application threads otherwise.
    pub reads_otherwise_p99_ns: Option<u64>,
    /// Operations per second while checkpoints ran, divided by those otherwise (1: no difference).
    pub throughput_ratio: Option<f64>,
    /// Share of the server's writes to its data files that checkpoints wrote themselves; the rest was
    /// evicted, and a checkpoint's syncs also flush what the page cache still holds of it.
    pub own_share: Option<f64>,
    pub dirty_limit: Option<DirtyLimit>,
}

impl CheckpointAnswer {
    /// Returns the time in which a checkpoint ran, s.
    pub fn total_s(&self) -> f64 {
        self.checkpoints.iter().map(seconds).sum()
    }

    /// Returns whether the longest is the one that had not ended, so that it took longer than shown.
    pub fn longest_is_under_way(&self) -> bool {
        let last_s = self.checkpoints.last().map(seconds);
        self.last_is_under_way && last_s.is_some_and(|last_s| last_s >= self.longest_s)
    }

    /// Returns the length of the period in which checkpoints would have been seen, s.
    pub(crate) fn covered_s(&self, evidence: &Evidence<'_>) -> Option<f64> {
        if self.source == OF_TRACE {
            evidence.observed_s()
        } else {
            evidence.counted_s()
        }
    }

    /// Returns the same period, CLOCK_MONOTONIC ns.
    fn covered_ns(&self, evidence: &Evidence<'_>) -> RangeInclusive<u64> {
        let phase = evidence.document.phases.first();
        match phase.filter(|_| self.source == OF_TRACE) {
            Some(phase) => phase.started_ns..=phase.ended_ns,
            None => 0..=u64::MAX,
        }
    }

    /// Returns whether one was running at that moment (CLOCK_MONOTONIC ns).
    pub(crate) fn runs_at(&self, t_ns: u64) -> bool {
        let at = self.checkpoints.partition_point(|c| c.ended_ns < t_ns);
        self.checkpoints
            .get(at)
            .is_some_and(|c| c.started_ns <= t_ns)
    }
}

/// Returns how long it took, s.
pub(crate) fn seconds(checkpoint: &Checkpoint) -> f64 {
    checkpoint.ended_ns.saturating_sub(checkpoint.started_ns) as f64 / 1e9
}

pub(super) fn checkpoints(evidence: &Evidence<'_>) -> Option<CheckpointAnswer> {
    let traced = evidence
        .device_use
        .filter(|found| !found.checkpoints.is_empty());
    let of_trace = traced.map_or(&[][..], |found| &found.checkpoints);
    let counted = joined::join(&counted::counted(evidence), of_trace);
    let (checkpoints, source) = match counted.is_empty() {
        true => (of_trace.to_vec(), OF_TRACE),
        false => (counted, OF_COUNTERS),
    };
    let lengths: Vec<f64> = checkpoints.iter().map(seconds).collect();
    let of_counters = source == OF_COUNTERS;
    let mut answer = CheckpointAnswer {
        source: source.into(),
        median_s: median(&lengths)?,
        longest_s: lengths.iter().copied().fold(0.0, f64::max),
        last_is_under_way: of_counters && counted::one_is_under_way(evidence),
        // A trace that was ended early did not see the later ones.
        disagreement: (of_counters && !evidence.counters_outlast_trace())
            .then(|| joined::disagreement(&checkpoints, of_trace))
            .flatten(),
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
    answer.own_share = dirty_limit::own_share(evidence);
    answer.dirty_limit = dirty_limit::dirty_limit(evidence, &answer);
    Some(answer)
}

#[cfg(test)]
mod tests;
