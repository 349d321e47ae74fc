//! `threads.parquet`: one row per thread that events were made by.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};

use super::Result;
use super::read::for_each_group;
use super::write::{ColumnType, bits32, write_column, writer};
use crate::ThreadRecord;

const COLUMNS: [ColumnType; 3] = [
    ColumnType::u32("tid"),
    ColumnType::u32("pid"),
    ColumnType::text("name"),
];

/// Writes `threads.parquet` whole.
pub(crate) fn write_threads(path: &Path, threads: &[ThreadRecord]) -> Result<()> {
    let mut file = writer(path, "threads", &COLUMNS)?;
    let mut group = file.next_row_group()?;
    let tids: Vec<i32> = threads.iter().map(|t| bits32(t.tid)).collect();
    let pids: Vec<i32> = threads.iter().map(|t| bits32(t.pid)).collect();
    let names = threads.iter().map(|t| ByteArray::from(t.name.as_str()));
    write_column::<Int32Type>(&mut group, &tids, None)?;
    write_column::<Int32Type>(&mut group, &pids, None)?;
    write_column::<ByteArrayType>(&mut group, &names.collect::<Vec<_>>(), None)?;
    group.close()?;
    file.close().map(drop)
}

/// Reads `threads.parquet`.
pub(crate) fn read_threads(path: &Path) -> Result<Vec<ThreadRecord>> {
    let mut threads = Vec::new();
    for_each_group(path, |columns| {
        let (tids, pids) = (columns.u32("tid")?, columns.u32("pid")?);
        let names = columns.text("name")?;
        threads.extend(names.into_iter().enumerate().map(|(i, name)| ThreadRecord {
            tid: tids[i],
            pid: pids[i],
            name,
        }));
        Ok(())
    })?;
    Ok(threads)
}
