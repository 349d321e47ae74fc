//! Shows the disks, and the files as seen from them. Calls and requests are never added up.

use seekscope_pattern::{
    BytesByPurpose, BytesBySource, DirectionTrace, DiskTrace, FileTrace, ReadsRecorded,
};
use seekscope_run::TraceFacts;
use seekscope_run::units::{format_bytes, format_count};

use super::super::TraceReportInput;
use super::super::names::{FileNames, disk_name};
use super::{LatencyText, NONE};
use crate::numbers::{format_number, format_share, format_times};
use crate::table::{Cell, Table};

const UNKNOWN: &str = "unknown";

/// Returns reads and writes of each disk.
pub(in super::super) fn disks(input: &TraceReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "disk",
            "requests",
            "count",
            "bytes",
            "p50",
            "p99",
            "sequential",
            "for files",
            "for the filesystem",
            "not known",
            "ahead",
        ],
    );
    let latency = LatencyText::of(input.analysis);
    for disk in &input.analysis.disks {
        let directions = [
            ("reads", &disk.reads, &disk.read_bytes_by_purpose),
            ("writes", &disk.writes, &disk.write_bytes_by_purpose),
        ];
        for (word, direction, purposes) in directions {
            table.row(disk_row(
                name(input, disk),
                word,
                direction,
                purposes,
                latency,
            ));
        }
    }
    table.or_nothing()
}

fn name(input: &TraceReportInput<'_>, disk: &DiskTrace) -> String {
    disk_name(input.document.device.as_ref(), disk.major, disk.minor)
}

fn disk_row(
    name: String,
    word: &str,
    direction: &DirectionTrace,
    purposes: &BytesByPurpose,
    latency: LatencyText,
) -> [Cell; 11] {
    let requests = &direction.transfers;
    let [p50, p99] = latency.p50_p99(&requests.latency_ns);
    let sequential = direction
        .pattern
        .as_ref()
        .map(|p| format_share(p.sequential_share));
    [
        name.into(),
        word.into(),
        format_count(requests.calls).into(),
        format_bytes(requests.bytes).into(),
        p50,
        p99,
        Cell::or(sequential, NONE),
        format_bytes(purposes.file_bytes).into(),
        format_bytes(purposes.metadata_bytes).into(),
        format_bytes(purposes.unknown_bytes).into(),
        format_bytes(purposes.read_ahead_bytes).into(),
    ]
}

/// Returns how many requests wait at each disk, and what is neither read nor written.
pub(in super::super) fn queues(input: &TraceReportInput<'_>) -> Option<Table> {
    let columns = [
        "disk",
        "queue depth while busy",
        "deepest",
        "flushes",
        "flush p50",
        "flush p99",
        "discards",
        "discarded",
    ];
    let mut table = Table::new(1, &columns);
    let latency = LatencyText::of(input.analysis);
    for disk in &input.analysis.disks {
        let [flush_p50, flush_p99] = latency.p50_p99(&disk.flushes.latency_ns);
        table.row([
            name(input, disk).into(),
            format_number(disk.queue_depth.mean_while_busy).into(),
            format_count(disk.queue_depth.max).into(),
            format_count(disk.flushes.calls).into(),
            flush_p50,
            flush_p99,
            format_count(disk.discards).into(),
            format_bytes(disk.discard_bytes).into(),
        ]);
    }
    table.or_nothing()
}

/// Returns bytes requested from files and from the disk, file by file.
pub(in super::super) fn file_and_disk(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "file",
            "asked for",
            "from cache",
            "requested by readers",
            "read by the disk",
            "of it read ahead",
            "never requested",
            "disk per byte",
            "written by the disk",
        ],
    );
    let read = |file: &&FileTrace| {
        file.read_bytes_by_source.asked_bytes > 0
            || file.device.reads.calls > 0
            || file.device.writes.calls > 0
    };
    let requests =
        !input.analysis.disks.is_empty() || input.trace().is_some_and(TraceFacts::covers_requests);
    let names = FileNames::of(input.analysis);
    let reads = ReadsRecorded::of(input.trace());
    for file in input.analysis.files.iter().filter(read).take(rows) {
        let all_reads = reads.are_all_of(file);
        table.row(file_and_disk_row(
            names.name(&file.file),
            file,
            requests,
            all_reads,
        ));
    }
    table.or_nothing()
}

