//! Which file a (device, inode) pair is.
//!
//! Events carry identities, not names, because names are long and change. Files that were open when
//! tracing began are found in `/proc/PID/fd`; files opened later are named by the kernel programs,
//! in the same stream as the events, so that a file that lives for a millisecond has its name, and
//! one that gets the inode number of a deleted file is told apart from it. If a name is lost, the
//! descriptors are examined again, and at the end a file's neighbours.

mod renames;

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{major, minor};
use seekscope_run::{FileRecord, FileRole, PathState};

use crate::decode::FileKey;
use crate::disks;

/// The suffix that the kernel appends to the name of an open file that no longer has one.
const DELETED_SUFFIX: &str = " (deleted)";

/// A file as it was last seen open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenFile {
    /// The process that had it open, by our numbers or the kernel programs'; the path is relative
    /// to its root folder.
    pid: u32,
    path: String,
    path_state: PathState,
    size_bytes: u64,
    /// Known for files that were opened during the trace.
    generation: Option<u32>,
}

/// The files of the traced processes.
#[derive(Debug)]
pub struct FileTable {
    proc_root: PathBuf,
    pids: Vec<u32>,
    /// Files created after this time were not open before the trace.
    began: SystemTime,
    /// Every file ever seen open, by the identity `stat` gives.
    seen: HashMap<FileKey, OpenFile>,
    /// Files that events refer to; the index is the `file_id`.
    records: Vec<FileRecord>,
    ids: HashMap<FileKey, u32>,
    may_scan: bool,
    /// Ids whose records have changed since they were handed over.
    news: Vec<u32>,
    /// Devices of filesystems that [`FileTable::new_filesystems`] has named.
    told: HashSet<u32>,
    /// Whether it has named where the processes are.
    places_told: bool,
    /// Ids that many files share: one for each disk, for files that no traced process had open.
    shared: HashSet<u32>,
}

/// Used in place of an inode number for files that no traced process had open.
const OTHERS: u64 = u64::MAX;

/// A file an event refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    pub file_id: u32,
    /// True the first time this id is given out.
    pub is_new: bool,
}

impl FileTable {
    /// Takes a first look at the descriptors of `pids` below `proc_root` (`/proc`).
    ///
    /// # Errors
    /// When no folder of descriptors can be read: no such process, or no permission.
    pub fn scan(proc_root: &Path, pids: &[u32]) -> io::Result<Self> {
        let mut table = Self {
            proc_root: proc_root.into(),
            pids: pids.into(),
            began: SystemTime::now(),
            seen: HashMap::new(),
            records: Vec::new(),
            ids: HashMap::new(),
            may_scan: true,
            news: Vec::new(),
            told: HashSet::new(),
            places_told: false,
            shared: HashSet::new(),
        };
        table.look()?;
        Ok(table)
    }

    /// Returns every file seen open or mapped so far.
    pub(crate) fn seen(&self) -> impl Iterator<Item = FileKey> {
        self.seen.keys().copied()
    }

    /// Adds a process whose descriptors are examined.
    pub fn add_process(&mut self, pid: u32) {
        self.pids.push(pid);
        self.may_scan = true;
    }

    /// Allows one more look at the descriptors. Called once per drain, so that unknown files cause
    /// at most one look per drain.
    pub fn next_drain(&mut self) {
        self.may_scan = true;
    }

    /// Returns the file that a request of `disk` is for. Files that no traced process had open
    /// share one name for each disk: on a busy host there are thousands of them.
    pub fn resolve_request(&mut self, key: FileKey, disk: FileKey) -> Resolved {
        if key == disk || self.ids.contains_key(&key) || self.may_be_found(key) {
            return self.resolve(key);
        }
        let others = FileKey {
            inode: OTHERS,
            ..disk
        };
        let resolved = self.resolve(others);
        self.shared.insert(resolved.file_id);
        self.ids.insert(key, resolved.file_id);
        resolved
    }

    /// Returns whether the file is known, or can be found among the descriptors.
    fn may_be_found(&mut self, key: FileKey) -> bool {
        if self.find(key).is_none() && std::mem::take(&mut self.may_scan) {
            // Processes that have just ended have no descriptors to examine; their files keep their
            // descriptions.
            let _ = self.look();
        }
        self.find(key).is_some()
    }

    /// Returns the file with this identity, as the kernel programs saw it. A file that cannot be
    /// named also gets an id, with a description in place of a path.
    pub fn resolve(&mut self, key: FileKey) -> Resolved {
        if let Some(&file_id) = self.ids.get(&key) {
            return Resolved {
                file_id,
                is_new: false,
            };
        }
        self.may_be_found(key);
        let file_id = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        let record = self.describe(key, file_id);
        self.ids.insert(key, file_id);
        self.records.push(record);
        Resolved {
            file_id,
            is_new: true,
        }
    }

