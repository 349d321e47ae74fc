//! What the engine is asked to do with a workload.

use std::sync::Arc;
use std::time::Duration;

/// When transactions start.
#[derive(Debug, Clone)]
pub enum ScheduleKind {
    /// Each virtual user starts its next one when its last has ended.
    Closed,
    /// Starts at even intervals, per second over all virtual users.
    Constant { per_s: f64 },
    /// Starts at exponentially distributed intervals.
    Poisson { per_s: f64, seed: u64 },
    /// The rate rises evenly over a time, then stays constant.
    Ramp {
        from_per_s: f64,
        to_per_s: f64,
        over: Duration,
    },
    /// Starts at these offsets from the beginning, ns, ascending; the work is then done.
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
    /// Ends after this many transactions.
    pub transactions: Option<u64>,
    /// Ends after this time.
    pub duration: Option<Duration>,
    /// A request without an answer for this long has failed, and its connection is reopened.
    pub timeout: Duration,
    /// Begins at this time, CLOCK_MONOTONIC ns, so that clients of several processes start together.
    pub start_at_ns: Option<u64>,
    pub retries: Retries,
    /// Ends with an error after this many failures in a row without a success: the server is gone, or all that
    /// we send is wrong.
    pub failures_in_a_row_max: Option<u64>,
}

/// How often a request is resent after a failure that may be temporary, such as a lost connection. Retries are
/// counted, and the time of the request continues to run.
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
    /// Transactions begun, whatever their outcome.
    pub transactions: u64,
    /// Failures and bad outcomes by operation and name.
    pub failures: Vec<FailureCount>,
    /// Writes that failed in a way that leaves unknown if they were done ([`crate::Failure::leaves_doubt`]).
    pub in_doubt: u64,
    /// Requests sent again.
    pub retried: u64,
    /// Transactions due by the end of the time but never begun.
    pub backlog: u64,
}

/// The reason why a stretch of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// The actors, the number of transactions or the schedule were exhausted.
    Done,
    /// The time was over.
    Time,
    /// The caller's stop flag was set.
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
    /// The message of the first one.
    pub message: String,
}