/// Returns bytes from the cache. A trace that only counts distinguishes calls by outcome, but not their
/// bytes; nor do rings show that.
fn from_cache(source: &BytesBySource) -> Cell {
    match source.unknown_bytes {
        0 => format_bytes(source.hit_bytes).into(),
        unknown if unknown >= source.asked_bytes => Cell::Missing("not traced"),
        _ => format!("at least {}", format_bytes(source.hit_bytes)).into(),
    }
}

/// Returns a file's row. Unless `requests` were traced nothing is known of them, which is not zero; unless `all_reads` of
/// the file were, nothing is known of what was asked for, and of what was not.
fn file_and_disk_row(name: String, file: &FileTrace, requests: bool, all_reads: bool) -> [Cell; 9] {
    let source = &file.read_bytes_by_source;
    let of_reads = |cell: Cell| match cell {
        Cell::Value(_) if !all_reads => Cell::Missing(UNKNOWN),
        cell => cell,
    };
    let of_requests = |bytes: u64| Cell::or(requests.then(|| format_bytes(bytes)), "not traced");
    let amplification = file
        .device
        .read_amplification
        .filter(|_| requests)
        .map(format_times);
    [
        name.into(),
        of_reads(format_bytes(source.asked_bytes).into()),
        of_reads(from_cache(source)),
        of_reads(format_bytes(source.device_read_bytes).into()),
        of_requests(file.device.reads.bytes),
        of_requests(file.device.read_ahead_bytes),
        of_reads(of_requests(file.device.never_asked_bytes)),
        of_reads(Cell::or(amplification, UNKNOWN)),
        of_requests(file.device.writes.bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{file, scanned, with_input};
    use super::*;
    use crate::table::Row;

    /// Returns the cells of the first file, missing ones in brackets.
    fn first_row(facts: TraceFacts) -> Vec<String> {
        let analysis = scanned(&[file(1, "/data/collection-7.wt")], true);
        let table = with_input(&analysis, facts, |input| file_and_disk(input, 9)).unwrap();
        let Row::Cells(cells) = &table.rows[0] else {
            panic!("{table:?}");
        };
        let shown = cells.iter().map(|cell| match cell {
            Cell::Value(text) => text.clone(),
            Cell::Missing(why) => format!("({why})"),
        });
        shown.collect()
    }

    #[test]
    fn what_was_asked_for_is_unknown_where_reads_were_left_out_and_requests_were_not() {
        let row = first_row(TraceFacts::default());
        assert_eq!((row[1].as_str(), row[4].as_str()), ("400 KiB", "480 KiB"));
        assert_eq!((row[6].as_str(), row[7].as_str()), ("80.0 KiB", "1.2"));
        let filtered = TraceFacts {
            reads_left_out: true,
            ..TraceFacts::default()
        };
        let restarted = TraceFacts {
            ended_early: vec![String::new()],
            ..TraceFacts::default()
        };
        for left_out in [filtered, restarted] {
            let row = first_row(left_out);
            for column in [1, 2, 3, 6, 7] {
                assert_eq!(row[column], "(unknown)", "{row:?}");
            }
            assert_eq!(row[4], "480 KiB", "requests are all there: {row:?}");
        }
    }

    #[test]
    fn files_of_two_servers_with_the_same_name_are_told_apart() {
        let files = [
            file(1, "/data/a/sizeStorer.wt"),
            file(2, "/data/b/sizeStorer.wt"),
        ];
        let analysis = scanned(&files, true);
        let table = with_input(&analysis, TraceFacts::default(), |input| {
            file_and_disk(input, 9)
        });
        let shown = format!("{:?}", table.unwrap().rows);
        for name in ["a/sizeStorer.wt", "b/sizeStorer.wt"] {
            assert!(shown.contains(&format!("\"{name}\"")), "{shown}");
        }
    }

    #[test]
    fn bytes_of_which_nothing_tells_where_they_came_from_are_not_zero_bytes_from_the_cache() {
        let source = |asked_bytes, hit_bytes, unknown_bytes| BytesBySource {
            asked_bytes,
            hit_bytes,
            unknown_bytes,
            ..BytesBySource::default()
        };
        let shown = |source: &BytesBySource| match from_cache(source) {
            Cell::Missing(why) => why.to_string(),
            Cell::Value(text) => text,
        };
        assert_eq!(shown(&source(8192, 0, 8192)), "not traced", "only counted");
        assert_eq!(shown(&source(8192, 4096, 2048)), "at least 4.00 KiB");
        assert_eq!(shown(&source(8192, 0, 0)), "0 B");
    }
}
