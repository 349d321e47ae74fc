//! The columns of a table. Each defines once how it is named and stored, how its value is taken from a row, and
//! how it is put into one; writing and reading go through the list.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::Result;
use super::read::{Columns, text_of};

/// Higher levels take several times the CPU time to save a few per cent of the size.
const ZSTD_LEVEL: i32 = 3;

/// Values taken from rows at a time: few enough to stay in a processor's cache.
const BATCH: usize = 8192;

type Group<'a> = SerializedRowGroupWriter<'a, File>;
type Write<R> = Box<dyn Fn(&[R], &mut Group<'_>) -> Result<()> + Send>;
/// Puts a column's next values into rows; a null leaves its row unchanged.
pub(super) type Fill<R> = Box<dyn FnMut(&mut [R]) -> Result<()>>;
type Open<R> = Box<dyn Fn(&Columns<'_>, &str) -> Result<Fill<R>> + Send>;

/// A column of a table of `R`. Values are processed in batches, so that nothing is looked up per value.
pub(super) struct Column<R> {
    name: Cow<'static, str>,
    physical: Physical,
    converted: ConvertedType,
    repetition: Repetition,
    /// Whether neighbouring values are close, so that their differences are stored instead of a dictionary.
    differences: bool,
    may_be_missing: bool,
    write: Write<R>,
    open: Open<R>,
}

/// Constructors by the type of the values. Parquet's physical types are signed integers only; unsigned ones
/// carry the same bits.
impl<R: 'static> Column<R> {
    pub(super) fn u64(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> u64 + Send + 'static,
        set: impl Fn(&mut R, u64) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| get(row).cast_signed();
        let set = move |row: &mut R, value: &i64| set(row, value.cast_unsigned());
        Self::required::<Int64Type>(name, ConvertedType::UINT_64, get, set)
    }

    pub(super) fn optional_u64(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Option<u64> + Send + 'static,
        set: impl Fn(&mut R, u64) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| get(row).map(u64::cast_signed);
        let set = move |row: &mut R, value: &i64| set(row, value.cast_unsigned());
        Self::optional::<Int64Type>(name, ConvertedType::UINT_64, get, set)
    }

    pub(super) fn u32(
        name: &'static str,
        get: impl Fn(&R) -> u32 + Send + 'static,
        set: impl Fn(&mut R, u32) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| get(row).cast_signed();
        let set = move |row: &mut R, value: &i32| set(row, value.cast_unsigned());
        Self::required::<Int32Type>(name, ConvertedType::UINT_32, get, set)
    }

    pub(super) fn optional_u32(
        name: &'static str,
        get: impl Fn(&R) -> Option<u32> + Send + 'static,
        set: impl Fn(&mut R, u32) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| get(row).map(u32::cast_signed);
        let set = move |row: &mut R, value: &i32| set(row, value.cast_unsigned());
        Self::optional::<Int32Type>(name, ConvertedType::UINT_32, get, set)
    }

    pub(super) fn i32(
        name: &'static str,
        get: impl Fn(&R) -> i32 + Send + 'static,
        set: impl Fn(&mut R, i32) + Copy + Send + 'static,
    ) -> Self {
        let set = move |row: &mut R, value: &i32| set(row, *value);
        Self::required::<Int32Type>(name, ConvertedType::INT_32, get, set)
    }

    pub(super) fn f64(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> f64 + Send + 'static,
        set: impl Fn(&mut R, f64) + Copy + Send + 'static,
    ) -> Self {
        let set = move |row: &mut R, value: &f64| set(row, *value);
        Self::required::<DoubleType>(name, ConvertedType::NONE, get, set)
    }

    pub(super) fn optional_f64(
        name: impl Into<Cow<'static, str>>,
        get: impl Fn(&R) -> Option<f64> + Send + 'static,
        set: impl Fn(&mut R, f64) + Copy + Send + 'static,
    ) -> Self {
        let set = move |row: &mut R, value: &f64| set(row, *value);
        Self::optional::<DoubleType>(name, ConvertedType::NONE, get, set)
    }

    pub(super) fn text(
        name: &'static str,
        get: impl Fn(&R) -> &str + Send + 'static,
        set: impl Fn(&mut R, String) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| ByteArray::from(get(row));
        let set = move |row: &mut R, value: &ByteArray| set(row, text_of(value));
        Self::required::<ByteArrayType>(name, ConvertedType::UTF8, get, set)
    }

    /// Creates a column of text that has to be parsed; if that fails, reading ends with `parse`'s error.
    pub(super) fn parsed_text<T: Into<Cow<'static, str>>, V>(
        name: &'static str,
        get: impl Fn(&R) -> T + Send + 'static,
        parse: impl Fn(&str) -> Result<V> + Copy + Send + 'static,
        set: impl Fn(&mut R, V) + Copy + Send + 'static,
    ) -> Self {
        let get = move |row: &R| ByteArray::from(get(row).into().as_ref());
        let mut column = Self::written(name, get);
        column.open = Box::new(move |columns, name| {
            let mut batches = columns.batches::<ByteArrayType>(name)?;
            Ok(Box::new(move |rows| {
                let mut outcome = Ok(());
                batches.fill(rows, |row, value| match parse(&text_of(value)) {
                    Ok(value) => set(row, value),
                    Err(error) => outcome = Err(error),
                })?;
                outcome
            }))
        });
        column
    }

    /// Creates a column of text that is read separately, because a row does not hold it as it is.
    pub(super) fn written(
        name: &'static str,
        get: impl Fn(&R) -> ByteArray + Send + 'static,
    ) -> Self {
        Self::required::<ByteArrayType>(name, ConvertedType::UTF8, get, |_, _| ()).unread()
    }

    pub(super) fn optional_text(
        name: &'static str,
        get: impl Fn(&R) -> Option<ByteArray> + Send + 'static,
        set: impl Fn(&mut R, String) + Copy + Send + 'static,
    ) -> Self {
        let set = move |row: &mut R, value: &ByteArray| set(row, text_of(value));
        Self::optional::<ByteArrayType>(name, ConvertedType::UTF8, get, set)
    }

    fn required<T: DataType>(
        name: impl Into<Cow<'static, str>>,
        converted: ConvertedType,
        get: impl Fn(&R) -> T::T + Send + 'static,
        set: impl Fn(&mut R, &T::T) + Copy + Send + 'static,
    ) -> Self {
        let write: Write<R> = Box::new(move |rows, group| {
            let mut values = Vec::with_capacity(rows.len().min(BATCH));
            write_column::<T>(group, |column| {
                rows.chunks(BATCH).try_for_each(|rows| {
                    values.clear();
                    values.extend(rows.iter().map(&get));
                    column.write_batch(&values, None, None).map(drop)
                })
            })
        });
        Self::new::<T>(name.into(), converted, Repetition::REQUIRED, write, set)
    }

    fn optional<T: DataType>(
        name: impl Into<Cow<'static, str>>,
        converted: ConvertedType,
        get: impl Fn(&R) -> Option<T::T> + Send + 'static,
        set: impl Fn(&mut R, &T::T) + Copy + Send + 'static,
    ) -> Self {
        let write: Write<R> = Box::new(move |rows, group| {
            let (mut levels, mut present) = (Vec::new(), Vec::new());
            write_column::<T>(group, |column| {
                rows.chunks(BATCH).try_for_each(|rows| {
                    levels.clear();
                    present.clear();
                    for value in rows.iter().map(&get) {
                        levels.push(i16::from(value.is_some()));
                        present.extend(value);
                    }
                    let written = column.write_batch(&present, Some(&levels), None);
                    written.map(drop)
                })
            })
        });
        Self::new::<T>(name.into(), converted, Repetition::OPTIONAL, write, set)
    }

    fn new<T: DataType>(
        name: Cow<'static, str>,
        converted: ConvertedType,
        repetition: Repetition,
        write: Write<R>,
        set: impl Fn(&mut R, &T::T) + Copy + Send + 'static,
    ) -> Self {
        Self {
            name,
            physical: T::get_physical_type(),
            converted,
            repetition,
            differences: false,
            may_be_missing: false,
            write,
            open: Box::new(move |columns, name| {
                let mut batches = columns.batches::<T>(name)?;
                Ok(Box::new(move |rows| batches.fill(rows, set)))
            }),
        }
    }

    fn unread(mut self) -> Self {
        self.open = Box::new(|_, _| Ok(Box::new(|_| Ok(()))));
        self
    }

    /// Stores differences between neighbours (Parquet's DELTA_BINARY_PACKED). This is for numbers that are
    /// mostly distinct, for which a dictionary would only add to the size.
    pub(super) fn with_differences(mut self) -> Self {
        self.differences = true;
        self
    }

    /// Reads files written before this column existed as if it held nulls.
    pub(super) fn missing_in_older_files(mut self) -> Self {
        self.may_be_missing = true;
        self
    }

    pub(super) fn write(&self, rows: &[R], group: &mut Group<'_>) -> Result<()> {
        (self.write)(rows, group)
    }

    /// Opens the column for reading from one row group.
    pub(super) fn open(&self, columns: &Columns<'_>) -> Result<Fill<R>> {
        if self.may_be_missing && !columns.has(&self.name) {
            return Ok(Box::new(|_| Ok(())));
        }
        (self.open)(columns, &self.name)
    }
}

