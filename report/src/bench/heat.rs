//! Draws latencies over time as a density: how many requests of each second took how long.

use seekscope_pattern::{Axis, DensityGrid};
use seekscope_run::BenchStep;

use super::BenchReportInput;
use super::marks::Span;
use super::records::{Clock, LatencySecond, class_ns};
use crate::html::charts::HeatMap;
use crate::html::points::Blobs;

/// The most cells of the time axis; in a longer step each cell has several seconds.
const COLUMNS_MAX: usize = 600;
/// Cells for each factor of ten of latency.
const ROWS_PER_DECADE: usize = 20;

/// Draws all requests of a step, by response time where it was measured.
pub(super) fn of_step(
    input: &BenchReportInput<'_>,
    index: usize,
    step: &BenchStep,
    blobs: &mut Blobs,
) -> Option<HeatMap> {
    let span = Span::of(input, step);
    let seconds: Vec<&LatencySecond> = step
        .operations
        .iter()
        .filter(|op| !op.is_transaction)
        .flat_map(|op| {
            let of = |clock| input.records.seconds(&step.name, &op.name, clock);
            match of(Clock::Response) {
                [] => of(Clock::Service),
                response => response,
            }
        })
        .collect();
    let (first, last) = range(&seconds)?;
    let low = first.log10().floor();
    let high = last.log10().ceil().max(low + 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "decades of 64-bit numbers: at most 20"
    )]
    let decades = (high - low) as usize;
    let shown_s = seconds
        .iter()
        .map(|s| s.t_ns)
        .max()?
        .saturating_sub(span.started_ns)
        / 1_000_000_000;
    let columns = usize::try_from(shown_s + 1).map_or(COLUMNS_MAX, |n| n.min(COLUMNS_MAX));
    let x = Axis {
        low: span.seconds(span.started_ns),
        high: span.seconds(span.started_ns) + (shown_s + 1) as f64,
        bins: columns,
    };
    let y = Axis {
        low,
        high,
        bins: decades * ROWS_PER_DECADE,
    };
    let mut grid = DensityGrid::new(x, y);
    for second in seconds {
        // The middle of the second lies in the cell, whatever the second's length.
        let at = x.bin(span.seconds(second.t_ns.saturating_add(second.duration_ns / 2)));
        for &(class, count) in second.classes() {
            let cell = y.bin(class_ns(class).log10()) * columns + at;
            grid.counts[cell] = grid.counts[cell].saturating_add(count);
        }
    }
    Some(HeatMap::new(format!("heat-{index}"), &grid, blobs))
}

/// Returns the shortest and longest latency, ns.
fn range(seconds: &[&LatencySecond]) -> Option<(f64, f64)> {
    let classes = || {
        seconds
            .iter()
            .flat_map(|s| s.classes())
            .map(|(class, _)| *class)
    };
    Some((class_ns(classes().min()?), class_ns(classes().max()?)))
}
