//! Shows the recording itself: what was traced, by what means, and the cost.

use seekscope_run::TraceFacts;
use seekscope_run::units::{format_count, format_ns};

use super::super::TraceReportInput;
use crate::facts::{Fact, known};
use crate::numbers::{format_mean_ns, format_share};
use crate::table::Table;

/// Returns each kind of I/O, and whether the trace has it.
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

/// Returns the trailer.
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
        ("… lost with the end of a request", counted(trace.lost_end)),
        ("… replaced by newer ones", counted(trace.overwritten)),
        (
            "Latencies cut off, in fact longer",
            Some(format_count(input.analysis.latencies_cut_off)),
        ),
        (
            "Calls in progress at the beginning",
            counted(trace.in_flight_at_start),
        ),
        (
            "Calls in progress at the end",
            counted(trace.in_flight_at_end),
        ),
        (
            "Cost per event",
            cost.known_ns_per_event().map(format_mean_ns),
        ),
        ("Cost, of one CPU", share_of_cpu(input, trace)),
        (
            "… of it for other processes' calls and requests",
            (cost.program_runs > 0).then(|| format_ns(cost.standing_ns)),
        ),
        (
            "Cost relative to the CPU time of what was traced",
            share_beside_process(input, trace),
        ),
    ])
}

/// Returns the cost relative to the process. Compared with an idle process any cost is a multiple, which says
/// nothing.
fn share_beside_process(input: &TraceReportInput<'_>, trace: &TraceFacts) -> Option<String> {
    let share = trace.cost.share_of_server_cpu;
    if share > 0.0 {
        return Some(format_share(share));
    }
    let known = input.phase()?.process_io.is_some();
    known.then(|| "the traced processes used almost no CPU time".into())
}

/// Returns the tracer's time on a CPU, and as a share of the traced time.
fn share_of_cpu(input: &TraceReportInput<'_>, trace: &TraceFacts) -> Option<String> {
    let (cpu_ns, traced_ns) = (trace.cpu_ns(), input.phase()?.duration_ns());
    (cpu_ns > 0 && traced_ns > 0).then(|| {
        format!(
            "{} ({})",
            format_ns(cpu_ns),
            format_share(cpu_ns as f64 / traced_ns as f64)
        )
    })
}

fn backend(trace: &TraceFacts) -> Option<String> {
    let backend = known(&trace.backend)?;
    Some(match known(&trace.backend_reason) {
        Some(reason) => format!("{backend}: {reason}"),
        None => backend,
    })
}
