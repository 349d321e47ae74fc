//! A step: one job, or several at the same time, measured over one window of time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use seekscope_run::{DiskStep, JobOutcome, StepGroup, monotonic_ns};
use seekscope_stats::SplitMix64;

use crate::engine::{self, Stop, Worker};
use crate::gate::Gate;
use crate::instruments::{Instruments, PressureGuard, Readings};
use crate::job::Job;
use crate::offsets::{Offsets, thread_seed};
use crate::pacing::{Pacing, sleep_exactly, sleep_until};
use crate::recorder::{Collector, INTERVAL_NS, Operation, Recorder, Tally, Window};
use crate::{DiskError, TestFile};

/// Threads hand over a second's work when they finish their first operation after it; anything that
/// comes later than this counts in the next second.
const HAND_OVER_NS: u64 = 150_000_000;
/// How often the coordinator checks whether the threads have ended.
const POLL_NS: u64 = 5_000_000;

/// A step to run. Warm-up and runtime of the first job apply to all.
#[derive(Debug)]
pub struct Step<'a> {
    pub group: StepGroup,
    /// The name, unique in the run.
    pub name: String,
    /// The jobs; the step is about the first one.
    pub jobs: Vec<(Job, &'a TestFile)>,
    /// The share of the last seconds above which the step ends, if some task of the host waited for
    /// I/O for longer (PSI); `None` for steps that need not consider others.
    pub pressure_max: Option<f64>,
}

/// One second of one job's operations of a kind, passed on while the step runs.
#[derive(Debug)]
pub struct Second<'a> {
    pub step: &'a str,
    /// Index of the job in the step.
    pub job: usize,
    pub operation: Operation,
    /// CLOCK_MONOTONIC ns.
    pub start_ns: u64,
    pub duration_ns: u64,
    pub bytes: u64,
    pub tally: &'a Tally,
}

/// The result of a step.
#[derive(Debug)]
pub struct StepEnd {
    pub step: DiskStep,
    /// The cancel flag was set; the step contains what was measured until then.
    pub interrupted: bool,
    /// The pressure that ended it early ([`Step::pressure_max`]).
    pub held_back: Option<f64>,
}

/// Runs a step. Calls `each_second` on this thread as results come in; setting `cancel` ends the
/// step early. A job that fails ends the step with its error.
pub fn run(
    step: &Step<'_>,
    each_second: &mut dyn FnMut(&Second<'_>),
    cancel: &AtomicBool,
) -> Result<StepEnd, DiskError> {
    for (job, file) in &step.jobs {
        job.check_on(file)?;
    }
    let team = Team {
        gate: Gate::new(),
        collectors: step
            .jobs
            .iter()
            .map(|(job, _)| Collector::new(&job.facts))
            .collect(),
        ended: AtomicBool::new(false),
        error: Mutex::default(),
        cancel,
    };
    let (window, readings, held_back) = thread::scope(|scope| team.run(scope, step, each_second))?;
    if let Some(error) = team
        .error
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        return Err(error);
    }
    let interrupted = cancel.load(Ordering::Relaxed);
    let ended_ns = if interrupted || held_back.is_some() {
        monotonic_ns().min(window.end_ns)
    } else {
        window.end_ns
    };
    let outcomes: Vec<JobOutcome> = (step.jobs.iter().zip(&team.collectors))
        .map(|((job, _), collector)| outcome(job, collector, window.start_ns, ended_ns))
        .collect();
    let longest_ns = outcomes.iter().map(|o| o.elapsed_ns).max().unwrap_or(0);
    Ok(StepEnd {
        step: DiskStep {
            group: step.group,
            name: step.name.clone(),
            started_ns: window.start_ns,
            ended_ns: window.start_ns + longest_ns,
            jobs: outcomes,
            device_read_bytes: readings.device_read_bytes,
            io_pressure: readings.io_pressure,
            load_1m: readings.load_1m,
        },
        interrupted,
        held_back,
    })
}

fn outcome(job: &Job, collector: &Collector, start_ns: u64, ended_ns: u64) -> JobOutcome {
    let tally = |operation, bytes| {
        let total = collector.total(operation);
        total.map(|t| t.outcome(bytes)).unwrap_or_default()
    };
    let block_bytes = job.facts.block_bytes;
    // The job's time is shorter only if all threads finished early.
    let all_done = collector.threads_done.load(Ordering::Relaxed) == job.facts.threads;
    let early_ns = collector.done_ns.load(Ordering::Relaxed);
    let ended_ns = if all_done && early_ns > 0 {
        early_ns.min(ended_ns)
    } else {
        ended_ns
    };
    JobOutcome {
        job: job.facts.clone(),
        elapsed_ns: ended_ns.saturating_sub(start_ns),
        reads: tally(Operation::Read, block_bytes),
        writes: tally(Operation::Write, block_bytes),
        syncs: tally(Operation::Sync, 0),
        cpu_ns: collector.cpu_ns.load(Ordering::Relaxed),
        behind: collector.behind.load(Ordering::Relaxed),
        engine_notes: collector
            .notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone(),
    }
}

