//! Writes the whole file once, because blocks that were never written are answered without the
//! disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::TestFile;
use crate::buffer::AlignedBuffer;
use crate::error::full;
use crate::{DiskError, random_bytes};

/// What a file is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// Incompressible data without repetition; a function of the seed.
    Random { seed: u64 },
    /// Zeros, as in mongoperf; devices that compress or deduplicate will look faster than they are.
    Zeros,
}

/// How a file is filled.
#[derive(Debug, Clone, Copy)]
pub struct FillOptions {
    pub contents: Contents,
    /// When to stop, with what has been written.
    pub until: Option<Instant>,
    /// The highest rate, for the sake of others on the disk.
    pub bytes_per_s: Option<u64>,
}

impl FillOptions {
    /// Returns options for filling at full speed, to the end.
    pub fn new(contents: Contents) -> Self {
        Self {
            contents,
            until: None,
            bytes_per_s: None,
        }
    }
}

const CHUNK_BYTES: u64 = 8 << 20;
const CHUNKS_MIN: u64 = 4;
/// One makes data while the other waits for the disk.
const WRITERS: usize = 2;
/// Bytes after which buffered writers flush: memory full of dirty pages stalls the host.
const SYNC_BYTES: u64 = 256 << 20;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// State that the writers share.
struct Shared<'a> {
    bytes: u64,
    options: FillOptions,
    started: Instant,
    cancel: &'a AtomicBool,
    next_chunk: AtomicU64,
    written_bytes: AtomicU64,
    failure: Mutex<Option<io::Error>>,
}

/// Writes `bytes` from the start of the file, bypassing the page cache if possible, and waits until
/// they are on the disk. Returns how much was written: less only if `until` came first.
pub(super) fn fill(
    file: &TestFile,
    bytes: u64,
    options: FillOptions,
    progress: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<u64, DiskError> {
    // Direct writes need whole blocks, so the file ends up rounded up and is then cut.
    let direct = file.open(true).ok();
    let buffered = file.open(false)?;
    let shared = Shared {
        bytes,
        options,
        started: Instant::now(),
        cancel,
        next_chunk: AtomicU64::new(0),
        written_bytes: AtomicU64::new(0),
        failure: Mutex::new(None),
    };
    let target = direct.as_ref().unwrap_or(&buffered);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| shared.write_chunks(target, direct.is_some())))
            .collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            progress(shared.written_bytes.load(Ordering::Relaxed));
            thread::park_timeout(PROGRESS_INTERVAL);
        }
    });
    if cancel.load(Ordering::Relaxed) {
        return Err(DiskError::Interrupted);
    }
    let written_bytes = shared.written_bytes.load(Ordering::Relaxed).min(bytes);
    let finish = || {
        buffered
            .set_len(written_bytes)
            .and_then(|()| buffered.sync_data())
    };
    let failure = shared
        .failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    match failure.map_or_else(finish, Err) {
        Ok(()) => {
            progress(written_bytes);
            Ok(written_bytes)
        }
        Err(source) => Err(failed(file, written_bytes, source)),
    }
}

fn failed(file: &TestFile, written_bytes: u64, source: io::Error) -> DiskError {
    let Some(why) = full(&source) else {
        return DiskError::Device {
            operation: "write",
            offset: written_bytes,
            source,
        };
    };
    DiskError::Full {
        path: file.path.clone(),
        written_bytes,
        why,
    }
}

impl Shared<'_> {
    /// Writes one chunk after another until there are no more, or until told to stop.
    fn write_chunks(&self, file: &File, direct: bool) {
        if let Err(error) = self.try_write_chunks(file, direct) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(error);
        }
    }

    fn try_write_chunks(&self, file: &File, direct: bool) -> io::Result<()> {
        let length = usize::try_from(CHUNK_BYTES).map_err(io::Error::other)?;
        let mut buffer = AlignedBuffer::new(length).map_err(io::Error::other)?;
        let mut unsynced_bytes = 0;
        while !self.must_stop() {
            self.hold_back();
            let number = self.next_chunk.fetch_add(1, Ordering::Relaxed);
            let offset = number * CHUNK_BYTES;
            if offset >= self.bytes {
                break;
            }
            if let Contents::Random { seed } = self.options.contents {
                random_bytes::fill(
                    buffer.bytes(),
                    seed.wrapping_add(number.wrapping_mul(0x9e37_79b9)),
                );
            }
            // A direct write takes whole blocks; the excess is cut off at the end.
            let wanted = CHUNK_BYTES.min((self.bytes - offset).next_multiple_of(4096));
            let chunk = &buffer.bytes()[..usize::try_from(wanted).map_err(io::Error::other)?];
            file.write_all_at(chunk, offset)?;
            self.written_bytes.fetch_add(wanted, Ordering::Relaxed);
            unsynced_bytes += wanted;
            if !direct && unsynced_bytes >= SYNC_BYTES {
                file.sync_data()?;
                unsynced_bytes = 0;
            }
        }
        Ok(())
    }

    /// Waits while more has been written than the rate allows by now.
    fn hold_back(&self) {
        let Some(bytes_per_s) = self.options.bytes_per_s else {
            return;
        };
        let ahead = |written: u64| {
            let due = Duration::from_secs_f64(written as f64 / bytes_per_s.max(1) as f64);
            due.saturating_sub(self.started.elapsed())
        };
        let mut wait = ahead(self.written_bytes.load(Ordering::Relaxed));
        while !wait.is_zero() && !self.must_stop() {
            thread::sleep(wait.min(PROGRESS_INTERVAL));
            wait = ahead(self.written_bytes.load(Ordering::Relaxed));
        }
    }

    /// Returns whether it is too late to go on. The first chunks are written however late it is,
    /// because an empty file measures nothing.
    fn is_late(&self) -> bool {
        self.next_chunk.load(Ordering::Relaxed) >= CHUNKS_MIN
            && self
                .options
                .until
                .is_some_and(|until| Instant::now() >= until)
    }

    fn must_stop(&self) -> bool {
        let failed = || {
            self.failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some()
        };
        self.cancel.load(Ordering::Relaxed) || self.is_late() || failed()
    }
}
