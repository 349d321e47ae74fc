//! Both sides of a replay: what the operations took when they were recorded, and what they took
//! here.

use schemars::JsonSchema;
use seekscope_run::{LatencySummary, latency_of_any};
use serde::{Deserialize, Serialize};

/// Figures for one kind of operation, of the recording or of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Side {
    /// Operations that succeeded and were played.
    pub count: u64,
    /// Operations that failed; those that failed in the recording are not played.
    pub errors: u64,
    pub bytes: u64,
    /// Time from the call to its end; null if there were no operations.
    #[serde(deserialize_with = "latency_of_any")]
    pub latency: Option<LatencySummary>,
    /// Time from the intended start to the end (open loops with a speed); absent otherwise.
    #[serde(
        deserialize_with = "latency_of_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub response: Option<LatencySummary>,
}

/// Latencies of the replay as multiples of the recorded ones; both count from the call.
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

/// One kind of operation, as recorded and as played.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OperationComparison {
    /// The recorded figures of the operations that were played.
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

/// The results of a replay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReplayOutcome {
    pub reads: OperationComparison,
    pub writes: OperationComparison,
    pub syncs: OperationComparison,
    /// Recorded time from the start of the first operation to the end of the last, of those that
    /// were played, ns.
    pub recorded_elapsed_ns: u64,
    /// Time from the start of the replay to the end of the last operation, ns.
    pub elapsed_ns: u64,
    /// Played operations of all kinds per second of the recorded time; 0 if nothing was played.
    #[schemars(range(min = 0))]
    pub recorded_per_s: f64,
    /// The same operations per second of the replay.
    #[schemars(range(min = 0))]
    pub per_s: f64,
    /// Operations whose thread was still busy with the previous one when they were due (open loops
    /// with a speed).
    pub late_starts: u64,
    /// The longest such delay, ns.
    pub latest_start_ns: u64,
    /// Bytes that this process made the disk read meanwhile (`/proc/self/io`), read-ahead included;
    /// null if unknown.
    pub device_read_bytes: Option<u64>,
    /// Share of the time, 0 to 1, in which some task of the host waited for I/O; null if unknown.
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
