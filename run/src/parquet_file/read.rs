//! What is common to reading all tables: columns by name, checked.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::Result;

/// A row group whose columns are found by name, so that older and newer files both read.
pub(super) struct Columns<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    pub(super) rows: usize,
}

impl Columns<'_> {
    fn reader(&self, name: &str) -> Result<(ColumnReader, i16)> {
        let descriptor = self.group.metadata().schema_descr();
        let index = (0..descriptor.num_columns())
            .find(|i| descriptor.column(*i).name() == name)
            .ok_or_else(|| ParquetError::General(format!("there is no column `{name}`")))?;
        let level = descriptor.column(index).max_def_level();
        Ok((self.group.get_column_reader(index)?, level))
    }

    /// Is there such a column?
    pub(super) fn has(&self, name: &str) -> bool {
        let descriptor = self.group.metadata().schema_descr();
        descriptor
            .columns()
            .iter()
            .any(|column| column.name() == name)
    }

    /// A column to be read in batches. `T` is its physical type.
    pub(super) fn batches<T: DataType>(&self, name: &'static str) -> Result<ColumnBatches<T>> {
        let (reader, present_level) = self.reader(name)?;
        let descriptor = self.group.metadata().schema_descr();
        let physical = (0..descriptor.num_columns())
            .map(|i| descriptor.column(i))
            .find(|column| column.name() == name)
            .map(|column| column.physical_type());
        if physical != Some(T::get_physical_type()) {
            return Self::wrong_type(name);
        }
        Ok(ColumnBatches {
            name,
            reader: get_typed_column_reader(reader),
            present_level,
            values: Vec::new(),
            levels: Vec::new(),
        })
    }

    fn wrong_type<T>(name: &str) -> Result<T> {
        Err(ParquetError::General(format!(
            "column `{name}` has an unexpected type"
        )))
    }

    /// Values with `None` for nulls, exactly one per row.
    fn collect<T: DataType>(
        &self,
        name: &str,
        mut reader: ColumnReaderImpl<T>,
        max_level: i16,
    ) -> Result<Vec<Option<T::T>>> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        while reader
            .read_records(self.rows, Some(&mut levels), None, &mut values)?
            .0
            > 0
        {}
        let mut values = values.into_iter();
        let out: Vec<Option<T::T>> = if max_level == 0 {
            values.map(Some).collect()
        } else {
            levels
                .iter()
                .map(|l| if *l == max_level { values.next() } else { None })
                .collect()
        };
        if out.len() == self.rows {
            Ok(out)
        } else {
            Err(ParquetError::General(format!(
                "column `{name}` has {} of {} rows",
                out.len(),
                self.rows
            )))
        }
    }

    pub(super) fn optional_u64(&self, name: &str) -> Result<Vec<Option<u64>>> {
        match self.reader(name)? {
            (ColumnReader::Int64ColumnReader(r), level) => {
                let values = self.collect(name, r, level)?;
                Ok(values
                    .into_iter()
                    .map(|v| v.map(i64::cast_unsigned))
                    .collect())
            }
            _ => Self::wrong_type(name),
        }
    }

    pub(super) fn u64(&self, name: &str) -> Result<Vec<u64>> {
        Ok(self
            .optional_u64(name)?
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect())
    }

    pub(super) fn optional_f64(&self, name: &str) -> Result<Vec<Option<f64>>> {
        match self.reader(name)? {
            (ColumnReader::DoubleColumnReader(r), level) => self.collect(name, r, level),
            _ => Self::wrong_type(name),
        }
    }

    pub(super) fn optional_u32(&self, name: &str) -> Result<Vec<Option<u32>>> {
        match self.reader(name)? {
            (ColumnReader::Int32ColumnReader(r), level) => {
                let values = self.collect(name, r, level)?;
                Ok(values
                    .into_iter()
                    .map(|v| v.map(i32::cast_unsigned))
                    .collect())
            }
            _ => Self::wrong_type(name),
        }
    }

    pub(super) fn u32(&self, name: &str) -> Result<Vec<u32>> {
        let values = self.optional_u32(name)?.into_iter();
        Ok(values.map(Option::unwrap_or_default).collect())
    }

    pub(super) fn optional_text(&self, name: &str) -> Result<Vec<Option<String>>> {
        match self.reader(name)? {
            (ColumnReader::ByteArrayColumnReader(r), level) => {
                let values = self.collect(name, r, level)?;
                let text = |b: ByteArray| String::from_utf8_lossy(b.data()).into_owned();
                Ok(values.into_iter().map(|v| v.map(text)).collect())
            }
            _ => Self::wrong_type(name),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Vec<String>> {
        Ok(self
            .optional_text(name)?
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect())
    }
}

/// One column of a row group, read many rows at a time into memory that is used again.
pub(super) struct ColumnBatches<T: DataType> {
    name: &'static str,
    reader: ColumnReaderImpl<T>,
    /// The definition level of a value that is there; 0 where the column holds no nulls.
    present_level: i16,
    values: Vec<T::T>,
    levels: Vec<i16>,
}

impl<T: DataType> ColumnBatches<T> {
    /// Reads one value for each of `rows` and hands it over; rows that hold a null are left alone.
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
                "column `{}` ends before the others",
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
            .map_err(|_| ParquetError::General("a row group with a negative row count".into()))?;
        each(&Columns { group, rows })?;
    }
    Ok(())
}
