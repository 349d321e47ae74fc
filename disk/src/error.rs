//! What can go wrong on a disk. Each error says what to do about it.

use std::io;
use std::path::PathBuf;

use seekscope_run::units::format_bytes;
use seekscope_run::{ErrorKind, Kinded};

/// Why a measurement could not be made or had to stop.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error("{0}")]
    InvalidJob(String),
    #[error("{} is not a directory; name a directory on the disk to measure, or read this file with --read-existing", .0.display())]
    NotADirectory(PathBuf),
    #[error("{} is neither a regular file nor a block device; nothing else is read", .0.display())]
    NotAFile(PathBuf),
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is on a filesystem that is mounted read-only; name a directory that can be written, or only read a file of it (disk --read-existing, replay --file)", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} is on a filesystem that does not report its size, like the kernel's own filesystems and ramfs; name a directory on the disk to measure", .0.display())]
    NoSize(PathBuf),
    #[error("cannot {action} {}: permission denied; run as its owner, or name another", path.display())]
    NotPermitted { action: &'static str, path: PathBuf },
    #[error(
        "not enough space in {}: the files for it take {} and {} must stay free, but only {} are; free some, name another directory, or a smaller --size if it is that file which takes most",
        path.display(), format_bytes(*file_bytes), format_bytes(*reserve_bytes), format_bytes(*free_bytes)
    )]
    NoSpace {
        path: PathBuf,
        file_bytes: u64,
        reserve_bytes: u64,
        free_bytes: u64,
    },
    #[error(
        "this process may write files of at most {} (ulimit -f), the measurement needs {}; raise the limit or name a smaller --size",
        format_bytes(*limit_bytes), format_bytes(*file_bytes)
    )]
    FileSizeLimit { limit_bytes: u64, file_bytes: u64 },
    #[error(
        "{why} after {} had been written to {}; the file is gone again; free some space or name a smaller --size",
        format_bytes(*written_bytes), path.display()
    )]
    Full {
        path: PathBuf,
        written_bytes: u64,
        why: &'static str,
    },
    #[error(
        "a database is running in {}: {lock} is locked; measuring would slow it down. Choose another directory, or --next-to-database, which limits the rate and stops when the host suffers", path.display()
    )]
    LiveDatabase { path: PathBuf, lock: String },
    #[error(
        "{} does not support direct I/O ({source}), so only its page cache could be measured; \
         --buffered does that on purpose", path.display()
    )]
    NoDirectIo { path: PathBuf, source: io::Error },
    #[error("{engine} is not available: {source}; {remedy}")]
    Engine {
        engine: &'static str,
        source: io::Error,
        remedy: &'static str,
    },
    #[error(
        "{why} while measuring: others write to the same filesystem; the file is gone again. Free some space or name another directory"
    )]
    FullMeanwhile { why: &'static str },
    #[error(
        "the disk failed to {operation} at offset {offset} of the file: {source}; look into the kernel log (dmesg) for the device's own words"
    )]
    Device {
        operation: &'static str,
        offset: u64,
        source: io::Error,
    },
    #[error(
        "the file ended at offset {offset} although it was larger when the measurement began; it must not shrink meanwhile"
    )]
    Shrunk { offset: u64 },
    #[error("what was measured could not be kept: {0}")]
    Record(String),
    /// The cancel flag was set.
    #[error("interrupted")]
    Interrupted,
    #[error(
        "cannot start a thread: {0}; the limit of processes (ulimit -u) or memory may be reached"
    )]
    Thread(io::Error),
    #[error("cannot get {} of memory: {source}; use a smaller --depth, --threads or --bs", format_bytes(*bytes))]
    Memory { bytes: u64, source: io::Error },
}

impl Kinded for DiskError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::InvalidJob(_) | Self::NotADirectory(_) | Self::NotAFile(_) | Self::NoSize(_) => {
                Some(ErrorKind::Usage)
            }
            Self::LiveDatabase { .. } => Some(ErrorKind::Target),
            Self::NotPermitted { .. } | Self::ReadOnly(_) => Some(ErrorKind::NotPermitted),
            Self::File { source, .. } => ErrorKind::of_named_path(source),
            Self::Interrupted => Some(ErrorKind::Interrupted),
            _ => None,
        }
    }
}

/// Returns the name for a full disk, if the error says that it is full.
pub(crate) fn full(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull => Some("the disk became full"),
        io::ErrorKind::QuotaExceeded => Some("the quota was used up"),
        _ => None,
    }
}

impl DiskError {
    /// Wraps an error on a path, recognising those that have a variant of their own.
    pub(crate) fn on(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path),
            io::ErrorKind::PermissionDenied => Self::NotPermitted { action, path },
            _ => Self::File {
                action,
                path,
                source,
            },
        }
    }
}
