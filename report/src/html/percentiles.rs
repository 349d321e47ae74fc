//! Read latencies of all phases as one picture: how the tail grows.

use maud::{Markup, html};
use seekscope_pattern::events_of;
use seekscope_stats::quantile_sorted;
use serde::Serialize;

use super::tables;
use crate::ReportInput;

/// Points per factor of ten on the axis.
const STEPS_PER_DECADE: f64 = 12.0;
const STEPS_MAX: u32 = 84;

/// Curves over one axis, as the script reads them.
#[derive(Serialize)]
pub(super) struct Percentiles {
    /// 1 / (1 - p): 100 stands for the 99th percentile.
    x: Vec<f64>,
    curves: Vec<Curve>,
}

#[derive(Serialize)]
struct Curve {
    phase: usize,
    /// Nanoseconds; shorter than `x` where there are too few reads to speak of that percentile.
    latency_ns: Vec<u64>,
}

/// Reads the quantiles off each phase's reads; `None` when there are none.
pub(super) fn build(input: &ReportInput<'_>) -> Option<Percentiles> {
    let x: Vec<f64> = (0..=STEPS_MAX)
        .map(|step| 10f64.powf(f64::from(step) / STEPS_PER_DECADE))
        .collect();
    let curves: Vec<Curve> = (input.document.phases.iter().enumerate())
        .filter_map(|(phase, record)| {
            let reads = events_of(record, input.events)
                .iter()
                .filter(|event| event.op.is_read());
            let mut latencies_ns: Vec<u64> = reads.map(|event| event.latency_ns).collect();
            latencies_ns.sort_unstable();
            let latency_ns: Vec<u64> = (x.iter())
                .take_while(|&&x| x <= latencies_ns.len() as f64)
                .filter_map(|x| quantile_sorted(&latencies_ns, 1.0 - 1.0 / x))
                .collect();
            (latency_ns.len() > 1).then_some(Curve { phase, latency_ns })
        })
        .collect();
    let longest = curves.iter().map(|curve| curve.latency_ns.len()).max()?;
    Some(Percentiles {
        x: x.into_iter().take(longest).collect(),
        curves,
    })
}

/// The table of latencies and, above it, the curves.
pub(super) fn section(input: &ReportInput<'_>, curves: Option<&Percentiles>) -> Markup {
    html! {
        section #latency {
            h2 { "How long calls took" }
            @if let Some(curves) = curves {
                figure.chart #percentiles {
                    div.chart-head { h5 { "Read latency by percentile" } }
                    div.plot {}
                    ul.legend {
                        @for (line, curve) in curves.curves.iter().enumerate() {
                            @if let Some(phase) = input.document.phases.get(curve.phase) {
                                li { span class={ "swatch line-" (line % 8) } {} bdi { (phase.name) } }
                            }
                        }
                    }
                    figcaption {
                        "All reads of each phase, cached ones too. Each step to the right on the axis "
                        "looks at a share of the reads ten times smaller and slower."
                    }
                }
            }
            (tables::latencies(input))
        }
    }
}