    /// Returns the record of an id that [`FileTable::resolve`] gave out.
    pub fn record(&self, file_id: u32) -> Option<&FileRecord> {
        self.records.get(file_id as usize)
    }

    /// Returns the records that changed since the last call.
    pub fn take_news(&mut self) -> Vec<FileRecord> {
        let mut news = std::mem::take(&mut self.news);
        news.sort_unstable();
        news.dedup();
        news.iter()
            .filter_map(|id| self.record(*id).cloned())
            .collect()
    }

    /// Returns a path on each filesystem that holds open files and was not named before; the first
    /// time also where the processes are, since they are likely to open files there.
    pub(crate) fn new_filesystems(&mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        if !std::mem::replace(&mut self.places_told, true) {
            let places = |pid: &u32| {
                let process = self.proc_root.join(pid.to_string());
                ["cwd", "exe"].map(|name| process.join(name))
            };
            found.extend(self.pids.iter().flat_map(places));
        }
        for (key, file) in &self.seen {
            if file.path_state == PathState::Known && self.told.insert(key.device) {
                found.push(self.inside_or_here(file.pid, Path::new(&file.path)));
            }
        }
        found
    }

    /// Looks once more for files that grew, were renamed or were deleted, and for files that could
    /// not be named before. The latter are also sought in the folders of the files seen, where a
    /// file that was open too briefly still has its name.
    pub fn refresh(&mut self) {
        // If the process is gone, what was known remains true.
        let _ = self.look();
        self.look_at_closed();
        self.search_folders();
        let keys: Vec<FileKey> = self.ids.keys().copied().collect();
        for key in keys {
            self.describe_again(key);
        }
    }

    /// Updates the record of a file from what was seen of it.
    fn describe_again(&mut self, key: FileKey) {
        let Some(&file_id) = self.ids.get(&key) else {
            return;
        };
        if self.shared.contains(&file_id) {
            return;
        }
        let new = self.describe(key, file_id);
        if let Some(record) = self.records.get_mut(file_id as usize)
            && *record != new
        {
            *record = new;
            self.news.push(file_id);
        }
    }

    /// Examines the descriptors. Fails if no process could be examined.
    fn look(&mut self) -> io::Result<()> {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for pid in self.pids.clone() {
            match self.look_at(pid) {
                Err(error) if outcome.is_err() => outcome = Err(error),
                Err(_) => {}
                Ok(()) => outcome = Ok(()),
            }
        }
        outcome
    }

