//! `layout.parquet`: one row per leaf page, file by file, in key order.

use std::path::Path;

use super::Result;
use super::column::{self, TableWriter};
use super::read::for_each_batch;
use crate::LeafRecord;

type Column = column::Column<LeafRecord>;

/// Takes about 3 MB of memory while a group is written.
pub(crate) const LEAVES_PER_GROUP: usize = 128 * 1024;

fn columns() -> Vec<Column> {
    vec![
        Column::u32("file_id", |l| l.file_id, |l, v| l.file_id = v),
        Column::u64("ordinal", |l| l.ordinal, |l, v| l.ordinal = v).with_differences(),
        Column::u64("offset", |l| l.offset, |l, v| l.offset = v).with_differences(),
        Column::u32("length", |l| l.length, |l, v| l.length = v),
    ]
}

/// Returns a writer for the table, one row group at a time.
pub(crate) fn layout_writer(path: &Path) -> Result<TableWriter<LeafRecord>> {
    TableWriter::create(path, "layout", columns())
}

const BLANK: LeafRecord = LeafRecord {
    file_id: 0,
    ordinal: 0,
    offset: 0,
    length: 0,
};

/// Passes the leaves to `each` in batches, in the order of the rows.
pub(crate) fn read_layout(path: &Path, mut each: impl FnMut(&[LeafRecord])) -> Result<()> {
    for_each_batch(path, &columns(), &BLANK, |leaves| each(leaves))
}
