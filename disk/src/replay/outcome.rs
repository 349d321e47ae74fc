//! Both sides of a replay: what the operations that were played took when they were recorded, and
//! what they took here.

use seekscope_run::LatencySummary;
use serde::{Deserialize, Serialize};

/// One side's figures of one kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Side {
    /// Operations that succeeded.
    pub count: u64,
    /// Those that failed. Of the recording: they are not played.
    pub errors: u64,
    pub bytes: u64,
    /// From the call to its end.
    pub latency: LatencySummary,
    /// From the intended start (open loops with a speed).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<LatencySummary>,
}

/// A kind of operation, recorded and played.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationComparison {
    /// Of the operations that were played.
    pub recorded: Side,
    pub replayed: Side,
}

impl OperationComparison {
    /// It was neither played nor recorded.
    pub fn is_empty(&self) -> bool {
        let made = |side: &Side| side.count + side.errors;
        made(&self.recorded) + made(&self.replayed) == 0
    }
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayOutcome {
    pub reads: OperationComparison,
    pub writes: OperationComparison,
    pub syncs: OperationComparison,
    /// From the first operation's start to the last one's end, of those that were played; ns.
    pub recorded_elapsed_ns: u64,
    /// From the beginning to the last operation's end, ns.
    pub elapsed_ns: u64,
    /// Operations whose thread was still busy with the one before when they were due (open loops
    /// with a speed), and the longest such delay, ns.
    pub late_starts: u64,
    pub latest_start_ns: u64,
    /// What this process had the disk read meanwhile (`/proc/self/io`), read-ahead included.
    pub device_read_bytes: Option<u64>,
    /// Share (0..=1) of the time in which some task of the host waited for I/O.
    pub io_pressure: Option<f64>,
    pub load_1m: f64,
}

impl ReplayOutcome {
    /// The kinds of operations by name.
    pub fn operations(&self) -> [(&'static str, &OperationComparison); 3] {
        [
            ("read", &self.reads),
            ("write", &self.writes),
            ("sync", &self.syncs),
        ]
    }

    /// Operations that were played with success.
    pub fn played(&self) -> u64 {
        self.operations()
            .iter()
            .map(|(_, c)| c.replayed.count)
            .sum()
    }
}
