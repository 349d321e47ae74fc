//! A made-up scan for the tests of this module.

use seekscope_pattern::{AnalysisOptions, TraceAnalyser, TraceAnalysis};
use seekscope_run::{
    BlockRequest, CacheState, Disk, FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState, Phase,
    RunDocument, TraceFacts,
};

use super::TraceReportInput;

const PAGE_BYTES: u32 = 4096;
const READS: u32 = 100;
/// The disk reads this many pages: the first as asked for, the others ahead, and the last 20 for nobody.
const PAGES_OF_DISK: u32 = 120;

pub(super) fn file(file_id: u32, path: &str) -> FileRecord {
    FileRecord {
        file_id,
        path: path.into(),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 1,
        inode: u64::from(file_id) + 100,
        size_bytes: 0,
        role: FileRole::Other,
        namespace: None,
        member: None,
    }
}

fn call(file_id: u32, page: u32) -> IoEvent {
    let waits = page == 0;
    IoEvent {
        t_ns: u64::from(file_id) * 10_000_000 + u64::from(page) * 10_000,
        pid: 77,
        tid: 78,
        file_id,
        op: IoOp::Pread,
        flags: match waits {
            true => IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ),
            false => IoFlags::default(),
        },
        offset: Some(u64::from(page * PAGE_BYTES)),
        length: PAGE_BYTES,
        latency_ns: 5_000,
        result: PAGE_BYTES.cast_signed(),
        device_read_bytes: if waits { PAGE_BYTES } else { 0 },
        request: None,
    }
}

fn request(file_id: u32, page: u32, pages: u32, flags: u16) -> IoEvent {
    IoEvent {
        op: IoOp::BlockRead,
        flags: IoFlags(flags),
        length: pages * PAGE_BYTES,
        result: (pages * PAGE_BYTES).cast_signed(),
        device_read_bytes: 0,
        request: Some(BlockRequest {
            disk_major: 254,
            disk_minor: 0,
            sector: u64::from(page) * 8,
        }),
        ..call(file_id, page)
    }
}

/// Returns a trace in which each file is read in order, 400 KiB, for which the disk, if its `requests` were traced, read
/// 480 KiB, all but a page of it ahead.
pub(super) fn scanned(files: &[FileRecord], requests: bool) -> TraceAnalysis {
    let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
    for file in files {
        let id = file.file_id;
        if requests {
            analyser.push(&request(id, 0, 1, IoFlags::SYNCHRONOUS));
            analyser.push(&request(id, 1, PAGES_OF_DISK - 1, IoFlags::READ_AHEAD));
        }
        (0..READS).for_each(|page| analyser.push(&call(id, page)));
    }
    analyser.finish(files, &[])
}

/// Calls `show` with all that a report is made from, the facts of the trace among them.
pub(super) fn with_input<T>(
    analysis: &TraceAnalysis,
    facts: TraceFacts,
    show: impl FnOnce(&TraceReportInput<'_>) -> T,
) -> T {
    let mut document = RunDocument::begin("trace", Vec::new());
    document.phases.push(Phase {
        name: "trace".into(),
        activity: "process 77".into(),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "it was running".into(),
        },
        started_ns: 0,
        ended_ns: 1_000_000_000,
        index_build: None,
        trace: Some(facts),
        process_io: None,
    });
    let events = |_: &mut dyn FnMut(&IoEvent)| Ok(());
    show(&TraceReportInput {
        document: &document,
        analysis,
        events: &events,
    })
}
