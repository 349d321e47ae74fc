//! The state shared by all threads of a stretch of work.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use seekscope_run::monotonic_ns;
use seekscope_run::units::nanoseconds;

use crate::schedule::{Claim, Schedule};
use crate::{ClientError, EndReason, Job, Operation, Retries, Workload};

/// The time for which requests under way may still be answered after the end before they are given up.
pub(super) const GRACE: Duration = Duration::from_millis(100);

const GOES_ON: u8 = 0;
const STOPPED: u8 = 1;
const FAILING: u8 = 2;

/// The state that all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    schedule: Schedule,
    pub(super) operations: Vec<Operation>,
    pub(super) timeout: Duration,
    pub(super) retries: Retries,
    failures_max: u64,
    failures_in_a_row: AtomicU64,
    started_ns: OnceLock<u64>,
    /// The reason why it ends before the work does.
    end: AtomicU8,
    ended_ns: AtomicU64,
    time_is_over: AtomicBool,
}

impl Shared {
    pub(super) fn new(workload: &dyn Workload, job: &Job) -> Result<Self, ClientError> {
        Ok(Self {
            schedule: Schedule::new(job)?,
            operations: workload.operations().to_vec(),
            timeout: job.timeout,
            retries: job.retries,
            failures_max: job.failures_in_a_row_max.unwrap_or(u64::MAX).max(1),
            failures_in_a_row: AtomicU64::new(0),
            started_ns: OnceLock::new(),
            end: AtomicU8::new(GOES_ON),
            ended_ns: AtomicU64::new(0),
            time_is_over: AtomicBool::new(false),
        })
    }

    pub(super) fn is_open_loop(&self) -> bool {
        self.schedule.is_open_loop()
    }

    /// Sets when the work begins, once all are connected.
    pub(super) fn start_at(&self, start_ns: u64) {
        let _ = self.started_ns.set(start_ns);
    }

    /// Waits until the work begins; returns `None` if it is over before then.
    pub(super) fn await_start(&self) -> Option<u64> {
        loop {
            if self.is_over() {
                return None;
            }
            let left_ns = match self.started_ns.get() {
                Some(&start_ns) => match start_ns.checked_sub(monotonic_ns()) {
                    None | Some(0) => return Some(start_ns),
                    Some(left_ns) => left_ns,
                },
                None => u64::MAX,
            };
            std::thread::sleep(Duration::from_nanos(left_ns.min(1_000_000)));
        }
    }

    /// Returns when the work began, or 0 before that.
    pub(super) fn started_ns(&self) -> u64 {
        self.started_ns.get().copied().unwrap_or(0)
    }

    /// Claims the next arrival; offsets are converted to times of CLOCK_MONOTONIC, and so is "now".
    pub(super) fn claim(&self, now_ns: u64) -> Claim {
        let started_ns = self.started_ns();
        match self.schedule.claim(now_ns.saturating_sub(started_ns)) {
            Claim::Now => Claim::At(now_ns),
            Claim::At(offset_ns) => Claim::At(started_ns.saturating_add(offset_ns)),
            Claim::Idle(offset_ns) => Claim::Idle(started_ns.saturating_add(offset_ns)),
            Claim::Over(reason) => {
                if reason == EndReason::Time {
                    self.time_is_over.store(true, Ordering::Relaxed);
                }
                Claim::Over(reason)
            }
        }
    }

    /// Ends the work early at the caller's request.
    pub(super) fn stop(&self) {
        self.end_early(STOPPED);
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.load(Ordering::Relaxed) != GOES_ON
    }

    /// Returns whether it is time to give up the requests under way.
    pub(super) fn grace_is_over(&self, now_ns: u64) -> bool {
        let ended_ns = self.ended_ns.load(Ordering::Relaxed);
        let grace_ns = nanoseconds(GRACE);
        self.is_over() && ended_ns != 0 && now_ns >= ended_ns.saturating_add(grace_ns)
    }

    pub(super) fn succeeded(&self) {
        if self.failures_in_a_row.load(Ordering::Relaxed) != 0 {
            self.failures_in_a_row.store(0, Ordering::Relaxed);
        }
    }

    pub(super) fn failed(&self) {
        if self.failures_in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= self.failures_max {
            self.end_early(FAILING);
        }
    }

    /// Returns why it ended, once it has.
    pub(super) fn end_reason(&self) -> EndReason {
        match self.end.load(Ordering::Relaxed) {
            STOPPED => EndReason::Stopped,
            FAILING => EndReason::Failing,
            _ if self.time_is_over.load(Ordering::Relaxed) => EndReason::Time,
            _ => EndReason::Done,
        }
    }

    fn end_early(&self, reason: u8) {
        let first = self
            .end
            .compare_exchange(GOES_ON, reason, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if first {
            self.ended_ns.store(monotonic_ns(), Ordering::Relaxed);
        }
    }
}
