//! The phases side by side, one column each: which figures, in which words. HTML and terminal show
//! the same.

use seekscope_pattern::{AccessPattern, FileAnalysis, PhaseAnalysis};
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_run::{CacheState, Phase, ProcessIo, TraceFacts};

use seekscope_stats::Quantiles;

use crate::ReportInput;
use crate::numbers::{format_number, format_share};
use crate::table::Cell;

/// One phase's column.
pub(crate) struct Column<'a> {
    pub(crate) phase: &'a Phase,
    analysis: Option<&'a PhaseAnalysis>,
    busiest: Option<&'a FileAnalysis>,
    busiest_name: String,
}

/// One figure of every phase.
pub(crate) struct Row {
    pub(crate) label: &'static str,
    pub(crate) cell: fn(&Column<'_>) -> Cell,
}

const fn row(label: &'static str, cell: fn(&Column<'_>) -> Cell) -> Row {
    Row { label, cell }
}

const SETUP: [Row; 7] = [
    row("What the server did", |c| {
        Cell::Value(c.phase.activity.clone())
    }),
    row("Disk", |c| Cell::Value(c.phase.disk.label())),
    row("Page cache before", |c| {
        Cell::Value(cache_before(&c.phase.cache))
    }),
    row("Length of the phase", |c| {
        Cell::Value(format_ns(
            c.phase.ended_ns.saturating_sub(c.phase.started_ns),
        ))
    }),
    row("Index build time", |c| {
        Cell::or(
            c.phase
                .index_build
                .as_ref()
                .map(|b| format_ns(b.elapsed_ns)),
            "no index was built",
        )
    }),
    row("The same build again, untraced", |c| {
        let repeats = c
            .phase
            .index_build
            .as_ref()
            .map(|b| &b.repeats_ns[..])
            .unwrap_or_default();
        let times: Vec<String> = repeats.iter().map(|&ns| format_ns(ns)).collect();
        Cell::or(
            (!times.is_empty()).then(|| times.join(", ")),
            "not repeated",
        )
    }),
    row("Documents indexed", |c| {
        let build = c.phase.index_build.as_ref();
        Cell::or(
            build.map(|b| format_count(b.documents)),
            "no index was built",
        )
    }),
];

const TRAFFIC: [Row; 5] = [
    row("Reads", |c| analysed(c, |a| format_count(a.reads.calls))),
    row("Bytes read", |c| {
        analysed(c, |a| format_bytes(a.reads.bytes))
    }),
    row("Writes", |c| analysed(c, |a| format_count(a.writes.calls))),
    row("Bytes written", |c| {
        analysed(c, |a| format_bytes(a.writes.bytes))
    }),
    row("Failed calls", |c| {
        analysed(c, |a| format_count(a.reads.errors + a.writes.errors))
    }),
];

const PATTERN: [Row; 11] = [
    row("File", |c| {
        Cell::or(c.busiest.map(|_| c.busiest_name.clone()), no_events(c))
    }),
    row("Pattern", |c| pattern(c, |p| p.kind.name().into())),
    row("Contiguous steps", |c| {
        pattern(c, |p| format_share(p.contiguous_share))
    }),
    row("Sequential steps", |c| {
        pattern(c, |p| format_share(p.sequential_share))
    }),
    row("Direction", |c| pattern(c, |p| p.direction.name().into())),
    row("Seeks", |c| pattern(c, |p| format_count(p.seeks))),
    row("Mean run (longest), accesses", |c| {
        pattern(c, |p| run_length(&p.run_accesses, format_count))
    }),
    row("Mean run (longest), bytes", |c| {
        pattern(c, |p| run_length(&p.run_bytes, format_bytes))
    }),
    row("Median seek distance", |c| {
        match c.busiest.and_then(FileAnalysis::main_pattern) {
            Some(p) if p.seek_bytes.count == 0 => Cell::Missing("no jumps"),
            _ => pattern(c, |p| format_bytes(p.seek_bytes.p50)),
        }
    }),
    row("Distinct bytes touched", |c| {
        pattern(c, |p| format_bytes(p.distinct_bytes))
    }),
    row("Touched again", |c| {
        pattern(c, |p| {
            format_bytes(p.bytes.saturating_sub(p.distinct_bytes))
        })
    }),
];

const LATENCY: [Row; 4] = [
    row("p50", |c| read_latency(c, |a| a.reads.latency_ns.p50)),
    row("p99", |c| read_latency(c, |a| a.reads.latency_ns.p99)),
    row("p99.9", |c| read_latency(c, |a| a.reads.latency_ns.p999)),
    row("Longest", |c| read_latency(c, |a| a.reads.latency_ns.max)),
];

const CACHE: [Row; 6] = [
    row("Page-cache hits", |c| {
        analysed(c, |a| format_count(a.cache.hits))
    }),
    row("Misses", |c| analysed(c, |a| format_count(a.cache.misses))),
    row("Waited for others' reads", |c| {
        analysed(c, |a| format_count(a.cache.waited_for_others))
    }),
    row("Past the cache (O_DIRECT)", |c| {
        analysed(c, |a| format_count(a.cache.direct))
    }),
    row("Bytes asked of the disk, traced", |c| {
        analysed(c, |a| format_bytes(a.cache.device_read_bytes))
    }),
    row("… by the kernel's own count", |c| {
        process_io(c, |p| format_bytes(p.device_read_bytes))
    }),
];

