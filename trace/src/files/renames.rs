//! Files that are opened, renamed and deleted during the trace.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use seekscope_run::PathState;

use super::{FileTable, OpenFile};
use crate::decode::FileKey;
use crate::notices::OpenedFile;

impl FileTable {
    /// Notes that the kernel programs saw a file being opened. Later events are on this file, even
    /// if an earlier one had its inode number; the earlier one keeps its record.
    pub fn opened(&mut self, opened: OpenedFile) {
        let key = opened.file;
        // Too deep for the programs; it is to be found among the descriptors.
        let Some(path) = opened.path else {
            return;
        };
        if self
            .ids
            .get(&key)
            .is_some_and(|id| self.shared.contains(id))
        {
            // Until now the id was another file's.
            self.ids.remove(&key);
        }
        let old = self.seen.get(&key);
        if old.is_some_and(|old| self.is_another(key, old, opened.pid, &path, opened.generation)) {
            self.part_with(key);
        }
        let path_state = if opened.unlinked {
            PathState::Deleted
        } else {
            PathState::Known
        };
        let file = OpenFile {
            pid: opened.pid,
            path,
            path_state,
            size_bytes: self.seen.get(&key).map_or(0, |old| old.size_bytes),
            generation: Some(opened.generation),
        };
        self.seen.insert(key, file);
        self.describe_again(key);
    }

    /// Returns whether the opened file is another than the one known by the same number. The
    /// generation of a file that was open before the trace is unknown; it is then another if the
    /// one at the new path was created since.
    fn is_another(
        &self,
        key: FileKey,
        old: &OpenFile,
        pid: u32,
        path: &str,
        generation: u32,
    ) -> bool {
        if let Some(old) = old.generation {
            return old != generation;
        }
        if old.path == path {
            return false;
        }
        let found = fs::symlink_metadata(self.inside_or_here(pid, Path::new(path)));
        found.is_ok_and(|found| {
            is_same(key, &found) && found.created().is_ok_and(|born| born > self.began)
        })
    }

    /// Forgets the file with this identity, which is gone. Its record stays as it was, and the next
    /// file with the identity gets an id of its own.
    fn part_with(&mut self, key: FileKey) {
        self.seen.remove(&key);
        let Some(file_id) = self.ids.remove(&key) else {
            return;
        };
        if let Some(record) = self.records.get_mut(file_id as usize) {
            record.path_state = PathState::Deleted;
            self.news.push(file_id);
        }
    }

    /// Examines files that have events and that nobody has open: their size, and whether they still
    /// have the name under which they were opened. A file that was renamed afterwards is sought
    /// among its neighbours.
    pub(super) fn look_at_closed(&mut self) {
        let keys: Vec<FileKey> = self.ids.keys().copied().collect();
        for key in keys {
            let Some(file) = self.seen.get(&key).cloned() else {
                continue;
            };
            if file.path_state != PathState::Known {
                continue;
            }
            let path = Path::new(&file.path);
            let mut now = file.clone();
            match fs::symlink_metadata(self.inside_or_here(file.pid, path)) {
                Ok(found) if is_same(key, &found) => now.size_bytes = found.len(),
                _ => match self.neighbour(key, &file) {
                    Some((path, size_bytes)) => {
                        now.path = path;
                        now.size_bytes = size_bytes;
                    }
                    None => now.path_state = PathState::Deleted,
                },
            }
            self.seen.insert(key, now);
        }
    }

    /// Finds the file with this identity in the folder where `file` was. Returns path and size.
    fn neighbour(&self, key: FileKey, file: &OpenFile) -> Option<(String, u64)> {
        let folder = Path::new(&file.path).parent()?;
        let entries = fs::read_dir(self.inside_or_here(file.pid, folder)).ok()?;
        entries.flatten().find_map(|entry| {
            let found = entry.metadata().ok().filter(|found| is_same(key, found))?;
            let path = folder.join(entry.file_name());
            Some((path.to_string_lossy().into_owned(), found.len()))
        })
    }
}

/// Returns whether the kernel's identity matches what `stat` says. On filesystems without a device
/// of their own (btrfs, overlayfs) the two name different devices.
fn is_same(key: FileKey, found: &Metadata) -> bool {
    let seen = super::key_of(found);
    seen == key || (seen.major() == 0 && key.major() == 0 && found.ino() == key.inode)
}
