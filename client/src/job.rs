//! What the engine is asked to do with a workload.

use std::sync::Arc;
use std::time::Duration;

/// When transactions start.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// Each virtual user starts the next when its last has ended.
    Closed,
    /// At even distances, per second over all virtual users.
    Constant { per_s: f64 },
    /// At exponentially distributed distances.
    Poisson { per_s: f64, seed: u64 },
    /// The rate grows evenly over a time, and stays.
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        over: Duration,
    },
    /// At these offsets from the start, ns, ascending; then the work is done.
    Replayed(Arc<[u64]>),
}

/// One stretch of work.
#[derive(Debug, Clone)]
pub struct Job {
    pub schedule: ScheduleKind,
    /// Virtual users: operations that can be in flight at once.
    pub in_flight: usize,
    /// Threads that send; at most one per virtual user.
    pub threads: usize,
    /// Ends after so many transactions.
    pub transactions: Option<u64>,
    /// Ends after so long.
    pub duration: Option<Duration>,
    /// A request without an answer for so long has failed, and its connection is made anew.
    pub timeout: Duration,
    /// Begins then, CLOCK_MONOTONIC ns: clients of several processes start together.
    pub start_at_ns: Option<u64>,
    pub retries: Retries,
    /// Ends with an error after so many failures in a row without one success: the server is gone, or
    /// nothing that we send is right.
    pub failures_in_a_row_max: Option<u64>,
}

/// How often a request is sent anew after a failure that may pass, such as a lost connection. Retries
/// are counted, and the time of the request goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retries {
    pub count: u32,
    pub pause: Duration,
}

/// How a stretch of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
    pub reason: EndReason,
    /// Transactions begun, whatever became of them.
    pub transactions: u64,
    /// Failures and bad outcomes by operation and name.
    pub failures: Vec<FailureCount>,
    /// Writes sent whose answer never came: they may or may not be done.
    pub in_doubt: u64,
    /// Requests sent again.
    pub retried: u64,
    /// Transactions due by the end of the time but never begun.
    pub backlog: u64,
}

/// What ended a stretch of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The actors, the count of transactions or the schedule had no more.
    Done,
    /// The time was over.
    Time,
    /// The caller's stop flag.
    Stopped,
    /// Too many failures in a row.
    Failing,
}

/// Failures of one operation under one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureCount {
    pub operation: crate::OperationId,
    pub name: String,
    pub kind: Option<crate::FailureKind>,
    pub count: u64,
    /// The first one's message.
    pub message: String,
}
