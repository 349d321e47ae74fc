//! Which file a (device, inode) pair is: from the traced process's open descriptors.
//!
//! The kernel programs report identities, not names, because names are long and change. The names
//! are looked up in `/proc/PID/fd`: once at the start, and again when an identity appears that was
//! not there. A file that was closed before we looked is sought at the end among its neighbours.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};
use seekscope_run::{FileRecord, FileRole, PathState};

use crate::decode::FileKey;
use crate::disks;

/// What the kernel appends to the name of an open file that has none any more.
const DELETED_SUFFIX: &str = " (deleted)";

/// A descriptor's file as last seen in `/proc/PID/fd`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenFile {
    path: String,
    path_state: PathState,
    size_bytes: u64,
}

/// The files of one process.
#[derive(Debug)]
pub struct FileTable {
    process: PathBuf,
    /// Every file ever seen open, by the identity `stat` gives.
    seen: HashMap<FileKey, OpenFile>,
    /// Files that events refer to; the position is the `file_id` less the first.
    records: Vec<FileRecord>,
    ids: HashMap<FileKey, u32>,
    first_id: u32,
    may_scan: bool,
    /// Devices of filesystems that [`FileTable::new_filesystems`] has named.
    told: HashSet<u32>,
}

/// A file an event refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    pub file_id: u32,
    /// True the first time this id is given out.
    pub is_new: bool,
}

impl FileTable {
    /// Takes a first look at the descriptors of process `pid` below `proc_root` (`/proc`). Ids are
    /// given from `first_id` upwards.
    ///
    /// # Errors
    /// When the folder of descriptors cannot be read: no such process, or no permission.
    pub fn scan(proc_root: &Path, pid: u32, first_id: u32) -> io::Result<Self> {
        let mut table = Self {
            process: proc_root.join(pid.to_string()),
            seen: HashMap::new(),
            records: Vec::new(),
            ids: HashMap::new(),
            first_id,
            may_scan: true,
            told: HashSet::new(),
        };
        table.look()?;
        Ok(table)
    }

    /// Allows one more look at the descriptors. Called once per drain, so that unknown files cost
    /// one look per drain at most.
    pub fn next_drain(&mut self) {
        self.may_scan = true;
    }

    /// The file with this identity, as the kernel programs saw it. A file that cannot be named
    /// gets an id too, and a description for a path.
    pub fn resolve(&mut self, key: FileKey) -> Resolved {
        if let Some(&file_id) = self.ids.get(&key) {
            return Resolved {
                file_id,
                is_new: false,
            };
        }
        if self.find(key).is_none() && std::mem::take(&mut self.may_scan) {
            // A process that has just ended has no descriptors to look at; its files keep their
            // descriptions.
            let _ = self.look();
        }
        let file_id = u32::try_from(self.records.len())
            .unwrap_or(u32::MAX)
            .saturating_add(self.first_id);
        let record = self.describe(key, file_id);
        self.ids.insert(key, file_id);
        self.records.push(record);
        Resolved {
            file_id,
            is_new: true,
        }
    }

    /// The record of an id that [`FileTable::resolve`] gave out.
    pub fn record(&self, file_id: u32) -> Option<&FileRecord> {
        self.records
            .get(usize::try_from(file_id.checked_sub(self.first_id)?).ok()?)
    }

    /// Looks once more and returns the records that changed: files that grew, got another name or
    /// were deleted, and files that could not be named before. The latter are also sought in the
    /// folders of the files seen, where a file that was open too shortly still has its name.
    pub fn refresh(&mut self) -> Vec<FileRecord> {
        // Without a process, what was known stays true.
        if self.look().is_err() {
            return Vec::new();
        }
        self.search_folders();
        let mut changed = Vec::new();
        for at in 0..self.records.len() {
            let old = &self.records[at];
            let key = FileKey::new(old.device_major, old.device_minor, old.inode);
            let new = self.describe(key, old.file_id);
            if new != self.records[at] {
                self.records[at] = new.clone();
                changed.push(new);
            }
        }
        changed
    }

    /// A path on each filesystem that holds open files and was not named before.
    pub(crate) fn new_filesystems(&mut self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for (key, file) in &self.seen {
            if file.path_state == PathState::Known && self.told.insert(key.device) {
                found.push(self.inside(Path::new(&file.path)));
            }
        }
        found
    }

    fn look(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.process.join("fd"))? {
            // Descriptors come and go while we look, which is no reason to stop. The list can be
            // open to us and its entries closed: that is one, all would be nameless.
            let Ok(entry) = entry else { continue };
            match self.open_file(&entry.path()) {
                Ok(Some((key, file))) => {
                    self.seen.insert(key, file);
                }
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
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
        let folders: HashSet<PathBuf> = self
            .seen
            .values()
            .filter_map(|file| Some(Path::new(&file.path).parent()?.into()))
            .collect();
        for folder in folders {
            let Ok(entries) = fs::read_dir(self.inside(&folder)) else {
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
                    path,
                    path_state: PathState::Known,
                    size_bytes: metadata.len(),
                };
                self.seen.entry(key_of(&metadata)).or_insert(file);
            }
        }
    }

    /// A path of the traced process as we reach it, whatever its root folder is.
    fn inside(&self, path: &Path) -> PathBuf {
        self.process
            .join("root")
            .join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The regular file or block device behind one entry of `/proc/PID/fd`.
    fn open_file(&self, entry: &Path) -> io::Result<Option<(FileKey, OpenFile)>> {
        let link = fs::read_link(entry)?;
        let metadata = fs::metadata(entry)?;
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Ok(None);
        }
        let link = link.to_string_lossy();
        let (path, path_state) = match link.strip_suffix(DELETED_SUFFIX) {
            Some(path) if !self.is_at(&link, &metadata) => (path, PathState::Deleted),
            _ => (&*link, PathState::Known),
        };
        let file = OpenFile {
            path: path.into(),
            path_state,
            size_bytes: metadata.len(),
        };
        Ok(Some((key_of(&metadata), file)))
    }

    /// Is this very file at `path`, as the traced process sees paths? Tells a deleted file from
    /// one whose name really ends in the kernel's suffix.
    fn is_at(&self, path: &str, file: &Metadata) -> bool {
        fs::symlink_metadata(self.inside(Path::new(path)))
            .is_ok_and(|found| key_of(&found) == key_of(file))
    }

    /// Exact match, else the only file with this inode among those on devices without a major
    /// number: btrfs subvolumes and overlays show `stat` another device than their superblock's.
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
        }
    }
}

/// Stands for a path where there is none.
fn description(key: FileKey) -> String {
    // Inode 0 is no file: what reached a disk and is not known to belong to one.
    if key.inode == 0 {
        let disk = disks::name(key.major(), key.minor());
        return format!("requests on {disk} without a known file");
    }
    format!("inode {} on {}:{}", key.inode, key.major(), key.minor())
}

fn key_of(metadata: &Metadata) -> FileKey {
    FileKey::new(major(metadata.dev()), minor(metadata.dev()), metadata.ino())
}

#[cfg(test)]
mod tests;
