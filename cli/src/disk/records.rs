//! What a running measurement writes to the run directory and shows.

use std::time::Duration;

use anyhow::Result;
use seekscope_disk::survey::SurveyObserver;
use seekscope_disk::{DiskError, Second};
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{
    DiskStep, Interval, IntervalWriter, LatencyLogWriter, LatencySummary, RunDirectory,
    RunDocument, tag_of,
};

use crate::progress::{Progress, Step};

/// Writes seconds and steps as they come.
pub struct Records<'a> {
    directory: &'a RunDirectory,
    document: &'a mut RunDocument,
    intervals: IntervalWriter,
    latencies: LatencyLogWriter,
    progress: Progress,
    bar: Option<Step>,
    /// Show each second of the current step as a line (single jobs).
    pub line_per_second: bool,
    /// A failure to write to the run directory, kept until the step ends.
    failure: Option<seekscope_run::RunError>,
}

impl<'a> Records<'a> {
    /// Writes into the run, whose document must contain a disk measurement.
    pub fn new(
        directory: &'a RunDirectory,
        document: &'a mut RunDocument,
        progress: Progress,
    ) -> Result<Self> {
        Ok(Self {
            intervals: directory.interval_writer()?,
            latencies: directory.latency_log_writer()?,
            directory,
            document,
            progress,
            bar: None,
            line_per_second: false,
            failure: None,
        })
    }

    fn write(&mut self, second: &Second<'_>) -> Result<(), seekscope_run::RunError> {
        let tally = second.tally;
        let due = LatencySummary::of(&tally.latency);
        let service = tally.service.as_ref().map(LatencySummary::of);
        let name = operation_name(second);
        self.intervals.write(&Interval {
            step: second.step.into(),
            operation: name.clone(),
            t_ns: second.start_ns,
            duration_ns: second.duration_ns,
            count: tally.operations,
            errors: 0,
            bytes: second.bytes,
            latency: service.unwrap_or(due),
            response: service.map(|_| due),
        })?;
        if tally.latency.is_empty() {
            return Ok(());
        }
        let started_ns = self.document.started.monotonic_ns;
        self.latencies.write(
            &tag_of(second.step, &name),
            Duration::from_nanos(second.start_ns.saturating_sub(started_ns)),
            Duration::from_nanos(second.duration_ns),
            &tally.latency,
        )
    }
}

/// Returns "read", or "write (burst)" for jobs that only accompany the step's main job.
fn operation_name(second: &Second<'_>) -> String {
    match second.job {
        0 => second.operation.name().into(),
        _ => format!("{} (burst)", second.operation.name()),
    }
}

/// Converts a second's count or bytes to a rate per second.
fn per_s(count: u64, second: &Second<'_>) -> u64 {
    let per_s = u128::from(count) * 1_000_000_000 / u128::from(second.duration_ns.max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}

impl SurveyObserver for Records<'_> {
    fn step_begins(&mut self, name: &str, number: usize, total: usize, expected: Duration) {
        self.bar = None;
        let seconds = expected.as_secs_f64();
        let text = format!("{number}/{total} {name} ({seconds:.1} s)");
        self.bar = Some(self.progress.step(text));
    }

    fn second(&mut self, second: &Second<'_>) {
        if let Err(error) = self.write(second) {
            self.failure.get_or_insert(error);
        }
        if self.line_per_second {
            let latency = LatencySummary::of(&second.tally.latency);
            self.progress.say(format!(
                "  {:>9}/s {:>10}/s  {}  p50 {:>8}  p99 {:>8}  max {:>8}",
                format_count(per_s(second.tally.operations, second)),
                format_bytes(per_s(second.bytes, second)),
                second.operation.name(),
                format_ns(latency.p50_ns),
                format_ns(latency.p99_ns),
                format_ns(latency.max_ns)
            ));
        }
    }

    fn step_ended(&mut self, step: &DiskStep) -> Result<(), DiskError> {
        self.bar = None;
        if let Some(measurement) = &mut self.document.disk {
            measurement.steps.push(step.clone());
        }
        let saved = match self.failure.take() {
            Some(error) => Err(error),
            None => self.directory.save(self.document),
        };
        saved.map_err(|error| DiskError::Record(error.to_string()))
    }
}
