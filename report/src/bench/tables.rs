//! Shows the numbers of steps as tables.

use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{BenchStep, LatencySummary, OperationResult};

use super::{BenchReportInput, figures, sentences};
use crate::numbers::{format_rate, format_times};
use crate::table::{Cell, Table};

const NOTHING: &str = "–";

/// Returns a percentile, unless there are too few latencies to support it.
fn supported(latency: &LatencySummary, one_in: u64, ns: u64) -> Cell {
    Cell::or((latency.count >= one_in).then(|| format_ns(ns)), NOTHING)
}

fn latency_cells(latency: &LatencySummary) -> [Cell; 4] {
    [
        supported(latency, 1, latency.p50_ns),
        supported(latency, 100, latency.p99_ns),
        supported(latency, 1000, latency.p999_ns),
        supported(latency, 1, latency.max_ns),
    ]
}

/// Returns a name like `run 2 (ycsb-a, lz4)`, with what the step's own name does not say.
pub(super) fn step_name(step: &BenchStep) -> String {
    let facts = [&step.workload, &step.variant];
    let unsaid: Vec<&str> = facts
        .into_iter()
        .filter(|fact| !fact.is_empty() && !step.name.contains(fact.as_str()))
        .map(String::as_str)
        .collect();
    if unsaid.is_empty() {
        step.name.clone()
    } else {
        format!("{} ({})", step.name, unsaid.join(", "))
    }
}

fn margin(operation: &OperationResult) -> Option<String> {
    sentences::margin(operation.per_s, operation.per_s_interval)
}

/// Returns whether the interval of any rate is known.
pub(super) fn has_margins(steps: &[BenchStep]) -> bool {
    let mut all = steps.iter().flat_map(|step| &step.operations);
    all.any(|operation| margin(operation).is_some())
}

/// Returns rates and latencies, a group for each step.
pub(super) fn operations(steps: &[BenchStep]) -> Option<Table> {
    let has_margins = has_margins(steps);
    let mut columns = vec!["operation", "count", "errors", "per second"];
    columns.extend(has_margins.then_some("95 %"));
    columns.extend(["p50", "p99", "p99.9", "max"]);
    let mut table = Table::new(1, &columns);
    for step in steps {
        table.group(step_name(step));
        for operation in &step.operations {
            operation_rows(&mut table, operation, has_margins);
        }
    }
    table.or_nothing()
}

fn operation_rows(table: &mut Table, operation: &OperationResult, has_margins: bool) {
    let mut cells: Vec<Cell> = vec![
        format!("  {}", operation.name).into(),
        format_count(operation.count).into(),
        format_count(operation.errors).into(),
        format_rate(operation.per_s).into(),
    ];
    cells.extend(has_margins.then(|| Cell::or(margin(operation), NOTHING)));
    let blank = std::iter::repeat_n(Cell::Missing(""), cells.len() - 1);
    table.row(cells.into_iter().chain(latency_cells(&operation.service)));
    if let Some(response) = &operation.response {
        let name = std::iter::once("    response".into());
        table.row(name.chain(blank).chain(latency_cells(response)));
    }
}

/// Returns how each step was driven, and how reliable its figures are.
pub(super) fn conditions<'a>(steps: impl IntoIterator<Item = &'a BenchStep>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "step",
            "arrivals",
            "in flight",
            "warm-up",
            "steady",
            "verified",
        ],
    );
    for step in steps {
        let warm_up = step
            .warm_up_ended_ns
            .map(|ns| ns.saturating_sub(step.started_ns));
        let steady = step
            .steady
            .as_ref()
            .and_then(|one| one.steady)
            .map(|is_steady| if is_steady { "yes" } else { "NO" }.to_string());
        let verified = step
            .verification
            .as_ref()
            .and_then(|v| v.verdict())
            .map(|holds| if holds { "yes" } else { "NO" }.to_string());
        table.row([
            step_name(step).into(),
            sentences::arrivals(&step.arrivals).into(),
            format_count(u64::from(step.in_flight)).into(),
            Cell::or(warm_up.map(format_ns), "none"),
            Cell::or(steady, "unknown"),
            Cell::or(verified, NOTHING),
        ]);
    }
    table.or_nothing()
}

