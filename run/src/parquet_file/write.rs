//! What is common to writing all tables: column types, schema, compression.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, Repetition, Type as Physical, ZstdLevel,
};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::Result;

/// Higher levels take several times the CPU time for a few per cent of the size.
const ZSTD_LEVEL: i32 = 3;

/// A column of a table. Without [`Self::optional`] it holds no nulls.
#[derive(Clone)]
pub(super) struct ColumnType {
    name: Cow<'static, str>,
    physical: Physical,
    converted: ConvertedType,
    optional: bool,
    /// Neighbouring values are close: store their differences instead of a dictionary.
    differences: bool,
}

impl ColumnType {
    pub(super) const fn u64(name: &'static str) -> Self {
        Self::new(name, Physical::INT64, ConvertedType::UINT_64)
    }

    pub(super) const fn u32(name: &'static str) -> Self {
        Self::new(name, Physical::INT32, ConvertedType::UINT_32)
    }

    pub(super) const fn i32(name: &'static str) -> Self {
        Self::new(name, Physical::INT32, ConvertedType::INT_32)
    }

    pub(super) const fn f64(name: &'static str) -> Self {
        Self::new(name, Physical::DOUBLE, ConvertedType::NONE)
    }

    pub(super) const fn text(name: &'static str) -> Self {
        Self::new(name, Physical::BYTE_ARRAY, ConvertedType::UTF8)
    }

    const fn new(name: &'static str, physical: Physical, converted: ConvertedType) -> Self {
        Self {
            name: Cow::Borrowed(name),
            physical,
            converted,
            optional: false,
            differences: false,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// May hold nulls.
    pub(super) const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Stored as differences between neighbours (Parquet's DELTA_BINARY_PACKED): for numbers that
    /// mostly differ from each other, so that a dictionary would only add to them.
    pub(super) const fn with_differences(mut self) -> Self {
        self.differences = true;
        self
    }

    /// The same column under `prefix_name`.
    pub(super) fn prefixed(mut self, prefix: &str) -> Self {
        self.name = Cow::Owned(format!("{prefix}_{}", self.name));
        self
    }
}

fn schema(name: &str, columns: &[ColumnType]) -> Result<TypePtr> {
    let fields = columns
        .iter()
        .map(|c| {
            let repetition = if c.optional {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            };
            Type::primitive_type_builder(&c.name, c.physical)
                .with_converted_type(c.converted)
                .with_repetition(repetition)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(
        Type::group_type_builder(name).with_fields(fields).build()?,
    ))
}

pub(super) fn writer(
    path: &Path,
    name: &str,
    columns: &[ColumnType],
) -> Result<SerializedFileWriter<File>> {
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
    SerializedFileWriter::new(
        File::create(path)?,
        schema(name, columns)?,
        Arc::new(properties.build()),
    )
}

pub(super) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    definition_levels: Option<&[i16]>,
) -> Result<()> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns written than the schema has".into()))?;
    column
        .typed::<T>()
        .write_batch(values, definition_levels, None)?;
    column.close()
}

pub(super) fn write_optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut levels, mut present) = (Vec::new(), Vec::new());
    for value in values {
        levels.push(i16::from(value.is_some()));
        present.extend(value);
    }
    write_column::<T>(group, &present, Some(&levels))
}

/// Parquet has only signed integers underneath; `UINT_*` columns carry the same bits.
pub(super) fn bits64(v: u64) -> i64 {
    v.cast_signed()
}

pub(super) fn bits32(v: u32) -> i32 {
    v.cast_signed()
}
