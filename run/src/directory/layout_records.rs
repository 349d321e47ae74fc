//! Leaf pages in key order: `layout.parquet`.

use super::RunDirectory;
use crate::parquet_file::{LEAVES_PER_GROUP, TableWriter, layout_writer, read_layout};
use crate::{LeafRecord, RunError};

const LAYOUT: &str = "layout.parquet";

impl RunDirectory {
    /// Returns a writer for the leaves of all files, file by file, in key order. They replace those of an
    /// earlier writer once [`LeafWriter::finish`] is called; until then, and if the process is killed, the
    /// earlier ones stay.
    pub fn leaf_writer(&self) -> Result<LeafWriter<'_>, RunError> {
        let new = self.path_of_new(LAYOUT);
        let rows = layout_writer(&new).map_err(RunError::write(&new))?;
        Ok(LeafWriter {
            directory: self,
            rows,
            pending: Vec::with_capacity(LEAVES_PER_GROUP),
        })
    }

    /// Passes the leaves of the wanted files, given by their ids, to `each` in the order in which they were
    /// written. There are none without a `layout.parquet`. The whole file is read whatever is wanted.
    pub fn for_each_leaf(
        &self,
        wanted: impl Fn(u32) -> bool,
        mut each: impl FnMut(&LeafRecord),
    ) -> Result<(), RunError> {
        let path = self.path.join(LAYOUT);
        if !path.exists() {
            return Ok(());
        }
        read_layout(&path, |leaves| {
            let leaves = leaves.iter().filter(|leaf| wanted(leaf.file_id));
            leaves.for_each(&mut each);
        })
        .map_err(RunError::damaged(&path))
    }
}

/// Writes leaves; see [`RunDirectory::leaf_writer`]. Holds one row group of them in memory.
pub struct LeafWriter<'a> {
    directory: &'a RunDirectory,
    rows: TableWriter<LeafRecord>,
    pending: Vec<LeafRecord>,
}

impl LeafWriter<'_> {
    /// Appends a leaf.
    pub fn leaf(&mut self, leaf: LeafRecord) -> Result<(), RunError> {
        self.pending.push(leaf);
        if self.pending.len() == LEAVES_PER_GROUP {
            self.write_pending()?;
        }
        Ok(())
    }

    /// Syncs everything to the disk and replaces what was there.
    pub fn finish(mut self) -> Result<(), RunError> {
        self.write_pending()?;
        let path = self.directory.path.join(LAYOUT);
        self.rows.finish().map_err(RunError::write(&path))?;
        self.directory.put_in_place(LAYOUT)
    }

    fn write_pending(&mut self) -> Result<(), RunError> {
        if !self.pending.is_empty() {
            let path = self.directory.path.join(LAYOUT);
            self.rows
                .write_group(&self.pending)
                .map_err(RunError::write(&path))?;
            self.pending.clear();
        }
        Ok(())
    }
}
