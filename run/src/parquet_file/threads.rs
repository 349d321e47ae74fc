//! `threads.parquet`: one row per thread that made events.

use std::path::Path;

use super::Result;
use super::column::{self, write_table};
use super::read::read_table;
use crate::ThreadRecord;

type Column = column::Column<ThreadRecord>;

fn columns() -> Vec<Column> {
    vec![
        Column::u32("tid", |t| t.tid, |t, v| t.tid = v),
        Column::u32("pid", |t| t.pid, |t, v| t.pid = v),
        Column::text("name", |t| &t.name, |t, v| t.name = v),
    ]
}

/// Writes the whole of `threads.parquet`.
pub(crate) fn write_threads(path: &Path, threads: &[ThreadRecord]) -> Result<()> {
    write_table(path, "threads", columns(), threads)
}

/// Reads `threads.parquet`.
pub(crate) fn read_threads(path: &Path) -> Result<Vec<ThreadRecord>> {
    read_table(path, &columns(), &ThreadRecord::default())
}
