//! Latencies as curves: how the tail grows.

use maud::{Markup, html};
use seekscope_pattern::events_of;
use seekscope_stats::quantile_sorted;

use super::charts::{Line, LineChart, Scale, figure};
use super::tables;
use crate::ReportInput;

/// Points per factor of ten on the axis.
const STEPS_PER_DECADE: f64 = 12.0;
const STEPS_MAX: u32 = 84;

/// A curve's name, how many latencies it is of, and its latency in ns at a quantile.
pub(crate) struct Curve<'a> {
    pub(crate) label: &'a str,
    pub(crate) count: u64,
    pub(crate) at_quantile: Box<dyn Fn(f64) -> u64 + 'a>,
}

/// Draws the curves, each as far as its latencies are enough to speak of a percentile; `None`
/// when none is long enough.
pub(crate) fn chart(id: &str, curves: &[Curve<'_>]) -> Option<LineChart> {
    let xs: Vec<f64> = (0..=STEPS_MAX)
        .map(|step| 10f64.powf(f64::from(step) / STEPS_PER_DECADE))
        .collect();
    let known = |curve: &Curve<'_>| xs.iter().filter(|&&x| x <= curve.count as f64).count();
    let longest = curves.iter().map(known).max().filter(|&steps| steps > 1)?;
    let values = |curve: &Curve<'_>| {
        let latency =
            |&x: &f64| (x <= curve.count as f64).then(|| (curve.at_quantile)(1.0 - 1.0 / x) as f64);
        xs.iter().take(longest).map(latency).collect()
    };
    let lines = curves
        .iter()
        .filter(|curve| known(curve) > 1)
        .enumerate()
        .map(|(index, curve)| Line::numbered(index, curve.label, values(curve)))
        .collect();
    Some(LineChart {
        id: id.into(),
        x: Scale::Percentile,
        y: Scale::LatencyNs,
        dots: false,
        xs: xs.iter().take(longest).copied().collect(),
        lines,
        marks: Vec::new(),
    })
}

/// Reads the quantiles off each phase's reads; `None` when there are none.
pub(super) fn build(input: &ReportInput<'_>) -> Option<LineChart> {
    let phases = &input.document.phases;
    let curves: Vec<Curve<'_>> = phases
        .iter()
        .map(|phase| {
            let reads = events_of(phase, input.events)
                .iter()
                .filter(|event| event.op.is_read());
            let mut latencies_ns: Vec<u64> = reads.map(|event| event.latency_ns).collect();
            latencies_ns.sort_unstable();
            Curve {
                label: &phase.name,
                count: latencies_ns.len() as u64,
                at_quantile: Box::new(move |q| {
                    quantile_sorted(&latencies_ns, q).unwrap_or_default()
                }),
            }
        })
        .collect();
    chart("percentiles", &curves)
}

/// The table of latencies and, above it, the curves.
pub(super) fn section(input: &ReportInput<'_>, curves: Option<&LineChart>) -> Markup {
    let caption = html! {
        "All reads of each phase, cached ones too. Each step to the right on the axis looks at a "
        "share of the reads ten times smaller and slower."
    };
    html! {
        section #latency {
            h2 { "How long calls took" }
            @if let Some(curves) = curves {
                (figure("percentiles", "Read latency by percentile", &curves.lines, &caption))
            }
            (tables::latencies(input))
        }
    }
}
