//! Runs the ramp: adds threads, takes and prints samples, and stops everything.
//!
//! Only this thread prints. The others send events, which are printed while it waits for the next
//! reading of their counters. A step's first reading is taken when all its threads have started, so
//! no sample mixes two thread counts; elapsed time is measured, never assumed.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use seekscope_run::units::nanoseconds;
use seekscope_run::{LatencySummary, OperationOutcome, monotonic_ns};

use super::access::Access;
use super::ramp::{SAMPLES_PER_STEP, thread_counts};
use super::report::{Sample, StepReport};
use super::worker::{self, Counters, Event, Latencies, Load, NO_STEP, Shared};
use super::{CompatOptions, MongoperfError, Options, Output};
use crate::DiskError;

/// How often the cancel flag is checked.
const CANCEL_CHECK: Duration = Duration::from_millis(20);
/// The bytes that the old MB/sec counted for each operation.
const OLD_OPERATION_BYTES: u64 = 4096;

/// The parameters of a ramp.
pub(crate) struct Ramp<'a> {
    pub(crate) options: &'a Options,
    pub(crate) compat: &'a CompatOptions,
    pub(crate) access: &'a Access<'a>,
    pub(crate) load: Load,
    /// Time between two readings; a second outside of tests.
    pub(crate) sample: Duration,
    pub(crate) cancel: &'a AtomicBool,
}

impl<'a> Ramp<'a> {
    /// Runs all steps. What was measured is returned even if the second value is an error.
    pub(crate) fn run(
        self,
        output: &mut dyn Output,
    ) -> (Vec<StepReport>, Result<(), MongoperfError>) {
        let steps = thread_counts(self.options.threads).count();
        let threads = usize::try_from(self.options.threads).unwrap_or(usize::MAX);
        let shared = Shared {
            access: self.access,
            file_bytes: self.options.file_bytes,
            load: self.load,
            stop: AtomicBool::new(false),
            step: AtomicUsize::new(NO_STEP),
            threads_running: AtomicU32::new(0),
            counters: (0..threads).map(|_| Counters::default()).collect(),
            latencies: Mutex::new((0..steps).map(|_| Latencies::default()).collect()),
        };
        let (events_in, events_out) = mpsc::channel();
        let mut conductor = Conductor {
            options: self.options,
            compat: self.compat,
            shared: &shared,
            sample: self.sample,
            cancel: self.cancel,
            events_in,
            events_out,
            output,
            steps: Vec::new(),
        };
        // The scope ends when all threads have ended.
        let outcome = thread::scope(|scope| {
            let outcome = conductor.run(scope);
            shared.stop.store(true, Ordering::Relaxed);
            outcome
        });
        let mut steps = conductor.steps;
        let latencies = shared.latencies.into_inner();
        let latencies = latencies.unwrap_or_else(PoisonError::into_inner);
        for (step, latencies) in steps.iter_mut().zip(&latencies) {
            sum_up(step, latencies, shared.load.operation_bytes as u64);
        }
        (steps, outcome)
    }
}

/// Computes a step's totals from its samples and histograms.
fn sum_up(step: &mut StepReport, latencies: &Latencies, operation_bytes: u64) {
    let outcome = |of: fn(&Sample) -> u64, histogram: &Option<Histogram<u64>>| {
        let operations = step.samples.iter().map(of).sum::<u64>();
        let latency = histogram.as_ref().map(LatencySummary::of);
        OperationOutcome {
            operations,
            bytes: operations * operation_bytes,
            latency: latency.unwrap_or_default(),
            service: None,
        }
    };
    let reads = outcome(|sample| sample.reads, &latencies.reads);
    let writes = outcome(|sample| sample.writes, &latencies.writes);
    (step.reads, step.writes) = (reads, writes);
}

struct Conductor<'a> {
    options: &'a Options,
    compat: &'a CompatOptions,
    shared: &'a Shared<'a>,
    sample: Duration,
    cancel: &'a AtomicBool,
    events_in: Sender<Event>,
    events_out: Receiver<Event>,
    output: &'a mut dyn Output,
    steps: Vec<StepReport>,
}

/// One reading of all counters.
struct Reading {
    at: Instant,
    reads: u64,
    writes: u64,
}

impl<'a> Conductor<'a> {
    fn run<'scope>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<(), MongoperfError>
    where
        'a: 'scope,
    {
        if let Some(delay) = self.options.sync_delay {
            let (shared, events) = (self.shared, self.events_in.clone());
            start(scope, "flusher", move || {
                worker::flush_regularly(shared, delay, &events);
            })?;
        }
        for (step, threads) in thread_counts(self.options.threads).enumerate() {
            self.start_threads(scope, threads)?;
            self.steps.push(StepReport {
                threads,
                started_ns: monotonic_ns(),
                samples: Vec::new(),
                reads: OperationOutcome::default(),
                writes: OperationOutcome::default(),
            });
            self.shared.step.store(step, Ordering::Relaxed);
            let outcome = self.take_samples(threads);
            self.shared.step.store(NO_STEP, Ordering::Relaxed);
            outcome?;
        }
        Ok(())
    }

