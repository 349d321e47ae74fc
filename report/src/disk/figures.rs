//! Builds the figures of a disk run: their numbers, and their places on the page.

use super::steps::{Measured, Orders, Ramp, p50_ns, p99_ns, ramps};
use super::{DiskReportInput, OrderPrediction, percentiles, sentences::block, series};
use crate::escape::{shortened, visible};
use crate::html::charts::{BarChart, Line, LineChart, Scale};
use crate::numbers::format_share;

const NAME_CHARS: usize = 40;

/// A line figure with its explanation.
pub(super) struct Figure {
    /// The id of the section that it belongs to.
    pub(super) section: &'static str,
    pub(super) heading: &'static str,
    /// How to read it; the sentence with the same key follows.
    pub(super) reading: &'static str,
    pub(super) sentence: &'static str,
    pub(super) chart: LineChart,
}

/// Returns the line figures for which there are numbers.
pub(super) fn lines(input: &DiskReportInput<'_>) -> Vec<Figure> {
    let ramps = input.measurement().map(ramps).unwrap_or_default();
    let seconds = series::charts(input).into_iter().map(|chart| {
        let (heading, reading) = match chart.id.as_str() {
            "chart-rate" => ("Operations per second over time", "Each point is a second."),
            _ => (
                "99th percentile over time",
                "Each point is a second with enough operations.",
            ),
        };
        Figure {
            section: "seconds",
            heading,
            reading,
            sentence: if chart.id == "chart-rate" {
                "seconds"
            } else {
                ""
            },
            chart,
        }
    });
    let by_depth = [
        rate_by_depth(&ramps).map(|chart| Figure {
            section: "ramp",
            heading: "Reads per second by depth",
            reading: "A ring marks the knee.",
            sentence: "concurrency",
            chart,
        }),
        latency_by_depth(&ramps).map(|chart| Figure {
            section: "ramp",
            heading: "Latency by depth",
            reading: "Solid: half of the reads take less. Dashed: 99 % of the reads take less.",
            sentence: "cache_miss",
            chart,
        }),
        percentiles::curves(input).map(|chart| Figure {
            section: "percentiles",
            heading: "Latency by percentile",
            reading: "Each step to the right covers a share of the operations that is ten times \
                      smaller and slower.",
            sentence: "percentiles",
            chart,
        }),
    ];
    by_depth.into_iter().flatten().chain(seconds).collect()
}

