//! A private directory for a local server's data, and the lease that lets a later run clean up
//! after us if we are killed.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::process::{ProcFs, ProcessError, ProcessIdentity};

/// The file that holds the lease's token; a directory without it is never removed.
pub(crate) const MARKER: &str = ".seekscope-workspace";
pub(crate) const LEASE_SCHEMA: &str = "seekscope/lease/1";
const PREFIX: &str = "seekscope-";

/// What a later run needs to know to clean up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseDocument {
    pub(crate) schema: String,
    /// Process numbers and start times are meaningless after a reboot.
    pub(crate) boot_id: String,
    pub(crate) owner: ProcessIdentity,
    pub(crate) directory: PathBuf,
    /// Random text, also in the directory's marker file.
    pub(crate) token: String,
    pub(crate) server: Option<ProcessIdentity>,
    pub(crate) cgroup: Option<PathBuf>,
}

/// The reason why a workspace could not be created or recorded.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("{path}: {source}; choose another directory that this user may write to")]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot identify seekscope's own process: {0}")]
    Process(#[from] ProcessError),
}

/// A directory of mode 0700 with a random name; it is removed on drop unless kept, together with its lease.
#[derive(Debug)]
pub struct Workspace {
    /// Held as long as the run lives: another host or container that shares the lease directory cannot see our
    /// process, but it can see this lock.
    _lock: File,
    directory: PathBuf,
    lease_file: PathBuf,
    lease: LeaseDocument,
    keep: bool,
}

impl Workspace {
    /// Creates a directory in `parent` and a lease in `lease_directory`; both are created if missing.
    pub fn create(parent: &Path, lease_directory: &Path) -> Result<Self, WorkspaceError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |source| WorkspaceError::Io { path, source }
        };
        for folder in [parent, lease_directory] {
            let mut builder = fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(at(folder))?;
        }
        let parent = parent.canonicalize().map_err(at(parent))?;
        let lease_directory = lease_directory
            .canonicalize()
            .map_err(at(lease_directory))?;
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(12)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&parent)
            .map_err(at(&parent))?;
        // The random part of the name is secret enough: the token only proves that the directory is the one
        // named by the lease.
        let token = directory
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let marker = directory.path().join(MARKER);
        write_new(&marker, token.as_bytes()).map_err(at(&marker))?;
        let proc_fs = ProcFs::host();
        let lease = LeaseDocument {
            schema: LEASE_SCHEMA.into(),
            boot_id: proc_fs.boot_id(),
            owner: proc_fs.identity(std::process::id())?,
            directory: directory.path().to_path_buf(),
            token: token.clone(),
            server: None,
            cgroup: None,
        };
        let lease_file = lease_directory.join(format!("{token}.json"));
        save(&lease_file, &lease).map_err(at(&lease_file))?;
        let lock = File::open(directory.path()).map_err(at(directory.path()))?;
        // On filesystems without locks, only the process number remains as evidence.
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        // From here on, our own drop removes it.
        let directory = directory.keep();
        Ok(Self {
            _lock: lock,
            directory,
            lease_file,
            lease,
            keep: false,
        })
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Returns the directory for the server's data; its log lies beside it.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Returns a name that no other workspace has, suitable for a cgroup: `seekscope-…`.
    pub fn unique_name(&self) -> &str {
        &self.lease.token
    }

    /// Records the server, to be killed if we die.
    pub fn record_server(&mut self, pid: u32) -> Result<(), WorkspaceError> {
        self.lease.server = Some(ProcFs::host().identity(pid)?);
        self.save()
    }

    /// Records that the server has ended.
    pub fn forget_server(&mut self) -> Result<(), WorkspaceError> {
        self.lease.server = None;
        self.save()
    }

    /// Records the cgroup, to be removed if we die; `None` once it is gone.
    pub fn record_cgroup(&mut self, path: Option<&Path>) -> Result<(), WorkspaceError> {
        self.lease.cgroup = path.map(Path::to_path_buf);
        self.save()
    }

    /// Leaves the directory in place and returns its path. The lease is removed, so no later run deletes it.
    pub fn keep(mut self) -> PathBuf {
        self.keep = true;
        self.directory.clone()
    }

    fn save(&self) -> Result<(), WorkspaceError> {
        save(&self.lease_file, &self.lease).map_err(|source| WorkspaceError::Io {
            path: self.lease_file.clone(),
            source,
        })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let removed = self.keep || remove_directory(&self.directory, &self.lease.token).is_ok();
        // What could not be removed now stays listed for a later run.
        if removed {
            let _ = fs::remove_file(&self.lease_file);
        }
    }
}

