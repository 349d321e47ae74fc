//! Evicts our own folders from the page cache, and counts what is still there, file by file with
//! [`seekscope_run::page_cache`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use seekscope_run::CacheState;
use seekscope_run::page_cache as cache_of;
use seekscope_run::units::format_bytes;

/// Pages that were just touched are in per-CPU lists for a moment and survive the first try.
const EVICT_TRIES: u32 = 3;

/// How much of some files is cached. Whole pages are counted, so `resident_bytes` may exceed the size of small
/// files by part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Residency {
    pub files: u64,
    pub resident_bytes: u64,
    pub total_bytes: u64,
}

/// If more than one byte in this many is still cached, the cache is not cold.
const WARM_SHARE: u64 = 20;
/// Small files in use (locks, turtle files) stay cached.
const PAGE_SLACK_BYTES: u64 = 1 << 20;

impl Residency {
    /// Returns the state for the record of a phase that began after an attempt to evict these files: cold only
    /// if hardly anything stayed.
    pub fn state(&self) -> CacheState {
        if self.resident_bytes > self.total_bytes / WARM_SHARE + PAGE_SLACK_BYTES {
            return CacheState::AsFound {
                why: format!(
                    "{} of {} stayed in the page cache after an attempt to evict them; reads of \
                     these are hits, which the disk would have had to serve had the cache been \
                     cold",
                    format_bytes(self.resident_bytes),
                    format_bytes(self.total_bytes),
                ),
            };
        }
        CacheState::Cold {
            resident_bytes: self.resident_bytes,
            total_bytes: self.total_bytes,
        }
    }
}

/// An error that names the file which could not be evicted or examined.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot examine or empty the page cache of {path}: {what} failed: {source}; this user must \
         be able to read the file"
)]
pub struct PageCacheError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

/// Writes back and evicts every regular file below `directory` (links are not followed) and returns what
/// stayed. Pages that a process has mapped stay. Blocks until dirty pages are written.
pub fn evict(directory: &Path) -> Result<Residency, PageCacheError> {
    let files = files_below(directory)?;
    let mut result = resident_bytes(&files)?;
    for _ in 0..EVICT_TRIES {
        for path in &files {
            if let Some(file) = open(path)? {
                cache_of::evict(&file, 0, 0).map_err(failed(path, "eviction"))?;
            }
        }
        result = resident_bytes(&files)?;
        if result.resident_bytes == 0 {
            break;
        }
    }
    Ok(result)
}

/// Returns the regular files below a directory, sorted; links are not followed, and files that have vanished
/// are left out.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>, PageCacheError> {
    let mut files = Vec::new();
    let mut folders = vec![directory.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let read = |source| PageCacheError {
            path: folder.clone(),
            what: "reading the directory",
            source,
        };
        for entry in fs::read_dir(&folder).map_err(read)? {
            let entry = entry.map_err(read)?;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns how much of these files is in the page cache now; checking does not change it.
pub fn resident_bytes(files: &[PathBuf]) -> Result<Residency, PageCacheError> {
    let mut sum = Residency::default();
    for path in files {
        let Some(file) = open(path)? else { continue };
        let size_bytes = file.metadata().map_err(failed(path, "stat"))?.len();
        sum.files += 1;
        sum.total_bytes += size_bytes;
        sum.resident_bytes +=
            cache_of::resident_bytes(&file, 0, size_bytes).map_err(failed(path, "mincore"))?;
    }
    Ok(sum)
}

/// Opens a file; `None` if it has vanished, since servers remove journal files at any time.
fn open(path: &Path) -> Result<Option<File>, PageCacheError> {
    match OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
    {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, "open")(error)),
    }
}

fn failed(path: &Path, what: &'static str) -> impl Fn(io::Error) -> PageCacheError + use<> {
    let path = path.to_path_buf();
    move |source| PageCacheError {
        path: path.clone(),
        what,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cold_is_said_only_of_what_is() {
        let state = |resident_bytes| {
            Residency {
                files: 1,
                resident_bytes,
                total_bytes: 400 << 20,
            }
            .state()
        };
        assert!(matches!(state(0), CacheState::Cold { .. }));
        assert!(matches!(state(20 << 20), CacheState::Cold { .. }));
        assert!(matches!(state(100 << 20), CacheState::AsFound { .. }));
    }
}
