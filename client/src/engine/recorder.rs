//! What one thread counts and times, handed over each second without stopping the thread.
//!
//! A thread records into its own recorder; the collector takes the window out and leaves an empty one. The
//! histograms of an operation are created when it first ends in a window, so operations that do not occur cost
//! nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use seekscope_run::latency_histogram;

use crate::{Failure, FailureCount, FailureKind, OperationId, OperationSecond};

/// Names come from servers; beyond this many different ones, they are counted together.
const NAMES_MAX: usize = 1000;
const OTHER_NAMES: &str = "Other";

/// How a request or transaction ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) operation: OperationId,
    /// CLOCK_MONOTONIC ns; `sent_ns` is `None` if it was never sent.
    pub(super) scheduled_ns: u64,
    pub(super) sent_ns: Option<u64>,
    pub(super) done_ns: u64,
    pub(super) outcome: Result<Yield, Bad<'a>>,
}

/// The documents and bytes of a successful outcome.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Yield {
    pub(super) documents: u64,
    pub(super) bytes: u64,
}

/// The reason why it failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bad<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Option<FailureKind>,
    pub(super) message: &'a str,
}

impl<'a> Bad<'a> {
    pub(super) fn of(failure: &'a Failure) -> Self {
        Self {
            name: &failure.name,
            kind: Some(failure.kind),
            message: &failure.message,
        }
    }
}

/// The recorder of one thread.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    is_open_loop: bool,
    in_flight: u64,
    in_flight_since_ns: u64,
    window: Window,
    totals: Totals,
}

/// What has ended since the last hand-over.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// What ended, by operation; `None` for an operation of which none ended.
    pub(super) operations: Vec<Option<OperationSecond>>,
    /// Transactions that succeeded, including those that are not counted separately.
    pub(super) transactions: u64,
    pub(super) lag: Option<Histogram<u64>>,
    /// Requests in flight, summed over time.
    pub(super) in_flight_ns: u64,
}

/// Counts from the start to the end.
#[derive(Debug, Default, Clone)]
pub(super) struct Totals {
    pub(super) begun: u64,
    pub(super) retried: u64,
    pub(super) in_doubt: u64,
    pub(super) failures: BTreeMap<(OperationId, String), FailureCount>,
}

/// Locks a recorder. A thread that panicked leaves consistent counts.
pub(super) fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    pub(super) fn new(is_open_loop: bool) -> Self {
        Self {
            is_open_loop,
            ..Self::default()
        }
    }

    pub(super) fn begun(&mut self) {
        self.totals.begun += 1;
    }

    pub(super) fn retried(&mut self) {
        self.totals.retried += 1;
    }

    pub(super) fn in_doubt(&mut self, writes: u64) {
        self.totals.in_doubt += writes;
    }

    pub(super) fn sent(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.in_flight += 1;
    }

    pub(super) fn answered(&mut self, now_ns: u64) {
        self.integrate(now_ns);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(super) fn transaction_done(&mut self) {
        self.window.transactions += 1;
    }

    /// Records how late a request was sent although its virtual user was free.
    pub(super) fn lag(&mut self, lag_ns: u64) {
        self.window
            .lag
            .get_or_insert_with(latency_histogram)
            .saturating_record(lag_ns);
    }

    pub(super) fn record(&mut self, record: &Record<'_>) {
        let index = usize::from(record.operation);
        if self.window.operations.len() <= index {
            self.window.operations.resize_with(index + 1, || None);
        }
        let is_open_loop = self.is_open_loop;
        let second = self.window.operations[index]
            .get_or_insert_with(|| empty_second(record.operation, is_open_loop));
        if let Some(response) = &mut second.response {
            response.saturating_record(record.done_ns.saturating_sub(record.scheduled_ns));
        }
        match record.outcome {
            Ok(done) => {
                second.done += 1;
                second.documents += done.documents;
                second.bytes += done.bytes;
                let sent_ns = record.sent_ns.unwrap_or(record.done_ns);
                second
                    .service
                    .saturating_record(record.done_ns.saturating_sub(sent_ns));
            }
            Err(bad) => {
                let name = self.totals.failed(record.operation, &bad);
                *second.errors.entry(name).or_default() += 1;
            }
        }
    }

    /// Returns what has ended since the last call.
    pub(super) fn take(&mut self, now_ns: u64) -> Window {
        self.integrate(now_ns);
        std::mem::take(&mut self.window)
    }

    pub(super) fn totals(&self) -> &Totals {
        &self.totals
    }

    fn integrate(&mut self, now_ns: u64) {
        // Another thread's clock reading may be slightly older than ours.
        let since_ns = now_ns.saturating_sub(self.in_flight_since_ns);
        self.window.in_flight_ns += self.in_flight * since_ns;
        self.in_flight_since_ns = self.in_flight_since_ns.max(now_ns);
    }
}

