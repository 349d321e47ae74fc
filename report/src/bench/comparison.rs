//! Compares benchmarks side by side: runs of the same work on different servers or settings, or the variants
//! of one run.
//!
//! Every figure of every side is compared with the first side's. Where both have repetitions, those are the
//! sample (in pairs where they were interleaved); where each ran once, the sample is the seconds of the run,
//! resampled in blocks. All comparisons together are corrected for their number (see
//! [`seekscope_stats::holm`]), and where nothing is found the report says how large a difference would have
//! been detected.
//!
//! Sizes are not such a sample: repetitions run on the data of one load, so each has that load's size again,
//! and the variation between equal loads is unknown. They are shown side by side, without any claim.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use seekscope_run::{BenchStep, RunDocument, StorageFacts};
use seekscope_stats::{Estimate, RatioComparison, holm, log_ratio, median, paired_log_ratio};
use serde::Serialize;

use super::figures;
use super::lone_run::{lone, quantile_estimate, rate_estimate};
use super::records::{BenchRecords, Clock};

/// One of the sides.
#[derive(Debug, Clone)]
pub struct Side<'a> {
    /// Name for people: a run directory, a variant.
    pub label: String,
    /// Its steps, repetitions included, each with the records of its run.
    pub steps: Vec<(&'a BenchRecords, &'a BenchStep)>,
}

impl<'a> Side<'a> {
    /// Returns a side of all steps of a run.
    pub fn of_run(label: String, document: &'a RunDocument, records: &'a BenchRecords) -> Self {
        let steps = document.bench.iter().flat_map(|bench| &bench.steps);
        Self {
            label,
            steps: steps.map(|step| (records, step)).collect(),
        }
    }
}

/// The quantity compared, of an operation or of a step as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    PerSecond,
    ServiceP50Ns,
    ServiceP99Ns,
    ServiceP999Ns,
    ResponseP50Ns,
    ResponseP99Ns,
    ResponseP999Ns,
    ClientCpuNsPerOperation,
    ServerCpuNsPerOperation,
    WrittenBytesPerOperation,
    DiskBytes,
    DiskBytesPerDocument,
}

/// How it was decided whether sides differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t on the logarithms of interleaved pairs.
    PairedRepetitions,
    /// Welch's t on the logarithms of repetitions.
    Repetitions,
    /// The moving-block bootstrap over the seconds of one run each.
    BlockBootstrap,
}

/// A comparison of a side with the first one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Against {
    /// This side's figure divided by the first's.
    pub ratio: f64,
    /// null if there is only one measurement each, without seconds; always null for sizes.
    pub comparison: Option<RatioComparison>,
    pub method: Option<Method>,
    /// Number of repetitions that both have.
    pub repetitions: u64,
}

/// One quantity, for all sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Compared {
    /// The work, e.g. "ycsb-a", "ycsb-a, load".
    pub work: String,
    /// Name of the operation; empty for the step as a whole.
    pub operation: String,
    pub measure: Measure,
    /// Median of the repetitions, one per side; null if the side has no such figure.
    pub values: Vec<Option<f64>>,
    /// Comparison with the first side, one per side after the first.
    pub against_first: Vec<Option<Against>>,
}

/// All figures that at least two sides have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BenchComparison {
    pub labels: Vec<String>,
    pub compared: Vec<Compared>,
}

impl Measure {
    /// Returns whether it is a property of the data rather than of the work on them.
    pub fn is_size(self) -> bool {
        matches!(self, Self::DiskBytes | Self::DiskBytesPerDocument)
    }
}

impl BenchComparison {
    /// Returns whether there is a side of which only the seconds of one run are known.
    pub fn has_lone_runs(&self) -> bool {
        let all = self
            .compared
            .iter()
            .flat_map(|compared| &compared.against_first);
        all.flatten()
            .any(|against| against.method == Some(Method::BlockBootstrap))
    }

    /// Returns how many figures were tested for a difference at once.
    pub(super) fn tested(&self) -> usize {
        let all = self.compared.iter().flat_map(|c| &c.against_first);
        all.flatten()
            .filter(|against| against.comparison.is_some())
            .count()
    }

    /// Returns whether it contains sizes, about which nothing is claimed.
    pub(super) fn has_sizes(&self) -> bool {
        self.compared.iter().any(|c| c.measure.is_size())
    }
}

