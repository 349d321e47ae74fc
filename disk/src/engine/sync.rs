//! One request at a time: pread and pwrite, direct or through the page cache, with fdatasync if the
//! job wants it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};
use seekscope_run::ReadAdvice;
use seekscope_stats::SplitMix64;

use super::incomplete;
use super::one_at_a_time::{Extent, OneAtATime};
use crate::buffer::AlignedBuffer;
use crate::job::Job;
use crate::offsets::Access;
use crate::random_bytes::{self, make_distinct};
use crate::{DiskError, TestFile};

/// The kernel cuts longer advice to its own limit (`force_page_cache_ra`, mm/readahead.c).
const ADVICE_BYTES: u64 = 512 << 10;

pub(super) struct SyncEngine {
    file: File,
    buffer: AlignedBuffer,
    block: usize,
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
            read_ahead: facts.window_bytes.map(|bytes| Window {
                bytes: bytes.max(facts.block_bytes),
                around: facts.access.is_random(),
                end: 0,
            }),
        })
    }
}

impl OneAtATime for SyncEngine {
    fn prepare_write(&mut self, stamps: &mut SplitMix64) {
        make_distinct(self.buffer.bytes(), stamps);
    }

    fn access(&mut self, access: Access) -> Result<(), DiskError> {
        let buffer = &mut self.buffer.bytes()[..self.block];
        let (operation, result) = if access.is_write {
            ("write", self.file.write_at(buffer, access.offset))
        } else {
            if let Some(window) = &mut self.read_ahead {
                window.advise(&self.file, access.offset);
            }
            ("read", self.file.read_at(buffer, access.offset))
        };
        match result {
            Ok(n) if n == self.block => Ok(()),
            other => Err(incomplete(operation, access.offset, other)),
        }
    }

    fn sync(&mut self, _extent: Extent) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Read-ahead by explicit advice. The kernel's own is off, so that any window can be tried without
/// changing the device's setting.
struct Window {
    bytes: u64,
    /// Whether a window is read at each access, as with page faults; for random accesses.
    around: bool,
    /// The offset up to which everything has been requested (sequential accesses).
    end: u64,
}

impl Window {
    fn advise(&mut self, file: &File, offset: u64) {
        if self.around {
            will_need(file, offset, self.bytes);
            return;
        }
        // A jump: past what was requested, or before it.
        if offset >= self.end || offset + 2 * self.bytes < self.end {
            self.end = offset;
        }
        // Always one window ahead of the one being read.
        if offset + self.bytes >= self.end {
            let end = offset - offset % self.bytes + 2 * self.bytes;
            will_need(file, self.end, end.saturating_sub(self.end));
            self.end = end;
        }
    }
}

/// Gives advice, which the kernel may ignore: the read that follows works in any case.
fn will_need(file: &File, offset: u64, bytes: u64) {
    let mut at = offset;
    while at < offset + bytes {
        let piece = ADVICE_BYTES.min(offset + bytes - at);
        let _: io::Result<()> =
            fadvise(file, at, std::num::NonZero::new(piece), Advice::WillNeed).map_err(Into::into);
        at += piece;
    }
}
