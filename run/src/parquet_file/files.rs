//! `files.parquet`: one row per file that events refer to.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};

use super::Result;
use super::read::for_each_group;
use super::write::{ColumnType, bits32, bits64, write_column, write_optional, writer};
use crate::{FileRecord, FileRole, PathState};

/// Columns of `files.parquet`.
const COLUMNS: [ColumnType; 9] = [
    ColumnType::u32("file_id"),
    ColumnType::text("path"),
    ColumnType::text("path_state"),
    ColumnType::u32("device_major"),
    ColumnType::u32("device_minor"),
    ColumnType::u64("inode"),
    ColumnType::u64("size_bytes"),
    ColumnType::text("role"),
    ColumnType::text("namespace").optional(),
];

/// Writes `files.parquet` whole.
pub(crate) fn write_files(path: &Path, files: &[FileRecord]) -> Result<()> {
    let mut file = writer(path, "files", &COLUMNS)?;
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
    write_column::<ByteArrayType>(&mut group, &texts(|r| r.path_state.into()), None)?;
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
            path_state: states[i].parse().unwrap_or(PathState::Unresolved),
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
