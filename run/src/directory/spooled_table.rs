//! A table of a few rows a second: JSON lines while the run goes on, a Parquet file afterwards.

use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};

use super::RunDirectory;
use crate::RunError;
use crate::lines::{JsonLinesWriter, read_json_lines};

type ParquetResult<T> = Result<T, parquet::errors::ParquetError>;

/// The names of a table's two files, and how its Parquet file is written and read.
pub(super) struct SpooledTable<T> {
    pub(super) parquet: &'static str,
    pub(super) spool: &'static str,
    pub(super) write: fn(&Path, &[T]) -> ParquetResult<()>,
    pub(super) read: fn(&Path) -> ParquetResult<Vec<T>>,
}

impl<T: DeserializeOwned> SpooledTable<T> {
    /// Returns a writer that appends to what earlier writers left.
    pub(super) fn writer(&self, directory: &RunDirectory) -> Result<SpoolLines, RunError> {
        let path = directory.path.join(self.spool);
        Ok(SpoolLines {
            lines: JsonLinesWriter::append_to(&path).map_err(RunError::io("open", &path))?,
            path,
        })
    }

    /// Writes the Parquet file, unless nothing was recorded.
    pub(super) fn finish(&self, directory: &RunDirectory) -> Result<(), RunError> {
        let spool = directory.path.join(self.spool);
        if !spool.exists() {
            return Ok(());
        }
        let path = directory.path.join(self.parquet);
        let rows: Vec<T> = read_json_lines(&spool).map_err(RunError::io("read", &spool))?;
        (self.write)(&directory.path_of_new(self.parquet), &rows)
            .map_err(RunError::write(&path))?;
        // The rows must be safe before their only other copy is removed.
        directory.put_in_place(self.parquet)?;
        directory.remove(self.spool)
    }

    /// Returns all rows in the order in which they were recorded; none if there is no file.
    pub(super) fn rows(&self, directory: &RunDirectory) -> Result<Vec<T>, RunError> {
        let path = directory.path.join(self.parquet);
        if !path.exists() {
            return Ok(Vec::new());
        }
        (self.read)(&path).map_err(RunError::damaged(&path))
    }
}

/// The open spool of a table.
#[derive(Debug)]
pub(super) struct SpoolLines {
    lines: JsonLinesWriter,
    path: PathBuf,
}

impl SpoolLines {
    /// Appends rows at once, so that they survive a killed process.
    pub(super) fn write(&mut self, rows: &[impl Serialize]) -> Result<(), RunError> {
        self.lines
            .write_all(rows)
            .map_err(RunError::io("write", &self.path))
    }

    /// Syncs what was appended to the disk.
    pub(super) fn sync(&self) -> Result<(), RunError> {
        (self.lines.sync()).map_err(RunError::io("write", &self.path))
    }
}