impl Totals {
    /// Counts a failure; returns the name it was counted under.
    fn failed(&mut self, operation: OperationId, bad: &Bad<'_>) -> String {
        let known = self.failures.len();
        let mut key = (operation, bad.name.to_owned());
        if known >= NAMES_MAX && !self.failures.contains_key(&key) {
            key.1 = OTHER_NAMES.into();
        }
        let name = key.1.clone();
        self.failures
            .entry(key)
            .or_insert_with(|| FailureCount {
                operation,
                name: name.clone(),
                kind: bad.kind,
                count: 0,
                message: bad.message.into(),
            })
            .count += 1;
        name
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.retried += other.retried;
        self.in_doubt += other.in_doubt;
        for (key, failure) in &other.failures {
            match self.failures.get_mut(key) {
                Some(mine) => mine.count += failure.count,
                None => {
                    self.failures.insert(key.clone(), failure.clone());
                }
            }
        }
    }
}

impl Window {
    /// Adds what another thread did in the same time.
    pub(super) fn add(&mut self, other: Self) {
        self.in_flight_ns += other.in_flight_ns;
        self.transactions += other.transactions;
        add_histogram(&mut self.lag, other.lag);
        let count = self.operations.len().max(other.operations.len());
        self.operations.resize_with(count, || None);
        for (mine, theirs) in self.operations.iter_mut().zip(other.operations) {
            match (mine, theirs) {
                (_, None) => (),
                (Some(mine), Some(theirs)) => add_second(mine, theirs),
                (mine @ None, theirs) => *mine = theirs,
            }
        }
    }
}

pub(super) fn empty_second(operation: OperationId, is_open_loop: bool) -> OperationSecond {
    OperationSecond {
        operation,
        done: 0,
        errors: BTreeMap::new(),
        documents: 0,
        bytes: 0,
        service: latency_histogram(),
        response: is_open_loop.then(latency_histogram),
    }
}

fn add_second(mine: &mut OperationSecond, theirs: OperationSecond) {
    mine.done += theirs.done;
    mine.documents += theirs.documents;
    mine.bytes += theirs.bytes;
    for (name, count) in theirs.errors {
        *mine.errors.entry(name).or_default() += count;
    }
    // All have the same bounds, so adding cannot fail.
    let _ = mine.service.add(theirs.service);
    add_histogram(&mut mine.response, theirs.response);
}

fn add_histogram(mine: &mut Option<Histogram<u64>>, theirs: Option<Histogram<u64>>) {
    match (mine, theirs) {
        (Some(mine), Some(theirs)) => {
            let _ = mine.add(theirs);
        }
        (mine @ None, theirs) => *mine = theirs,
        (_, None) => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: Result<Yield, Bad<'_>>) -> Record<'_> {
        Record {
            operation: 1,
            scheduled_ns: 1_000,
            sent_ns: Some(3_000),
            done_ns: 10_000,
            outcome,
        }
    }

    #[test]
    fn failures_count_as_waits_but_not_as_done() {
        let bad = Bad {
            name: "NOT_FOUND",
            kind: None,
            message: "nothing there",
        };
        let mut recorder = Recorder::new(true);
        recorder.record(&record(Ok(Yield {
            documents: 2,
            bytes: 70,
        })));
        recorder.record(&record(Err(bad)));
        let window = recorder.take(0);
        assert!(window.operations[0].is_none());
        let second = window.operations[1].as_ref().unwrap();
        assert_eq!((second.done, second.documents, second.bytes), (1, 2, 70));
        assert_eq!(second.errors["NOT_FOUND"], 1);
        assert_eq!((second.service.len(), second.service.max() / 100), (1, 70));
        let response = second.response.as_ref().unwrap();
        assert_eq!((response.len(), response.max() / 100), (2, 90));
        assert!(recorder.take(1).operations.is_empty());
        assert_eq!(recorder.totals().failures.len(), 1, "totals stay");
    }

    #[test]
    fn in_flight_is_summed_over_time() {
        let mut recorder = Recorder::new(false);
        recorder.sent(100);
        recorder.sent(150);
        recorder.answered(200);
        assert_eq!(recorder.take(300).in_flight_ns, 50 + 2 * 50 + 100);
        recorder.answered(310);
        assert_eq!(recorder.take(400).in_flight_ns, 10);
    }

    #[test]
    fn threads_add_up() {
        let mut all = Window::default();
        for _ in 0..3 {
            let mut recorder = Recorder::new(true);
            recorder.lag(5);
            recorder.record(&record(Ok(Yield::default())));
            all.add(recorder.take(0));
        }
        assert_eq!(all.lag.as_ref().unwrap().len(), 3);
        let second = all.operations[1].as_ref().unwrap();
        assert_eq!((second.done, second.service.len()), (3, 3));
    }

    #[test]
    fn a_server_that_makes_up_names_fills_no_memory() {
        let mut totals = Totals::default();
        for number in 0..NAMES_MAX + 50 {
            let name = format!("e{number}");
            totals.failed(
                0,
                &Bad {
                    name: &name,
                    kind: None,
                    message: "",
                },
            );
        }
        assert_eq!(totals.failures.len(), NAMES_MAX + 1);
        assert_eq!(totals.failures[&(0, OTHER_NAMES.to_owned())].count, 50);
    }
}
