//! Shows reads that bypass the page cache: by depth, and in order.

use seekscope_run::{DiskMeasurement, StepGroup};

use super::super::DiskReportInput;
use super::super::sentences::block;
use super::super::steps::{Measured, Orders, of_group, ramps};
use super::{LATENCIES, cpu_cell, latency_cells};
use crate::numbers::{format_mb, format_rate};
use crate::table::{Cell, Table};

/// Returns random reads by block size and depth; the knee is marked.
pub(in super::super) fn ramp(input: &DiskReportInput<'_>) -> Option<Table> {
    let [p50, p99, p999, max] = LATENCIES;
    let columns = [
        "in flight",
        "IOPS",
        "MB/s",
        p50,
        p99,
        p999,
        max,
        "CPU per I/O",
    ];
    let mut table = Table::new(1, &columns);
    for ramp in ramps(input.measurement()?) {
        table.group(format!("{} blocks", block(ramp.block_bytes)));
        let knee = ramp.knee_index();
        for (index, measured) in ramp.points.iter().enumerate() {
            let mark = if knee == Some(index) { " (knee)" } else { "" };
            let name = format!("{}{mark}", measured.in_flight());
            table.row(
                [name.into(), rate_cell(measured), mb_cell(measured)]
                    .into_iter()
                    .chain(latency_cells(measured.latency()))
                    .chain([cpu_cell(measured)]),
            );
        }
    }
    table.or_nothing()
}

/// Returns reads in order: direct, and through a cold page cache.
pub(in super::super) fn sequential(input: &DiskReportInput<'_>) -> Option<Table> {
    let measurement: &DiskMeasurement = input.measurement()?;
    let [p50, p99, p999, max] = LATENCIES;
    let mut table = Table::new(
        1,
        &["read in order", "MB/s", "calls/s", p50, p99, p999, max],
    );
    let mut add = |how: &str, m: Measured<'_>| {
        let (size, depth) = (block(m.facts().block_bytes), m.in_flight());
        let name = format!("{how}, {size}, {depth} in flight");
        table.row(
            [name.into(), mb_cell(&m), rate_cell(&m)]
                .into_iter()
                .chain(latency_cells(m.latency())),
        );
    };
    for measured in of_group(measurement, StepGroup::SequentialDirect) {
        add("direct", measured);
    }
    if let Some(measured) = Orders::of(measurement).in_order {
        add("page cache, cold", measured);
    }
    table.or_nothing()
}

/// Returns operations per second.
pub(super) fn rate_cell(measured: &Measured<'_>) -> Cell {
    format_rate(measured.job.iops()).into()
}

/// Returns 10^6 bytes per second.
pub(super) fn mb_cell(measured: &Measured<'_>) -> Cell {
    format_mb(measured.job.bytes_per_s()).into()
}
