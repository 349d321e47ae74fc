//! What the engine hands over each second.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use crate::OperationId;

/// All that ended in one second of work, over all threads.
#[derive(Debug, Clone)]
pub struct Second {
    /// Start, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// As measured.
    pub duration_ns: u64,
    /// One for each of the workload's operations, in its order.
    pub operations: Vec<OperationSecond>,
    /// Transactions that ended well; a request that belongs to none is one by itself.
    pub transactions: u64,
    /// Mean number of operations in flight.
    pub in_flight: f64,
    /// Operations of a schedule that were due but not sent at the end of the second; 0 without one.
    pub backlog: u64,
    /// How late the generator itself was, although a virtual user was free: ns.
    pub lag: Histogram<u64>,
    /// CPU time that this process spent in the second (user and system), ns.
    pub client_cpu_ns: u64,
}

/// What one kind of operation did in a second.
#[derive(Debug, Clone)]
pub struct OperationSecond {
    pub operation: OperationId,
    /// Ended well.
    pub done: u64,
    /// Ended badly, by name.
    pub errors: BTreeMap<String, u64>,
    /// Documents returned, changed or inserted by those that ended well.
    pub documents: u64,
    /// Bytes of requests and replies that ended well.
    pub bytes: u64,
    /// From send to reply, ns; of those that ended well.
    pub service: Histogram<u64>,
    /// From the scheduled start to the reply, ns; `None` in a closed loop, where it would be the same.
    /// Of those that ended well or failed after waiting: nothing that a user waited for is left out.
    pub response: Option<Histogram<u64>>,
}

impl OperationSecond {
    /// Errors of all names.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}