fn schema<R>(name: &str, columns: &[Column<R>]) -> Result<TypePtr> {
    let fields = columns
        .iter()
        .map(|c| {
            Type::primitive_type_builder(&c.name, c.physical)
                .with_converted_type(c.converted)
                .with_repetition(c.repetition)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(
        Type::group_type_builder(name).with_fields(fields).build()?,
    ))
}

/// A writer of a table, one row group at a time.
pub(crate) struct TableWriter<R> {
    columns: Vec<Column<R>>,
    file: SerializedFileWriter<File>,
}

impl<R: 'static> TableWriter<R> {
    pub(super) fn create(path: &Path, name: &str, columns: Vec<Column<R>>) -> Result<Self> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
            // Minima and maxima of each page cost more than they save: readers skip whole row groups.
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_created_by(format!("seekscope {}", env!("CARGO_PKG_VERSION")));
        for column in columns.iter().filter(|column| column.differences) {
            let path = ColumnPath::from(column.name.as_ref());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
        let file = SerializedFileWriter::new(
            File::create(path)?,
            schema(name, &columns)?,
            Arc::new(properties.build()),
        )?;
        Ok(Self { columns, file })
    }

    pub(crate) fn write_group(&mut self, rows: &[R]) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for column in &self.columns {
            column.write(rows, &mut group)?;
        }
        group.close().map(drop)
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}

/// Writes a whole table.
pub(super) fn write_table<R: 'static>(
    path: &Path,
    name: &str,
    columns: Vec<Column<R>>,
    rows: &[R],
) -> Result<()> {
    let mut table = TableWriter::create(path, name, columns)?;
    table.write_group(rows)?;
    table.finish()
}

/// Writes the group's next column by `write`.
fn write_column<T: DataType>(
    group: &mut Group<'_>,
    write: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> Result<()>,
) -> Result<()> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns written than the schema has".into()))?;
    write(column.typed::<T>())?;
    column.close()
}