/// Returns each step's cost for client, server and disk.
pub(super) fn costs<'a>(steps: impl IntoIterator<Item = &'a BenchStep>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "per operation",
            "client",
            "client CPU",
            "server CPU",
            "read",
            "written",
            "write ampl.",
        ],
    );
    let ns = |value: Option<f64>| Cell::or(value.map(|v| format_ns(whole(v))), NOTHING);
    let bytes = |value: Option<f64>| Cell::or(value.map(|v| format_bytes(whole(v))), NOTHING);
    for step in steps {
        table.row([
            step_name(step).into(),
            sentences::client(step.client).into(),
            ns(figures::client_cpu_ns(step)),
            ns(figures::server_cpu_ns(step)),
            bytes(figures::read_bytes(step)),
            bytes(figures::written_bytes(step)),
            Cell::or(
                figures::write_amplification(step).map(format_times),
                NOTHING,
            ),
        ]);
    }
    table.or_nothing()
}

/// Returns the size of the data after each step for which it is known.
pub(super) fn storage<'a>(steps: impl IntoIterator<Item = &'a BenchStep>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "after",
            "documents",
            "BSON",
            "data files",
            "indexes",
            "on disk/document",
        ],
    );
    for step in steps {
        let Some(facts) = &step.storage_after else {
            continue;
        };
        let per_document = step.disk_bytes_per_document();
        table.row([
            step_name(step).into(),
            documents(facts.documents, step.copies_on_shards()).into(),
            format_bytes(facts.data_bytes).into(),
            Cell::or(facts.data_file_bytes().map(format_bytes), NOTHING),
            format_bytes(facts.index_bytes).into(),
            Cell::or(per_document.map(|b| format_bytes(whole(b))), NOTHING),
        ]);
    }
    table.or_nothing()
}

/// Returns the number of documents, with the copies that are held besides, and are in the sizes, too.
fn documents(held: u64, copies: u64) -> String {
    let documents = format_count(held.saturating_sub(copies));
    match copies {
        0 => documents,
        1 => format!("{documents} + 1 copy"),
        copies => format!("{documents} + {} copies", format_count(copies)),
    }
}

/// Returns failures by name, with the first message of each.
pub(super) fn failures<'a>(steps: impl IntoIterator<Item = &'a BenchStep>) -> Option<Table> {
    let mut table = Table::new(
        5,
        &["step", "operation", "failure", "count", "first message"],
    );
    for step in steps {
        for (operation, name, count, message) in &step.failures {
            table.row([
                step_name(step).into(),
                operation.as_str().into(),
                name.as_str().into(),
                format_count(*count).into(),
                message.as_str().into(),
            ]);
        }
    }
    table.or_nothing()
}

/// Returns the loads that were tried in a search for the maximum.
pub(super) fn saturation(input: &BenchReportInput<'_>) -> Option<Table> {
    let saturation = input.measurement()?.saturation.as_ref()?;
    let mut table = Table::new(
        1,
        &[
            "offered/s",
            "achieved/s",
            "p50",
            "p99",
            "p99.9",
            "max",
            "server CPU/op",
            "verdict",
        ],
    );
    for point in &saturation.points {
        // None is less than a tick of the kernel's clock.
        let cpu = point.server_cpu_ns_per_operation.filter(|&ns| ns > 0.0);
        let verdict = match (&point.untold, point.missed.is_empty()) {
            (Some(why), _) => format!("cannot tell: {why}"),
            (None, true) => "met".to_string(),
            (None, false) => point.missed.join("; "),
        };
        let head = [
            format_rate(point.offered_per_s).into(),
            format_rate(point.achieved_per_s).into(),
        ];
        let tail = [
            Cell::or(cpu.map(|ns| format_ns(whole(ns))), NOTHING),
            verdict.into(),
        ];
        table.row(
            head.into_iter()
                .chain(latency_cells(&point.response.unwrap_or_default()))
                .chain(tail),
        );
    }
    table.or_nothing()
}