/// Draws a line per ramp over the depths of all of them; `None` without two depths.
fn by_depth(
    id: &'static str,
    y: Scale,
    ramps: &[Ramp<'_>],
    line: impl Fn(usize, &Ramp<'_>, &[u64]) -> Vec<Line>,
) -> Option<LineChart> {
    let points = ramps.iter().flat_map(|ramp| &ramp.points);
    let mut depths: Vec<u64> = points.map(Measured::in_flight).collect();
    depths.sort_unstable();
    depths.dedup();
    let xs = depths.iter().map(|&depth| depth as f64).collect();
    let lines = ramps
        .iter()
        .enumerate()
        .flat_map(|(index, ramp)| line(index, ramp, &depths))
        .collect();
    (depths.len() > 1).then(|| LineChart::new(id, (Scale::Depth, y), xs, lines))
}

/// Returns a ramp's values at all depths.
fn values(
    ramp: &Ramp<'_>,
    depths: &[u64],
    value: impl Fn(&Measured<'_>) -> Option<f64>,
) -> Vec<Option<f64>> {
    let at = |depth| ramp.points.iter().find(|m| m.in_flight() == depth);
    depths.iter().map(|&depth| value(at(depth)?)).collect()
}

fn rate_by_depth(ramps: &[Ramp<'_>]) -> Option<LineChart> {
    by_depth("chart-ramp", Scale::Rate, ramps, |index, ramp, depths| {
        let rates = values(ramp, depths, |m| Some(m.job.iops()));
        let knee = ramp.knee().map(|m| m.in_flight());
        let mut line = Line::numbered(index, &block(ramp.block_bytes), rates);
        line.dashed = false;
        line.knee = depths.iter().position(|&depth| Some(depth) == knee);
        vec![line]
    })
}

fn latency_by_depth(ramps: &[Ramp<'_>]) -> Option<LineChart> {
    by_depth(
        "chart-latency",
        Scale::LatencyNs,
        ramps,
        |index, ramp, depths| {
            let size = block(ramp.block_bytes);
            let percentile = |name: &str, dashed, ns: fn(&Measured<'_>) -> Option<u64>| {
                let values = values(ramp, depths, |m| ns(m).map(|ns| ns as f64));
                let mut line = Line::numbered(index, &format!("{size} {name}"), values);
                line.dashed = dashed;
                line
            };
            vec![
                percentile("p50", false, |m| p50_ns(m.latency())),
                percentile("p99", true, |m| p99_ns(m.latency())),
            ]
        },
    )
}

/// Draws blocks per second by order, measured and predicted; `None` when only one order is known.
pub(super) fn orders(input: &DiskReportInput<'_>) -> Option<BarChart> {
    let orders = Orders::of(input.measurement()?);
    let named = orders.named();
    let predicted_for = |step: &str| input.predictions.iter().find(|p| p.name == step);
    let mut groups: Vec<String> = Vec::new();
    let (mut measured, mut predicted) = (Vec::new(), Vec::new());
    for (name, m) in &named {
        groups.push(name.clone());
        measured.push(Some(m.job.iops()));
        predicted.push(predicted_for(&m.step.name).map(|p| p.predicted_per_s));
    }
    let is_step = |p: &&OrderPrediction| named.iter().any(|(_, m)| m.step.name == p.name);
    for prediction in input.predictions.iter().filter(|p| !is_step(p)) {
        groups.push(prediction.name.clone());
        measured.push(Some(prediction.measured_per_s));
        predicted.push(Some(prediction.predicted_per_s));
    }
    if groups.len() < 2 {
        return None;
    }
    let mut series = vec![Line::numbered(0, "measured", measured)];
    if predicted.iter().any(Option::is_some) {
        series.push(Line::numbered(1, "predicted by the model", predicted));
    }
    for line in &mut series {
        line.dashed = false;
    }
    let groups = groups.iter();
    let groups = groups.map(|name| visible(&shortened(name, NAME_CHARS)));
    Some(BarChart::new(
        "chart-order",
        Scale::Rate,
        groups.collect(),
        series,
    ))
}

/// Errors up to this share leave a model's predictions of use.
const ERROR_MAX: f64 = 0.25;

/// Says how well the model predicts.
pub(super) fn predictions_sentence(predictions: &[OrderPrediction]) -> Option<String> {
    let errors = predictions
        .iter()
        .map(|p| (p, p.error()))
        .filter(|(_, e)| e.is_finite());
    let (worst, error) = errors.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let side = if error < 0.0 { "slow" } else { "fast" };
    let worst = &worst.name;
    Some(match error.abs() {
        off if off <= ERROR_MAX => format!(
            "The model made from this run was off by at most {} ({worst}, too {side}); its predictions for other \
             orders should be as close.",
            format_share(off)
        ),
        off => format!(
            "The model made from this run was off by up to {:.0} % ({worst}, too {side}); do not rely on its \
             predictions for other orders.",
            off * 100.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_that_are_far_off_are_not_relied_on() {
        let said = |predicted_per_s| {
            let prediction = OrderPrediction {
                name: "runs of 8".into(),
                measured_per_s: 1_000.0,
                predicted_per_s,
            };
            predictions_sentence(&[prediction]).unwrap()
        };
        let far = said(5_890.0);
        assert!(
            far.contains("up to 489 % (runs of 8, too fast); do not rely on"),
            "{far}"
        );
        let close = said(900.0);
        assert!(
            close.contains("at most 10.0 % (runs of 8, too slow)") && close.contains("as close"),
            "{close}"
        );
    }
}
