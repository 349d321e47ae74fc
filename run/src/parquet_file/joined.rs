//! Events with the names they refer to in one table, for users who want a single file. The columns are those of
//! `io.parquet`, followed by `path`, `role`, `namespace`, `thread` and `member`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::ByteArray;

use super::column::{self, TableWriter};
use super::io::{ROWS_PER_GROUP, io_writer_with};
use crate::{FileRecord, IoEvent, RunError, ThreadRecord};

type Column = column::Column<IoEvent>;

/// Writes one self-contained Parquet file. If it is dropped before [`Self::finish`], the file is not readable.
pub struct JoinedParquetWriter {
    path: PathBuf,
    rows: TableWriter<IoEvent>,
    pending: Vec<IoEvent>,
}

/// The names of a file, ready to be written.
struct FileNames {
    path: ByteArray,
    role: ByteArray,
    namespace: Option<ByteArray>,
    member: Option<ByteArray>,
}

fn columns(files: &[FileRecord], threads: &[ThreadRecord]) -> Vec<Column> {
    let names = |file: &FileRecord| FileNames {
        path: ByteArray::from(file.path.as_str()),
        role: ByteArray::from(file.role.name()),
        namespace: file.namespace.as_deref().map(ByteArray::from),
        member: file.member.as_deref().map(ByteArray::from),
    };
    let files: HashMap<u32, FileNames> = files.iter().map(|f| (f.file_id, names(f))).collect();
    let files = Arc::new(files);
    let threads = threads.iter().filter(|t| !t.name.is_empty());
    let threads: HashMap<u32, ByteArray> = threads
        .map(|t| (t.tid, ByteArray::from(t.name.as_str())))
        .collect();
    let of_file = |name, get: fn(&FileNames) -> Option<ByteArray>| {
        let files = Arc::clone(&files);
        Column::optional_text(
            name,
            move |e| files.get(&e.file_id).and_then(get),
            |_, _| (),
        )
    };
    vec![
        of_file("path", |f| Some(f.path.clone())),
        of_file("role", |f| Some(f.role.clone())),
        of_file("namespace", |f| f.namespace.clone()),
        Column::optional_text("thread", move |e| threads.get(&e.tid).cloned(), |_, _| ()),
        of_file("member", |f| f.member.clone()),
    ]
}

impl JoinedParquetWriter {
    /// Creates the file, or truncates it.
    pub fn create(
        path: &Path,
        files: &[FileRecord],
        threads: &[ThreadRecord],
    ) -> Result<Self, RunError> {
        let rows = io_writer_with(path, columns(files, threads)).map_err(RunError::write(path))?;
        Ok(Self {
            path: path.into(),
            rows,
            pending: Vec::with_capacity(ROWS_PER_GROUP),
        })
    }

    /// Adds an event; writes once there are enough.
    pub fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        self.pending.push(*event);
        if self.pending.len() == ROWS_PER_GROUP {
            self.write_pending()?;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<(), RunError> {
        self.rows
            .write_group(&self.pending)
            .map_err(RunError::write(&self.path))?;
        self.pending.clear();
        Ok(())
    }

    /// Writes the remaining events and the footer.
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
