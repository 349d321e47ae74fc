//! Draws the lines above the files. Each fits into 80 columns with usual figures; a longer one is cut.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};

use super::super::counts::Rates;
use super::super::draw::{EMPHASIS, hit_share};
use super::super::vitals::{CheckpointVitals, DiskVitals, Operations, Vitals};
use super::{TopControls, TopFrame, members};
use crate::escape::visible;
use crate::numbers::{counted, format_mb, format_number, format_rate, format_share};

pub(super) const UNKNOWN: &str = "-";
/// Seconds without an answer from the server after which that is mentioned.
pub(super) const SILENT_S: f64 = 2.5;
/// Number of kinds of operations that are named; the rest is in the sum.
const KINDS_SHOWN: usize = 4;

pub(super) fn lines(shown: &TopFrame, controls: &TopControls) -> Vec<Line<'static>> {
    let mut lines = vec![title(shown, controls)];
    let is_one = shown.members.is_empty();
    if !is_one {
        lines.extend(members::lines(&shown.members));
    }
    let vitals = &shown.vitals;
    let mut add = |name: &str, text: String| {
        let name = Span::styled(format!("{name:<7}"), EMPHASIS);
        lines.push(Line::from(vec![name, Span::raw(text)]));
    };
    if vitals.operations.answered_s_ago.is_some() {
        add("ops", operations(&vitals.operations));
        add("", latencies(&vitals.operations));
        add("cache", cache(vitals));
        add("", checkpoint(&vitals.checkpoint));
    }
    for (name, disk) in disks(shown) {
        add("disk", requests(name, disk));
        add("", load(disk, vitals));
    }
    if is_one {
        add("server", process(vitals));
    }
    if let Some(files) = &shown.files {
        add("files", totals(&files.total));
    }
    add("self", own(shown));
    lines
}

/// Returns the disks under the data of all members on this host, each once, with their counters.
fn disks(shown: &TopFrame) -> Vec<(Option<&str>, &DiskVitals)> {
    let here = shown.members.iter().filter(|member| member.is_here);
    let mut disks: Vec<(Option<&str>, &DiskVitals)> = Vec::new();
    for member in here {
        let name = member.disk.as_deref();
        if disks.iter().all(|(known, _)| *known != name) {
            disks.push((name, &member.vitals.disk));
        }
    }
    match disks.is_empty() {
        true => vec![(shown.disk.as_deref(), &shown.vitals.disk)],
        false => disks,
    }
}

fn title(shown: &TopFrame, controls: &TopControls) -> Line<'static> {
    let elapsed = format_ns(whole(shown.elapsed_s * 1e9));
    let paused = if controls.paused { "  [paused]" } else { "" };
    Line::from(vec![
        Span::styled("seekscope top", EMPHASIS),
        // Placed before anything that may be cut off at the edge of the screen.
        Span::styled(paused, EMPHASIS.add_modifier(Modifier::REVERSED)),
        Span::raw(format!("  {}, {elapsed}", visible(&shown.subject))),
    ])
}

pub(super) fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), format_rate)
}

pub(super) fn mb(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), format_mb)
}

pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), format_share)
}

pub(super) fn ms(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), |ms| format_ns(whole(ms * 1e6)))
}

fn bytes(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.into(), |bytes| format_bytes(whole(bytes)))
}

fn operations(operations: &Operations) -> String {
    if let Some(silent) = operations.answered_s_ago.filter(|s| *s > SILENT_S) {
        return format!(
            "THE SERVER HAS NOT ANSWERED FOR {silent:.0} s; the figures are older than that"
        );
    }
    let mut kinds = operations.per_s.clone();
    kinds.retain(|(_, rate)| *rate > 0.0);
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> = kinds
        .iter()
        .take(KINDS_SHOWN)
        .map(|(kind, rate)| format!("{kind} {}", format_rate(*rate)))
        .collect();
    let total = rate(operations.total_per_s());
    match kinds.as_slice() {
        [] => format!("{total}/s"),
        kinds => format!("{total}/s: {}", kinds.join(", ")),
    }
}

fn latencies(operations: &Operations) -> String {
    format!(
        "mean latency: reads {}, writes {}, commands {}; queued {}, active {}",
        ms(operations.read_ms),
        ms(operations.write_ms),
        ms(operations.command_ms),
        rate(operations.queued),
        rate(operations.active),
    )
}

fn cache(vitals: &Vitals) -> String {
    let cache = &vitals.cache;
    format!(
        "{} of {} full, {} dirty; {} MB/s in, {} MB/s out, misses {}",
        share(cache.used_share),
        bytes(cache.bytes_max),
        share(cache.dirty_share),
        mb(cache.read_bytes_per_s),
        mb(cache.written_bytes_per_s),
        share(cache.miss_share),
    )
}

fn checkpoint(checkpoint: &CheckpointVitals) -> String {
    let last = match checkpoint.last_s {
        Some(last_s) if last_s > 0.0 => {
            format!("; the last one took {}", format_ns(whole(last_s * 1e9)))
        }
        _ => String::new(),
    };
    match (checkpoint.running, checkpoint.running_s) {
        (Some(true), Some(seconds)) => format!("CHECKPOINT RUNNING for {seconds:.0} s{last}"),
        (Some(_), _) => format!("no checkpoint running{last}"),
        (None, _) => format!("checkpoint: not known{last}"),
    }
}

fn requests(name: Option<&str>, disk: &DiskVitals) -> String {
    let Some(name) = name.map(visible) else {
        return "the disk that holds the data is not known".into();
    };
    if disk.reads_per_s.is_none() {
        return format!("{name}: no counters yet");
    }
    format!(
        "{name}: {} reads/s {} MB/s {} each; {} writes/s {} MB/s {} each",
        rate(disk.reads_per_s),
        mb(disk.read_bytes_per_s),
        ms(disk.read_ms),
        rate(disk.writes_per_s),
        mb(disk.write_bytes_per_s),
        ms(disk.write_ms),
    )
}

fn load(disk: &DiskVitals, vitals: &Vitals) -> String {
    let depth = disk.queue_depth;
    format!(
        "busy {}, queue depth {}; some task waited for I/O {} of the time",
        share(disk.busy_share),
        depth.map_or_else(|| UNKNOWN.into(), format_number),
        share(vitals.io_pressure),
    )
}

fn process(vitals: &Vitals) -> String {
    let process = &vitals.process;
    if process.cpus.is_none() {
        return "its process is not visible from here".into();
    }
    format!(
        "{} CPUs, {}; from disk {} MB/s, to disk {} MB/s",
        rate(process.cpus),
        bytes(process.memory_bytes),
        mb(process.read_bytes_per_s),
        mb(process.write_bytes_per_s),
    )
}

fn totals(total: &Rates) -> String {
    format!(
        "{} calls/s, {} MB/s read, {} MB/s written, {} in page cache",
        format_rate(total.calls()),
        format_mb(total.read_bytes),
        format_mb(total.write_bytes),
        hit_share(total),
    )
}

/// Returns the cost of watching, and whether it saw everything.
fn own(shown: &TopFrame) -> String {
    let vitals = &shown.vitals;
    let cost = format!(
        "{} of a CPU, {}",
        share(vitals.own_cpus),
        bytes(vitals.own_memory_bytes)
    );
    match &shown.files {
        None => format!("{cost}; files are not traced"),
        Some(files) if files.lost > 0 => format!(
            "{cost}; {} seen, {} LOST",
            counted(files.events, "call"),
            format_count(files.lost)
        ),
        Some(files) => format!("{cost}; {} seen, none lost", counted(files.events, "call")),
    }
}
