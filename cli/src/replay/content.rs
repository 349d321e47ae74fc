//! Content of a replay's report: both sides one below the other, what was left out, and the model's prediction.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use seekscope_disk::replay::{LatencyRatios, OperationComparison, RecordedCache, Side};
use seekscope_report::facts::device_facts;
use seekscope_report::numbers::{counted, format_rate};
use seekscope_report::page::{self, Block, Data, OutcomeLine, Page, Section, latency_curves};
use seekscope_report::table::{Cell, Table};
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_run::{LatencySummary, RunDocument, parse_tag};

use super::prediction::Predicted;
use super::selection::files_in_words;
use super::summary::{EndKind, ReplaySummary};
use super::target::TargetKind;

const COLUMNS: [&str; 10] = [
    "", "count", "errors", "bytes", "mean", "p50", "p90", "p99", "p99.9", "max",
];
/// Distortions that affect the figures here; `run.json` has the others.
const DISTORTING: [&str; 4] = [
    "tmpfs",
    "network-filesystem",
    "cgroup-io-limit",
    "memory-limit",
];
/// Shown in place of a missing number.
const NONE: &str = "–";
const SQL: &str = "SELECT operation, (t_ns - min(t_ns) OVER ()) / 1e9 AS second, \
    (count - errors) * 1e9 / duration_ns AS per_s FROM 'intervals.parquet' ORDER BY t_ns;";

/// Returns the content for a terminal.
fn blocks(summary: &ReplaySummary) -> Vec<Block> {
    let mut blocks = vec![Block::Sentence(headline(summary))];
    blocks.push(Block::List(played(summary)));
    blocks.push(Block::Table(operations(summary)));
    blocks.push(Block::Table(totals(summary)));
    blocks.push(Block::List(notes(summary)));
    blocks
}

/// Returns the report; `histograms` are the latencies of both sides by the tag of the run's log.
pub fn page(
    document: &RunDocument,
    summary: &ReplaySummary,
    histograms: &BTreeMap<String, Histogram<u64>>,
) -> Page {
    let named: Vec<(String, &Histogram<u64>)> = histograms
        .iter()
        .filter_map(|(tag, histogram)| {
            let (step, operation) = parse_tag(tag)?;
            Some((format!("{operation}, {step}"), histogram))
        })
        .collect();
    let curves = latency_curves(
        "chart-latency",
        "Latency by percentile",
        "Each step to the right covers a share of the operations that is ten \
         times smaller and slower.",
        &named,
    );
    let mut compared: Vec<Block> = curves.into_iter().collect();
    compared.push(Block::Table(operations(summary)));
    compared.push(Block::Table(totals(summary)));
    Page {
        subject: "a recorded access pattern, replayed",
        outcome: OutcomeLine::of(document),
        headline: headline(summary),
        next: None,
        about: vec![format!("recorded in {}", summary.recording)],
        key_figures: key_figures(summary),
        blocks: vec![
            Block::Section(Section::new("compared", "Recorded and replayed", compared)),
            Block::Section(Section::new(
                "played",
                "What was replayed, and on what",
                vec![Block::List(played(summary)), Block::List(notes(summary))],
            )),
        ],
        measured_on: vec![("Disk", document.device.as_ref().map(device_facts))],
        data: Some(Data {
            files: vec![
                ("run.json", String::new()),
                (
                    "intervals.parquet",
                    "a row for each second of each operation".into(),
                ),
                (
                    "latency.hlog",
                    "the latencies of the recording and of the replay, in HdrHistogram's log format"
                        .into(),
                ),
            ],
            sql: SQL,
        }),
    }
}

/// Returns the same as text, `width` characters wide.
pub fn text(document: &RunDocument, summary: &ReplaySummary, width: u16) -> String {
    page::terminal::text(document, &blocks(summary), width)
}

/// Returns the elapsed time, compared with the recording.
fn headline(summary: &ReplaySummary) -> String {
    let outcome = &summary.outcome;
    let (recorded_ns, ns) = (outcome.recorded_elapsed_ns, outcome.elapsed_ns);
    let part = match summary.ended {
        EndKind::Complete => "",
        _ => " of a part of the recording",
    };
    let took = format!(
        "The replay{part} took {}, {} times as long as the recorded {}.",
        format_ns(ns),
        ratio(ns as f64 / recorded_ns as f64),
        format_ns(recorded_ns)
    );
    match summary.held_to_per_s {
        Some(per_s) => format!(
            "{took} It was limited to {} requests per second to protect a database on the same \
             disk, so the time says little about the disk.",
            format_rate(per_s)
        ),
        None => took,
    }
}

fn key_figures(summary: &ReplaySummary) -> Vec<(&'static str, String)> {
    let outcome = &summary.outcome;
    let mut figures = vec![
        ("operations per second", format_rate(outcome.per_s)),
        (
            "operations per second when recorded",
            format_rate(outcome.recorded_per_s),
        ),
    ];
    let reads = &outcome.reads;
    if let (Some(replayed), Some(recorded)) = (&reads.replayed.latency, &reads.recorded.latency) {
        figures.push(("99th percentile of reads", format_ns(replayed.p99_ns)));
        figures.push((
            "99th percentile of reads when recorded",
            format_ns(recorded.p99_ns),
        ));
    }
    figures
}

