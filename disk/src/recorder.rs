//! Latencies and counts. Each thread has its own histograms and hands them over once a second, so
//! that nothing is shared, locked or allocated per operation.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use seekscope_run::{JobFacts, LatencySummary, OperationOutcome, latency_histogram};

/// How often threads hand over, ns.
pub(crate) const INTERVAL_NS: u64 = 1_000_000_000;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    /// fdatasync.
    Sync,
}

impl Operation {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Sync];

    /// Returns "read", "write" or "sync".
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
        }
    }
}

/// The measured time of a step, CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
}

/// Operations of one kind: their number, and how long they took.
#[derive(Debug, Clone)]
pub struct Tally {
    pub operations: u64,
    /// Latency from the intended start in jobs with a rate, otherwise from the call; ns.
    pub latency: Histogram<u64>,
    /// Latency from the call, in jobs with a rate; ns.
    pub service: Option<Histogram<u64>>,
}

impl Tally {
    fn new(paced: bool) -> Self {
        Self {
            operations: 0,
            latency: latency_histogram(),
            service: paced.then(latency_histogram),
        }
    }

    fn clear(&mut self) {
        self.operations = 0;
        self.latency.reset();
        if let Some(service) = &mut self.service {
            service.reset();
        }
    }

    fn is_empty(&self) -> bool {
        self.operations == 0 && self.latency.is_empty()
    }

    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        // All histograms have the same bounds, so no value can be out of range.
        let _ = self.latency.add(&other.latency);
        if let (Some(mine), Some(others)) = (&mut self.service, &other.service) {
            let _ = mine.add(others);
        }
    }

    /// Returns the figures for the record of the step.
    pub(crate) fn outcome(&self, bytes_each: u64) -> OperationOutcome {
        OperationOutcome {
            operations: self.operations,
            bytes: self.operations * bytes_each,
            latency: LatencySummary::of(&self.latency),
            service: self.service.as_ref().map(LatencySummary::of),
        }
    }
}

/// Tallies by [`Operation`], only for the kinds that a job makes.
type Tallies = [Option<Tally>; 3];

fn tallies(facts: &JobFacts) -> Tallies {
    let syncs = facts.sync_each_write || facts.sync_every_bytes.is_some();
    let makes = [
        facts.read_share > 0.0,
        facts.access.writes() && facts.read_share < 1.0,
        facts.access.writes() && syncs,
    ];
    makes.map(|made| made.then(|| Tally::new(facts.rate_per_s.is_some())))
}

/// The place where a job's threads hand over their tallies.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Tallies since the last second was taken out.
    second: Mutex<Tallies>,
    total: Mutex<Tallies>,
    pub(crate) cpu_ns: AtomicU64,
    /// Number of threads that finished early, and when the last of them did.
    pub(crate) threads_done: AtomicU32,
    pub(crate) done_ns: AtomicU64,
    pub(crate) behind: AtomicU64,
    pub(crate) notes: Mutex<Vec<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    pub(crate) fn new(facts: &JobFacts) -> Self {
        Self {
            second: Mutex::new(tallies(facts)),
            total: Mutex::new(tallies(facts)),
            cpu_ns: AtomicU64::new(0),
            threads_done: AtomicU32::new(0),
            done_ns: AtomicU64::new(0),
            behind: AtomicU64::new(0),
            notes: Mutex::default(),
        }
    }

    /// Passes on what has come in since the last call, by kind, even if it is nothing: a stall is a
    /// second without operations. Adds it to the total.
    pub(crate) fn take_second(&self, mut each: impl FnMut(Operation, &Tally)) {
        let mut second = locked(&self.second);
        let mut total = locked(&self.total);
        for (kind, operation) in Operation::ALL.into_iter().enumerate() {
            if let (Some(second), Some(total)) = (&mut second[kind], &mut total[kind]) {
                each(operation, second);
                total.add(second);
                second.clear();
            }
        }
    }

    /// Returns the total of everything taken out so far.
    pub(crate) fn total(&self, operation: Operation) -> Option<Tally> {
        locked(&self.total)[operation as usize].clone()
    }

    /// Notes something that the engine could not use; each note is kept once.
    pub(crate) fn note(&self, text: String) {
        let mut notes = locked(&self.notes);
        if !notes.contains(&text) {
            notes.push(text);
        }
    }
}

/// A thread's phase within the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    WarmUp,
    Measured,
    /// Time is over: operations in flight count for latency, so that a stall at the end is not
    /// hidden, but not for the rate.
    Draining,
}

