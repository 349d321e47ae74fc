//! Shows writes that must reach the disk: alone, beside a burst, among reads.

use seekscope_run::{JobOutcome, LatencySummary, OperationOutcome, StepGroup};

use super::super::DiskReportInput;
use super::super::sentences::block;
use super::super::steps::{Measured, alone, commits, of_group, p50_ns, p99_ns, p999_ns};
use super::reads::rate_cell;
use super::{LATENCIES, TOO_FEW, latency_cells};
use crate::numbers::{format_mb, format_mean_ns, format_rate, format_times};
use crate::table::{Cell, Table};

/// Returns small writes, each with its fdatasync.
pub(in super::super) fn journal(input: &DiskReportInput<'_>) -> Option<Table> {
    let [p50, p99, p999, max] = LATENCIES;
    let mut table = Table::new(2, &["writers", "blocks", "syncs/s", p50, p99, p999, max]);
    let commits = commits(input.measurement()?, StepGroup::Journal);
    for same_size in commits.chunk_by(|a, b| a.facts().block_bytes == b.facts().block_bytes) {
        let size = same_size.first().map_or(0, |m| m.facts().block_bytes);
        table.group(format!("{} and fdatasync", block(size)));
        for m in same_size {
            let file = if m.facts().fresh_blocks {
                "fresh"
            } else {
                "written over"
            }
            .into();
            table.row(
                [m.in_flight().to_string().into(), file, rate_cell(m)]
                    .into_iter()
                    .chain(latency_cells(m.latency())),
            );
        }
    }
    table.or_nothing()
}

/// Returns the same beside large writes, compared with the same alone.
pub(in super::super) fn checkpoint(input: &DiskReportInput<'_>) -> Option<Table> {
    let measurement = input.measurement()?;
    let [p50, p99, p999, max] = LATENCIES;
    let mut table = Table::new(
        1,
        &["commits", "syncs/s", p50, p99, p999, max, "burst, MB/s"],
    );
    for in_burst in commits(measurement, StepGroup::Checkpoint) {
        let size = block(in_burst.facts().block_bytes);
        table.group(format!("{size}, writers: {}", in_burst.in_flight()));
        let alone = alone(measurement, &in_burst);
        if let Some(alone) = alone {
            table.row(commit_row("alone", &alone, Cell::Missing("none")));
        }
        let burst = in_burst.step.jobs.get(1).map(JobOutcome::bytes_per_s);
        let burst = Cell::or(burst.map(format_mb), "not measured");
        table.row(commit_row("beside the burst", &in_burst, burst));
        if let Some(alone) = alone {
            table.row(ratio_row(&in_burst, &alone));
        }
    }
    table.or_nothing()
}

fn commit_row(name: &str, m: &Measured<'_>, burst: Cell) -> Vec<Cell> {
    [name.into(), rate_cell(m)]
        .into_iter()
        .chain(latency_cells(m.latency()))
        .chain([burst])
        .collect()
}

/// Returns the values beside the burst as multiples of those alone.
fn ratio_row(in_burst: &Measured<'_>, alone: &Measured<'_>) -> Vec<Cell> {
    let (with, without) = (in_burst.latency(), alone.latency());
    let max: fn(&LatencySummary) -> Option<u64> = |latency| Some(latency.max_ns);
    let ratio = |of: fn(&LatencySummary) -> Option<u64>| {
        let times = || Some(of(with)? as f64 / of(without)? as f64);
        Cell::or(times().map(format_times), TOO_FEW)
    };
    let rates = format_times(in_burst.job.iops() / alone.job.iops());
    vec![
        "ratio".into(),
        rates.into(),
        ratio(p50_ns),
        ratio(p99_ns),
        ratio(p999_ns),
        ratio(max),
        Cell::Missing(""),
    ]
}

/// Returns reads and writes at the same time.
pub(in super::super) fn mixed(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = operation_table();
    for m in of_group(input.measurement()?, StepGroup::Mixed) {
        let size = block(m.facts().block_bytes);
        table.group(format!("{size}, {} in flight", m.in_flight()));
        operation_rows(&mut table, m.job);
    }
    table.or_nothing()
}

/// Returns a table for [`operation_rows`].
pub(super) fn operation_table() -> Table {
    let [p50, p99, p999, max] = LATENCIES;
    Table::new(
        1,
        &["operation", "per s", "MB/s", p50, p99, p999, max, "mean"],
    )
}

/// Adds a row for each kind of operation that a job did.
pub(super) fn operation_rows(table: &mut Table, job: &JobOutcome) {
    for (name, outcome) in operations(job) {
        let per_s = |count: u64| count as f64 * 1e9 / job.elapsed_ns.max(1) as f64;
        table.row(
            [
                name.into(),
                format_rate(per_s(outcome.operations)).into(),
                format_mb(per_s(outcome.bytes)).into(),
            ]
            .into_iter()
            .chain(latency_cells(&outcome.latency))
            .chain([format_mean_ns(outcome.latency.mean_ns).into()]),
        );
    }
}

/// Returns the kinds of operation that a job did.
pub(in super::super) fn operations(
    job: &JobOutcome,
) -> impl Iterator<Item = (&'static str, &OperationOutcome)> {
    [
        ("read", &job.reads),
        ("write", &job.writes),
        ("sync", &job.syncs),
    ]
    .into_iter()
    .filter(|(_, outcome)| outcome.operations > 0)
}
