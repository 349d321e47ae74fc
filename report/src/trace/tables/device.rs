//! Shows the disks, and the files as seen from them. Calls and requests are never added up.

use seekscope_pattern::{BytesByPurpose, BytesBySource, DirectionTrace, DiskTrace, FileTrace};
use seekscope_run::TraceFacts;
use seekscope_run::units::{format_bytes, format_count};

use super::super::TraceReportInput;
use super::super::names::file_name;
use super::{LatencyText, NONE};
use crate::numbers::{format_number, format_share, format_times};
use crate::table::{Cell, Table};

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
            table.row(disk_row(disk, word, direction, purposes, latency));
        }
    }
    table.or_nothing()
}

fn name(disk: &DiskTrace) -> Cell {
    format!("{}:{}", disk.major, disk.minor).into()
}

fn disk_row(
    disk: &DiskTrace,
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
        name(disk),
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
            name(disk),
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
            "sent down by readers",
            "read by the disk",
            "of it read ahead",
            "never asked for",
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
    for file in input.analysis.files.iter().filter(read).take(rows) {
        table.row(file_and_disk_row(file, requests));
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

/// Returns a file's row. Unless `requests` were traced nothing is known of them, which is not zero.
fn file_and_disk_row(file: &FileTrace, requests: bool) -> [Cell; 9] {
    let source = &file.read_bytes_by_source;
    let of_requests = |bytes: u64| Cell::or(requests.then(|| format_bytes(bytes)), "not traced");
    let amplification = file
        .device
        .read_amplification
        .filter(|_| requests)
        .map(format_times);
    [
        file_name(&file.file).into(),
        format_bytes(source.asked_bytes).into(),
        from_cache(source),
        format_bytes(source.device_read_bytes).into(),
        of_requests(file.device.reads.bytes),
        of_requests(file.device.read_ahead_bytes),
        of_requests(file.device.never_asked_bytes),
        Cell::or(amplification, "unknown"),
        of_requests(file.device.writes.bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

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