    fn look_at(&mut self, pid: u32) -> io::Result<()> {
        self.look_at_mappings(pid);
        for entry in fs::read_dir(self.proc_root.join(pid.to_string()).join("fd"))? {
            // Descriptors come and go while we look, which is no reason to stop. It is one if the
            // list is readable but its entries are not: all files would be nameless.
            let Ok(entry) = entry else { continue };
            match self.open_file(pid, &entry.path()) {
                Ok(Some((key, mut file))) => {
                    file.generation = self.seen.get(&key).and_then(|old| old.generation);
                    self.seen.insert(key, file);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Examines mapped files. Files may be mapped and then closed: the program itself, its
    /// libraries, a database's tables. The list has the superblock's device, like the kernel
    /// programs (proc_pid_maps(5)).
    fn look_at_mappings(&mut self, pid: u32) {
        let maps = fs::read(self.proc_root.join(pid.to_string()).join("maps")).unwrap_or_default();
        for line in String::from_utf8_lossy(&maps).lines() {
            if let Some((key, path)) = mapped_file(line) {
                let (path, path_state) = match path.strip_suffix(DELETED_SUFFIX) {
                    Some(path) => (path, PathState::Deleted),
                    None => (path, PathState::Known),
                };
                self.seen.entry(key).or_insert_with(|| OpenFile {
                    pid,
                    path: path.into(),
                    path_state,
                    size_bytes: 0,
                    generation: None,
                });
            }
        }
    }

    fn search_folders(&mut self) {
        let unnamed = self
            .records
            .iter()
            .filter(|r| r.path_state == PathState::Unresolved);
        let wanted: HashSet<u64> = unnamed.map(|record| record.inode).collect();
        if wanted.is_empty() {
            return;
        }
        let folders: HashSet<(u32, PathBuf)> = self
            .seen
            .values()
            .filter_map(|file| Some((file.pid, Path::new(&file.path).parent()?.into())))
            .collect();
        for (pid, folder) in folders {
            let Ok(entries) = fs::read_dir(self.inside_or_here(pid, &folder)) else {
                continue;
            };
            for entry in entries
                .flatten()
                .filter(|entry| wanted.contains(&entry.ino()))
            {
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let path = folder
                    .join(entry.file_name())
                    .to_string_lossy()
                    .into_owned();
                let file = OpenFile {
                    pid,
                    path,
                    path_state: PathState::Known,
                    size_bytes: metadata.len(),
                    generation: None,
                };
                self.seen.entry(key_of(&metadata)).or_insert(file);
            }
        }
    }

    /// Returns a traced process's path as we reach it, whatever its root folder is.
    fn inside(&self, pid: u32, path: &Path) -> PathBuf {
        self.root_of(pid)
            .join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Likewise, but if the process has ended, as if its root were ours.
    fn inside_or_here(&self, pid: u32, path: &Path) -> PathBuf {
        if self.root_of(pid).exists() {
            self.inside(pid, path)
        } else {
            path.into()
        }
    }

    fn root_of(&self, pid: u32) -> PathBuf {
        self.proc_root.join(pid.to_string()).join("root")
    }

    /// Returns the regular file or block device behind an entry of `/proc/PID/fd`.
    fn open_file(&self, pid: u32, entry: &Path) -> io::Result<Option<(FileKey, OpenFile)>> {
        let link = fs::read_link(entry)?;
        let metadata = fs::metadata(entry)?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Ok(None);
        }
        let link = link.to_string_lossy();
        let (path, path_state) = match link.strip_suffix(DELETED_SUFFIX) {
            Some(path) if !self.is_at(pid, &link, &metadata) => (path, PathState::Deleted),
            _ => (&*link, PathState::Known),
        };
        let file = OpenFile {
            pid,
            path: path.into(),
            path_state,
            size_bytes: metadata.len(),
            generation: None,
        };
        Ok(Some((key_of(&metadata), file)))
    }

    /// Returns whether this very file is at `path`, as the traced process sees paths. Distinguishes
    /// a deleted file from one whose name really ends in the kernel's suffix.
    fn is_at(&self, pid: u32, path: &str, file: &Metadata) -> bool {
        fs::symlink_metadata(self.inside(pid, Path::new(path)))
            .is_ok_and(|found| key_of(&found) == key_of(file))
    }

    /// Finds an exact match, otherwise the only file with this inode among those on devices without
    /// a major number: for btrfs subvolumes and overlays, `stat` shows another device than their
    /// superblock's.
    fn find(&self, key: FileKey) -> Option<&OpenFile> {
        if let Some(file) = self.seen.get(&key) {
            return Some(file);
        }
        if key.major() != 0 {
            return None;
        }
        let mut alike = self
            .seen
            .iter()
            .filter(|(k, _)| k.major() == 0 && k.inode == key.inode);
        match (alike.next(), alike.next()) {
            (Some((_, file)), None) => Some(file),
            _ => None,
        }
    }

    fn describe(&self, key: FileKey, file_id: u32) -> FileRecord {
        let file = self.find(key).cloned().unwrap_or_else(|| OpenFile {
            path: description(key),
            path_state: PathState::Unresolved,
            size_bytes: 0,
            pid: 0,
            generation: None,
        });
        FileRecord {
            file_id,
            path: file.path,
            path_state: file.path_state,
            device_major: key.major(),
            device_minor: key.minor(),
            inode: key.inode,
            size_bytes: file.size_bytes,
            role: FileRole::Other,
            namespace: None,
            member: None,
        }
    }
}

/// Parses a line `from-to permissions offset major:minor inode path`, with the device in hexadecimal.
fn mapped_file(line: &str) -> Option<(FileKey, &str)> {
    let mut words = line.splitn(6, ' ');
    let (device, inode) = (words.nth(3)?, words.next()?);
    let (major, minor) = device.split_once(':')?;
    let number = |text| u32::from_str_radix(text, 16).ok();
    let inode: u64 = inode.parse().ok().filter(|inode| *inode != 0)?;
    let path = words.next()?.trim_start();
    path.starts_with('/')
        .then(|| Some((FileKey::new(number(major)?, number(minor)?, inode), path)))?
}

/// Returns a text that takes the place of a path where there is none.
fn description(key: FileKey) -> String {
    // Inode 0 is no file: the request reached a disk and is not known to belong to a file.
    if key.inode == 0 {
        let disk = disks::name(key.major(), key.minor());
        return format!("requests on {disk} for unknown files");
    }
    if key.inode == OTHERS {
        let disk = disks::name(key.major(), key.minor());
        return format!("requests on {disk} for files of other processes");
    }
    format!("inode {} on {}:{}", key.inode, key.major(), key.minor())
}

fn key_of(metadata: &Metadata) -> FileKey {
    FileKey::new(major(metadata.dev()), minor(metadata.dev()), metadata.ino())
}

#[cfg(test)]
mod tests;