/// Removes a directory of ours: a real directory (no link on the way), owned by this user, with our marker and
/// token in it. It is not an error if it no longer exists.
pub(crate) fn remove_directory(directory: &Path, token: &str) -> io::Result<()> {
    let refuse =
        |why: &str| io::Error::other(format!("{} was not removed: {why}", directory.display()));
    let metadata = match fs::symlink_metadata(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if !metadata.is_dir() || directory.canonicalize()? != directory {
        return Err(refuse("it is not a plain directory"));
    }
    if std::os::unix::fs::MetadataExt::uid(&metadata) != rustix::process::geteuid().as_raw() {
        return Err(refuse("it belongs to another user"));
    }
    let marker = directory.join(MARKER);
    if token.is_empty() || read_small(&marker, 256).ok().as_deref() != Some(token) {
        return Err(refuse("it has no matching seekscope marker"));
    }
    // The marker is removed last, so that an interrupted removal can be resumed.
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Neither the type nor the removal follows links.
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != MARKER {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(marker)?;
    fs::remove_dir(directory)
}

/// Reads the text of a regular file of at most `limit` bytes that belongs to this user and that nobody else may
/// write; links are not followed.
pub(crate) fn read_small(path: &Path, limit: u64) -> io::Result<String> {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    let ours =
        metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0;
    if !metadata.is_file() || !ours || metadata.len() > limit {
        return Err(io::Error::other(
            "it is not a small file that only this user may write to",
        ));
    }
    let mut text = String::new();
    file.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(path)?.write_all(content)
}

/// Replaces the file atomically, so a reader never sees half of it.
fn save(path: &Path, lease: &LeaseDocument) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut file = tempfile::Builder::new()
        .prefix(".lease-")
        .tempfile_in(folder)?;
    file.write_all(&serde_json::to_vec_pretty(lease)?)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn directory_and_lease_live_and_go_together() {
        let root = tempfile::tempdir().unwrap();
        let leases = root.path().join("leases");
        let mut workspace = Workspace::create(&root.path().join("data"), &leases).unwrap();
        let path = workspace.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        workspace
            .record_cgroup(Some(Path::new("/sys/fs/cgroup/blkio/x")))
            .unwrap();
        assert_eq!(fs::read_dir(&leases).unwrap().count(), 1);
        fs::create_dir_all(workspace.data_directory()).unwrap();
        drop(workspace);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(&leases).unwrap().count(), 0);
    }

    #[test]
    fn a_kept_directory_stays_without_lease() {
        let root = tempfile::tempdir().unwrap();
        let leases = root.path().join("leases");
        let path = Workspace::create(root.path(), &leases).unwrap().keep();
        assert!(path.is_dir());
        assert_eq!(fs::read_dir(&leases).unwrap().count(), 0);
    }

    #[test]
    fn only_marked_plain_directories_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let plain = root.join("plain");
        fs::create_dir(&plain).unwrap();
        assert!(remove_directory(&plain, "t").is_err());
        fs::write(plain.join(MARKER), "t").unwrap();
        assert!(remove_directory(&plain, "other").is_err());
        let link = root.join("link");
        symlink(&plain, &link).unwrap();
        assert!(remove_directory(&link, "t").is_err());
        let outside = root.join("outside");
        fs::write(&outside, "precious").unwrap();
        symlink(&outside, plain.join("inside")).unwrap();
        remove_directory(&plain, "t").unwrap();
        assert!(outside.exists() && !plain.exists());
        remove_directory(&plain, "t").unwrap();
    }
}
