//! Shows jobs as they were described, the generator without a disk, and every step.

use seekscope_run::units::{format_count, format_ns};
use seekscope_run::{DiskStep, EngineKind, JobFacts, ReadAdvice, StepGroup};

use super::super::DiskReportInput;
use super::super::sentences::block;
use super::super::steps::{Measured, of_group};
use super::commits::{operation_rows, operation_table};
use super::reads::rate_cell;
use super::{NOT_COUNTED, fetched_cell};
use crate::numbers::{format_mean_ns, format_number, format_rate, format_share};
use crate::table::{Cell, Table};

/// Returns the job that the user described, or the sustained reads.
pub(in super::super) fn jobs(input: &DiskReportInput<'_>, group: StepGroup) -> Option<Table> {
    let mut table = operation_table();
    for m in of_group(input.measurement()?, group) {
        for job in &m.step.jobs {
            table.group(describe(&job.job));
            operation_rows(&mut table, job);
        }
    }
    table.or_nothing()
}

/// Returns the generator without a disk.
pub(in super::super) fn generator(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(1, &["without a disk", "operations/s", "each", "CPU each"]);
    for m in of_group(input.measurement()?, StepGroup::Generator) {
        let (threads, depth) = (m.facts().threads, m.facts().depth);
        let each = 1e9 * f64::from(threads.max(1)) / m.job.iops();
        table.row([
            format!("threads: {threads}, depth {depth}").into(),
            rate_cell(&m),
            precise_ns(each).into(),
            Cell::or(
                m.job.cpu_us_per_io().map(|us| precise_ns(us * 1e3)),
                "unknown",
            ),
        ]);
    }
    table.or_nothing()
}

/// Returns every step in order, including those in which nothing was done.
pub(in super::super) fn all_steps(input: &DiskReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "step",
            "jobs",
            "time",
            "operations",
            "per s",
            "fetched/byte",
            "I/O pressure",
            "load",
        ],
    );
    for step in &input.measurement()?.steps {
        table.row(step_row(step));
    }
    table.or_nothing()
}

fn step_row(step: &DiskStep) -> [Cell; 8] {
    let jobs: Vec<String> = step.jobs.iter().map(|job| describe(&job.job)).collect();
    let main = step.main();
    let none = "no job";
    let measured = Measured::of(step);
    [
        step.name.clone().into(),
        jobs.join("; beside it ").into(),
        format_ns(step.ended_ns.saturating_sub(step.started_ns)).into(),
        Cell::or(main.map(|job| format_count(job.operations())), none),
        Cell::or(main.map(|job| format_rate(job.iops())), none),
        measured.map_or(Cell::Missing(NOT_COUNTED), |m| fetched_cell(&m)),
        Cell::or(step.io_pressure.map(format_share), "no PSI"),
        format_number(step.load_1m).into(),
    ]
}

/// Describes a job in one line, in fio's words.
fn describe(job: &JobFacts) -> String {
    let mut words = vec![job.access.name().to_string()];
    if job.access.name().ends_with("rw") {
        words.push(format!("{:.0} % reads", job.read_share * 100.0));
    }
    words.push(block(job.block_bytes));
    if let Some(blocks) = job.run_blocks {
        words.push(format!("runs of {blocks}"));
    }
    words.push(job.engine.name().into());
    if !matches!(job.engine, EngineKind::Mmap | EngineKind::Null) {
        words.push(if job.direct { "direct" } else { "buffered" }.into());
    }
    words.push(format!("depth {}", job.depth));
    words.push(format!("threads: {}", job.threads));
    match job.advice {
        ReadAdvice::Normal => {}
        ReadAdvice::Random => words.push("random advice".into()),
        ReadAdvice::Sequential => words.push("sequential advice".into()),
    }
    if let Some(bytes) = job.window_bytes {
        words.push(format!("{} ahead", block(bytes)));
    }
    if let Some(per_s) = job.rate_per_s {
        let gaps = if job.poisson { ", Poisson" } else { "" };
        words.push(format!("{} per s{gaps}", format_rate(per_s)));
    }
    if job.sync_each_write {
        words.push("each synced".into());
    }
    if let Some(bytes) = job.sync_every_bytes {
        words.push(format!("synced every {}", block(bytes)));
    }
    words.join(", ")
}

/// Formats precisely: a fraction of a nanosecond matters for a loop that takes a few.
fn precise_ns(ns: f64) -> String {
    if ns < 999.5 {
        format!("{} ns", format_number(ns))
    } else {
        format_mean_ns(ns)
    }
}
