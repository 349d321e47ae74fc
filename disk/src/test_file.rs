//! The file that is measured: seekscope's own, which has no name, or an existing one that is only
//! read.
//!
//! Our own file has no name from the start (O_TMPFILE), so nothing is left behind even after
//! SIGKILL. Every user opens it again through `/proc/self/fd`: read-ahead state belongs to an open
//! file description, and some use the page cache while others bypass it.

mod copy;
mod fill;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use rustix::fs::{Advice, AtFlags, Mode, OFlags, fadvise};
use rustix::io::Errno;
use seekscope_run::page_cache;

pub use copy::CopyKind;
use fill::fill;
pub use fill::{Contents, FillOptions};

use crate::{DiskError, safety};

/// Limits the attempts to evict a file.
const EVICTIONS_MAX: usize = 20;

/// The file that a measurement reads and writes.
#[derive(Debug)]
pub struct TestFile {
    file: File,
    /// The directory that contains it, or the file itself if it existed before.
    path: PathBuf,
    bytes: u64,
    own: bool,
}

impl TestFile {
    /// Creates a file of `bytes` without a name in `directory` and fills it. `progress` is called
    /// with the bytes written; the file is smaller than requested only if `options.until` came
    /// first.
    pub fn create(
        directory: &Path,
        bytes: u64,
        options: FillOptions,
        progress: &mut dyn FnMut(u64),
        cancel: &AtomicBool,
    ) -> Result<Self, DiskError> {
        safety::check_space(directory, bytes)?;
        let mut file = Self::create_empty(directory)?;
        file.bytes = fill(&file, bytes, options, progress, cancel)?;
        Ok(file)
    }

    /// Creates an empty file without a name.
    pub fn create_empty(directory: &Path) -> Result<Self, DiskError> {
        if !directory
            .metadata()
            .map_err(DiskError::on("examine", directory))?
            .is_dir()
        {
            return Err(DiskError::NotADirectory(directory.into()));
        }
        Ok(Self {
            file: nameless(directory).map_err(DiskError::on("create a file in", directory))?,
            path: directory.into(),
            bytes: 0,
            own: true,
        })
    }

    /// Creates a file without a name whose blocks are not allocated yet: each is allocated when it
    /// is first written.
    pub fn create_sparse(directory: &Path, bytes: u64) -> Result<Self, DiskError> {
        safety::check_space(directory, bytes)?;
        let mut file = Self::create_empty(directory)?;
        file.file
            .set_len(bytes)
            .map_err(DiskError::on("size a file in", directory))?;
        file.bytes = bytes;
        Ok(file)
    }