    /// Raises the number of threads to `threads` and waits until the new ones have begun.
    fn start_threads<'scope>(
        &mut self,
        scope: &'scope thread::Scope<'scope, '_>,
        threads: u32,
    ) -> Result<(), MongoperfError>
    where
        'a: 'scope,
    {
        let running = self.shared.threads_running.swap(threads, Ordering::Relaxed);
        for number in running..threads {
            let (shared, events) = (self.shared, self.events_in.clone());
            start(scope, "worker", move || {
                worker::work(shared, number, &events)
            })?;
        }
        self.output
            .line(&format!("new thread, total running : {threads}"))?;
        let mut starting = threads - running;
        while starting > 0 {
            if self.next_event(None)? == Some(Happened::Started) {
                starting -= 1;
            }
        }
        Ok(())
    }

    /// Takes and prints the samples of one step. An interrupted sample is taken but not printed.
    fn take_samples(&mut self, threads: u32) -> Result<(), MongoperfError> {
        let endless = self.compat.forever && threads == self.options.threads;
        let mut before = self.read_counters();
        let mut due = before.at;
        let mut taken = 0;
        while endless || taken < SAMPLES_PER_STEP {
            // If printing was delayed, the next reading comes at once and covers all of that time.
            due = (due + self.sample).max(Instant::now());
            let waited = self.wait_until(due);
            let after = self.read_counters();
            let sample = after.since(&before);
            if let Some(step) = self.steps.last_mut() {
                step.samples.push(sample);
            }
            waited?;
            let line = sample_line(&sample, self.counted_bytes());
            self.output.line(&line)?;
            before = after;
            taken += 1;
        }
        Ok(())
    }

    fn wait_until(&mut self, due: Instant) -> Result<(), MongoperfError> {
        while self.next_event(Some(due))?.is_some() {}
        Ok(())
    }

    /// Returns the bytes that one operation counts for in the figure of megabytes, if there is one.
    fn counted_bytes(&self) -> Option<u64> {
        if self.options.mapped {
            None
        } else if self.compat.mongoperf_mbs {
            Some(OLD_OPERATION_BYTES)
        } else {
            Some(self.shared.load.operation_bytes as u64)
        }
    }

    fn read_counters(&self) -> Reading {
        let mut reading = Reading {
            at: Instant::now(),
            reads: 0,
            writes: 0,
        };
        for counters in &self.shared.counters {
            reading.reads += counters.reads.load(Ordering::Relaxed);
            reading.writes += counters.writes.load(Ordering::Relaxed);
        }
        reading
    }

    /// Waits for an event and prints it; `None` if `due` came first.
    fn next_event(&mut self, due: Option<Instant>) -> Result<Option<Happened>, MongoperfError> {
        loop {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(DiskError::Interrupted.into());
            }
            let rest = due.map(|due| due.saturating_duration_since(Instant::now()));
            match self
                .events_out
                .recv_timeout(rest.unwrap_or(CANCEL_CHECK).min(CANCEL_CHECK))
            {
                Ok(event) => return self.print(event).map(Some),
                // `events_in` lives in `self`, so the channel is never disconnected.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Ok(None);
            }
        }
    }

    fn print(&mut self, event: Event) -> Result<Happened, MongoperfError> {
        match event {
            Event::Started => {
                let (reads, writes) = (self.options.reads, self.options.writes);
                let line = format!("read:{} write:{}", u8::from(reads), u8::from(writes));
                self.output.line(&line)?;
                Ok(Happened::Started)
            }
            Event::Synced { elapsed } => {
                let line = format!("{:53}mmf sync took {}ms", "", elapsed.as_millis());
                self.output.line(&line)?;
                Ok(Happened::Synced)
            }
            Event::Failed(error) => Err(error.into()),
        }
    }
}

/// An event that has been printed.
#[derive(PartialEq, Eq)]
enum Happened {
    Started,
    Synced,
}

impl Reading {
    fn since(&self, before: &Self) -> Sample {
        let elapsed = self.at.duration_since(before.at);
        Sample {
            elapsed_ns: nanoseconds(elapsed),
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
        }
    }
}

/// Returns a sample's line, which ends in a space if there are no megabytes.
fn sample_line(sample: &Sample, operation_bytes: Option<u64>) -> String {
    let operations = sample.operations_per_s();
    let mb = |bytes: u64| (u128::from(operations) * u128::from(bytes)) >> 20;
    match operation_bytes {
        Some(bytes) => format!("{operations} ops/sec {} MB/sec", mb(bytes)),
        None => format!("{operations} ops/sec "),
    }
}

fn start<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() + Send + 'scope,
) -> Result<(), MongoperfError> {
    let builder = thread::Builder::new().name(name.into());
    match builder.spawn_scoped(scope, body) {
        Ok(_) => Ok(()),
        Err(error) => Err(DiskError::Thread(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_line_has_rates_by_the_time_that_passed() {
        let sample = Sample {
            elapsed_ns: 2_000_000_000,
            reads: 9000,
            writes: 519,
        };
        assert_eq!(sample_line(&sample, Some(4096)), "4759 ops/sec 18 MB/sec");
        assert_eq!(sample_line(&sample, Some(8192)), "4759 ops/sec 37 MB/sec");
        assert_eq!(sample_line(&sample, None), "4759 ops/sec ");
        let none = Sample {
            elapsed_ns: 0,
            reads: 0,
            writes: 0,
        };
        assert_eq!(sample_line(&none, Some(4096)), "0 ops/sec 0 MB/sec");
    }
}