/// One thread's recorder.
#[derive(Debug)]
pub(crate) struct Recorder<'a> {
    collector: &'a Collector,
    window: Window,
    state: State,
    /// The time that the next operation must not pass without [`Self::cross`].
    boundary_ns: u64,
    tallies: Tallies,
    cpu_start_ns: u64,
    last_done_ns: u64,
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(collector: &'a Collector, facts: &JobFacts, window: Window) -> Self {
        Self {
            collector,
            window,
            state: State::WarmUp,
            boundary_ns: window.start_ns,
            tallies: tallies(facts),
            cpu_start_ns: thread_cpu_ns(),
            last_done_ns: 0,
        }
    }

    /// Records an operation that was called at `called_ns` and had been due at `due_ns`, which is
    /// the same without a rate.
    #[inline]
    pub(crate) fn record(&mut self, kind: Operation, due_ns: u64, called_ns: u64, done_ns: u64) {
        if done_ns >= self.boundary_ns {
            self.cross(done_ns);
        }
        self.last_done_ns = done_ns;
        if let Some(tally) = &mut self.tallies[kind as usize] {
            tally.operations += u64::from(self.state != State::Draining);
            tally
                .latency
                .saturating_record(done_ns.saturating_sub(due_ns));
            if let Some(service) = &mut tally.service {
                service.saturating_record(done_ns.saturating_sub(called_ns));
            }
        }
    }

    #[cold]
    fn cross(&mut self, now_ns: u64) {
        if self.state == State::WarmUp {
            self.tallies.iter_mut().flatten().for_each(Tally::clear);
            self.cpu_start_ns = thread_cpu_ns();
            self.state = State::Measured;
        } else {
            self.hand_over();
        }
        if now_ns >= self.window.end_ns {
            self.end_measuring();
        } else {
            let seconds = (now_ns - self.window.start_ns) / INTERVAL_NS + 1;
            let next_ns = self.window.start_ns + seconds * INTERVAL_NS;
            self.boundary_ns = next_ns.min(self.window.end_ns);
        }
    }

    fn end_measuring(&mut self) {
        let cpu_ns = thread_cpu_ns().saturating_sub(self.cpu_start_ns);
        self.collector.cpu_ns.fetch_add(cpu_ns, Ordering::Relaxed);
        self.state = State::Draining;
        self.boundary_ns = u64::MAX;
    }

    fn hand_over(&mut self) {
        let mut second = locked(&self.collector.second);
        for (mine, shared) in self.tallies.iter_mut().zip(second.iter_mut()) {
            if let (Some(mine), Some(shared)) = (mine, shared)
                && !mine.is_empty()
            {
                shared.add(mine);
                mine.clear();
            }
        }
    }

    /// Notes that the thread is done; `early` if its job finished before its time.
    pub(crate) fn finish(mut self, early: bool) {
        match self.state {
            // Nothing was completed in the measured time.
            State::WarmUp => self.tallies.iter_mut().flatten().for_each(Tally::clear),
            State::Measured => {
                self.end_measuring();
                if early {
                    let collector = self.collector;
                    collector.threads_done.fetch_add(1, Ordering::Relaxed);
                    let done_ns = &collector.done_ns;
                    done_ns.fetch_max(self.last_done_ns, Ordering::Relaxed);
                }
            }
            State::Draining => {}
        }
        self.hand_over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use seekscope_run::{AccessKind, EngineKind};

    #[test]
    fn only_the_measured_time_counts_and_no_stall_hides_at_its_end() {
        let facts = Job::new(AccessKind::RandRead, EngineKind::Null).facts;
        let collector = Collector::new(&facts);
        let window = Window {
            start_ns: 5_000_000_000,
            end_ns: 7_000_000_000,
        };
        let mut recorder = Recorder::new(&collector, &facts, window);
        let mut read = |at_ns: u64, took_ns| {
            recorder.record(Operation::Read, at_ns - took_ns, at_ns - took_ns, at_ns);
        };
        read(4_999_999_999, 77);
        read(5_000_000_000, 1_000);
        read(5_500_000_000, 2_000);
        read(6_100_000_000, 3_000);
        let mut seconds = Vec::new();
        collector.take_second(|_, tally| seconds.push((tally.operations, tally.latency.max())));
        assert_eq!(seconds, [(2, 2_000)]);
        read(9_000_000_000, 3_000_000_000);
        recorder.finish(false);
        collector.take_second(|operation, tally| {
            assert_eq!((operation, tally.operations), (Operation::Read, 1));
        });
        let total = collector.total(Operation::Read).unwrap().outcome(4096);
        assert_eq!((total.operations, total.bytes), (3, 3 * 4096));
        assert_eq!(total.latency.count, 4);
        assert!(
            total.latency.max_ns.abs_diff(3_000_000_000) < 3_000_000,
            "{total:?}"
        );
        assert!(total.latency.min_ns.abs_diff(1_000) < 2, "{total:?}");
        assert!(collector.total(Operation::Write).is_none());
    }
}
