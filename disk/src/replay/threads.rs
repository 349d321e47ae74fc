//! Playing a plan: one thread per stream, each operation one system call.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_run::monotonic_ns;
use seekscope_stats::SplitMix64;

use super::pace::Pace;
use super::player::{Descriptions, Player, Throttle};
use super::tallies::Ledger;
use super::{Action, Loop, Plan, ReplayOutcome, Stream};
use crate::buffer::AlignedBuffer;
use crate::gate::Gate;
use crate::instruments::{Instruments, PressureGuard, Readings};
use crate::job::RateLimits;
use crate::offsets::thread_seed;
use crate::pacing::{sleep_exactly, sleep_until};
use crate::random_bytes;
use crate::recorder::{INTERVAL_NS, Operation, Window};
use crate::{DiskError, TestFile};

/// How often the coordinator checks whether the threads have ended.
const POLL_NS: u64 = 5_000_000;
/// Options for playing a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlayOptions {
    /// Recorded seconds per played second; `None` for no waits.
    pub speed: Option<f64>,
    pub pacing: Loop,
    pub time_limit: Option<Duration>,
    /// Limits for all threads together, for playing alongside a database.
    pub limits: Option<RateLimits>,
    /// Seed of the data that is written.
    pub seed: u64,
}

/// One second of operations of one kind, passed on while the replay runs.
#[derive(Debug)]
pub struct ReplaySecond<'a> {
    pub operation: Operation,
    /// CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    pub duration_ns: u64,
    pub errors: u64,
    pub bytes: u64,
    /// What these operations took when they were recorded and here, ns.
    pub recorded: &'a Histogram<u64>,
    pub service: &'a Histogram<u64>,
    /// Latency from the intended start (open loops with a speed).
    pub response: Option<&'a Histogram<u64>>,
}

/// How a replay ended.
#[derive(Debug)]
pub enum Ended {
    /// Everything was played.
    Complete,
    TimeLimit,
    /// The cancel flag was set.
    Interrupted,
    /// Some task of the host waited for I/O for this share of the last seconds
    /// ([`RateLimits::pressure_max`]).
    HeldBack(f64),
    /// An operation failed.
    Failed(DiskError),
}

/// Plays a plan. Calls `each_second` on this thread as figures come in. However it ends, what was
/// played until then is returned; an error means that it could not begin.
pub fn play(
    plan: &Plan,
    file: &TestFile,
    options: &PlayOptions,
    each_second: &mut dyn FnMut(&ReplaySecond<'_>),
    cancel: &AtomicBool,
) -> Result<(ReplayOutcome, Ended), DiskError> {
    let open = options.pacing == Loop::Open && options.speed.is_some();
    let team = Team {
        options,
        descriptions: Descriptions::open(plan, file)?,
        gate: Gate::new(),
        ledger: Ledger::new(open),
        throttle: options.limits.map(Throttle::new),
        ended: AtomicBool::new(false),
        timed_out: AtomicBool::new(false),
        error: Mutex::default(),
        cancel,
    };
    let (window, readings, held_back) = thread::scope(|scope| team.run(scope, plan, each_second))?;
    let mut outcome = ReplayOutcome {
        device_read_bytes: readings.device_read_bytes,
        io_pressure: readings.io_pressure,
        load_1m: readings.load_1m,
        ..team.ledger.outcome(window.start_ns)
    };
    let failed = plan.facts.skipped.failed;
    outcome.reads.recorded.errors = failed[Operation::Read as usize];
    outcome.writes.recorded.errors = failed[Operation::Write as usize];
    outcome.syncs.recorded.errors = failed[Operation::Sync as usize];
    let error = team.error.into_inner();
    let ended = match (error.unwrap_or_else(PoisonError::into_inner), held_back) {
        (Some(error), _) => Ended::Failed(error),
        _ if cancel.load(Ordering::Relaxed) => Ended::Interrupted,
        (None, Some(pressure)) => Ended::HeldBack(pressure),
        _ if team.timed_out.load(Ordering::Relaxed) => Ended::TimeLimit,
        _ => Ended::Complete,
    };
    Ok((outcome, ended))
}

/// The threads and their shared state.
pub(super) struct Team<'a> {
    pub(super) options: &'a PlayOptions,
    pub(super) descriptions: Descriptions,
    gate: Gate,
    pub(super) ledger: Ledger,
    pub(super) throttle: Option<Throttle>,
    /// Set when something ended the replay early: a failure, or pressure on the host.
    pub(super) ended: AtomicBool,
    pub(super) timed_out: AtomicBool,
    error: Mutex<Option<DiskError>>,
    pub(super) cancel: &'a AtomicBool,
}

