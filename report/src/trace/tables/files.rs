//! Shows files: what was requested of them, in which order, how long it took.

use std::collections::HashMap;

use seekscope_pattern::{AccessPattern, CacheCounts, DirectionTrace, FileTrace, PatternShape};
use seekscope_run::PathState;
use seekscope_run::units::{format_bytes, format_count, format_ns};
use seekscope_stats::Quantiles;

use super::super::TraceReportInput;
use super::super::names::{FileNames, hit_share};
use super::{LatencyText, NONE};
use crate::numbers::format_share;
use crate::table::{Cell, Table};

const UNKNOWN: &str = "unknown";
const DIFFERENT: &str = "different ones";

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
    let is_read = |file: &&FileTrace| file.reads.transfers.calls > 0;
    let read = one_after_another(input.analysis.files.iter().filter(is_read));
    let names = FileNames::of(input.analysis);
    for files in read.iter().take(rows) {
        table.row(read_row(&names, files, LatencyText::of(input.analysis)));
    }
    table.and_more(read.len(), rows, "");
    table.or_nothing()
}

/// Returns the files of each row: one, or those that had one name one after another and were deleted, as each checkpoint
/// replaces `WiredTiger.turtle`. They stand where the first of them does.
fn one_after_another<'a>(files: impl Iterator<Item = &'a FileTrace>) -> Vec<Vec<&'a FileTrace>> {
    let mut rows: Vec<Vec<&FileTrace>> = Vec::new();
    let mut deleted = HashMap::new();
    for file in files {
        let record = &file.file;
        if record.path_state != PathState::Deleted {
            rows.push(vec![file]);
            continue;
        }
        let name = (record.member.as_deref(), record.path.as_str());
        let row = *deleted.entry(name).or_insert(rows.len());
        match rows.get_mut(row) {
            Some(row) => row.push(file),
            None => rows.push(vec![file]),
        }
    }
    rows
}

/// Returns the name and the role of a row's files.
fn name_and_role(names: &FileNames, files: &[&FileTrace]) -> [Cell; 2] {
    let Some(first) = files.first().map(|file| &file.file) else {
        return [Cell::Missing(UNKNOWN), Cell::Missing(UNKNOWN)];
    };
    let several = match files.len() {
        1 => String::new(),
        n => format!(", {n} times"),
    };
    [
        format!("{}{several}", names.name(first)).into(),
        first.role.name().into(),
    ]
}

/// Returns calls, bytes, and the pattern that all have.
fn transferred(files: &[&FileTrace], of: fn(&FileTrace) -> &DirectionTrace) -> [Cell; 3] {
    let directions = || files.iter().map(|file| of(file));
    let mut kinds = directions().filter_map(|direction| Some(direction.pattern.as_ref()?.kind));
    let first = kinds.next();
    [
        format_count(directions().map(|d| d.transfers.calls).sum()).into(),
        format_bytes(directions().map(|d| d.transfers.bytes).sum()).into(),
        match first {
            Some(kind) if kinds.all(|other| other == kind) => kind.name().into(),
            Some(_) => Cell::Missing(DIFFERENT),
            None => Cell::Missing(UNKNOWN),
        },
    ]
}

fn read_row(names: &FileNames, files: &[&FileTrace], latency: LatencyText) -> [Cell; 9] {
    let [name, role] = name_and_role(names, files);
    let [calls, bytes, pattern] = transferred(files, |file| &file.reads);
    // Each share counts as often as its file was read.
    let shares = files.iter().filter_map(|file| {
        let share = file.reads.pattern.as_ref()?.sequential_share;
        Some((share, file.reads.transfers.calls as f64))
    });
    let (sum, weight) = shares.fold((0.0, 0.0), |(sum, weight), (share, calls)| {
        (sum + share * calls, weight + calls)
    });
    let mut cache = CacheCounts::default();
    for file in files {
        cache.hits += file.cache.hits;
        cache.misses += file.cache.misses;
        cache.waited_for_others += file.cache.waited_for_others;
        cache.direct += file.cache.direct;
    }
    let latencies = files.iter().map(|file| &file.reads.transfers.latency_ns);
    let [p50, p99] = latency.p50_p99_among(latencies);
    [
        name,
        role,
        calls,
        bytes,
        pattern,
        Cell::or((weight > 0.0).then(|| format_share(sum / weight)), UNKNOWN),
        Cell::or(hit_share(&cache).map(format_share), UNKNOWN),
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
    let written = one_after_another(input.analysis.files.iter().filter(changed));
    let names = FileNames::of(input.analysis);
    for files in written.iter().take(rows) {
        table.row(write_row(&names, files, LatencyText::of(input.analysis)));
    }
    table.and_more(written.len(), rows, "");
    table.or_nothing()
}

fn write_row(names: &FileNames, files: &[&FileTrace], latency: LatencyText) -> [Cell; 10] {
    let [name, role] = name_and_role(names, files);
    let [calls, bytes, pattern] = transferred(files, |file| &file.writes);
    let latencies = files.iter().map(|file| &file.writes.transfers.latency_ns);
    let [p50, p99] = latency.p50_p99_among(latencies);
    let syncs = files.iter().map(|file| file.syncs.calls).sum();
    let [sync_p50, sync_p99] =
        latency.p50_p99_among(files.iter().map(|file| &file.syncs.latency_ns));
    [
        name,
        role,
        calls,
        bytes,
        pattern,
        p50,
        p99,
        format_count(syncs).into(),
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

#[cfg(test)]
mod tests {
    use seekscope_run::{FileRecord, TraceFacts};

    use super::super::super::testing::{file, scanned, with_input};
    use super::*;

    #[test]
    fn files_that_replaced_one_another_are_one_row() {
        let deleted = |id, path: &str| FileRecord {
            path_state: PathState::Deleted,
            ..file(id, path)
        };
        let analysis = scanned(
            &[
                deleted(1, "/data/WiredTiger.turtle"),
                deleted(2, "/data/WiredTiger.turtle"),
                deleted(3, "/data/other"),
                file(4, "/data/WiredTiger.turtle"),
            ],
            false,
        );
        let shown = with_input(&analysis, TraceFacts::default(), |input| {
            crate::text::table_text(&reads(input, 10).unwrap(), 160)
        });
        let lines: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("turtle"))
            .collect();
        assert_eq!(lines.len(), 2, "{shown}");
        let merged = lines.iter().find(|line| line.contains("deleted), 2 times"));
        assert!(merged.is_some_and(|line| line.contains(" 200 ")), "{shown}");
        assert!(shown.contains("other (deleted) "), "{shown}");
    }
}