/// Compares the sides; if `interleaved`, repetitions with the same number belong together.
pub fn compare(sides: &[Side<'_>], interleaved: bool) -> BenchComparison {
    let mut rows: Vec<Row> = Vec::new();
    for work in works(sides) {
        let steps: Vec<Steps<'_>> = sides.iter().map(|side| of_work(side, &work)).collect();
        let operations = operations(&steps);
        for operation in &operations {
            rows.extend(operation_rows(&work, operation, &steps, interleaved));
        }
        // The rate of a lone operation is the step's rate.
        if operations.len() > 1 {
            rows.push(throughput_row(&work, &steps, interleaved));
        }
        rows.extend(WHOLE.iter().map(|(measure, value)| {
            let samples: Vec<Vec<(u32, f64)>> = steps.iter().map(|s| samples(s, *value)).collect();
            match measure.is_size() {
                true => Row::untested(&work, "", *measure, &samples),
                false => Row::new(&work, "", *measure, &samples, interleaved, |_| None)
                    .no_surer_than(&resolutions(*measure, &steps)),
            }
        }));
    }
    rows.retain(|row| row.values.iter().flatten().count() >= 2);
    let estimates: Vec<Estimate> = rows.iter().flat_map(Row::estimates).collect();
    let mut comparisons = holm(&estimates).into_iter();
    BenchComparison {
        labels: sides.iter().map(|side| side.label.clone()).collect(),
        compared: rows
            .into_iter()
            .map(|row| row.finish(&mut comparisons))
            .collect(),
    }
}

type Steps<'a> = Vec<(&'a BenchRecords, &'a BenchStep)>;
/// A tick, in which the kernel tells the CPU time of other processes (USER_HZ): no run's is known better.
const TICK_NS: f64 = 1e7;

type ValueOf = fn(&BenchStep) -> Option<f64>;

const WHOLE: [(Measure, ValueOf); 5] = [
    (Measure::ClientCpuNsPerOperation, figures::client_cpu_ns),
    (Measure::ServerCpuNsPerOperation, figures::server_cpu_ns),
    (Measure::WrittenBytesPerOperation, figures::written_bytes),
    (Measure::DiskBytes, |step| {
        step.storage_after
            .as_ref()
            .and_then(StorageFacts::disk_bytes)
            .map(|bytes| bytes as f64)
    }),
    (
        Measure::DiskBytesPerDocument,
        BenchStep::disk_bytes_per_document,
    ),
];

/// Returns the works, in the order of the first side.
fn works(sides: &[Side<'_>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = sides.iter().flat_map(|side| &side.steps);
    all.map(|(_, step)| figures::work_of(step))
        .filter(|work| seen.insert(work.clone()))
        .collect()
}

fn of_work<'a>(side: &Side<'a>, work: &str) -> Steps<'a> {
    let all = side.steps.iter().copied();
    all.filter(|(_, step)| figures::work_of(step) == work)
        .collect()
}

