//! One request at a time: pread and pwrite, direct or through the page cache, with fdatasync where
//! the job wants it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};
use seekscope_run::{ReadAdvice, monotonic_ns};

use super::{Engine, Worker, incomplete};
use crate::buffer::AlignedBuffer;
use crate::job::Job;
use crate::offsets::Access;
use crate::random_bytes::{self, make_distinct};
use crate::recorder::Operation;
use crate::{DiskError, TestFile};

/// The kernel cuts a larger piece of advice to its own limit (`force_page_cache_ra`, mm/readahead.c).
const ADVICE_BYTES: u64 = 512 << 10;

pub(super) struct SyncEngine {
    file: File,
    buffer: AlignedBuffer,
    block: usize,
    sync_each_write: bool,
    sync_every_bytes: Option<u64>,
    unsynced_bytes: u64,
    read_ahead: Option<Window>,
}

impl SyncEngine {
    pub(super) fn prepare(job: &Job, file: &TestFile) -> Result<Self, DiskError> {
        let facts = &job.facts;
        let block = usize::try_from(facts.block_bytes).unwrap_or(usize::MAX);
        let mut buffer = AlignedBuffer::new(block)?;
        if facts.access.writes() {
            random_bytes::fill(buffer.bytes(), job.seed);
        }
        let opened = file.open(facts.direct)?;
        let advice = match (facts.window_bytes, facts.advice) {
            (Some(_), _) | (None, ReadAdvice::Random) => Advice::Random,
            (None, ReadAdvice::Sequential) => Advice::Sequential,
            (None, ReadAdvice::Normal) => Advice::Normal,
        };
        if !facts.direct {
            fadvise(&opened, 0, None, advice)
                .map_err(|e| DiskError::on("advise about", file.path())(e.into()))?;
        }
        Ok(Self {
            file: opened,
            buffer,
            block,
            sync_each_write: facts.sync_each_write,
            sync_every_bytes: facts.sync_every_bytes,
            unsynced_bytes: 0,
            read_ahead: facts.window_bytes.map(|bytes| Window {
                bytes: bytes.max(facts.block_bytes),
                around: facts.access.is_random(),
                end: 0,
            }),
        })
    }

    fn access(&mut self, access: Access) -> Result<(), DiskError> {
        let buffer = &mut self.buffer.bytes()[..self.block];
        if access.is_write {
            match self.file.write_at(buffer, access.offset) {
                Ok(n) if n == self.block => Ok(()),
                other => Err(incomplete("write", access.offset, other)),
            }
        } else {
            if let Some(window) = &mut self.read_ahead {
                window.advise(&self.file, access.offset);
            }
            match self.file.read_at(buffer, access.offset) {
                Ok(n) if n == self.block => Ok(()),
                other => Err(incomplete("read", access.offset, other)),
            }
        }
    }

    /// The job wants the disk to have it by now.
    fn sync_is_due(&mut self) -> bool {
        self.unsynced_bytes += self.block as u64;
        let due = self.sync_each_write
            || self
                .sync_every_bytes
                .is_some_and(|every| self.unsynced_bytes >= every);
        if due {
            self.unsynced_bytes = 0;
        }
        due
    }
}

impl Engine for SyncEngine {
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<bool, DiskError> {
        let mut now_ns = monotonic_ns();
        while let Some((due_ns, called_ns)) = worker.wait(now_ns) {
            let Some(access) = worker.offsets.next() else {
                return Ok(true);
            };
            if access.is_write {
                make_distinct(self.buffer.bytes(), &mut worker.stamps);
            }
            self.access(access)?;
            now_ns = monotonic_ns();
            if !access.is_write {
                worker
                    .recorder
                    .record(Operation::Read, due_ns, called_ns, now_ns);
                continue;
            }
            let written_ns = now_ns;
            if self.sync_is_due() {
                let synced = self.file.sync_data().map(|()| 0);
                if synced.is_err() {
                    return Err(incomplete("sync", access.offset, synced));
                }
                now_ns = monotonic_ns();
                worker
                    .recorder
                    .record(Operation::Sync, written_ns, written_ns, now_ns);
            }
            let done_ns = if self.sync_each_write {
                now_ns
            } else {
                written_ns
            };
            worker
                .recorder
                .record(Operation::Write, due_ns, called_ns, done_ns);
        }
        Ok(false)
    }
}

/// Read-ahead by explicit advice: the kernel's own is off, so that any window can be tried without
/// touching the device's setting.
struct Window {
    bytes: u64,
    /// Random accesses have a window read each time, as page faults do.
    around: bool,
    /// Everything before this has been asked for (accesses in order).
    end: u64,
}

impl Window {
    fn advise(&mut self, file: &File, offset: u64) {
        if self.around {
            will_need(file, offset, self.bytes);
            return;
        }
        // A jump: behind what was asked for, or before it.
        if offset >= self.end || offset + 2 * self.bytes < self.end {
            self.end = offset;
        }
        // Always one window ahead of the one that is being read.
        if offset + self.bytes >= self.end {
            let end = offset - offset % self.bytes + 2 * self.bytes;
            will_need(file, self.end, end.saturating_sub(self.end));
            self.end = end;
        }
    }
}

/// Advice that the kernel may ignore: the read that follows works in any case.
fn will_need(file: &File, offset: u64, bytes: u64) {
    let mut at = offset;
    while at < offset + bytes {
        let piece = ADVICE_BYTES.min(offset + bytes - at);
        let _: io::Result<()> =
            fadvise(file, at, std::num::NonZero::new(piece), Advice::WillNeed).map_err(Into::into);
        at += piece;
    }
}
