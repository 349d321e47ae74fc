//! `files.parquet`: one row per file that events refer to.

use std::path::Path;

use parquet::data_type::ByteArray;

use super::Result;
use super::column::{self, write_table};
use super::read::read_table;
use crate::{FileRecord, FileRole, PathState};

type Column = column::Column<FileRecord>;

fn columns() -> Vec<Column> {
    vec![
        Column::u32("file_id", |r| r.file_id, |r, v| r.file_id = v),
        Column::text("path", |r| &r.path, |r, v| r.path = v),
        Column::text(
            "path_state",
            |r| r.path_state.into(),
            |r, v| r.path_state = v.parse().unwrap_or(PathState::Unresolved),
        ),
        Column::u32(
            "device_major",
            |r| r.device_major,
            |r, v| r.device_major = v,
        ),
        Column::u32(
            "device_minor",
            |r| r.device_minor,
            |r, v| r.device_minor = v,
        ),
        Column::u64("inode", |r| r.inode, |r, v| r.inode = v),
        Column::u64("size_bytes", |r| r.size_bytes, |r, v| r.size_bytes = v),
        Column::text(
            "role",
            |r| r.role.name(),
            |r, v| r.role = FileRole::from_name(&v),
        ),
        Column::optional_text(
            "namespace",
            |r| r.namespace.as_deref().map(ByteArray::from),
            |r, v| r.namespace = Some(v),
        ),
        Column::optional_text(
            "member",
            |r| r.member.as_deref().map(ByteArray::from),
            |r, v| r.member = Some(v),
        )
        .missing_in_older_files(),
    ]
}

/// Writes the whole of `files.parquet`.
pub(crate) fn write_files(path: &Path, files: &[FileRecord]) -> Result<()> {
    write_table(path, "files", columns(), files)
}

/// Reads `files.parquet`.
pub(crate) fn read_files(path: &Path) -> Result<Vec<FileRecord>> {
    let blank = FileRecord {
        file_id: 0,
        path: String::new(),
        path_state: PathState::Unresolved,
        device_major: 0,
        device_minor: 0,
        inode: 0,
        size_bytes: 0,
        role: FileRole::Other,
        namespace: None,
        member: None,
    };
    read_table(path, &columns(), &blank)
}
