//! The parts common to reading all tables: columns are found by name and checked.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::Result;
use super::column::{Column, Fill};

/// Rows read at once.
const BATCH: usize = 8192;

/// A row group whose columns are found by name, so that both older and newer files can be read.
pub(super) struct Columns<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    pub(super) rows: usize,
}

impl Columns<'_> {
    /// Returns whether there is such a column.
    pub(super) fn has(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    fn place(&self, name: &str) -> Option<usize> {
        let columns = self.group.metadata().schema_descr().columns();
        columns.iter().position(|column| column.name() == name)
    }

    /// Returns a column to be read in batches. `T` is its physical type.
    pub(super) fn batches<T: DataType>(&self, name: &str) -> Result<ColumnBatches<T>> {
        let place = self
            .place(name)
            .ok_or_else(|| ParquetError::General(format!("there is no column `{name}`")))?;
        let descriptor = self.group.metadata().schema_descr().column(place);
        if descriptor.physical_type() != T::get_physical_type() {
            return Err(ParquetError::General(format!(
                "column `{name}` has an unexpected type"
            )));
        }
        Ok(ColumnBatches {
            name: name.into(),
            reader: get_typed_column_reader(self.group.get_column_reader(place)?),
            present_level: descriptor.max_def_level(),
            values: Vec::new(),
            levels: Vec::new(),
        })
    }

    /// Returns a whole column of text, with nulls as empty strings.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>> {
        let mut texts = vec![String::new(); self.rows];
        let mut batches = self.batches::<ByteArrayType>(name)?;
        batches.fill(&mut texts, |text, value| *text = text_of(value))?;
        Ok(texts)
    }
}

/// Returns a value of a text column.
pub(super) fn text_of(value: &ByteArray) -> String {
    String::from_utf8_lossy(value.data()).into_owned()
}

/// Reads a whole table; values that are null or missing are those of `blank`.
pub(super) fn read_table<R: Clone + 'static>(
    path: &Path,
    columns: &[Column<R>],
    blank: &R,
) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    for_each_batch(path, columns, blank, |batch| rows.append(batch))?;
    Ok(rows)
}

/// Passes the rows of a table to the caller in batches, in their order. A file that claims more rows than it
/// has costs no more memory than a batch.
pub(super) fn for_each_batch<R: Clone + 'static>(
    path: &Path,
    columns: &[Column<R>],
    blank: &R,
    mut each: impl FnMut(&mut Vec<R>),
) -> Result<()> {
    let mut batch = Vec::with_capacity(BATCH);
    for_each_group(path, |group| {
        let mut fills = open_all(group, columns)?;
        let mut rows = group.rows;
        while rows > 0 {
            batch.clear();
            batch.resize(rows.min(BATCH), blank.clone());
            for fill in &mut fills {
                fill(&mut batch)?;
            }
            rows -= batch.len();
            each(&mut batch);
        }
        Ok(())
    })
}

/// Opens all columns of a row group, to be filled in again for every batch of rows.
pub(super) fn open_all<R: 'static>(
    group: &Columns<'_>,
    columns: &[Column<R>],
) -> Result<Vec<Fill<R>>> {
    columns.iter().map(|column| column.open(group)).collect()
}

/// One column of a row group, read in batches into memory that is reused.
pub(super) struct ColumnBatches<T: DataType> {
    name: String,
    reader: ColumnReaderImpl<T>,
    /// The definition level of a value that is present; 0 if the column holds no nulls.
    present_level: i16,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> ColumnBatches<T> {
    /// Reads one value for each of `rows` and passes it on; rows that hold a null are unchanged.
    pub(super) fn fill<R>(
        &mut self,
        rows: &mut [R],
        mut set: impl FnMut(&mut R, &T::T),
    ) -> Result<()> {
        self.values.clear();
        self.levels.clear();
        let (records, ..) =
            self.reader
                .read_records(rows.len(), Some(&mut self.levels), None, &mut self.values)?;
        if records != rows.len() {
            return Err(ParquetError::General(format!(
                "column `{}` has fewer rows than the others",
                self.name
            )));
        }
        if self.present_level == 0 {
            rows.iter_mut()
                .zip(&self.values)
                .for_each(|(row, value)| set(row, value));
        } else {
            let present = rows.iter_mut().zip(&self.levels);
            present
                .filter(|(_, level)| **level == self.present_level)
                .zip(&self.values)
                .for_each(|((row, _), value)| set(row, value));
        }
        Ok(())
    }
}

pub(super) fn for_each_group(
    path: &Path,
    mut each: impl FnMut(&Columns<'_>) -> Result<()>,
) -> Result<()> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i)?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| ParquetError::General("a row group has a negative row count".into()))?;
        each(&Columns { group, rows })?;
    }
    Ok(())
}