impl Team<'_> {
    fn run<'scope, 'env>(
        &'env self,
        scope: &'scope thread::Scope<'scope, 'env>,
        plan: &'env Plan,
        each_second: &mut dyn FnMut(&ReplaySecond<'_>),
    ) -> Result<(Window, Readings, Option<f64>), DiskError> {
        let mut handles = Vec::new();
        for (number, stream) in (0u32..).zip(&plan.streams) {
            let member = move || self.member(stream, number);
            let named = thread::Builder::new().name(format!("replay {}", stream.tid));
            match named.spawn_scoped(scope, member) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    self.gate.give_up();
                    return Err(DiskError::Thread(error));
                }
            }
        }
        let host = Path::new("/");
        let instruments = Instruments::read(host);
        let gone = || handles.iter().any(thread::ScopedJoinHandle::is_finished);
        let window = self.gate.open_when(handles.len(), gone, || {
            let start_ns = monotonic_ns();
            let limit_ns = self.options.time_limit.map(|limit| limit.as_nanos());
            let limit_ns = limit_ns.map_or(u64::MAX, |ns| u64::try_from(ns).unwrap_or(u64::MAX));
            Window {
                start_ns,
                end_ns: start_ns.saturating_add(limit_ns),
            }
        });
        let limits = self.options.limits;
        let mut guard = limits.map(|limits| PressureGuard::new(host, limits.pressure_max));
        let mut from_ns = window.start_ns;
        let mut now_ns = from_ns;
        while !handles.iter().all(thread::ScopedJoinHandle::is_finished) {
            sleep_until(now_ns + POLL_NS, now_ns);
            now_ns = monotonic_ns();
            if now_ns >= from_ns + INTERVAL_NS {
                self.pass_on(&mut from_ns, now_ns, each_second);
            }
            if guard.as_mut().is_some_and(PressureGuard::is_exceeded) {
                self.ended.store(true, Ordering::Relaxed);
            }
        }
        self.pass_on(&mut from_ns, now_ns, each_second);
        let held_back = guard.and_then(|guard| guard.exceeded);
        Ok((window, instruments.until_now(host), held_back))
    }

    fn pass_on(&self, from_ns: &mut u64, until_ns: u64, each: &mut dyn FnMut(&ReplaySecond<'_>)) {
        self.ledger.take_second(|operation, figures| {
            each(&ReplaySecond {
                operation,
                start_ns: *from_ns,
                duration_ns: until_ns.saturating_sub(*from_ns),
                errors: figures.errors,
                bytes: figures.bytes,
                recorded: &figures.recorded,
                service: &figures.service,
                response: figures.response.as_ref(),
            });
        });
        *from_ns = until_ns;
    }

    /// Runs one thread, from preparation to end.
    fn member(&self, stream: &Stream, number: u32) {
        sleep_exactly();
        let buffer = self.buffer(stream, number);
        let window = self.gate.pass();
        let played = match (buffer, window) {
            (Ok(buffer), Some(window)) => {
                let pace = Pace::new(self.options.speed, self.options.pacing, window.start_ns);
                let player = Player {
                    team: self,
                    pace,
                    end_ns: window.end_ns,
                    buffer,
                    stamps: SplitMix64::new(thread_seed(self.options.seed.rotate_left(17), number)),
                };
                player.play(stream, window.start_ns)
            }
            (failed, _) => failed.map(drop),
        };
        if let Err(error) = played {
            self.ended.store(true, Ordering::Relaxed);
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }

    /// Returns a buffer with room for the longest operation, filled with data to write.
    fn buffer(&self, stream: &Stream, number: u32) -> Result<AlignedBuffer, DiskError> {
        let longest = stream.ops.iter().map(|op| op.length).max().unwrap_or(0);
        let mut buffer = AlignedBuffer::new(usize::try_from(longest).unwrap_or(usize::MAX))?;
        if stream.ops.iter().any(|op| op.action == Action::Write) {
            random_bytes::fill(buffer.bytes(), thread_seed(self.options.seed, number));
        }
        Ok(buffer)
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