    /// Creates a named file, which must not exist yet and stays when done. For those who ask for
    /// it.
    pub fn create_named(path: &Path) -> Result<Self, DiskError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .custom_flags(libc::O_NOFOLLOW)
            .mode(0o600)
            .open(path)
            .map_err(DiskError::on("create", path))?;
        Ok(Self {
            file,
            path: path.into(),
            bytes: 0,
            own: true,
        })
    }

    /// Fills the file that [`Self::create_named`] created; see [`Self::create`].
    pub fn fill(
        &mut self,
        bytes: u64,
        options: FillOptions,
        progress: &mut dyn FnMut(u64),
        cancel: &AtomicBool,
    ) -> Result<(), DiskError> {
        self.bytes = fill(self, bytes, options, progress, cancel)?;
        Ok(())
    }

    /// Opens an existing file or block device, which is never written.
    pub fn open_existing(path: &Path) -> Result<Self, DiskError> {
        let metadata = path.metadata().map_err(DiskError::on("examine", path))?;
        // Checked before it is opened, because opening a pipe would wait for its writer.
        if !metadata.is_file() && !metadata.file_type().is_block_device() {
            return Err(DiskError::NotAFile(path.into()));
        }
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(DiskError::on("open", path))?;
        // A block device reveals its size only by its end.
        let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))
            .map_err(|e| DiskError::on("find the end of", path)(e.into()))?;
        if bytes == 0 {
            return Err(DiskError::InvalidJob(format!(
                "{} is empty",
                path.display()
            )));
        }
        Ok(Self {
            file,
            path: path.into(),
            bytes,
            own: false,
        })
    }

    /// Opens a new file description; `direct` bypasses the page cache.
    pub fn open(&self, direct: bool) -> Result<File, DiskError> {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        OpenOptions::new()
            .read(true)
            .write(self.own)
            .custom_flags(flags)
            .open(link)
            .map_err(|source| match source.raw_os_error() {
                Some(libc::EINVAL) if direct => DiskError::NoDirectIo {
                    path: self.path.clone(),
                    source,
                },
                _ => DiskError::File {
                    action: "open again the file in",
                    path: self.path.clone(),
                    source,
                },
            })
    }

    /// Evicts its pages from the page cache, as far as the kernel lets go of them. For a file that
    /// is not ours, evicts only pages that need not be written first.
    pub fn evict(&self) -> Result<(), DiskError> {
        let evicted = if self.own {
            page_cache::evict(&self.file, 0, self.bytes)
        } else {
            fadvise(&self.file, 0, None, Advice::DontNeed).map_err(io::Error::from)
        };
        evicted.map_err(DiskError::on("evict the pages of", &self.path))
    }

    /// Evicts its pages until `resident` says that none of what it looks at is left, or nothing of them is known: the kernel
    /// lets go of some that were just touched at a later attempt only. A filesystem in memory never does.
    pub fn evict_all(&self, resident: impl Fn() -> Option<u64>) -> Result<(), DiskError> {
        for _ in 0..EVICTIONS_MAX {
            self.evict()?;
            if resident().is_none_or(|bytes| bytes == 0) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the bytes that may be read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns whether it is seekscope's own and may be written.
    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Returns the directory that contains it, or the file itself if it existed before.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for TestFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a file with O_TMPFILE; if the filesystem does not support that, uses a random name that is
/// removed at once.
fn nameless(directory: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let anonymous = rustix::fs::open(directory, flags | OFlags::TMPFILE | OFlags::EXCL, mode);
    match anonymous {
        // EISDIR and ENOENT come from kernels and filesystems that do not know the flag (open(2)).
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
        other => return Ok(other?.into()),
    }
    let name = format!(".seekscope-{:016x}", random_number());
    let folder = rustix::fs::open(
        directory,
        OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let exclusive = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(&folder, &name, flags | exclusive, mode)?;
    rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?;
    Ok(file.into())
}

/// Returns a number from the hasher that the standard library seeds randomly, because names must
/// not be guessable.
fn random_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn create(directory: &Path, bytes: u64) -> Result<TestFile, DiskError> {
        let cancel = AtomicBool::new(false);
        let contents = Contents::Random { seed: 1 };
        TestFile::create(
            directory,
            bytes,
            FillOptions::new(contents),
            &mut |_| {},
            &cancel,
        )
    }

    #[test]
    fn is_full_of_different_bytes_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = (20 << 20) + 512;
        let file = create(folder.path(), bytes).unwrap();
        assert_eq!(file.bytes(), bytes);
        let read = |offset| {
            let mut block = vec![0u8; 4096];
            file.open(false)
                .unwrap()
                .read_exact_at(&mut block, offset)
                .unwrap();
            block
        };
        let (first, other) = (read(0), read(8 << 20));
        assert_ne!(first, other);
        let distinct: std::collections::HashSet<u8> = first.into_iter().collect();
        assert!(distinct.len() > 200, "{}", distinct.len());
        assert_ne!(read(bytes - 4096), vec![0u8; 4096]);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn an_existing_file_is_not_opened_for_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, b"precious").unwrap();
        let file = TestFile::open_existing(&path).unwrap();
        assert!(file.open(false).unwrap().write_at(b"x", 0).is_err());
        assert_eq!(file.bytes(), 8);
        assert!(matches!(
            create(&path, 1 << 20),
            Err(DiskError::NotADirectory(_))
        ));
        assert!(TestFile::create_named(&path).is_err());
        assert!(matches!(
            TestFile::open_existing(folder.path()),
            Err(DiskError::NotAFile(_))
        ));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn stops_at_once_when_told() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(true);
        let options = FillOptions::new(Contents::Zeros);
        let result = TestFile::create(folder.path(), 1 << 30, options, &mut |_| {}, &cancel);
        assert!(matches!(result, Err(DiskError::Interrupted)));
    }
}