const TRACER: [Row; 9] = [
    row("Read calls, kernel's count (upper bound)", |c| {
        process_io(c, |p| format_count(p.read_calls))
    }),
    row("Method", |c| trace(c, |t| t.backend.clone())),
    row("Events seen", |c| trailer(c, |t| format_count(t.seen))),
    row("Events written", |c| trace(c, |t| format_count(t.written))),
    row("Events lost", |c| trailer(c, |t| format_count(t.lost))),
    row("In flight at start, at end", |c| {
        trace(c, |t| {
            format!("{}, {}", t.in_flight_at_start, t.in_flight_at_end)
        })
    }),
    row("Cost per event", |c| trace(c, cost_per_event)),
    row("Tracer's CPU time (of the phase)", |c| {
        match &c.phase.trace {
            Some(t) => Cell::Value(at_least(t, tracer_time(c.phase, t))),
            None => Cell::Missing("not traced"),
        }
    }),
    row("Share of the server's CPU time", |c| match &c.phase.trace {
        Some(t) if t.written == 0 => Cell::Missing("no events"),
        Some(t) if t.cost.share_of_server_cpu == 0.0 => {
            Cell::Missing("unknown, or the server did next to nothing")
        }
        _ => trace(c, |t| at_least(t, format_share(t.cost.share_of_server_cpu))),
    }),
];

/// The rows, by heading.
pub(crate) const GROUPS: [(&str, &[Row]); 6] = [
    ("Setting", &SETUP),
    ("Calls", &TRAFFIC),
    ("How the main file was touched", &PATTERN),
    ("Read latency", &LATENCY),
    ("Where reads were served from", &CACHE),
    ("The measurement itself", &TRACER),
];

/// One column per phase.
pub(crate) fn columns<'a>(input: &ReportInput<'a>) -> Vec<Column<'a>> {
    let phases = input.document.phases.iter().enumerate();
    phases
        .map(|(index, phase)| column(input, phase, input.analyses.get(index)))
        .collect()
}

/// Why a phase has no numbers of its own.
pub(crate) fn why_no_events(phase: &Phase) -> &'static str {
    match phase.trace {
        None => "not traced (see limitations)",
        Some(_) => "no calls on files were seen",
    }
}

fn column<'a>(
    input: &ReportInput<'a>,
    phase: &'a Phase,
    analysis: Option<&'a PhaseAnalysis>,
) -> Column<'a> {
    let busiest = analysis.and_then(|a| a.main_file(input.files));
    let busiest_name = busiest.map_or_else(String::new, |file| {
        let record = input.file(file.file_id);
        let name = record.map_or_else(|| format!("file {}", file.file_id), |r| r.name().into());
        match record.and_then(|r| r.namespace.as_deref()) {
            Some(namespace) => format!("{name} ({namespace})"),
            None => name,
        }
    });
    Column {
        phase,
        analysis,
        busiest,
        busiest_name,
    }
}

/// The median would mislead: many runs of one access beside few that hold nearly all the bytes.
fn run_length(runs: &Quantiles, text: fn(u64) -> String) -> String {
    format!("{} ({})", text(runs.mean), text(runs.max))
}

fn no_events(column: &Column<'_>) -> &'static str {
    why_no_events(column.phase)
}

/// A figure from the events; without a trace there is none, not even zero.
fn analysed(column: &Column<'_>, text: fn(&PhaseAnalysis) -> String) -> Cell {
    match column.analysis {
        Some(analysis) if column.phase.trace.is_some() => Cell::Value(text(analysis)),
        _ => Cell::Missing(no_events(column)),
    }
}

fn pattern(column: &Column<'_>, text: fn(&AccessPattern) -> String) -> Cell {
    Cell::or(
        column
            .busiest
            .and_then(FileAnalysis::main_pattern)
            .map(text),
        no_events(column),
    )
}

fn read_latency(column: &Column<'_>, latency_ns: fn(&PhaseAnalysis) -> u64) -> Cell {
    match column.analysis {
        Some(a) if a.reads.calls > 0 => Cell::Value(format_ns(latency_ns(a))),
        Some(_) if column.phase.trace.is_some() => Cell::Missing("no reads"),
        _ => Cell::Missing(no_events(column)),
    }
}

fn process_io(column: &Column<'_>, text: fn(&ProcessIo) -> String) -> Cell {
    Cell::or(
        column.phase.process_io.as_ref().map(text),
        "unknown: not readable",
    )
}

fn trace(column: &Column<'_>, text: fn(&TraceFacts) -> String) -> Cell {
    Cell::or(column.phase.trace.as_ref().map(text), "not traced")
}

/// A figure that only the trailer of a trace can tell.
fn trailer(column: &Column<'_>, text: fn(&TraceFacts) -> String) -> Cell {
    match &column.phase.trace {
        Some(t) if t.truncated => Cell::Missing("unknown: the run was killed"),
        _ => trace(column, text),
    }
}

fn tracer_time(phase: &Phase, trace: &TraceFacts) -> String {
    let tracer_ns = trace.cpu_ns();
    let phase_ns = phase.duration_ns().max(1);
    format!(
        "{} ({})",
        format_ns(tracer_ns),
        format_share(tracer_ns as f64 / phase_ns as f64)
    )
}

fn cost_per_event(trace: &TraceFacts) -> String {
    match trace.cost.known_ns_per_event() {
        Some(event_ns) => at_least(trace, format!("{} ns", format_number(event_ns))),
        None => "too few events to tell".into(),
    }
}

/// Without the kernel's run-time statistics only the draining thread was measured.
fn at_least(trace: &TraceFacts, text: String) -> String {
    match trace.cost.program_runs {
        0 => format!("at least {text} (kernel part unknown)"),
        _ => text,
    }
}

fn cache_before(cache: &CacheState) -> String {
    match cache {
        CacheState::Cold {
            resident_bytes,
            total_bytes,
        } => {
            format!(
                "cold: {} of {} cached",
                format_bytes(*resident_bytes),
                format_bytes(*total_bytes)
            )
        }
        CacheState::AsFound { why } => format!("as found ({why})"),
    }
}
