//! `io.parquet` and `files.parquet`, written and read with the plain column API of the `parquet`
//! crate (its Arrow layer would triple the build). One small file knows this format; DuckDB,
//! pandas and Spark open the result as it is.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::{FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState};

/// Rows per row group: small enough that a reader of one phase can skip the others.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 18;

type Result<T> = std::result::Result<T, ParquetError>;

struct ColumnType {
    name: &'static str,
    physical: Physical,
    converted: ConvertedType,
    optional: bool,
}

const fn column(name: &'static str, physical: Physical, converted: ConvertedType) -> ColumnType {
    ColumnType {
        name,
        physical,
        converted,
        optional: false,
    }
}

const U64: (Physical, ConvertedType) = (Physical::INT64, ConvertedType::UINT_64);
const U32: (Physical, ConvertedType) = (Physical::INT32, ConvertedType::UINT_32);
const TEXT: (Physical, ConvertedType) = (Physical::BYTE_ARRAY, ConvertedType::UTF8);

/// Columns of `io.parquet`. Offsets and lengths are bytes.
const IO_COLUMNS: [ColumnType; 11] = [
    column("t_ns", U64.0, U64.1),
    column("pid", U32.0, U32.1),
    column("tid", U32.0, U32.1),
    column("file_id", U32.0, U32.1),
    column("op", TEXT.0, TEXT.1),
    ColumnType {
        name: "offset",
        physical: U64.0,
        converted: U64.1,
        optional: true,
    },
    column("length", U32.0, U32.1),
    column("latency_ns", U64.0, U64.1),
    column("result", Physical::INT32, ConvertedType::INT_32),
    column("flags", U32.0, U32.1),
    column("device_read_bytes", U32.0, U32.1),
];

/// Columns of `files.parquet`.
const FILE_COLUMNS: [ColumnType; 9] = [
    column("file_id", U32.0, U32.1),
    column("path", TEXT.0, TEXT.1),
    column("path_state", TEXT.0, TEXT.1),
    column("device_major", U32.0, U32.1),
    column("device_minor", U32.0, U32.1),
    column("inode", U64.0, U64.1),
    column("size_bytes", U64.0, U64.1),
    column("role", TEXT.0, TEXT.1),
    ColumnType {
        name: "namespace",
        physical: TEXT.0,
        converted: TEXT.1,
        optional: true,
    },
];

fn schema(name: &str, columns: &[ColumnType]) -> Result<TypePtr> {
    let fields = columns
        .iter()
        .map(|c| {
            let repetition = if c.optional {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            };
            Type::primitive_type_builder(c.name, c.physical)
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

fn writer(path: &Path, name: &str, columns: &[ColumnType]) -> Result<SerializedFileWriter<File>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(format!("seekscope {}", env!("CARGO_PKG_VERSION")))
        .build();
    SerializedFileWriter::new(
        File::create(path)?,
        schema(name, columns)?,
        Arc::new(properties),
    )
}

fn write_column<T: DataType>(
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

fn write_optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<T::T> = values.into_iter().flatten().collect();
    write_column::<T>(group, &present, Some(&levels))
}

/// Parquet has only signed integers underneath; `UINT_*` columns carry the same bits.
fn bits64(v: u64) -> i64 {
    v.cast_signed()
}
fn bits32(v: u32) -> i32 {
    v.cast_signed()
}

/// Writes `io.parquet`, a group of rows at a time.
pub(crate) struct IoParquetWriter {
    file: SerializedFileWriter<File>,
}

impl IoParquetWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Ok(Self {
            file: writer(path, "io", &IO_COLUMNS)?,
        })
    }

    pub(crate) fn write_group(&mut self, events: &[IoEvent]) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let u64s = |f: fn(&IoEvent) -> u64| events.iter().map(|e| bits64(f(e))).collect::<Vec<_>>();
        let u32s = |f: fn(&IoEvent) -> u32| events.iter().map(|e| bits32(f(e))).collect::<Vec<_>>();
        write_column::<Int64Type>(&mut group, &u64s(|e| e.t_ns), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.pid), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.tid), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.file_id), None)?;
        let ops: Vec<ByteArray> = events
            .iter()
            .map(|e| ByteArray::from(e.op.name()))
            .collect();
        write_column::<ByteArrayType>(&mut group, &ops, None)?;
        write_optional::<Int64Type>(&mut group, events.iter().map(|e| e.offset.map(bits64)))?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.length), None)?;
        write_column::<Int64Type>(&mut group, &u64s(|e| e.latency_ns), None)?;
        let results: Vec<i32> = events.iter().map(|e| e.result).collect();
        write_column::<Int32Type>(&mut group, &results, None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| u32::from(e.flags.0)), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.device_read_bytes), None)?;
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}

/// Writes `files.parquet` whole.
pub(crate) fn write_files(path: &Path, files: &[FileRecord]) -> Result<()> {
    let mut file = writer(path, "files", &FILE_COLUMNS)?;
    let mut group = file.next_row_group()?;
    let u32s = |f: fn(&FileRecord) -> u32| files.iter().map(|r| bits32(f(r))).collect::<Vec<_>>();
    let u64s = |f: fn(&FileRecord) -> u64| files.iter().map(|r| bits64(f(r))).collect::<Vec<_>>();
    let texts = |f: fn(&FileRecord) -> &str| {
        files
            .iter()
            .map(|r| ByteArray::from(f(r)))
            .collect::<Vec<_>>()
    };
    write_column::<Int32Type>(&mut group, &u32s(|r| r.file_id), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|r| &r.path), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|r| path_state_name(r.path_state)), None)?;
    write_column::<Int32Type>(&mut group, &u32s(|r| r.device_major), None)?;
    write_column::<Int32Type>(&mut group, &u32s(|r| r.device_minor), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|r| r.inode), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|r| r.size_bytes), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|r| r.role.name()), None)?;
    let namespaces = files
        .iter()
        .map(|r| r.namespace.as_deref().map(ByteArray::from));
    write_optional::<ByteArrayType>(&mut group, namespaces)?;
    group.close()?;
    file.close().map(drop)
}

