//! The results that the engine reports each second.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::OperationId;

/// Everything that ended in one second of work, over all threads.
#[derive(Debug, Clone)]
pub struct Second {
    /// Start of the second, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// Length as measured.
    pub duration_ns: u64,
    /// One entry for each of the workload's operations, in its order.
    pub operations: Vec<OperationSecond>,
    /// Transactions that succeeded; a request that belongs to none counts as one.
    pub transactions: u64,
    /// Mean number of operations in flight.
    pub in_flight: f64,
    /// Operations of a schedule that were due but not sent at the end of the second; 0 without a schedule.
    pub backlog: u64,
    /// How late the generator itself was while a virtual user was free, ns.
    pub lag: Histogram<u64>,
    /// CPU time that this process spent in the second (user and system), ns.
    pub client_cpu_ns: u64,
}

/// The results of one kind of operation in one second.
#[derive(Debug, Clone)]
pub struct OperationSecond {
    pub operation: OperationId,
    /// Operations that succeeded.
    pub done: u64,
    /// Operations that failed, by name.
    pub errors: BTreeMap<String, u64>,
    /// Documents returned, changed or inserted by successful operations.
    pub documents: u64,
    /// Bytes of the requests and replies of successful operations.
    pub bytes: u64,
    /// Time from send to reply of successful operations, ns.
    pub service: Histogram<u64>,
    /// Time from the scheduled start to the reply, ns; `None` in a closed loop, where it would be the same.
    /// Includes operations that succeeded and those that failed after waiting: nothing that a user waited for
    /// is left out.
    pub response: Option<Histogram<u64>>,
}

impl OperationSecond {
    /// Returns the number of errors of all names.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}
