//! `io.parquet`: one row per event.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;

use super::Result;
use super::read::{Columns, for_each_group};
use super::write::{ColumnType, bits32, bits64, write_column, write_optional, writer};
use crate::{BlockRequest, IoEvent, IoFlags, IoOp};

/// Rows per row group: small enough that a reader of one phase can skip the others.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 18;

/// Columns of `io.parquet`. Offsets and lengths are bytes.
const COLUMNS: [ColumnType; 14] = [
    ColumnType::u64("t_ns"),
    ColumnType::u32("pid"),
    ColumnType::u32("tid"),
    ColumnType::u32("file_id"),
    ColumnType::text("op"),
    ColumnType::u64("offset").optional(),
    ColumnType::u32("length"),
    ColumnType::u64("latency_ns"),
    ColumnType::i32("result"),
    ColumnType::u32("flags"),
    ColumnType::u32("device_read_bytes"),
    ColumnType::u32("disk_major").optional(),
    ColumnType::u32("disk_minor").optional(),
    ColumnType::u64("sector").optional(),
];

/// Writes `io.parquet`, a group of rows at a time.
pub(crate) struct IoParquetWriter {
    file: SerializedFileWriter<File>,
}

impl IoParquetWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Ok(Self {
            file: writer(path, "io", &COLUMNS)?,
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
        let requests = || events.iter().map(|e| e.request);
        write_optional::<Int32Type>(
            &mut group,
            requests().map(|r| r.map(|r| bits32(r.disk_major))),
        )?;
        write_optional::<Int32Type>(
            &mut group,
            requests().map(|r| r.map(|r| bits32(r.disk_minor))),
        )?;
        write_optional::<Int64Type>(&mut group, requests().map(|r| r.map(|r| bits64(r.sector))))?;
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
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
        // Files written before requests were traced lack their columns.
        let requests: Vec<Option<BlockRequest>> = if columns.has("sector") {
            requests(columns)?
        } else {
            Vec::new()
        };
        let event = |i: usize| {
            Some(IoEvent {
                t_ns: t_ns[i],
                pid: pid[i],
                tid: tid[i],
                file_id: file_id[i],
                op: IoOp::from_name(&op[i])?,
                flags: IoFlags(u16::try_from(flags[i] & 0xffff).unwrap_or(0)),
                offset: offset[i],
                length: length[i],
                latency_ns: latency[i],
                result: result[i],
                device_read_bytes: device[i],
                request: requests.get(i).copied().flatten(),
            })
        };
        each((0..columns.rows).filter_map(event).collect());
        Ok(())
    })
}

fn requests(columns: &Columns<'_>) -> Result<Vec<Option<BlockRequest>>> {
    let (major, minor) = (
        columns.optional_u32("disk_major")?,
        columns.optional_u32("disk_minor")?,
    );
    let sector = columns.optional_u64("sector")?;
    let request = |i: usize| {
        Some(BlockRequest {
            disk_major: major[i]?,
            disk_minor: minor[i]?,
            sector: sector[i]?,
        })
    };
    Ok((0..columns.rows).map(request).collect())
}
