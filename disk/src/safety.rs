//! Checks before anything is written: space, limits, and databases running here.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use rustix::process::{Resource, getrlimit};

use crate::DiskError;

/// Space that always stays free, or a twentieth of the filesystem if that is more: a full
/// filesystem stops databases.
const RESERVE_BYTES: u64 = 1 << 30;
/// Files locked by a running server. mongod uses flock, WiredTiger fcntl.
const LOCK_FILES: [&str; 2] = ["mongod.lock", "WiredTiger.lock"];

/// Returns the bytes that may still be written in `directory`.
pub fn spare_bytes(directory: &Path) -> Result<u64, DiskError> {
    let space = space(directory)?;
    Ok(space.free_bytes.saturating_sub(space.reserve_bytes))
}

/// Fails if a file of `file_bytes` would leave too little space, or the process may not write it.
pub fn check_space(directory: &Path, file_bytes: u64) -> Result<(), DiskError> {
    let space = space(directory)?;
    if space.free_bytes < file_bytes.saturating_add(space.reserve_bytes) {
        return Err(DiskError::NoSpace {
            path: directory.into(),
            file_bytes,
            reserve_bytes: space.reserve_bytes,
            free_bytes: space.free_bytes,
        });
    }
    // Beyond this limit the kernel does not fail the write but kills the process.
    match getrlimit(Resource::Fsize).current {
        Some(limit_bytes) if limit_bytes < file_bytes => Err(DiskError::FileSizeLimit {
            limit_bytes,
            file_bytes,
        }),
        _ => Ok(()),
    }
}

struct Space {
    free_bytes: u64,
    reserve_bytes: u64,
}

fn space(directory: &Path) -> Result<Space, DiskError> {
    let facts = rustix::fs::statvfs(directory)
        .map_err(|e| DiskError::on("examine", directory)(e.into()))?;
    if facts.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(DiskError::ReadOnly(directory.into()));
    }
    // As of /proc, /sys and ramfs: how much may be written cannot be told.
    if facts.f_blocks == 0 {
        return Err(DiskError::NoSize(directory.into()));
    }
    let total_bytes = facts.f_blocks.saturating_mul(facts.f_frsize);
    Ok(Space {
        free_bytes: facts.f_bavail.saturating_mul(facts.f_frsize),
        reserve_bytes: RESERVE_BYTES.max(total_bytes / 20),
    })
}

/// Fails if a database has its files in `directory` or above it (collections may have folders of
/// their own), judging by the locks it holds. `proc` is "/proc" outside of tests. No lock is taken
/// to find out.
pub fn check_no_database(directory: &Path, proc: &Path) -> Result<(), DiskError> {
    for folder in directory.ancestors() {
        for name in LOCK_FILES {
            let path = folder.join(name);
            let held = File::open(&path).is_ok_and(|file| held_by_fcntl(&file));
            if held || listed_as_locked(&path, proc) {
                return Err(DiskError::LiveDatabase {
                    path: folder.into(),
                    lock: name.into(),
                });
            }
        }
    }
    Ok(())
}

/// Returns whether another process holds an fcntl lock on the file (fcntl(2), `F_GETLK`); works
/// across containers.
fn held_by_fcntl(file: &File) -> bool {
    #[expect(clippy::cast_possible_truncation, reason = "constants below 4")]
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: F_GETLK reads and writes the one structure that it is given, which outlives the call.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut lock) };
    status == 0 && i32::from(lock.l_type) != libc::F_UNLCK
}

/// Returns whether `/proc/locks` lists the file, by device and inode (proc_locks(5)); the file is
/// not opened. `proc` is "/proc" outside of tests.
pub fn listed_as_locked(path: &Path, proc: &Path) -> bool {
    let (Ok(metadata), Ok(locks)) = (fs::metadata(path), fs::read_to_string(proc.join("locks")))
    else {
        return false;
    };
    let dev = metadata.dev();
    let wanted = format!(
        "{:02x}:{:02x}:{}",
        rustix::fs::major(dev),
        rustix::fs::minor(dev),
        metadata.ino()
    );
    // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF"; waiters have "->" in place of the type.
    locks
        .lines()
        .any(|line| line.split_whitespace().any(|word| word == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};

    #[test]
    fn a_locked_lock_file_is_a_running_database() {
        let folder = tempfile::tempdir().unwrap();
        let proc = Path::new("/proc");
        check_no_database(folder.path(), proc).unwrap();
        let path = folder.path().join("mongod.lock");
        let file = File::create(&path).unwrap();
        check_no_database(folder.path(), proc).expect("left behind by a server that has ended");
        flock(&file, FlockOperation::LockExclusive).unwrap();
        let error = check_no_database(folder.path(), proc).unwrap_err();
        assert!(
            error.to_string().contains("mongod.lock is locked"),
            "{error}"
        );
    }

    #[test]
    fn what_tells_no_size_is_not_filled() {
        let error = check_space(Path::new("/proc"), 1).unwrap_err();
        assert!(
            error.to_string().contains("does not report its size"),
            "{error}"
        );
    }

    #[test]
    fn room_must_be_left() {
        let folder = tempfile::tempdir().unwrap();
        check_space(folder.path(), 1).unwrap();
        let error = check_space(folder.path(), 1 << 60).unwrap_err();
        assert!(matches!(error, DiskError::NoSpace { .. }), "{error}");
    }
}
