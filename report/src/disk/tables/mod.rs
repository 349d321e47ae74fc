//! Shows the numbers, section by section. There is no table without rows: what was not measured is not shown.

mod commits;
mod facts;
mod jobs;
mod model;
mod orders;
mod reads;

use seekscope_run::LatencySummary;
use seekscope_run::units::format_ns;

use super::steps::{Measured, p50_ns, p99_ns, p999_ns};
use crate::numbers::{format_mean_ns, format_times};
use crate::table::Cell;

pub(super) use commits::{checkpoint, journal, mixed, operations};
pub(super) use facts::{distortions, limit_text, limits, measurement_facts};
pub(super) use jobs::{all_steps, generator, jobs};
pub(super) use model::{model_facts, sizes};
pub(super) use orders::{mmap, orders, read_ahead};
pub(super) use reads::{ramp, sequential};

/// Shown instead of a percentile that too few operations support.
const TOO_FEW: &str = "too few";
const NOT_COUNTED: &str = "not counted";

/// Headings of [`latency_cells`].
const LATENCIES: [&str; 4] = ["p50", "p99", "p99.9", "max"];

/// Returns p50, p99, p99.9 and the maximum, each only where enough operations support it.
fn latency_cells(latency: &LatencySummary) -> [Cell; 4] {
    let max = (latency.count > 0).then_some(latency.max_ns);
    [p50_ns(latency), p99_ns(latency), p999_ns(latency), max]
        .map(|ns| Cell::or(ns.map(format_ns), TOO_FEW))
}

/// Returns CPU time per operation.
fn cpu_cell(measured: &Measured<'_>) -> Cell {
    let us = measured.job.cpu_us_per_io();
    Cell::or(us.map(|us| format_mean_ns(us * 1e3)), "no operations")
}

/// Returns bytes fetched from the device per byte read.
fn fetched_cell(measured: &Measured<'_>) -> Cell {
    Cell::or(measured.fetched_per_byte().map(format_times), NOT_COUNTED)
}
