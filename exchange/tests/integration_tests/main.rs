//! Reading and writing foreign formats: texts by hand, real fio, real strace, and nonsense.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unreachable_pub,
    reason = "a test helper that fails is a failed test; nobody depends on a test"
)]

mod fio;
mod formats;
mod hostile;
mod strace;

use seekscope_exchange::{Format, ImportError, ImportSummary, RecordSink, import};
use seekscope_run::{FileRecord, IoEvent, IoFlags, IoOp, RunError, ThreadRecord};

/// Keeps what a reader finds.
#[derive(Debug, Default)]
pub struct Memory {
    pub events: Vec<IoEvent>,
    pub files: Vec<FileRecord>,
    pub threads: Vec<ThreadRecord>,
}

impl RecordSink for Memory {
    fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        self.events.push(*event);
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), RunError> {
        self.files.push(file.clone());
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), RunError> {
        self.threads.retain(|t| t.tid != thread.tid);
        self.threads.push(thread.clone());
        Ok(())
    }
}

impl Memory {
    pub fn path(&self, event: &IoEvent) -> &str {
        let file = self.files.iter().find(|f| f.file_id == event.file_id);
        &file.unwrap().path
    }
}

pub fn try_read(format: Format, text: &[u8]) -> (Memory, Result<ImportSummary, ImportError>) {
    let mut memory = Memory::default();
    let (summary, ended) = import(format, text, &mut memory, || true);
    (memory, ended.map(|()| summary))
}

pub fn read(format: Format, text: &str) -> (Memory, ImportSummary) {
    let (memory, summary) = try_read(format, text.as_bytes());
    (memory, summary.unwrap())
}

pub fn file(file_id: u32, path: &str) -> FileRecord {
    FileRecord {
        file_id,
        path: path.into(),
        path_state: seekscope_run::PathState::Known,
        device_major: 0,
        device_minor: 0,
        inode: 0,
        size_bytes: 0,
        role: seekscope_run::FileRole::Other,
        namespace: None,
        member: None,
    }
}

/// A call on file 0.
pub fn call(op: IoOp, t_ns: u64, offset: u64, bytes: u32) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 10,
        tid: 11,
        file_id: 0,
        op,
        flags: IoFlags(0),
        offset: Some(offset),
        length: bytes,
        latency_ns: 1500,
        result: bytes.cast_signed(),
        device_read_bytes: 0,
        request: None,
    }
}
