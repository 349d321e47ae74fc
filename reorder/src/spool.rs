//! Spools keys of changed documents between the stream that reports them and the task that applies them. They
//! are kept in an unnamed file, so that a long copy neither fills memory nor falls off the server's log.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bson::{RawDocument, RawDocumentBuf};

use crate::ReorderError;

/// Documents `{_id: …}`, one after the other. Cloning shares the file.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    file: Arc<Mutex<Written>>,
}

#[derive(Debug)]
struct Written {
    file: File,
    bytes: u64,
}

impl Spool {
    /// Creates an empty spool in a folder. The kernel removes it with the process.
    pub(crate) fn create(folder: &Path) -> Result<Self, ReorderError> {
        let file = tempfile::tempfile_in(folder).map_err(|source| ReorderError::Spool {
            path: folder.to_path_buf(),
            source,
        })?;
        Ok(Self {
            folder: folder.to_path_buf(),
            file: Arc::new(Mutex::new(Written { file, bytes: 0 })),
        })
    }

    fn failed(&self, source: io::Error) -> ReorderError {
        ReorderError::Spool {
            path: self.folder.clone(),
            source,
        }
    }

    /// Appends keys.
    pub(crate) fn append(&self, keys: &[u8]) -> Result<(), ReorderError> {
        let mut written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        written.file.write_all(keys).map_err(|e| self.failed(e))?;
        written.bytes += keys.len() as u64;
        Ok(())
    }

    /// Returns the position of the next key.
    pub(crate) fn end(&self) -> u64 {
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        written.bytes
    }

    /// Reads the key at a position before [`Spool::end`].
    pub(crate) fn read(&self, at: u64) -> Result<RawDocumentBuf, ReorderError> {
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let mut length = [0; 4];
            written.file.read_exact_at(&mut length, at)?;
            let length = u32::from_le_bytes(length);
            if at + u64::from(length) > written.bytes {
                return Err(io::Error::other("a key is longer than what was written"));
            }
            let mut bytes = vec![0; length as usize];
            written.file.read_exact_at(&mut bytes, at)?;
            RawDocumentBuf::from_bytes(bytes).map_err(io::Error::other)
        };
        read().map_err(|e| self.failed(e))
    }
}

/// Returns the key alone, from a document `{_id: …}`.
pub(crate) fn key_of(document: &RawDocument) -> Option<bson::RawBsonRef<'_>> {
    document.get("_id").ok().flatten()
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn keys_come_back_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::create(folder.path()).unwrap();
        let keys = [rawdoc! { "_id": 1 }, rawdoc! { "_id": { "a": "b" } }];
        for key in &keys {
            spool.append(key.as_bytes()).unwrap();
        }
        let first = spool.read(0).unwrap();
        assert_eq!(first, keys[0]);
        let at = first.as_bytes().len() as u64;
        assert_eq!(spool.read(at).unwrap(), keys[1]);
        assert_eq!(spool.end(), at + keys[1].as_bytes().len() as u64);
        assert!(spool.read(spool.end()).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
