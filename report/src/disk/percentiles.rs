//! Shows whole latency distributions of the most informative steps: how the tails grow.

use hdrhistogram::Histogram;
use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{DiskStep, StepGroup};

use super::DiskReportInput;
use super::sentences::block;
use super::steps::{Measured, Ramp, alone, at_quantile, commits, of_group, ramps};
use super::tables::operations;
use crate::html::charts::LineChart;
use crate::html::percentiles::chart;
use crate::table::{Cell, Table};

/// Quantiles of the table, and their names.
const QUANTILES: [(f64, &str); 6] = [
    (0.5, "50 %"),
    (0.9, "90 %"),
    (0.99, "99 %"),
    (0.999, "99.9 %"),
    (0.9999, "99.99 %"),
    (0.99999, "99.999 %"),
];
/// The most curves: the number of colours on the page.
const CURVES_MAX: usize = 8;

/// A distribution and its name.
struct Distribution<'a> {
    label: String,
    histogram: &'a Histogram<u64>,
}

/// Returns the distributions: one read at a time, at the knee, and with most in flight; commits alone and
/// beside a burst; the job, or the sustained reads.
fn distributions<'a>(input: &DiskReportInput<'a>) -> Vec<Distribution<'a>> {
    let Some(measurement) = input.measurement() else {
        return Vec::new();
    };
    let mut found: Vec<Distribution<'a>> = Vec::new();
    let mut add = |label: String, step: &DiskStep, operation: &str| {
        let Some(histogram) = input.histogram(&step.name, operation) else {
            return;
        };
        // The knee may coincide with one read at a time, or with the deepest.
        let is_new = found
            .iter()
            .all(|other| !std::ptr::eq(other.histogram, histogram));
        if is_new && !histogram.is_empty() {
            found.push(Distribution { label, histogram });
        }
    };
    for m in [StepGroup::Job, StepGroup::Sustained]
        .into_iter()
        .flat_map(|group| of_group(measurement, group))
    {
        for (operation, _) in operations(m.job) {
            add(format!("{}, {operation}s", m.step.name), m.step, operation);
        }
    }
    let ramps = ramps(measurement);
    if let Some(ramp) = ramps.first() {
        let points = [ramp.one_at_a_time(), ramp.knee(), ramp.deepest()];
        for m in points.into_iter().flatten() {
            add(ramp_label(ramp, &m), m.step, "read");
        }
    }
    let in_burst = commits(measurement, StepGroup::Checkpoint).first().copied();
    let plain = match &in_burst {
        Some(in_burst) => alone(measurement, in_burst),
        None => commits(measurement, StepGroup::Journal).first().copied(),
    };
    if let Some(m) = plain {
        add("commit alone".into(), m.step, "write");
    }
    if let Some(m) = in_burst {
        add("commit beside a burst".into(), m.step, "write");
    }
    found.truncate(CURVES_MAX);
    found
}

fn ramp_label(ramp: &Ramp<'_>, m: &Measured<'_>) -> String {
    format!(
        "{} reads, {} in flight",
        block(ramp.block_bytes),
        m.in_flight()
    )
}

/// Draws the curves.
pub(super) fn curves(input: &DiskReportInput<'_>) -> Option<LineChart> {
    let distributions = distributions(input);
    let named = distributions
        .iter()
        .map(|d| (d.label.as_str(), d.histogram));
    chart("chart-percentiles", named)
}

/// Returns the curves as numbers.
pub(super) fn table(input: &DiskReportInput<'_>) -> Option<Table> {
    let names = QUANTILES.map(|(_, name)| name);
    let columns: Vec<&'static str> = ["operations", "count"].into_iter().chain(names).collect();
    let mut table = Table::new(1, &columns);
    for d in distributions(input) {
        let count = d.histogram.len();
        let cells =
            QUANTILES.map(|(q, _)| Cell::or(at_quantile(d.histogram, q).map(format_ns), "too few"));
        table.row(
            [d.label.into(), format_count(count).into()]
                .into_iter()
                .chain(cells),
        );
    }
    table.or_nothing()
}

/// Says what the longest tail does to a client that waits for many operations.
pub(super) fn sentence(input: &DiskReportInput<'_>) -> Option<String> {
    let distributions = distributions(input);
    let rare = |d: &Distribution<'_>| {
        let (p50, p999) = (
            at_quantile(d.histogram, 0.5)?,
            at_quantile(d.histogram, 0.999)?,
        );
        Some((p999 as f64 / p50.max(1) as f64, p50, p999))
    };
    let (d, (ratio, p50, p999)) = distributions
        .iter()
        .filter_map(|d| Some((d, rare(d)?)))
        .max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
    Some(format!(
        "The longest tail is that of {}: {} at the median and, once in a thousand, {}, which is {} times \
         as long; a request that waits for a thousand of them is likely to meet it.",
        d.label,
        format_ns(p50),
        format_ns(p999),
        crate::numbers::format_times(ratio)
    ))
}
