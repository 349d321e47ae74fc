//! Compares the variants of one run: throughput per workload, and size of the data.

use std::collections::BTreeSet;

use seekscope_run::{BenchStep, RunDocument, StorageFacts};
use seekscope_stats::{Estimate, median};

use super::comparison::{self, BenchComparison, Side};
use super::{BenchRecords, BenchReportInput, comparison_table, figures};
use crate::html::charts::{BarChart, Line, Scale};
use crate::table::Table;

pub(super) const THROUGHPUT: &str = "chart-variants";
const SIZE: &str = "chart-sizes";
const VARIANTS_MAX: usize = 8;

/// The figures and tables of variants.
pub(super) struct Variants {
    pub(super) charts: Vec<BarChart>,
    pub(super) table: Option<Table>,
    pub(super) sentences: Vec<String>,
}

impl Variants {
    /// Returns `None` for a run with fewer than two.
    pub(super) fn of(input: &BenchReportInput<'_>) -> Option<Self> {
        let (sides, comparison) = compared(input)?;
        let letters = sides.iter().zip('A'..);
        let legend: Vec<String> = letters
            .map(|(side, letter)| format!("{letter}: {}", side.label))
            .collect();
        let mut sentences = vec![format!("{}.", legend.join("; "))];
        sentences.extend(comparison_table::sentences(&comparison));
        Some(Self {
            charts: throughput(&sides)
                .into_iter()
                .chain(sizes(&sides))
                .collect(),
            table: comparison_table::table(&comparison),
            sentences,
        })
    }
}

/// Compares the variants of a run with its first, as [`BenchComparison`] describes; `None` for a run with
/// fewer than two.
pub fn variants_compared(
    document: &RunDocument,
    records: &BenchRecords,
) -> Option<BenchComparison> {
    let (_, comparison) = compared(&BenchReportInput { document, records })?;
    Some(comparison)
}

/// Returns the variants and how they compare.
fn compared<'a>(input: &BenchReportInput<'a>) -> Option<(Vec<Side<'a>>, BenchComparison)> {
    let names = names(input.steps());
    if names.len() < 2 {
        return None;
    }
    let sides: Vec<Side<'_>> = names
        .iter()
        .map(|name| Side {
            label: (*name).to_string(),
            steps: (input.steps().iter())
                .filter(|step| step.variant == *name)
                .map(|step| (input.records, step))
                .collect(),
        })
        .collect();
    let comparison = comparison::compare(&sides, true);
    Some((sides, comparison))
}

/// Returns the names in the order in which they first ran.
fn names(steps: &[BenchStep]) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let named = steps.iter().map(|step| step.variant.as_str());
    named
        .filter(|name| !name.is_empty() && seen.insert(*name))
        .take(VARIANTS_MAX)
        .collect()
}

fn throughput(sides: &[Side<'_>]) -> Option<BarChart> {
    let mut works: Vec<String> = Vec::new();
    for (_, step) in sides.iter().flat_map(|side| &side.steps) {
        let work = figures::work_of(step);
        if step.throughput_per_s > 0.0 && !works.contains(&work) {
            works.push(work);
        }
    }
    let series: Vec<Line> = sides
        .iter()
        .enumerate()
        .map(|(index, side)| {
            let bars = works.iter().map(|work| {
                let steps = side.steps.iter().map(|(_, step)| *step);
                bar(&steps
                    .filter(|s| figures::work_of(s) == *work)
                    .collect::<Vec<_>>())
            });
            let (values, intervals) = bars.unzip();
            Line {
                intervals,
                ..Line::numbered(index, &side.label, values)
            }
        })
        .collect();
    let groups = works.iter().map(|work| crate::escape::visible(work));
    (!works.is_empty()).then(|| BarChart::new(THROUGHPUT, Scale::Rate, groups.collect(), series))
}

type Interval = Option<(f64, f64)>;

/// Returns the median of repetitions with the interval of their mean, or one step's own.
fn bar(steps: &[&BenchStep]) -> (Option<f64>, Interval) {
    let rates: Vec<f64> = steps.iter().map(|step| step.throughput_per_s).collect();
    let interval = match steps {
        [one] => one.throughput_interval,
        _ => Estimate::of_mean(&rates).map(|mean| mean.interval(0.05)),
    };
    (
        median(&rates),
        interval.map(|(low, high)| (low.max(0.0), high)),
    )
}

fn sizes(sides: &[Side<'_>]) -> Option<BarChart> {
    let last = |side: &Side<'_>| -> Option<StorageFacts> {
        let mut known = side.steps.iter().rev();
        known.find_map(|(_, step)| step.storage_after.clone())
    };
    let facts: Vec<Option<StorageFacts>> = sides.iter().map(last).collect();
    let series = |index: usize, label: &str, bytes: fn(&StorageFacts) -> u64| {
        let values = facts.iter().map(|f| f.as_ref().map(|f| bytes(f) as f64));
        Line::numbered(index, label, values.collect())
    };
    // Measured from outside, data and indexes cannot be distinguished.
    let is_seen =
        |facts: &Option<StorageFacts>| facts.as_ref().is_none_or(|f| f.directory_bytes.is_some());
    let on_disk = match facts.iter().all(is_seen) {
        true => vec![series(0, "data and indexes", |f| {
            f.directory_bytes.unwrap_or(0)
        })],
        false => vec![
            series(0, "data files", |f| f.storage_bytes),
            series(1, "indexes", |f| f.index_bytes),
        ],
    };
    let groups = sides.iter().map(|side| crate::escape::visible(&side.label));
    facts
        .iter()
        .any(Option::is_some)
        .then(|| BarChart::new(SIZE, Scale::Bytes, groups.collect(), on_disk))
}
