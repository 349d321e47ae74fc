//! Files and threads seen so far, and their numbers. Bounded, so that a hostile text cannot fill
//! memory.

use std::collections::HashMap;

use seekscope_run::{FileRecord, FileRole, PathState, RunError, ThreadRecord};

use crate::import::{LineError, LineResult, malformed};

/// Limit for all names together, bytes; each counts a little more than its length. A database with
/// 100,000 collections and their indexes takes a third of it.
const NAMES_BYTES_MAX: usize = 64 << 20;
/// Approximate cost of an entry besides its name.
const ENTRY_BYTES: usize = 64;
/// The longest path that Linux accepts.
const PATH_BYTES_MAX: usize = 4096;

/// The files and threads that a text has named so far.
#[derive(Default)]
pub(crate) struct Tables {
    files: HashMap<String, u32>,
    /// Whether each thread has a name.
    threads: HashMap<u32, bool>,
    bytes: usize,
    latest_file: Option<(String, u32)>,
}

impl Tables {
    fn make_room(&mut self, name: &str) -> LineResult<()> {
        self.bytes += name.len() + ENTRY_BYTES;
        if self.bytes > NAMES_BYTES_MAX {
            return Err(LineError::TooManyNames);
        }
        Ok(())
    }

    pub(crate) fn file_id(
        &mut self,
        path: &str,
        tell: impl FnOnce(&FileRecord) -> Result<(), RunError>,
    ) -> LineResult<u32> {
        self.number(path, PathState::Known, (0, 0), tell)
    }

    pub(crate) fn disk_id(
        &mut self,
        major: u32,
        minor: u32,
        tell: impl FnOnce(&FileRecord) -> Result<(), RunError>,
    ) -> LineResult<u32> {
        let description = format!("requests on {major}:{minor} for unknown files");
        self.number(&description, PathState::Unresolved, (major, minor), tell)
    }

    fn number(
        &mut self,
        path: &str,
        path_state: PathState,
        (device_major, device_minor): (u32, u32),
        tell: impl FnOnce(&FileRecord) -> Result<(), RunError>,
    ) -> LineResult<u32> {
        // Neighbouring events are mostly on the same file.
        if let Some((latest, file_id)) = &self.latest_file
            && latest == path
        {
            return Ok(*file_id);
        }
        let file_id = match self.files.get(path) {
            Some(file_id) => *file_id,
            None => {
                if path.len() > PATH_BYTES_MAX {
                    return Err(malformed("the path is longer than 4096 bytes"));
                }
                self.make_room(path)?;
                let file_id =
                    u32::try_from(self.files.len()).map_err(|_| LineError::TooManyNames)?;
                tell(&FileRecord {
                    file_id,
                    path: path.into(),
                    path_state,
                    device_major,
                    device_minor,
                    inode: 0,
                    size_bytes: 0,
                    role: FileRole::Other,
                    namespace: None,
                    member: None,
                })?;
                self.files.insert(path.into(), file_id);
                file_id
            }
        };
        self.latest_file = Some((path.into(), file_id));
        Ok(file_id)
    }

    /// Notes a thread. Its first name is kept: kernel workers change theirs all the time.
    pub(crate) fn thread(
        &mut self,
        tid: u32,
        pid: u32,
        name: &str,
        tell: impl FnOnce(&ThreadRecord) -> Result<(), RunError>,
    ) -> LineResult<()> {
        match self.threads.get(&tid) {
            Some(has_name) if *has_name || name.is_empty() => return Ok(()),
            _ => self.make_room(name)?,
        }
        tell(&ThreadRecord {
            tid,
            pid,
            name: name.into(),
        })?;
        self.threads.insert(tid, !name.is_empty());
        Ok(())
    }
}
