//! Runs with known events, as a tracer would leave them.

use std::collections::BTreeSet;
use std::path::Path;

use seekscope_run::{
    FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState, RunDirectory, RunDocument,
    ThreadRecord,
};

pub const MS: u64 = 1_000_000;

/// The file that events are on unless they say otherwise.
pub const DATA: u32 = 7;

/// An event of process 100 on [`DATA`] that took 100 µs.
pub fn event(tid: u32, op: IoOp, t_ns: u64, offset: u64, bytes: u32) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 100,
        tid,
        file_id: DATA,
        op,
        flags: IoFlags(0),
        offset: Some(offset),
        length: bytes,
        latency_ns: 100_000,
        result: i32::try_from(bytes).unwrap(),
        device_read_bytes: 0,
        request: None,
    }
}

/// Writes the run. Each file is its id, path and size.
pub fn write_run(folder: &Path, files: &[(u32, &str, u64)], events: &[IoEvent]) {
    let mut document = RunDocument::begin("trace", Vec::new());
    let directory = RunDirectory::create(folder, &document).unwrap();
    let mut writer = directory.io_writer().unwrap();
    for (file_id, path, size_bytes) in files {
        let record = FileRecord {
            file_id: *file_id,
            path: (*path).into(),
            path_state: PathState::Known,
            device_major: 254,
            device_minor: 0,
            inode: (*file_id).into(),
            size_bytes: *size_bytes,
            role: FileRole::Collection,
            namespace: None,
            member: None,
        };
        writer.file(&record).unwrap();
    }
    for event in events {
        writer.event(event).unwrap();
    }
    let tids: BTreeSet<(u32, u32)> = events.iter().map(|e| (e.tid, e.pid)).collect();
    for (tid, pid) in tids {
        let name = format!("conn{tid}");
        writer.thread(&ThreadRecord { tid, pid, name }).unwrap();
    }
    writer.flush().unwrap();
    directory.finish_records().unwrap();
    document.outcome = seekscope_run::Outcome::Ok;
    document.outcome_reason = None;
    directory.save(&document).unwrap();
}
