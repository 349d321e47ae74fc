//! `layout.parquet`: one row per leaf page, file by file, in key order.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;

use super::Result;
use super::read::{Columns, for_each_group};
use super::write::{ColumnType, bits32, bits64, write_column, writer};
use crate::LeafRecord;

/// Some 3 MB of memory while a group is written.
pub(crate) const LEAVES_PER_GROUP: usize = 128 * 1024;
/// Leaves that are read at once.
const BATCH: usize = 8192;

const FILE_ID: &str = "file_id";
const ORDINAL: &str = "ordinal";
const OFFSET: &str = "offset";
const LENGTH: &str = "length";

const COLUMNS: [ColumnType; 4] = [
    ColumnType::u32(FILE_ID),
    ColumnType::u64(ORDINAL).with_differences(),
    ColumnType::u64(OFFSET).with_differences(),
    ColumnType::u32(LENGTH),
];

/// Writes the table group by group.
pub(crate) struct LayoutParquetWriter {
    file: SerializedFileWriter<File>,
}

impl LayoutParquetWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = writer(path, "layout", &COLUMNS)?;
        Ok(Self { file })
    }

    pub(crate) fn write_group(&mut self, leaves: &[LeafRecord]) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let u32s =
            |f: fn(&LeafRecord) -> u32| leaves.iter().map(|l| bits32(f(l))).collect::<Vec<_>>();
        let u64s =
            |f: fn(&LeafRecord) -> u64| leaves.iter().map(|l| bits64(f(l))).collect::<Vec<_>>();
        write_column::<Int32Type>(&mut group, &u32s(|l| l.file_id), None)?;
        write_column::<Int64Type>(&mut group, &u64s(|l| l.ordinal), None)?;
        write_column::<Int64Type>(&mut group, &u64s(|l| l.offset), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|l| l.length), None)?;
        group.close().map(drop)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}

const BLANK: LeafRecord = LeafRecord {
    file_id: 0,
    ordinal: 0,
    offset: 0,
    length: 0,
};

/// Passes the leaves on, many at a time, in the order of the rows.
pub(crate) fn read_layout(path: &Path, mut each: impl FnMut(&[LeafRecord])) -> Result<()> {
    let mut leaves = Vec::with_capacity(BATCH);
    for_each_group(path, |columns| read_group(columns, &mut leaves, &mut each))
}

fn read_group(
    columns: &Columns<'_>,
    leaves: &mut Vec<LeafRecord>,
    each: &mut impl FnMut(&[LeafRecord]),
) -> Result<()> {
    let mut file_ids = columns.batches::<Int32Type>(FILE_ID)?;
    let mut ordinals = columns.batches::<Int64Type>(ORDINAL)?;
    let mut offsets = columns.batches::<Int64Type>(OFFSET)?;
    let mut lengths = columns.batches::<Int32Type>(LENGTH)?;
    let mut rows = columns.rows;
    while rows > 0 {
        leaves.clear();
        leaves.resize(rows.min(BATCH), BLANK);
        file_ids.fill(leaves, |leaf, v| leaf.file_id = v.cast_unsigned())?;
        ordinals.fill(leaves, |leaf, v| leaf.ordinal = v.cast_unsigned())?;
        offsets.fill(leaves, |leaf, v| leaf.offset = v.cast_unsigned())?;
        lengths.fill(leaves, |leaf, v| leaf.length = v.cast_unsigned())?;
        rows -= leaves.len();
        each(leaves);
    }
    Ok(())
}