/// Describes what was played, on what, and how.
fn played(summary: &ReplaySummary) -> Vec<String> {
    let target = &summary.target;
    let on = match target.kind {
        TargetKind::File => target.path.clone(),
        TargetKind::Copy if target.shared_blocks => {
            format!(
                "a copy of {} in {} that shared its blocks",
                target.path, target.directory
            )
        }
        TargetKind::Copy => format!("a copy of {} in {}", target.path, target.directory),
        TargetKind::Created => format!("a file created in {}", target.directory),
    };
    let speed = match summary.speed {
        None => "as fast as possible".into(),
        Some(1.0) => "as recorded".into(),
        Some(factor) => format!("at {factor} times the recorded speed"),
    };
    let plan = &summary.plan;
    let ended = match summary.ended {
        EndKind::Complete => "",
        EndKind::TimeLimit => ", stopped by the time limit",
        EndKind::Interrupted => ", interrupted",
        EndKind::HeldBack => ", ended early to protect other users of the disk",
        EndKind::Failed => ", ended by an error",
    };
    vec![
        format!(
            "Recorded in {}: {}.",
            summary.recording,
            files_in_words(&summary.files)
        ),
        format!("Replayed on {on} ({}).", format_bytes(target.bytes)),
        format!(
            "{} of {} by {} (recorded: {}), {} loop, {speed}{ended}.",
            format_count(summary.outcome.played()),
            counted(plan.operations, "operation"),
            counted(plan.threads, "thread"),
            format_count(plan.recorded_threads),
            summary.pacing
        ),
    ]
}

/// Returns what must be known in addition to the numbers.
fn notes(summary: &ReplaySummary) -> Vec<String> {
    let mut lines = page_cache(summary);
    lines.extend(left_out(summary));
    if let Some(prediction) = &summary.prediction {
        lines.extend(predicted(summary, prediction));
    }
    let distortions = summary.target.surroundings.distortions.iter();
    let distortions = distortions.filter(|found| DISTORTING.contains(&found.id.as_str()));
    lines.extend(distortions.map(|distortion| format!("Note: {}", distortion.what)));
    let direct = summary.target.direct.as_ref().filter(|direct| !direct.real);
    lines.extend(direct.map(|direct| {
        format!(
            "Note: direct I/O does not bypass the cache here: {}",
            direct.evidence
        )
    }));
    lines.extend(summary.notes.iter().map(|note| format!("Note: {note}")));
    lines
}

fn operations(summary: &ReplaySummary) -> Table {
    let mut table = Table::new(1, &COLUMNS);
    for (name, comparison) in summary.outcome.operations() {
        if !comparison.is_empty() {
            operation(&mut table, name, comparison);
        }
    }
    table
}

fn operation(table: &mut Table, name: &str, comparison: &OperationComparison) {
    let (recorded, replayed) = (&comparison.recorded, &comparison.replayed);
    table.group(name);
    table.row(row("recorded", side(recorded, recorded.latency.as_ref())));
    table.row(row("replayed", side(replayed, replayed.latency.as_ref())));
    if let Some(response) = &replayed.response {
        table.row(row(
            "replayed, from the intended start",
            side(replayed, Some(response)),
        ));
    }
    if let Some(of) = &comparison.ratio {
        table.row(row("replayed / recorded", ratios(of)));
    }
}

fn row(name: &str, cells: [String; 9]) -> Vec<Cell> {
    let cells = cells.into_iter().map(Cell::from);
    std::iter::once(Cell::from(name)).chain(cells).collect()
}

fn side(side: &Side, latency: Option<&LatencySummary>) -> [String; 9] {
    let ns = |of: fn(&LatencySummary) -> u64| {
        latency.map_or_else(|| NONE.into(), |latency| format_ns(of(latency)))
    };
    [
        format_count(side.count),
        format_count(side.errors),
        format_bytes(side.bytes),
        ns(|l| whole(l.mean_ns)),
        ns(|l| l.p50_ns),
        ns(|l| l.p90_ns),
        ns(|l| l.p99_ns),
        ns(|l| l.p999_ns),
        ns(|l| l.max_ns),
    ]
}

fn ratios(of: &LatencyRatios) -> [String; 9] {
    let [mean, p50, p90, p99, p999, max] =
        [of.mean, of.p50, of.p90, of.p99, of.p999, of.max].map(ratio);
    let [count, errors, bytes] = [const { String::new() }; 3];
    [count, errors, bytes, mean, p50, p90, p99, p999, max]
}