fn operations(steps: &[Steps<'_>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = steps
        .iter()
        .flatten()
        .flat_map(|(_, step)| &step.operations);
    all.map(|op| op.name.clone())
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

/// Returns positive values, each with its repetition.
fn samples(steps: &Steps<'_>, value: impl Fn(&BenchStep) -> Option<f64>) -> Vec<(u32, f64)> {
    let known = steps
        .iter()
        .filter_map(|(_, step)| Some((step.repetition, value(step)?)));
    known.filter(|(_, v)| v.is_finite() && *v > 0.0).collect()
}

/// Returns by how much the mean logarithm of each side's values may be off because of the unit they were counted in.
fn resolutions(measure: Measure, sides: &[Steps<'_>]) -> Vec<f64> {
    let of_steps = |steps: &Steps<'_>| {
        let cpu_ns = steps.iter().filter_map(|(_, step)| step.server_cpu_ns);
        let shares = cpu_ns.filter(|&ns| ns > 0).map(|ns| TICK_NS / ns as f64);
        let shares: Vec<f64> = shares.collect();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        squares.sqrt() / shares.len().max(1) as f64
    };
    match measure {
        Measure::ServerCpuNsPerOperation => sides.iter().map(of_steps).collect(),
        _ => vec![0.0; sides.len()],
    }
}

fn operation_rows(work: &str, operation: &str, steps: &[Steps<'_>], interleaved: bool) -> Vec<Row> {
    let of = |step: &BenchStep| {
        step.operations
            .iter()
            .find(|op| op.name == operation)
            .cloned()
    };
    let has_response = |steps: &Steps<'_>| {
        !steps.is_empty()
            && steps
                .iter()
                .all(|(_, s)| of(s).is_some_and(|op| op.response.is_some()))
    };
    let clock = if steps.iter().all(has_response) {
        Clock::Response
    } else {
        Clock::Service
    };
    let rates: Vec<Vec<(u32, f64)>> = (steps.iter())
        .map(|s| samples(s, |step| of(step).map(|op| op.per_s)))
        .collect();
    let mut rows = vec![Row::new(
        work,
        operation,
        Measure::PerSecond,
        &rates,
        interleaved,
        |side| rate_estimate(lone(&steps[side])?, operation, side),
    )];
    for (q, service, response) in [
        (0.5, Measure::ServiceP50Ns, Measure::ResponseP50Ns),
        (0.99, Measure::ServiceP99Ns, Measure::ResponseP99Ns),
        (0.999, Measure::ServiceP999Ns, Measure::ResponseP999Ns),
    ] {
        let value = |step: &BenchStep| {
            let operation = of(step)?;
            let latency = match clock {
                Clock::Response => operation.response?,
                Clock::Service => operation.service,
            };
            let enough = latency.count as f64 * (1.0 - q) >= 1.0;
            let ns = if q < 0.9 {
                latency.p50_ns
            } else if q < 0.995 {
                latency.p99_ns
            } else {
                latency.p999_ns
            };
            enough.then_some(ns as f64)
        };
        let values: Vec<Vec<(u32, f64)>> = steps.iter().map(|s| samples(s, value)).collect();
        let measure = if clock == Clock::Response {
            response
        } else {
            service
        };
        rows.push(Row::new(
            work,
            operation,
            measure,
            &values,
            interleaved,
            |side| quantile_estimate(lone(&steps[side])?, operation, clock, q, side),
        ));
    }
    rows
}

/// Returns the row of all transactions of a step. For a lone run the rate is that of its operations.
fn throughput_row(work: &str, steps: &[Steps<'_>], interleaved: bool) -> Row {
    let rate = |step: &BenchStep| Some(step.throughput_per_s);
    let rates: Vec<Vec<(u32, f64)>> = steps.iter().map(|s| samples(s, rate)).collect();
    Row::new(work, "", Measure::PerSecond, &rates, interleaved, |_| None)
}

/// A row before the number of comparisons is known.
struct Row {
    work: String,
    operation: String,
    measure: Measure,
    values: Vec<Option<f64>>,
    /// Number of repetitions of each side.
    repetitions: Vec<usize>,
    /// Natural logarithm of each side's value over the first's.
    log_ratios: Vec<Option<(Estimate, Method)>>,
}

impl Row {
    fn new(
        work: &str,
        operation: &str,
        measure: Measure,
        samples: &[Vec<(u32, f64)>],
        interleaved: bool,
        of_lone_run: impl Fn(usize) -> Option<Estimate>,
    ) -> Self {
        let first = samples.first().map_or(&[][..], Vec::as_slice);
        let log_ratios = (1..samples.len()).map(|side| {
            let other = &samples[side];
            if first.len() >= 2 && other.len() >= 2 {
                let pairs = interleaved.then(|| paired(first, other)).flatten();
                let paired = pairs.and_then(|pairs| paired_log_ratio(&pairs));
                return match paired {
                    Some(estimate) => Some((estimate, Method::PairedRepetitions)),
                    None => {
                        log_ratio(&plain(first), &plain(other)).map(|e| (e, Method::Repetitions))
                    }
                };
            }
            let estimate = of_lone_run(side)?.minus(&of_lone_run(0)?);
            Some((estimate, Method::BlockBootstrap))
        });
        Self {
            log_ratios: log_ratios.collect(),
            ..Self::untested(work, operation, measure, samples)
        }
    }

    /// Makes no comparison surer than the values of both sides are; `errors` are those of each side's mean logarithm.
    fn no_surer_than(mut self, errors: &[f64]) -> Self {
        for (side, found) in self.log_ratios.iter_mut().enumerate() {
            if let Some((estimate, _)) = found {
                *estimate = estimate.no_surer_than(errors[0].hypot(errors[side + 1]));
            }
        }
        self
    }

    /// Returns a row about which nothing can be claimed.
    fn untested(
        work: &str,
        operation: &str,
        measure: Measure,
        samples: &[Vec<(u32, f64)>],
    ) -> Self {
        Self {
            work: work.into(),
            operation: operation.into(),
            measure,
            values: samples.iter().map(|s| median(&plain(s))).collect(),
            repetitions: samples.iter().map(Vec::len).collect(),
            log_ratios: vec![None; samples.len().saturating_sub(1)],
        }
    }

    fn estimates(&self) -> impl Iterator<Item = Estimate> {
        self.log_ratios
            .iter()
            .flatten()
            .map(|(estimate, _)| *estimate)
    }

    fn finish(self, comparisons: &mut impl Iterator<Item = RatioComparison>) -> Compared {
        let first = self.values.first().copied().flatten();
        let repetitions = &self.repetitions;
        let against = self.log_ratios.iter().zip(self.values.iter().skip(1));
        let against_first = against.enumerate().map(|(index, (found, value))| {
            // Taken in the given order, whether a ratio is shown or not.
            let comparison = found.and_then(|_| comparisons.next());
            Some(Against {
                ratio: (*value)? / first?,
                comparison,
                method: found.map(|(_, method)| method),
                repetitions: repetitions[0].min(repetitions[index + 1]) as u64,
            })
        });
        let against_first = against_first.collect();
        Compared {
            work: self.work,
            operation: self.operation,
            measure: self.measure,
            values: self.values,
            against_first,
        }
    }
}

fn plain(samples: &[(u32, f64)]) -> Vec<f64> {
    samples.iter().map(|sample| sample.1).collect()
}

/// Pairs repetitions with the same number; `None` for fewer than two.
fn paired(a: &[(u32, f64)], b: &[(u32, f64)]) -> Option<Vec<(f64, f64)>> {
    let of = |(number, value): &(u32, f64)| {
        let partner = b.iter().find(|(other, _)| other == number)?;
        Some((*value, partner.1))
    };
    let pairs: Vec<(f64, f64)> = a.iter().filter_map(of).collect();
    (pairs.len() >= 2).then_some(pairs)
}
