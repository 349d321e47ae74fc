//! Finds and clears what a killed run left behind.
//!
//! A lease file is somebody's claim about processes and directories to destroy; it is trusted only as far as it
//! can be checked.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::process::{ProcFs, ProcessIdentity};
use crate::slow_disk;
use crate::workspace::{LEASE_SCHEMA, LeaseDocument, read_small, remove_directory};

const LEASE_MAX_BYTES: u64 = 64 << 10;
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What was left behind by a run whose process is gone.
#[derive(Debug, Clone)]
pub struct Leftover {
    lease_file: PathBuf,
    lease: LeaseDocument,
}

/// The contents of a lease directory.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// Runs that died.
    pub found: Vec<Leftover>,
    /// Files that are not trusted as leases, with the reason.
    pub ignored: Vec<(PathBuf, String)>,
}

/// The reason why a leftover, or a part of it, is still there.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove what {lease_file} lists: {what}: {source}")]
pub struct CleanError {
    lease_file: PathBuf,
    what: String,
    source: io::Error,
}

impl Leftover {
    /// Returns the data directory of the run that died.
    pub fn directory(&self) -> &Path {
        &self.lease.directory
    }

    /// Returns the server that is still running, if there is one.
    pub fn running_server(&self) -> Option<u32> {
        let proc_fs = ProcFs::host();
        let server = self.lease.server.as_ref()?;
        is_same(&proc_fs, &self.lease, server).then_some(server.pid)
    }
}

/// Lists the leases below `lease_directory` whose owner is dead. A directory that does not exist
/// holds none.
pub fn leftovers(lease_directory: &Path) -> Leftovers {
    let mut result = Leftovers::default();
    let proc_fs = ProcFs::host();
    for entry in fs::read_dir(lease_directory)
        .into_iter()
        .flatten()
        .flatten()
    {
        let path = entry.path();
        if path.extension() != Some(OsStr::new("json")) {
            continue;
        }
        match read_lease(&path) {
            Ok(lease) if is_live(&proc_fs, &lease) => {}
            Ok(lease) => result.found.push(Leftover {
                lease_file: path,
                lease,
            }),
            Err(why) => result.ignored.push((path, why)),
        }
    }
    result
}

/// Kills the server if it is still the same process, and removes the cgroup, directory and lease. Blocks for up
/// to ten seconds. A run that turns out to be alive is left alone.
pub fn clean(leftover: &Leftover) -> Result<(), CleanError> {
    let Leftover { lease_file, lease } = leftover;
    let failed = |what: &str| {
        let (lease_file, what) = (lease_file.clone(), what.to_string());
        move |source| CleanError {
            lease_file,
            what,
            source,
        }
    };
    let proc_fs = ProcFs::host();
    if is_live(&proc_fs, lease) {
        return Err(failed("the run")(io::Error::other(
            "its process is still running",
        )));
    }
    if let Some(server) = &lease.server {
        kill_if_same(&proc_fs, lease, server).map_err(failed("its server"))?;
    }
    if let Some(cgroup) = &lease.cgroup {
        slow_disk::remove_group(cgroup).map_err(failed("its cgroup"))?;
    }
    remove_directory(&lease.directory, &lease.token).map_err(failed("its directory"))?;
    fs::remove_file(lease_file).map_err(failed("the lease"))
}

fn read_lease(path: &Path) -> Result<LeaseDocument, String> {
    let text = read_small(path, LEASE_MAX_BYTES).map_err(|e| e.to_string())?;
    let lease: LeaseDocument = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    if lease.schema != LEASE_SCHEMA {
        return Err(format!(
            "its schema is {:?} and not {LEASE_SCHEMA}",
            lease.schema
        ));
    }
    if path.file_stem() != Some(OsStr::new(&lease.token)) {
        return Err("its token does not match the name of the file".into());
    }
    if !is_plain_absolute(&lease.directory)
        || lease.directory.file_name() != Some(OsStr::new(&lease.token))
    {
        return Err(format!(
            "{:?} is not a workspace of this lease",
            lease.directory
        ));
    }
    if let Some(cgroup) = &lease.cgroup
        && !(is_plain_absolute(cgroup) && cgroup.file_name() == Some(OsStr::new(&lease.token)))
    {
        return Err(format!("{cgroup:?} is not a cgroup of this lease"));
    }
    Ok(lease)
}

fn is_plain_absolute(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .all(|c| matches!(c, Component::RootDir | Component::Normal(_)))
}

fn is_running(proc_fs: &ProcFs, lease: &LeaseDocument, process: &ProcessIdentity) -> bool {
    lease.boot_id == proc_fs.boot_id() && proc_fs.is_alive(process)
}

/// Returns whether the run may still be going on, here or on another host or container that shares the leases.
fn is_live(proc_fs: &ProcFs, lease: &LeaseDocument) -> bool {
    if is_running(proc_fs, lease, &lease.owner) {
        return true;
    }
    match fs::File::open(&lease.directory) {
        // Its run, which we cannot see, holds the lock while it is alive.
        Ok(folder) => {
            let locked = flock(&folder, FlockOperation::NonBlockingLockExclusive);
            locked == Err(rustix::io::Errno::WOULDBLOCK)
        }
        // The folder is not here and the boot is not ours, so it is not ours to judge.
        Err(_) => lease.boot_id != proc_fs.boot_id(),
    }
}

/// Returns whether number, start time and program agree.
fn is_same(proc_fs: &ProcFs, lease: &LeaseDocument, process: &ProcessIdentity) -> bool {
    is_running(proc_fs, lease, process)
        && process.exe.is_some()
        && proc_fs.exe(process.pid).ok() == process.exe
}

fn kill_if_same(
    proc_fs: &ProcFs,
    lease: &LeaseDocument,
    server: &ProcessIdentity,
) -> io::Result<()> {
    let Some(pid) = i32::try_from(server.pid).ok().and_then(Pid::from_raw) else {
        return Ok(());
    };
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Err(rustix::io::Errno::SRCH) => return Ok(()),
        other => other?,
    };
    // Checked after the descriptor was opened, so the process signalled is the one examined.
    if !is_same(proc_fs, lease, server) {
        return Ok(());
    }
    pidfd_send_signal(&pidfd, Signal::KILL)?;
    let limit = Timespec::try_from(KILL_LIMIT).map_err(io::Error::other)?;
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit))?;
    if ended == 0 {
        Err(io::Error::other("it did not end after SIGKILL"))
    } else {
        Ok(())
    }
}
