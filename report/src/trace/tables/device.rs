//! The disks, and the files seen from there. Calls and requests are never added up.

use seekscope_pattern::{BytesByPurpose, DiskTrace, FileTrace};
use seekscope_run::units::{format_bytes, format_count};

use super::super::TraceReportInput;
use super::super::names::file_name;
use super::p50_p99;
use crate::numbers::{format_number, format_share, format_times};
use crate::table::{Cell, Table};

/// One row per disk.
pub(in super::super) fn disks(input: &TraceReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "disk",
            "reads",
            "read",
            "p50",
            "p99",
            "sequential",
            "writes",
            "written",
            "p50",
            "p99",
            "flushes",
            "discards",
            "depth",
            "deepest",
        ],
    );
    for disk in &input.analysis.disks {
        table.row(disk_row(disk));
    }
    table.or_nothing()
}

fn disk_row(disk: &DiskTrace) -> [Cell; 14] {
    let (reads, writes) = (&disk.reads.transfers, &disk.writes.transfers);
    let [read_p50, read_p99] = p50_p99(&reads.latency_ns);
    let [write_p50, write_p99] = p50_p99(&writes.latency_ns);
    let sequential = disk
        .reads
        .pattern
        .as_ref()
        .map(|p| format_share(p.sequential_share));
    [
        format!("{}:{}", disk.major, disk.minor).into(),
        format_count(reads.calls).into(),
        format_bytes(reads.bytes).into(),
        read_p50,
        read_p99,
        Cell::or(sequential, "no reads"),
        format_count(writes.calls).into(),
        format_bytes(writes.bytes).into(),
        write_p50,
        write_p99,
        format_count(disk.flushes.calls).into(),
        format_count(disk.discards).into(),
        format_number(disk.queue_depth.mean_while_busy).into(),
        format_count(disk.queue_depth.max).into(),
    ]
}

/// What the bytes of requests were for.
pub(in super::super) fn purposes(input: &TraceReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "disk",
            "requests",
            "of files",
            "of the filesystem",
            "not known",
            "read ahead",
        ],
    );
    for disk in &input.analysis.disks {
        let kinds = [
            ("reads", disk.read_bytes_by_purpose),
            ("writes", disk.write_bytes_by_purpose),
        ];
        for (word, bytes) in kinds {
            table.row(purpose_row(disk, word, &bytes));
        }
    }
    table.or_nothing()
}

fn purpose_row(disk: &DiskTrace, word: &str, bytes: &BytesByPurpose) -> [Cell; 6] {
    [
        format!("{}:{}", disk.major, disk.minor).into(),
        word.into(),
        format_bytes(bytes.file_bytes).into(),
        format_bytes(bytes.metadata_bytes).into(),
        format_bytes(bytes.unknown_bytes).into(),
        format_bytes(bytes.read_ahead_bytes).into(),
    ]
}

/// Bytes asked for against bytes that the disk was asked for, file by file.
pub(in super::super) fn file_and_disk(input: &TraceReportInput<'_>, rows: usize) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "file",
            "asked for",
            "from cache",
            "sent to the disk by readers",
            "read by the disk",
            "of it read ahead",
            "never asked for",
            "disk per byte asked",
            "written by the disk",
        ],
    );
    let read = |file: &&FileTrace| {
        file.read_bytes_by_source.asked_bytes > 0
            || file.device.reads.calls > 0
            || file.device.writes.calls > 0
    };
    let requests = !input.analysis.disks.is_empty();
    for file in input.analysis.files.iter().filter(read).take(rows) {
        table.row(file_and_disk_row(file, requests));
    }
    table.or_nothing()
}

/// Without requests in the trace nothing is known of them, which is not zero.
fn file_and_disk_row(file: &FileTrace, requests: bool) -> [Cell; 9] {
    let source = &file.read_bytes_by_source;
    let of_requests =
        |bytes: u64| Cell::or(requests.then(|| format_bytes(bytes)), "requests not traced");
    let amplification = file
        .device
        .read_amplification
        .filter(|_| requests)
        .map(format_times);
    [
        file_name(&file.file).into(),
        format_bytes(source.asked_bytes).into(),
        format_bytes(source.hit_bytes).into(),
        format_bytes(source.device_read_bytes).into(),
        of_requests(file.device.reads.bytes),
        of_requests(file.device.read_ahead_bytes),
        of_requests(file.device.never_asked_bytes),
        Cell::or(amplification, "unknown"),
        of_requests(file.device.writes.bytes),
    ]
}
