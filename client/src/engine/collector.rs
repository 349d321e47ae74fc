//! Combines the threads' windows, second by second, and watches the caller's stop flag.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use seekscope_run::{latency_histogram, monotonic_ns};

use super::recorder::{Recorder, Totals, Window, empty_second, lock};
use super::shared::Shared;
use crate::schedule::DueCounter;
use crate::{ClientError, Ended, Job, OperationId, Second};

const SECOND_NS: u64 = 1_000_000_000;
/// How often the stop flag is checked.
const LOOK_NS: u64 = 20_000_000;

/// Collects the windows of all threads.
pub(super) struct Collector<'a> {
    shared: &'a Shared,
    recorders: &'a [Arc<Mutex<Recorder>>],
    due: DueCounter,
    each: &'a mut dyn FnMut(Second),
    window_started_ns: u64,
    cpu_ns: u64,
}

impl<'a> Collector<'a> {
    pub(super) fn new(
        job: &Job,
        shared: &'a Shared,
        recorders: &'a [Arc<Mutex<Recorder>>],
        each: &'a mut dyn FnMut(Second),
    ) -> Result<Self, ClientError> {
        Ok(Self {
            shared,
            recorders,
            due: DueCounter::new(job)?,
            each,
            window_started_ns: 0,
            cpu_ns: 0,
        })
    }

    /// Passes on each second from the start, until every worker has dropped its end of `working`.
    pub(super) fn run(mut self, working: &Receiver<Infallible>, stop: &AtomicBool) -> Ended {
        let started_ns = self.shared.started_ns();
        self.window_started_ns = started_ns;
        self.cpu_ns = process_cpu_ns();
        let mut next_ns = started_ns + SECOND_NS;
        loop {
            let left_ns = next_ns.saturating_sub(monotonic_ns()).min(LOOK_NS);
            match working.recv_timeout(Duration::from_nanos(left_ns)) {
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => (),
                Ok(never) => match never {},
            }
            if stop.load(Ordering::Relaxed) {
                self.shared.stop();
            }
            let now_ns = monotonic_ns();
            if now_ns >= next_ns {
                self.hand_over(now_ns);
                // A second that is late because the machine slept becomes one long second.
                next_ns = (next_ns + SECOND_NS).max(now_ns);
            }
        }
        let ended_ns = monotonic_ns();
        self.hand_over(ended_ns);
        self.ended(started_ns, ended_ns)
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for recorder in self.recorders {
            totals.add(lock(recorder).totals());
        }
        totals
    }

    fn hand_over(&mut self, now_ns: u64) {
        let mut window = Window::default();
        let mut begun = 0;
        for recorder in self.recorders {
            let mut recorder = lock(recorder);
            let taken = recorder.take(now_ns);
            begun += recorder.totals().begun;
            drop(recorder);
            window.add(taken);
        }
        let duration_ns = now_ns.saturating_sub(self.window_started_ns);
        let due = self
            .due
            .due_by(now_ns.saturating_sub(self.shared.started_ns()));
        let cpu_ns = process_cpu_ns();
        let count = self.shared.operations.len().max(window.operations.len());
        window.operations.resize_with(count, || None);
        let is_open_loop = self.shared.is_open_loop();
        let second = Second {
            t_ns: self.window_started_ns,
            duration_ns,
            operations: (0..OperationId::MAX)
                .zip(window.operations)
                .map(|(id, second)| second.unwrap_or_else(|| empty_second(id, is_open_loop)))
                .collect(),
            transactions: window.transactions,
            in_flight: window.in_flight_ns as f64 / duration_ns.max(1) as f64,
            backlog: due.saturating_sub(begun),
            lag: window.lag.unwrap_or_else(latency_histogram),
            client_cpu_ns: cpu_ns.saturating_sub(self.cpu_ns),
        };
        self.window_started_ns = now_ns;
        self.cpu_ns = cpu_ns;
        (self.each)(second);
    }

    fn ended(mut self, started_ns: u64, ended_ns: u64) -> Ended {
        let totals = self.totals();
        let due = self.due.due_by(ended_ns.saturating_sub(started_ns));
        Ended {
            started_ns,
            ended_ns,
            reason: self.shared.end_reason(),
            transactions: totals.begun,
            failures: totals.failures.into_values().collect(),
            in_doubt: totals.in_doubt,
            retried: totals.retried,
            backlog: due.saturating_sub(totals.begun),
        }
    }
}

/// Returns the user and system time of all threads.
fn process_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * SECOND_NS + u64::try_from(time.tv_nsec).unwrap_or(0)
}
