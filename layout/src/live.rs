//! Whether a server is running on a data directory.
//!
//! WiredTiger locks `WiredTiger.lock` with fcntl, and mongod also locks `mongod.lock` with flock.
//! Both locks are listed in `/proc/locks` by device and inode. The files themselves are not even
//! opened here, because closing a file drops all fcntl locks that the process has on it
//! (fcntl_locking(2)), which would be the server's own if seekscope ever ran inside its process.
//!
//! The list leaves out locks of other PID namespaces (a container cannot see the host's), and on
//! filesystems with device numbers of their own (btrfs, overlay) it names another device. The
//! process id in `mongod.lock` remains, which is empty after a clean shutdown. A wrong answer
//! changes how a failure is worded, what is kept in memory and whether a file that is gone counts as a
//! failure, never how anything is read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use seekscope_disk::safety::listed_as_locked;

use crate::data_file::DataFile;

/// `proc` is "/proc" outside of tests.
pub(crate) fn server_is_running(directory: &Path, proc: &Path) -> bool {
    let locked = |name| listed_as_locked(&directory.join(name), proc);
    locked("WiredTiger.lock") || locked("mongod.lock") || mongod_lives(directory, proc)
}

/// Returns whether the process that `mongod.lock` names exists, is a mongod and has this file open. Process ids are
/// reused, hence the check of the name; and a copy has the lock file of a server that runs elsewhere.
fn mongod_lives(directory: &Path, proc: &Path) -> bool {
    let Ok(text) = DataFile::read_whole(&directory.join("mongod.lock"), 64) else {
        return false;
    };
    let pid = String::from_utf8_lossy(&text).trim().parse::<u32>();
    pid.is_ok_and(|pid| {
        let process = proc.join(pid.to_string());
        let comm = fs::read_to_string(process.join("comm"));
        comm.is_ok_and(|name| name.starts_with("mongod"))
            && has_open(&process, &directory.join("mongod.lock")).unwrap_or(true)
    })
}

/// Returns whether the process has this file open. `None` if its files may not be seen.
fn has_open(process: &Path, file: &Path) -> Option<bool> {
    let of = |path: &Path| {
        let facts = fs::metadata(path).ok()?;
        Some((facts.dev(), facts.ino()))
    };
    let wanted = of(file)?;
    let mut open = fs::read_dir(process.join("fd")).ok()?.flatten();
    Some(open.any(|fd| of(&fd.path()) == Some(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;

    #[test]
    fn a_held_lock_is_a_server() {
        let folder = tempfile::tempdir().unwrap();
        let running = || server_is_running(folder.path(), Path::new("/proc"));
        assert!(!running());
        let lock = File::create(folder.path().join("WiredTiger.lock")).unwrap();
        assert!(!running(), "left behind by a server that has ended");
        flock(&lock, FlockOperation::LockExclusive).unwrap();
        assert!(running());
    }

    #[test]
    fn a_process_id_counts_only_while_its_mongod_lives() {
        let folder = tempfile::tempdir().unwrap();
        let proc = tempfile::tempdir().unwrap();
        let running = || server_is_running(folder.path(), proc.path());
        fs::write(folder.path().join("mongod.lock"), "4711\n").unwrap();
        assert!(!running());
        fs::create_dir(proc.path().join("4711")).unwrap();
        fs::write(proc.path().join("4711/comm"), "bash\n").unwrap();
        assert!(!running());
        fs::write(proc.path().join("4711/comm"), "mongod\n").unwrap();
        assert!(running(), "its files may not be seen");
        fs::create_dir(proc.path().join("4711/fd")).unwrap();
        assert!(!running(), "a copy of another server's");
        let open = proc.path().join("4711/fd/9");
        std::os::unix::fs::symlink(folder.path().join("mongod.lock"), open).unwrap();
        assert!(running());
        fs::write(folder.path().join("mongod.lock"), "").unwrap();
        assert!(!running());
    }
}
