//! A private copy of an existing file: with shared blocks if the filesystem supports it, otherwise
//! byte by byte.

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::TestFile;
use crate::buffer::AlignedBuffer;
use crate::error::full;
use crate::{DiskError, safety};

const CHUNK_BYTES: u64 = 4 << 20;
/// Bytes after which the copy is flushed: memory full of dirty pages stalls the host.
const SYNC_BYTES: u64 = 256 << 20;

/// How the copy was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyKind {
    /// Both share their blocks until one is written (reflink).
    SharedBlocks,
    Bytes,
}

impl TestFile {
    /// Copies a file or block device to a file without a name in `directory`. `progress` is called
    /// with the bytes copied so far; `bytes_per_s` limits the rate.
    pub fn copy_of(
        source: &TestFile,
        directory: &Path,
        bytes_per_s: Option<u64>,
        progress: &mut dyn FnMut(u64),
        cancel: &AtomicBool,
    ) -> Result<(Self, CopyKind), DiskError> {
        let mut copy = Self::create_empty(directory)?;
        copy.bytes = source.bytes;
        if rustix::fs::ioctl_ficlone(&copy, source).is_ok() {
            return Ok((copy, CopyKind::SharedBlocks));
        }
        safety::check_space(directory, source.bytes)?;
        copy_bytes(source, &copy, bytes_per_s, progress, cancel)?;
        Ok((copy, CopyKind::Bytes))
    }
}

fn copy_bytes(
    source: &TestFile,
    copy: &TestFile,
    bytes_per_s: Option<u64>,
    progress: &mut dyn FnMut(u64),
    cancel: &AtomicBool,
) -> Result<(), DiskError> {
    let (from, to) = (source.open(false)?, copy.open(false)?);
    let mut buffer = AlignedBuffer::new(usize::try_from(CHUNK_BYTES).unwrap_or(1))?;
    let started = Instant::now();
    let mut at = 0;
    let mut synced = 0;
    while at < source.bytes {
        if cancel.load(Ordering::Relaxed) {
            return Err(DiskError::Interrupted);
        }
        let wanted = usize::try_from(CHUNK_BYTES.min(source.bytes - at)).unwrap_or(1);
        let chunk = &mut buffer.bytes()[..wanted];
        match from.read_at(chunk, at) {
            Ok(0) => return Err(DiskError::Shrunk { offset: at }),
            Ok(bytes) => {
                to.write_all_at(&chunk[..bytes], at)
                    .map_err(|e| failed("write", copy, at, e))?;
                at += bytes as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(failed("read", source, at, e)),
        }
        if at - synced >= SYNC_BYTES || at == source.bytes {
            to.sync_data().map_err(|e| failed("write", copy, at, e))?;
            synced = at;
        }
        progress(at);
        hold_back(started, at, bytes_per_s, cancel);
    }
    Ok(())
}

/// Waits while more has been copied than the rate allows by now.
fn hold_back(started: Instant, copied: u64, bytes_per_s: Option<u64>, cancel: &AtomicBool) {
    let Some(rate) = bytes_per_s else { return };
    let due = Duration::from_secs_f64(copied as f64 / rate.max(1) as f64);
    while started.elapsed() < due && !cancel.load(Ordering::Relaxed) {
        let rest = due.saturating_sub(started.elapsed());
        thread::sleep(rest.min(Duration::from_millis(100)));
    }
}

fn failed(operation: &'static str, file: &TestFile, offset: u64, source: io::Error) -> DiskError {
    match full(&source) {
        Some(why) => DiskError::Full {
            path: file.path.clone(),
            written_bytes: offset,
            why,
        },
        None => DiskError::Device {
            operation,
            offset,
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_holds_the_same_has_no_name_and_leaves_the_source_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let content: Vec<u8> = (0..CHUNK_BYTES + 777).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let source = TestFile::open_existing(&path).unwrap();
        let cancel = AtomicBool::new(false);
        let copy = |rate| TestFile::copy_of(&source, folder.path(), rate, &mut |_| {}, &cancel);
        let (copied, _) = copy(None).unwrap();
        assert!(copied.is_own());
        assert_eq!(copied.bytes(), content.len() as u64);
        let opened = copied.open(false).unwrap();
        let mut read = vec![0; content.len()];
        opened.read_exact_at(&mut read, 0).unwrap();
        assert!(read == content, "the copy differs");
        opened.write_all_at(b"changed", 0).unwrap();
        assert!(
            std::fs::read(&path).unwrap() == content,
            "the source was changed"
        );
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        cancel.store(true, Ordering::Relaxed);
        let stopped = copy(Some(1));
        assert!(matches!(
            stopped,
            Err(DiskError::Interrupted) | Ok((_, CopyKind::SharedBlocks))
        ));
    }
}
