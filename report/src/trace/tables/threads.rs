//! Shows which threads made requests.

use seekscope_pattern::{SyncCalls, ThreadTrace, Transfers};
use seekscope_run::units::{format_bytes, format_count, format_ns};

use super::super::TraceReportInput;
use super::super::names::time_in;
use super::LatencyText;
use crate::table::{Cell, Table};

const CALLS: [&str; 8] = [
    "reads",
    "read",
    "p99",
    "time in reads",
    "writes",
    "written",
    "syncs",
    "time in syncs",
];

/// Returns one row per role.
pub(in super::super) fn roles(input: &TraceReportInput<'_>) -> Option<Table> {
    let columns: Vec<&'static str> = ["role", "threads"].into_iter().chain(CALLS).collect();
    let mut table = Table::new(1, &columns);
    let latency = LatencyText::of(input.analysis);
    for role in &input.analysis.roles {
        let first: [Cell; 2] = [role.role.name().into(), format_count(role.threads).into()];
        let calls = call_cells(latency, &role.reads, &role.writes, &role.syncs);
        table.row(first.into_iter().chain(calls));
    }
    table.or_nothing()
}

/// Returns the busiest threads; a role inferred from behaviour, not from the name, has a question mark.
pub(in super::super) fn threads(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let columns: Vec<&'static str> = ["thread", "role"].into_iter().chain(CALLS).collect();
    let mut table = Table::new(2, &columns);
    let latency = LatencyText::of(input.analysis);
    for thread in input.analysis.threads.iter().take(rows) {
        let calls = call_cells(latency, &thread.reads, &thread.writes, &thread.syncs);
        let guessed = if thread.role_from_name { "" } else { "?" };
        let role = format!("{}{guessed}", thread.role.name());
        let first: [Cell; 2] = [name(thread).into(), role.into()];
        table.row(first.into_iter().chain(calls));
    }
    table.or_nothing()
}

fn name(thread: &ThreadTrace) -> String {
    let record = &thread.thread;
    if record.name.is_empty() {
        format!("{}, ended early", record.tid)
    } else {
        format!("{} ({})", record.name, record.tid)
    }
}

fn call_cells(
    latency: LatencyText,
    reads: &Transfers,
    writes: &Transfers,
    syncs: &SyncCalls,
) -> [Cell; 8] {
    let [_, p99] = latency.p50_p99(&reads.latency_ns);
    let in_syncs = syncs.latency_ns.mean.saturating_mul(syncs.latency_ns.count);
    [
        format_count(reads.calls).into(),
        format_bytes(reads.bytes).into(),
        p99,
        format_ns(time_in(reads)).into(),
        format_count(writes.calls).into(),
        format_bytes(writes.bytes).into(),
        format_count(syncs.calls).into(),
        format_ns(in_syncs).into(),
    ]
}
