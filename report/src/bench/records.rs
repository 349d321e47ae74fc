//! Reads what a benchmark's run directory holds beside `run.json`, once.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;
use seekscope_run::{
    BenchMeasurement, BenchStep, CounterSample, Interval, RunDirectory, RunDocument, RunError,
    latency_histogram, parse_tag, service_tag_of_response,
};

use super::lost_latencies::LostLatencies;

/// Start times in `latency.hlog` are whole milliseconds.
const START_PRECISION_NS: u64 = 1_000_000;

/// Distinguishes an operation's two latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Clock {
    /// The time from send to reply.
    Service,
    /// The time from the scheduled start to the reply.
    Response,
}

/// One of an operation's latencies in one step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LatencyKey {
    pub step: String,
    pub operation: String,
    pub clock: Clock,
}

/// Latencies of about a second, in 64 classes for each doubling (1 % apart): small enough to keep every
/// second of a run, fine enough for resampling seconds and reading percentiles.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencySecond {
    /// Start, CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    pub duration_ns: u64,
    /// Pairs (class, latencies in it), ascending; see [`class_ns`].
    classes: Vec<(u16, u32)>,
}

/// Number of classes for each doubling.
const CLASSES: f64 = 64.0;

/// Returns the latency in the middle of a class, ns.
pub(crate) fn class_ns(class: u16) -> f64 {
    ((f64::from(class) + 0.5) / CLASSES).exp2()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "64 classes for each of 64 doublings; the conversion saturates"
)]
fn class_of(ns: u64) -> u16 {
    ((ns.max(1) as f64).log2() * CLASSES).floor() as u16
}

impl LatencySecond {
    /// Summarises a histogram of ns.
    pub fn new(t_ns: u64, duration_ns: u64, histogram: &Histogram<u64>) -> Self {
        let mut classes: Vec<(u16, u32)> = Vec::new();
        for value in histogram.iter_recorded() {
            let class = class_of(value.value_iterated_to());
            let count = u32::try_from(value.count_since_last_iteration()).unwrap_or(u32::MAX);
            match classes.last_mut() {
                Some(last) if last.0 == class => last.1 = last.1.saturating_add(count),
                _ => classes.push((class, count)),
            }
        }
        Self {
            t_ns,
            duration_ns,
            classes,
        }
    }

    /// Returns whether it is counted if the warm-up ended at that time.
    pub(crate) fn counts_from(&self, warm_up_ended_ns: u64) -> bool {
        self.t_ns.saturating_add(START_PRECISION_NS) >= warm_up_ended_ns
    }

    /// Returns pairs (class, latencies in it), ascending.
    pub(crate) fn classes(&self) -> &[(u16, u32)] {
        &self.classes
    }

    fn count(&self) -> u64 {
        let counts = self.classes.iter().map(|(_, count)| u64::from(*count));
        counts.sum()
    }
}

/// The intervals, latencies and counters of a benchmark.
#[derive(Debug, Clone, Default)]
pub struct BenchRecords {
    /// Intervals in the order in which they were recorded; warm-up included.
    pub intervals: Vec<Interval>,
    /// Whole distributions without the warm-up, ns.
    pub histograms: BTreeMap<LatencyKey, Histogram<u64>>,
    /// Every second, warm-up included, in order of time.
    pub seconds: BTreeMap<LatencyKey, Vec<LatencySecond>>,
    /// Counters of server and host, in order of time.
    pub counters: Vec<CounterSample>,
}