/// Formats a ratio: "0.52", "1.4", "26"; a dash if there is nothing to compare with.
fn ratio(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => NONE.into(),
        r if r >= 10.0 => format!("{r:.0}"),
        r if r >= 1.0 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

fn totals(summary: &ReplaySummary) -> Table {
    let outcome = &summary.outcome;
    let (recorded_ns, ns) = (outcome.recorded_elapsed_ns, outcome.elapsed_ns);
    let mut table = Table::new(1, &["", "recorded", "replayed", "ratio"]);
    table.row([
        "total time".into(),
        format_ns(recorded_ns).into(),
        format_ns(ns).into(),
        ratio(ns as f64 / recorded_ns as f64).into(),
    ]);
    table.row([
        "operations per second".into(),
        format_rate(outcome.recorded_per_s).into(),
        format_rate(outcome.per_s).into(),
        ratio(outcome.per_s / outcome.recorded_per_s).into(),
    ]);
    if summary.pacing == "open" && summary.speed.is_some() {
        table.group(format!(
            "late starts: {} of {} operations, the latest by {}",
            format_count(outcome.late_starts),
            format_count(outcome.played()),
            format_ns(outcome.latest_start_ns)
        ));
    }
    table
}

fn page_cache(summary: &ReplaySummary) -> Vec<String> {
    let RecordedCache {
        hits,
        misses,
        waited,
        direct,
        unknown,
        device_read_bytes,
    } = summary.plan.cache;
    let reads = &summary.outcome.reads.replayed;
    let mut lines = Vec::new();
    if hits + misses + waited + direct + unknown > 0 {
        let all = [
            (hits, "found in the page cache"),
            (misses, "missed"),
            (waited, "waited for other reads"),
            (direct, "direct"),
            (unknown, "unknown"),
        ];
        let parts = all.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts
            .map(|(count, what)| format!("{} {what}", format_count(*count)))
            .collect();
        lines.push(format!(
            "Page cache, recorded: {}; {} read from the disk.",
            parts.join(", "),
            format_bytes(device_read_bytes)
        ));
    }
    let target = &summary.target;
    let state = match (target.warm, target.resident_bytes) {
        (_, None) => "its content at the start is unknown".into(),
        (true, Some(bytes)) => format!(
            "left as it was, with {} cached at the start",
            format_bytes(bytes)
        ),
        (false, Some(0)) => "empty at the start".into(),
        (false, Some(bytes)) => format!(
            "{} could not be evicted before the start",
            format_bytes(bytes)
        ),
    };
    let from_disk = match summary.outcome.device_read_bytes {
        None => "what was read from the disk is unknown".into(),
        Some(bytes) => format!(
            "{} read from the disk for {} of reads",
            format_bytes(bytes),
            format_bytes(reads.bytes)
        ),
    };
    lines.push(format!("Page cache, replayed: {state}; {from_disk}."));
    lines
}

/// Returns what was not played, or not as it was recorded.
fn left_out(summary: &ReplaySummary) -> Vec<String> {
    let (skipped, adjusted) = (&summary.plan.skipped, &summary.plan.adjusted);
    let skips = [
        (skipped.writes, "write", ": the target is only read"),
        (skipped.syncs, "sync", ": the target is only read"),
        (
            skipped.unknown_offset,
            "operation",
            " with an unknown offset",
        ),
        (skipped.empty, "operation", " that moved no bytes"),
        (skipped.too_long, "operation", " of more than 64 MiB"),
        (
            skipped.other,
            "operation",
            " of another kind (sync_file_range)",
        ),
        (skipped.failed.iter().sum(), "operation", " that had failed"),
    ];
    let changes = [
        (
            adjusted.wrapped,
            "operation",
            " beyond the end of the target, wrapped around",
        ),
        (
            adjusted.shortened,
            "operation",
            " longer than the target, shortened",
        ),
        (
            adjusted.unaligned,
            "direct operation",
            ", not aligned, done through the page cache",
        ),
        (adjusted.faults, "page fault", ", each as a read"),
        (
            summary.plan.folded,
            "thread",
            " that shared a thread with others",
        ),
    ];
    let lines = |what: &str, counts: &[(u64, &str, &str)]| -> Vec<String> {
        let some = counts.iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, of, how)| format!("{what}: {}{how}.", counted(*count, of)))
            .collect()
    };
    let mut all = lines("Not replayed", &skips);
    all.extend(lines("Replayed differently", &changes));
    all
}

fn predicted(summary: &ReplaySummary, prediction: &Predicted) -> Vec<String> {
    let mut lines = vec![format!(
        "Predicted by the model of {}: {} as recorded, {} without the time between the calls.",
        prediction.disk,
        format_ns(prediction.as_recorded_ns),
        format_ns(prediction.without_think_time_ns)
    )];
    if summary.ended == EndKind::Complete {
        let (predicted_ns, replayed_ns) = (prediction.at_this_speed_ns, summary.outcome.elapsed_ns);
        lines.push(format!(
            "At this speed: predicted {}, replayed {}, replayed / predicted {}.",
            format_ns(predicted_ns),
            format_ns(replayed_ns),
            ratio(replayed_ns as f64 / predicted_ns as f64)
        ));
    } else {
        lines.push("Not compared: only a part was replayed.".into());
    }
    lines.extend(
        prediction
            .not_modelled
            .iter()
            .map(|note| format!("Not in the prediction: {note}.")),
    );
    lines
}
