//! The recording itself: what was traced, through what, at which cost.

use seekscope_run::TraceFacts;
use seekscope_run::units::format_count;

use super::super::TraceReportInput;
use crate::facts::{Fact, known};
use crate::numbers::{format_mean_ns, format_share};
use crate::table::Table;

/// Each kind of I/O, and whether the trace has it.
pub(crate) fn coverage(input: &TraceReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(3, &["what", "traced", "how, or why not"]);
    for group in &input.trace()?.coverage {
        let covered = if group.covered { "yes" } else { "no" };
        table.row([
            group.group.as_str().into(),
            covered.into(),
            group.how.as_str().into(),
        ]);
    }
    table.or_nothing()
}

/// The trailer.
pub(crate) fn recording_facts(input: &TraceReportInput<'_>) -> Option<Vec<Fact>> {
    let trace = input.trace()?;
    let activity = input.phase().and_then(|phase| known(&phase.activity));
    let filters = trace.filters.join("; ");
    let counted = |count: u64| (!trace.truncated).then(|| format_count(count));
    let cost = &trace.cost;
    Some(vec![
        ("Traced", activity),
        ("Backend", backend(trace)),
        (
            "Filters",
            Some(if filters.is_empty() {
                "none".into()
            } else {
                filters
            }),
        ),
        ("Events seen", counted(trace.seen)),
        ("… written", Some(format_count(trace.written))),
        ("… lost", counted(trace.lost)),
        (
            "… lost because the ring was full",
            counted(trace.lost_ring_full),
        ),
        (
            "… lost with the start of the call",
            counted(trace.lost_start),
        ),
        ("… given up for newer ones", counted(trace.overwritten)),
        (
            "Calls under way at the beginning",
            counted(trace.in_flight_at_start),
        ),
        (
            "Calls under way at the end",
            counted(trace.in_flight_at_end),
        ),
        (
            "Cost per event",
            (cost.ns_per_event > 0.0).then(|| format_mean_ns(cost.ns_per_event)),
        ),
        (
            "Cost beside the CPU time of what was traced",
            (cost.share_of_server_cpu > 0.0).then(|| format_share(cost.share_of_server_cpu)),
        ),
    ])
}

fn backend(trace: &TraceFacts) -> Option<String> {
    let backend = known(&trace.backend)?;
    Some(match known(&trace.backend_reason) {
        Some(reason) => format!("{backend}: {reason}"),
        None => backend,
    })
}