fn path_state_name(state: PathState) -> &'static str {
    match state {
        PathState::Known => "known",
        PathState::Deleted => "deleted",
        PathState::Unresolved => "unresolved",
    }
}

/// A row group whose columns are found by name, so that older and newer files both read.
struct Columns<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    rows: usize,
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

    fn wrong_type<T>(name: &str) -> Result<T> {
        Err(ParquetError::General(format!(
            "column `{name}` has an unexpected type"
        )))
    }

    /// Values with `None` for nulls, exactly one per row.
    fn collect<T: DataType>(
        &self,
        name: &str,
        mut reader: parquet::column::reader::ColumnReaderImpl<T>,
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

    fn optional_u64(&self, name: &str) -> Result<Vec<Option<u64>>> {
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

    fn u64(&self, name: &str) -> Result<Vec<u64>> {
        Ok(self
            .optional_u64(name)?
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect())
    }

    fn i32(&self, name: &str) -> Result<Vec<i32>> {
        match self.reader(name)? {
            (ColumnReader::Int32ColumnReader(r), level) => {
                let values = self.collect(name, r, level)?;
                Ok(values.into_iter().map(Option::unwrap_or_default).collect())
            }
            _ => Self::wrong_type(name),
        }
    }

    fn u32(&self, name: &str) -> Result<Vec<u32>> {
        Ok(self
            .i32(name)?
            .into_iter()
            .map(i32::cast_unsigned)
            .collect())
    }

    fn optional_text(&self, name: &str) -> Result<Vec<Option<String>>> {
        match self.reader(name)? {
            (ColumnReader::ByteArrayColumnReader(r), level) => {
                let values = self.collect(name, r, level)?;
                let text = |b: ByteArray| String::from_utf8_lossy(b.data()).into_owned();
                Ok(values.into_iter().map(|v| v.map(text)).collect())
            }
            _ => Self::wrong_type(name),
        }
    }

    fn text(&self, name: &str) -> Result<Vec<String>> {
        Ok(self
            .optional_text(name)?
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect())
    }
}

fn for_each_group(path: &Path, mut each: impl FnMut(&Columns<'_>) -> Result<()>) -> Result<()> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    for i in 0..reader.num_row_groups() {
        let group = reader.get_row_group(i)?;
        let rows = usize::try_from(group.metadata().num_rows())
            .map_err(|_| ParquetError::General("a row group with a negative row count".into()))?;
        each(&Columns { group, rows })?;
    }
    Ok(())
}

/// Passes the events of `io.parquet` on, a row group at a time. Rows with an operation that this
/// build does not know are skipped.
pub(crate) fn read_io(path: &Path, mut each: impl FnMut(Vec<IoEvent>)) -> Result<()> {
    for_each_group(path, |columns| {
        let (t_ns, offset, latency) = (
            columns.u64("t_ns")?,
            columns.optional_u64("offset")?,
            columns.u64("latency_ns")?,
        );
        let (pid, tid, file_id) = (
            columns.u32("pid")?,
            columns.u32("tid")?,
            columns.u32("file_id")?,
        );
        let (length, result) = (columns.u32("length")?, columns.i32("result")?);
        let (flags, device) = (columns.u32("flags")?, columns.u32("device_read_bytes")?);
        let op = columns.text("op")?;
        let event = |i: usize| {
            Some(IoEvent {
                t_ns: t_ns[i],
                pid: pid[i],
                tid: tid[i],
                file_id: file_id[i],
                op: IoOp::ALL.into_iter().find(|o| o.name() == op[i])?,
                flags: IoFlags(u16::try_from(flags[i] & 0xffff).unwrap_or(0)),
                offset: offset[i],
                length: length[i],
                latency_ns: latency[i],
                result: result[i],
                device_read_bytes: device[i],
            })
        };
        each((0..columns.rows).filter_map(event).collect());
        Ok(())
    })
}

/// Reads `files.parquet`.
pub(crate) fn read_files(path: &Path) -> Result<Vec<FileRecord>> {
    let mut files = Vec::new();
    for_each_group(path, |columns| {
        let (ids, paths, states) = (
            columns.u32("file_id")?,
            columns.text("path")?,
            columns.text("path_state")?,
        );
        let (majors, minors) = (columns.u32("device_major")?, columns.u32("device_minor")?);
        let (inodes, sizes) = (columns.u64("inode")?, columns.u64("size_bytes")?);
        let (roles, namespaces) = (columns.text("role")?, columns.optional_text("namespace")?);
        files.extend((0..columns.rows).map(|i| FileRecord {
            file_id: ids[i],
            path: paths[i].clone(),
            path_state: match states[i].as_str() {
                "known" => PathState::Known,
                "deleted" => PathState::Deleted,
                _ => PathState::Unresolved,
            },
            device_major: majors[i],
            device_minor: minors[i],
            inode: inodes[i],
            size_bytes: sizes[i],
            role: FileRole::from_name(&roles[i]),
            namespace: namespaces[i].clone(),
        }));
        Ok(())
    })?;
    Ok(files)
}