/// The threads of a step and their shared state.
struct Team<'a> {
    gate: Gate,
    collectors: Vec<Collector>,
    /// Set when something ended the step early: a failure, or pressure on the host.
    ended: AtomicBool,
    error: Mutex<Option<DiskError>>,
    cancel: &'a AtomicBool,
}

impl Team<'_> {
    fn run<'scope, 'env>(
        &'env self,
        scope: &'scope thread::Scope<'scope, 'env>,
        step: &'env Step<'_>,
        each_second: &mut dyn FnMut(&Second<'_>),
    ) -> Result<(Window, Readings, Option<f64>), DiskError> {
        let mut handles = Vec::new();
        for ((job, file), collector) in step.jobs.iter().zip(&self.collectors) {
            for number in 0..job.facts.threads {
                let member = move || self.member(job, file, collector, number);
                match thread::Builder::new().spawn_scoped(scope, member) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        self.gate.give_up();
                        return Err(DiskError::Thread(error));
                    }
                }
            }
        }
        let first = step.jobs.first().map(|(job, _)| job);
        let [warm_up, runtime] = first.map_or([Duration::ZERO; 2], |j| [j.warm_up, j.runtime]);
        let gone = || handles.iter().any(thread::ScopedJoinHandle::is_finished);
        let window = self.gate.open_when(handles.len(), gone, || {
            let start_ns = monotonic_ns() + nanoseconds(warm_up);
            Window {
                start_ns,
                end_ns: start_ns.saturating_add(nanoseconds(runtime)),
            }
        });
        let mut seconds = Seconds {
            step,
            collectors: &self.collectors,
            from_ns: window.start_ns,
        };
        let host = Path::new("/");
        let mut instruments = Instruments::read(host);
        let mut guard = step.pressure_max.map(|max| PressureGuard::new(host, max));
        let mut warming_up = true;
        let mut now_ns = monotonic_ns();
        while !handles.iter().all(thread::ScopedJoinHandle::is_finished) {
            let next_ns = seconds.from_ns + INTERVAL_NS;
            if now_ns >= next_ns + HAND_OVER_NS && next_ns < window.end_ns {
                seconds.pass_on(next_ns, each_second);
            }
            sleep_until(now_ns + POLL_NS, now_ns);
            now_ns = monotonic_ns();
            if warming_up && now_ns >= window.start_ns {
                instruments = Instruments::read(host);
                warming_up = false;
            }
            if guard.as_mut().is_some_and(PressureGuard::is_exceeded) {
                self.ended.store(true, Ordering::Relaxed);
            }
        }
        let held_back = guard.and_then(|guard| guard.exceeded);
        seconds.pass_on(window.end_ns.min(now_ns), each_second);
        Ok((window, instruments.until_now(host), held_back))
    }

    /// Runs one thread, from preparation to end.
    fn member(&self, job: &Job, file: &TestFile, collector: &Collector, number: u32) {
        sleep_exactly();
        // Prepared here because a ring belongs to the thread that made it, and drawing orders takes
        // time.
        let prepared = engine::prepare(job, file, collector);
        let offsets = Offsets::new(job, file.bytes(), number);
        let window = self.gate.pass();
        let (mut engine, window) = match (prepared, window) {
            (Ok(engine), Some(window)) => (engine, window),
            (failed, _) => return self.keep(failed.err()),
        };
        let mut worker = Worker {
            job,
            offsets,
            pacing: Pacing::new(job, number, monotonic_ns()),
            stamps: SplitMix64::new(thread_seed(job.seed.rotate_left(17), number)),
            recorder: Recorder::new(collector, &job.facts, window),
            stop: Stop {
                cancel: self.cancel,
                ended: &self.ended,
            },
            end_ns: window.end_ns,
        };
        let done = engine.run(&mut worker);
        let early = *done.as_ref().unwrap_or(&false);
        if let Some(pacing) = &worker.pacing
            && !early
        {
            let behind = pacing.behind(window.end_ns);
            collector.behind.fetch_add(behind, Ordering::Relaxed);
        }
        worker.recorder.finish(early);
        self.keep(done.err());
    }

    /// Keeps the first error and stops the others.
    fn keep(&self, error: Option<DiskError>) {
        if let Some(error) = error {
            self.ended.store(true, Ordering::Relaxed);
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }
}

/// Passes on what the collectors have gathered.
struct Seconds<'a> {
    step: &'a Step<'a>,
    collectors: &'a [Collector],
    from_ns: u64,
}

impl Seconds<'_> {
    fn pass_on(&mut self, until_ns: u64, each: &mut dyn FnMut(&Second<'_>)) {
        for (number, collector) in self.collectors.iter().enumerate() {
            let block_bytes = self.step.jobs[number].0.facts.block_bytes;
            collector.take_second(|operation, tally| {
                let bytes_each = if operation == Operation::Sync {
                    0
                } else {
                    block_bytes
                };
                each(&Second {
                    step: &self.step.name,
                    job: number,
                    operation,
                    start_ns: self.from_ns,
                    duration_ns: until_ns.saturating_sub(self.from_ns),
                    bytes: tally.operations * bytes_each,
                    tally,
                });
            });
        }
        self.from_ns = until_ns;
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4)
}
