//! What one operation did in one second of one step: a row of `intervals.parquet`.

use serde::{Deserialize, Serialize};

use crate::LatencySummary;

/// One operation in one second of one step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Interval {
    /// Unique in the run, e.g. [`crate::DiskStep::name`].
    pub step: String,
    /// "read", "write", "sync", "insert", …
    pub operation: String,
    /// Start of the interval, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// Measured length: a second stretched by the scheduler is longer.
    pub duration_ns: u64,
    /// Operations that ended in the interval, failed ones included.
    pub count: u64,
    /// Operations among them that failed.
    pub errors: u64,
    /// Bytes moved by operations that succeeded.
    pub bytes: u64,
    /// Service time: from send to reply.
    pub latency: LatencySummary,
    /// Response time: from the intended start to the reply; `None` without a schedule.
    #[serde(default)]
    pub response: Option<LatencySummary>,
}
