//! What a running replay writes to the run directory: `intervals.parquet` has its seconds, `latency.hlog` the
//! latencies of both sides.

use std::time::Duration;

use anyhow::Result;
use hdrhistogram::Histogram;
use seekscope_disk::replay::ReplaySecond;
use seekscope_run::{Interval, IntervalWriter, LatencyLogWriter, LatencySummary, RunError, tag_of};

use crate::progress::Step;
use crate::session::Session;

/// Names of the run's steps, by which its intervals and latencies are found.
const REPLAYED: &str = "replayed";
const RECORDED: &str = "recorded";
/// Name for latencies measured from the intended start.
const RESPONSE: &str = "replayed from intended start";

/// Writes the records of a running replay.
pub struct Records {
    intervals: IntervalWriter,
    latencies: LatencyLogWriter,
    /// When the run began, CLOCK_MONOTONIC ns.
    began_ns: u64,
    played: u64,
    bar: Step,
    /// A failure to write to the run directory, reported at the end.
    failure: Option<RunError>,
}

impl Records {
    /// Writes into the run; `bar` counts operations.
    pub fn new(session: &Session, bar: Step) -> Result<Self> {
        Ok(Self {
            intervals: session.directory.interval_writer()?,
            latencies: session.directory.latency_log_writer()?,
            began_ns: session.document.started.monotonic_ns,
            played: 0,
            bar,
            failure: None,
        })
    }

    /// Records a second.
    pub fn second(&mut self, second: &ReplaySecond<'_>) {
        self.played += second.service.len() + second.errors;
        self.bar.at(self.played);
        if let Err(error) = self.write(second) {
            self.failure.get_or_insert(error);
        }
    }

    fn write(&mut self, second: &ReplaySecond<'_>) -> Result<(), RunError> {
        let name = second.operation.name();
        self.intervals.write(&Interval {
            step: REPLAYED.into(),
            operation: name.into(),
            t_ns: second.start_ns,
            duration_ns: second.duration_ns,
            count: second.service.len() + second.errors,
            errors: second.errors,
            bytes: second.bytes,
            latency: LatencySummary::of(second.service),
            response: second.response.map(LatencySummary::of),
        })?;
        let start = Duration::from_nanos(second.start_ns.saturating_sub(self.began_ns));
        let length = Duration::from_nanos(second.duration_ns);
        let mut log = |step: &str, histogram: &Histogram<u64>| {
            if histogram.is_empty() {
                return Ok(());
            }
            self.latencies
                .write(&tag_of(step, name), start, length, histogram)
        };
        log(RECORDED, second.recorded)?;
        log(REPLAYED, second.service)?;
        second
            .response
            .map_or(Ok(()), |response| log(RESPONSE, response))
    }

    /// Returns an error if not everything could be written.
    pub fn finish(self) -> Result<(), RunError> {
        self.failure.map_or(Ok(()), Err)
    }
}
