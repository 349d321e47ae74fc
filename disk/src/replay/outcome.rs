//! Both sides of a replay: what the operations took when they were recorded, and what they took
//! here.

use schemars::JsonSchema;
use seekscope_run::{LatencySummary, latency_of_any};
use serde::{Deserialize, Serialize};

/// One side's figures of one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Side {
    /// Operations that succeeded and were played.
    pub count: u64,
    /// Those that failed. Of the recording: they are not played.
    pub errors: u64,
    pub bytes: u64,
    /// From the call to its end; `None` where there were none.
    #[serde(deserialize_with = "latency_of_any")]
    pub latency: Option<LatencySummary>,
    /// From the intended start (open loops with a speed).
    #[serde(
        deserialize_with = "latency_of_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub response: Option<LatencySummary>,
}

/// Latencies here as multiples of the recorded ones; both count from the call.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyRatios {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl LatencyRatios {
    /// Returns the ratios; `None` if a side has no operations, or took no time that the clock could
    /// measure.
    fn of(recorded: &Side, replayed: &Side) -> Option<Self> {
        let (recorded, replayed) = (recorded.latency.as_ref()?, replayed.latency.as_ref()?);
        if recorded.min_ns == 0 {
            return None;
        }
        let ratio = |of: fn(&LatencySummary) -> u64| of(replayed) as f64 / of(recorded) as f64;
        Some(Self {
            mean: replayed.mean_ns / recorded.mean_ns,
            p50: ratio(|l| l.p50_ns),
            p90: ratio(|l| l.p90_ns),
            p99: ratio(|l| l.p99_ns),
            p999: ratio(|l| l.p999_ns),
            max: ratio(|l| l.max_ns),
        })
    }
}

/// A kind of operation, recorded and played.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperationComparison {
    /// Of the operations that were played.
    pub recorded: Side,
    pub replayed: Side,
    pub ratio: Option<LatencyRatios>,
}

impl OperationComparison {
    /// Combines the two sides.
    pub(super) fn new(recorded: Side, replayed: Side) -> Self {
        Self {
            ratio: LatencyRatios::of(&recorded, &replayed),
            recorded,
            replayed,
        }
    }

    /// Returns whether it was neither played nor recorded.
    pub fn is_empty(&self) -> bool {
        let made = |side: &Side| side.count + side.errors;
        made(&self.recorded) + made(&self.replayed) == 0
    }
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReplayOutcome {
    pub reads: OperationComparison,
    pub writes: OperationComparison,
    pub syncs: OperationComparison,
    /// From the first operation's start to the last one's end, of those that were played; ns.
    pub recorded_elapsed_ns: u64,
    /// From the beginning to the last operation's end, ns.
    pub elapsed_ns: u64,
    /// Operations of all kinds per second of the recorded time; 0 where nothing was played.
    #[schemars(range(min = 0))]
    pub recorded_per_s: f64,
    /// The same of the time here.
    #[schemars(range(min = 0))]
    pub per_s: f64,
    /// Operations whose thread was still busy with the one before when they were due (open loops
    /// with a speed).
    pub late_starts: u64,
    /// The longest such delay.
    pub latest_start_ns: u64,
    /// What this process had the disk read meanwhile (`/proc/self/io`), read-ahead included.
    pub device_read_bytes: Option<u64>,
    /// Share (0..=1) of the time in which some task of the host waited for I/O.
    #[schemars(range(min = 0, max = 1))]
    pub io_pressure: Option<f64>,
    #[schemars(range(min = 0))]
    pub load_1m: f64,
}

impl ReplayOutcome {
    /// Returns the kinds of operations by name.
    pub fn operations(&self) -> [(&'static str, &OperationComparison); 3] {
        [
            ("read", &self.reads),
            ("write", &self.writes),
            ("sync", &self.syncs),
        ]
    }

    /// Computes the figures that follow from the others.
    pub(super) fn with_rates(mut self) -> Self {
        let played = self.played() as f64;
        let per_s = |elapsed_ns: u64| match elapsed_ns {
            0 => 0.0,
            ns => played * 1e9 / ns as f64,
        };
        (self.recorded_per_s, self.per_s) =
            (per_s(self.recorded_elapsed_ns), per_s(self.elapsed_ns));
        self
    }

    /// Returns the number of operations that were played with success.
    pub fn played(&self) -> u64 {
        self.operations()
            .iter()
            .map(|(_, c)| c.replayed.count)
            .sum()
    }
}
