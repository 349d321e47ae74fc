//! Shows files: what was requested of them, in which order, how long it took.

use seekscope_pattern::{AccessPattern, DirectionTrace, FileTrace, PatternShape};
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_stats::Quantiles;

use super::super::TraceReportInput;
use super::super::names::{FileNames, hit_share};
use super::{LatencyText, NONE};
use crate::numbers::format_share;
use crate::table::{Cell, Table};

const UNKNOWN: &str = "unknown";

/// Returns files that are read, at most `rows` of them.
pub(in super::super) fn reads(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let columns = [
        "file",
        "role",
        "reads",
        "read",
        "pattern",
        "sequential",
        "in cache",
        "p50",
        "p99",
    ];
    let mut table = Table::new(2, &columns);
    let read = || {
        input
            .analysis
            .files
            .iter()
            .filter(|file| file.reads.transfers.calls > 0)
    };
    let names = FileNames::of(input.analysis);
    for file in read().take(rows) {
        table.row(read_row(&names, file, LatencyText::of(input.analysis)));
    }
    table.and_more(read().count(), rows, "");
    table.or_nothing()
}

fn read_row(names: &FileNames, file: &FileTrace, latency: LatencyText) -> [Cell; 9] {
    let pattern = file.reads.pattern.as_ref();
    let [p50, p99] = latency.p50_p99(&file.reads.transfers.latency_ns);
    [
        names.name(&file.file).into(),
        file.file.role.name().into(),
        format_count(file.reads.transfers.calls).into(),
        format_bytes(file.reads.transfers.bytes).into(),
        pattern.map_or(Cell::Missing(UNKNOWN), |p| p.kind.name().into()),
        Cell::or(pattern.map(|p| format_share(p.sequential_share)), UNKNOWN),
        Cell::or(hit_share(&file.cache).map(format_share), UNKNOWN),
        p50,
        p99,
    ]
}

/// Returns files that are written or synced, at most `rows` of them.
pub(in super::super) fn writes(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let columns = [
        "file", "role", "writes", "written", "pattern", "p50", "p99", "syncs", "sync p50",
        "sync p99",
    ];
    let mut table = Table::new(2, &columns);
    let changed = |file: &&FileTrace| file.writes.transfers.calls + file.syncs.calls > 0;
    let written = || input.analysis.files.iter().filter(changed);
    let names = FileNames::of(input.analysis);
    for file in written().take(rows) {
        table.row(write_row(&names, file, LatencyText::of(input.analysis)));
    }
    table.and_more(written().count(), rows, "");
    table.or_nothing()
}

fn write_row(names: &FileNames, file: &FileTrace, latency: LatencyText) -> [Cell; 10] {
    let pattern = file.writes.pattern.as_ref();
    let [p50, p99] = latency.p50_p99(&file.writes.transfers.latency_ns);
    let [sync_p50, sync_p99] = latency.p50_p99(&file.syncs.latency_ns);
    [
        names.name(&file.file).into(),
        file.file.role.name().into(),
        format_count(file.writes.transfers.calls).into(),
        format_bytes(file.writes.transfers.bytes).into(),
        pattern.map_or(Cell::Missing(UNKNOWN), |p| p.kind.name().into()),
        p50,
        p99,
        format_count(file.syncs.calls).into(),
        sync_p50,
        sync_p99,
    ]
}

/// Returns the order of access: runs, jumps, streams, bytes read again.
pub(in super::super) fn shapes(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let mut table = Table::new(
        3,
        &[
            "file",
            "calls",
            "pattern",
            "contiguous",
            "backward",
            "run p50",
            "run max",
            "seek p50",
            "streams",
            "different bytes",
            "again",
            "after a seek",
            "going on",
        ],
    );
    let names = FileNames::of(input.analysis);
    for file in input.analysis.files.iter().take(rows) {
        for (word, direction) in [("reads", &file.reads), ("writes", &file.writes)] {
            if let (Some(pattern), Some(shape)) = (&direction.pattern, &direction.shape) {
                table.row(shape_row(names.name(&file.file), word, pattern, shape));
            }
        }
    }
    table.or_nothing()
}

fn shape_row(
    name: String,
    word: &str,
    pattern: &AccessPattern,
    shape: &PatternShape,
) -> [Cell; 13] {
    let median =
        |latency: &Quantiles| Cell::or((latency.count > 0).then(|| format_ns(latency.p50)), NONE);
    let seeks = &shape.seek_distance_bytes.quantiles;
    [
        name.into(),
        word.into(),
        pattern.kind.name().into(),
        format_share(pattern.contiguous_share).into(),
        format_share(pattern.backward_share).into(),
        format_bytes(shape.run_bytes.quantiles.p50).into(),
        format_bytes(shape.run_bytes.quantiles.max).into(),
        Cell::or((seeks.count > 0).then(|| format_bytes(seeks.p50)), NONE),
        format_count(pattern.interleaved_streams).into(),
        format_bytes(pattern.distinct_bytes).into(),
        format_share(pattern.reread_share).into(),
        median(&shape.seek_latency_ns),
        median(&shape.sequential_latency_ns),
    ]
}

/// Returns how long calls took, by what they found.
pub(in super::super) fn latencies(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let columns = [
        "calls", "count", "p50", "p90", "p99", "p99.9", "longest", "mean",
    ];
    let mut table = Table::new(1, &columns);
    let latency = LatencyText::of(input.analysis);
    let names = FileNames::of(input.analysis);
    for file in input.analysis.files.iter().take(rows) {
        table.group(names.name(&file.file));
        latency_row(&mut table, latency, "reads", &file.reads);
        let outcome = &file.latency_by_outcome;
        for (word, latency_ns) in [
            ("– from the page cache", &outcome.hit_ns),
            ("– from the disk", &outcome.miss_ns),
            ("– waited for others", &outcome.waited_ns),
            ("– direct", &outcome.direct_ns),
        ] {
            quantile_row(&mut table, latency, word, latency_ns);
        }
        latency_row(&mut table, latency, "writes", &file.writes);
        quantile_row(&mut table, latency, "syncs", &file.syncs.latency_ns);
    }
    table.or_nothing()
}

fn latency_row(table: &mut Table, latency: LatencyText, word: &str, direction: &DirectionTrace) {
    quantile_row(table, latency, word, &direction.transfers.latency_ns);
}

fn quantile_row(table: &mut Table, latency: LatencyText, word: &str, q: &Quantiles) {
    if q.count > 0 {
        let times = [q.p50, q.p90, q.p99, q.p999, q.max, q.mean].map(|ns| latency.text(ns).into());
        let count: Cell = format_count(q.count).into();
        table.row([word.into(), count].into_iter().chain(times));
    }
}
