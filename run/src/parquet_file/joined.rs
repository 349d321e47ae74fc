//! Events with the names they refer to in one table, for people who want a single file. The columns
//! are those of `io.parquet`, then `path`, `role`, `namespace` and `thread`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use parquet::data_type::{ByteArray, ByteArrayType};

use super::io::{IoParquetWriter, ROWS_PER_GROUP};
use super::write::{ColumnType, write_optional};
use crate::{FileRecord, IoEvent, RunError, ThreadRecord};

const NAMES: [ColumnType; 4] = [
    ColumnType::text("path").optional(),
    ColumnType::text("role").optional(),
    ColumnType::text("namespace").optional(),
    ColumnType::text("thread").optional(),
];

/// Writes one Parquet file that needs no other. What is dropped before [`Self::finish`] is no
/// readable file.
pub struct JoinedParquetWriter {
    path: PathBuf,
    rows: IoParquetWriter,
    pending: Vec<IoEvent>,
    files: HashMap<u32, FileNames>,
    threads: HashMap<u32, ByteArray>,
}

/// What a file is called, ready to be written.
struct FileNames {
    path: ByteArray,
    role: ByteArray,
    namespace: Option<ByteArray>,
}

impl JoinedParquetWriter {
    /// Makes the file, or empties it.
    pub fn create(
        path: &Path,
        files: &[FileRecord],
        threads: &[ThreadRecord],
    ) -> Result<Self, RunError> {
        let rows = IoParquetWriter::create_with(path, &NAMES).map_err(RunError::write(path))?;
        let names = |file: &FileRecord| FileNames {
            path: ByteArray::from(file.path.as_str()),
            role: ByteArray::from(file.role.name()),
            namespace: file.namespace.as_deref().map(ByteArray::from),
        };
        let thread = |t: &ThreadRecord| (t.tid, ByteArray::from(t.name.as_str()));
        Ok(Self {
            path: path.into(),
            rows,
            pending: Vec::with_capacity(ROWS_PER_GROUP),
            files: files.iter().map(|f| (f.file_id, names(f))).collect(),
            threads: threads
                .iter()
                .filter(|t| !t.name.is_empty())
                .map(thread)
                .collect(),
        })
    }

    /// Takes an event; writes once there are enough.
    pub fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        self.pending.push(*event);
        if self.pending.len() == ROWS_PER_GROUP {
            self.write_pending()?;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), RunError> {
        let (events, files, threads) = (&self.pending, &self.files, &self.threads);
        self.rows
            .write_group_with(events, |group| {
                let names = || events.iter().map(|e| files.get(&e.file_id));
                write_optional::<ByteArrayType>(group, names().map(|n| Some(n?.path.clone())))?;
                write_optional::<ByteArrayType>(group, names().map(|n| Some(n?.role.clone())))?;
                write_optional::<ByteArrayType>(group, names().map(|n| n?.namespace.clone()))?;
                let threads = events.iter().map(|e| threads.get(&e.tid).cloned());
                write_optional::<ByteArrayType>(group, threads)
            })
            .map_err(RunError::write(&self.path))?;
        self.pending.clear();
        Ok(())
    }

    /// Writes what is left, and the footer.
    pub fn finish(mut self) -> Result<(), RunError> {
        if !self.pending.is_empty() {
            self.write_pending()?;
        }
        self.rows.finish().map_err(RunError::write(&self.path))
    }
}

impl std::fmt::Debug for JoinedParquetWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinedParquetWriter")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