impl BenchRecords {
    /// Reads the records of a run.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or is damaged. Missing files count as empty.
    pub fn read(directory: &RunDirectory, document: &RunDocument) -> Result<Self, RunError> {
        let steps: HashMap<&str, &BenchStep> = (document.bench.iter())
            .flat_map(|bench| &bench.steps)
            .map(|step| (step.name.as_str(), step))
            .collect();
        let mut records = Self {
            intervals: directory.intervals()?,
            counters: directory.counters()?,
            ..Self::default()
        };
        let started_ns = document.started.monotonic_ns;
        directory.for_each_latency(0, |interval| {
            let Some(key) = key_of(&interval.tag) else {
                return Ok(());
            };
            let Some(step) = steps.get(key.step.as_str()) else {
                return Ok(());
            };
            let nanoseconds =
                |d: std::time::Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
            let t_ns = started_ns.saturating_add(nanoseconds(interval.start));
            records.add(
                key,
                step,
                t_ns,
                nanoseconds(interval.duration),
                &interval.histogram,
            )
        })?;
        Ok(records)
    }

    /// Adds a second; the error says why it cannot be added to the others.
    fn add(
        &mut self,
        key: LatencyKey,
        step: &BenchStep,
        t_ns: u64,
        duration_ns: u64,
        histogram: &Histogram<u64>,
    ) -> Result<(), String> {
        let second = LatencySecond::new(t_ns, duration_ns, histogram);
        if second.counts_from(step.warm_up_ended_ns.unwrap_or(0)) {
            let sum = self.histograms.entry(key.clone()).or_insert_with(|| {
                let mut empty = latency_histogram();
                empty.auto(true);
                empty
            });
            sum.add(histogram).map_err(|e| e.to_string())?;
        }
        self.seconds.entry(key).or_default().push(second);
        Ok(())
    }

    /// Returns the first operation of which the log lacks latencies that its figures were made from.
    pub fn lost_latencies(&self, bench: &BenchMeasurement) -> Option<LostLatencies> {
        // The log of a merged run has seconds of its own, in which the warm-up of each client cannot be told from the
        // rest, so all of them count.
        let is_merged = !bench.merged_from.is_empty();
        LostLatencies::first(bench, |step, operation| match is_merged {
            true => {
                let seconds = self.seconds(step, operation, Clock::Service).iter();
                seconds.map(LatencySecond::count).sum()
            }
            false => {
                let whole = self.histogram(step, operation, Clock::Service);
                whole.map_or(0, Histogram::len)
            }
        })
    }

    pub(crate) fn histogram(
        &self,
        step: &str,
        operation: &str,
        clock: Clock,
    ) -> Option<&Histogram<u64>> {
        self.histograms.get(&LatencyKey {
            step: step.into(),
            operation: operation.into(),
            clock,
        })
    }

    pub(crate) fn seconds(&self, step: &str, operation: &str, clock: Clock) -> &[LatencySecond] {
        let key = LatencyKey {
            step: step.into(),
            operation: operation.into(),
            clock,
        };
        self.seconds.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Returns the intervals of one step's operation, in order of time.
    pub(crate) fn intervals_of<'a>(
        &'a self,
        step: &'a str,
        operation: &'a str,
    ) -> impl Iterator<Item = &'a Interval> {
        self.intervals
            .iter()
            .filter(move |i| i.step == step && i.operation == operation)
    }
}

fn key_of(tag: &str) -> Option<LatencyKey> {
    let (tag, clock) = match service_tag_of_response(tag) {
        Some(service) => (service, Clock::Response),
        None => (tag, Clock::Service),
    };
    let (step, operation) = parse_tag(tag)?;
    Some(LatencyKey {
        step,
        operation,
        clock,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_a_percent_apart_and_hold_every_latency() {
        let mut histogram = latency_histogram();
        for ns in [1, 1000, 1_000_000, 20_000_000, 3_600_000_000_000] {
            histogram.record(ns).unwrap();
            let class = class_ns(class_of(ns));
            assert!((class / ns as f64 - 1.0).abs() < 0.012, "{ns} {class}");
        }
        let second = LatencySecond::new(0, 1, &histogram);
        assert_eq!(
            second.classes().iter().map(|(_, count)| count).sum::<u32>(),
            5
        );
    }
}
