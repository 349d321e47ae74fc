//! Ensures that only one tuner is active: per server, and per host where files of the kernel are set. Nothing
//! is written to the server; the lock is one of files on this host, and ends with the process that holds it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use seekscope_run::{ErrorKind, Kinded};
use sha2::{Digest, Sha256};

/// Longest text that is read; more than a process number and a path is not ours.
const TEXT_MAX_BYTES: u64 = 8 << 10;

/// A lock that is held until dropped.
#[derive(Debug)]
pub struct TunerLock {
    file: File,
    last_run: Option<PathBuf>,
}

/// Why the lock was not obtained.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{what} is being tuned already{}; wait for it or end it", by(*pid))]
    Held { what: String, pid: Option<u32> },
    #[error("the lock {path} cannot be used: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Kinded for LockError {
    fn kind(&self) -> Option<ErrorKind> {
        matches!(self, Self::Held { .. }).then_some(ErrorKind::Target)
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}

impl TunerLock {
    /// Locks a server, in a folder that all tuners of this host share and which is created if missing. Any
    /// order of members and any name of this host is the same server.
    ///
    /// # Errors
    /// Returns [`LockError::Held`] if another process has it.
    pub fn server(folder: &Path, addresses: &[(String, u16)]) -> Result<Self, LockError> {
        let what = members(addresses);
        // Host names are the user's text; a hash of them is a valid file name.
        let sum = Sha256::digest(what.as_bytes());
        let sum: String = sum
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self::take(folder, &format!("tune-{sum}.lock"), &what)
    }

    /// Locks several servers, each of which has its own addresses; one that is there twice is locked once.
    ///
    /// # Errors
    /// Returns [`LockError::Held`] if another process has one of them; none is locked then.
    pub fn servers(folder: &Path, all: &[Vec<(String, u16)>]) -> Result<Vec<Self>, LockError> {
        let mut known = BTreeSet::new();
        let different = all
            .iter()
            .filter(|addresses| known.insert(members(addresses)));
        different
            .map(|addresses| Self::server(folder, addresses))
            .collect()
    }

    /// Returns the runs that were named last under locks that nobody holds: each may have been killed.
    pub fn last_runs(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let locks = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension() == Some(OsStr::new("lock")));
        let runs = locks.filter_map(|path| {
            let mut file = open(OpenOptions::new().read(true), &path).ok()?;
            flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
            said(&mut file).1
        });
        let mut runs: Vec<PathBuf> = runs.collect();
        runs.sort();
        runs.dedup();
        runs
    }

    /// Locks the files of this host's kernel.
    ///
    /// # Errors
    /// Returns [`LockError::Held`] if another process has it.
    pub fn host(folder: &Path) -> Result<Self, LockError> {
        Self::take(folder, "tune-host.lock", "this host")
    }

    fn take(folder: &Path, name: &str, what: &str) -> Result<Self, LockError> {
        let path = folder.join(name);
        let failed = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let mut file = open(&mut options, &path).map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let (pid, _) = said(&mut file);
                let what = what.into();
                return Err(LockError::Held { what, pid });
            }
            Err(error) => return Err(failed(error.into())),
        }
        // The file remains when the lock ends: removing it would allow two locks on two files.
        let (_, last_run) = said(&mut file);
        let mut lock = Self { file, last_run };
        lock.write().map_err(failed)?;
        Ok(lock)
    }

    /// Returns the run of the session that was named last; it may have been killed.
    pub fn last_run(&self) -> Option<&Path> {
        self.last_run.as_deref()
    }

    /// Records the session's run, for the next holder of the lock.
    ///
    /// # Errors
    /// Returns an error if that cannot be written.
    pub fn name_run(&mut self, run: &Path) -> io::Result<()> {
        self.last_run = Some(run.into());
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let run = self.last_run.as_deref().unwrap_or(Path::new(""));
        self.file.set_len(0)?;
        self.file.rewind()?;
        writeln!(self.file, "{}\n{}", std::process::id(), run.display())
    }
}

/// Opens a lock's file, which is no link.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits();
    options.custom_flags(i32::try_from(nofollow).unwrap_or_default());
    options.open(path)
}

/// Returns the process and the run that a lock names.
fn said(file: &mut File) -> (Option<u32>, Option<PathBuf>) {
    let mut text = String::new();
    // Unreadable content names nobody.
    let _ = file.take(TEXT_MAX_BYTES).read_to_string(&mut text);
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.trim().parse().ok());
    (
        pid,
        lines
            .next()
            .filter(|run| !run.is_empty())
            .map(PathBuf::from),
    )
}

/// Returns the members of a server, as one text for all ways of naming them.
pub(crate) fn members(addresses: &[(String, u16)]) -> String {
    let mut members: Vec<String> = addresses
        .iter()
        .map(|(host, port)| format!("{}:{port}", canonical_host(host)))
        .collect();
    members.sort();
    members.dedup();
    members.join(",")
}

fn canonical_host(host: &str) -> String {
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    match host.as_str() {
        "localhost" | "::1" => "127.0.0.1".into(),
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let server = |host: &str, port| TunerLock::server(folder.path(), &[(host.into(), port)]);
        let mut first = server("localhost", 27017).unwrap();
        assert_eq!(first.last_run(), None);
        first.name_run(Path::new("/runs/one")).unwrap();
        let error = server("127.0.0.1", 27017).unwrap_err();
        assert!(
            matches!(error, LockError::Held { pid: Some(pid), .. } if pid == std::process::id()),
            "{error}"
        );
        let other = server("localhost", 27018).unwrap();
        let both = || {
            let named = |host: &str, port| vec![(host.to_owned(), port)];
            let all = [
                named("localhost", 27018),
                named("h", 1),
                named("127.0.0.1", 27018),
            ];
            TunerLock::servers(folder.path(), &all)
        };
        assert!(both().is_err());
        drop(other);
        assert_eq!(both().unwrap().len(), 2);
        assert_eq!(TunerLock::last_runs(folder.path()), Vec::<PathBuf>::new());
        drop(first);
        assert_eq!(
            TunerLock::last_runs(folder.path()),
            [Path::new("/runs/one")]
        );
        // A caller that names no run keeps the last one.
        for _ in 0..2 {
            let again = server("localhost", 27017).unwrap();
            assert_eq!(again.last_run(), Some(Path::new("/runs/one")));
        }
        let _host = TunerLock::host(folder.path()).unwrap();
        assert!(TunerLock::host(folder.path()).is_err());
    }
}
