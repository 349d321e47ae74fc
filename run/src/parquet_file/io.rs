//! `io.parquet`: one row per event.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::Result;
use super::read::{ColumnBatches, Columns, for_each_group};
use super::write::{ColumnType, bits32, bits64, write_column, write_optional, writer};
use crate::{BlockRequest, IoEvent, IoFlags, IoOp};

/// Rows per row group: small enough that a reader of one phase can skip the others.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 18;

/// Events decoded at a time: few enough to stay in a processor's cache while the columns are
/// filled in one after the other.
const BATCH: usize = 2048;

/// Columns of `io.parquet`. Offsets and lengths are bytes.
const COLUMNS: [ColumnType; 14] = [
    ColumnType::u64("t_ns").with_differences(),
    ColumnType::u32("pid"),
    ColumnType::u32("tid"),
    ColumnType::u32("file_id"),
    ColumnType::text("op"),
    ColumnType::u64("offset").optional(),
    ColumnType::u32("length"),
    ColumnType::u64("latency_ns").with_differences(),
    ColumnType::i32("result"),
    ColumnType::u32("flags"),
    ColumnType::u32("device_read_bytes"),
    ColumnType::u32("disk_major").optional(),
    ColumnType::u32("disk_minor").optional(),
    ColumnType::u64("sector").optional().with_differences(),
];

/// Writes `io.parquet`, a group of rows at a time.
pub(crate) struct IoParquetWriter {
    file: SerializedFileWriter<File>,
    /// By [`IoOp`] code, so that a row costs no allocation.
    op_names: Vec<ByteArray>,
}

impl IoParquetWriter {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_with(path, &[])
    }

    /// With more columns behind those of the events.
    pub(super) fn create_with(path: &Path, more: &[ColumnType]) -> Result<Self> {
        let mut op_names = vec![ByteArray::new()];
        op_names.extend(IoOp::ALL.iter().map(|op| ByteArray::from(op.name())));
        Ok(Self {
            file: writer(path, "io", &[&COLUMNS, more].concat())?,
            op_names,
        })
    }

    pub(crate) fn write_group(&mut self, events: &[IoEvent]) -> Result<()> {
        self.write_group_with(events, |_| Ok(()))
    }

    /// `more` writes the columns behind those of the events.
    pub(super) fn write_group_with(
        &mut self,
        events: &[IoEvent],
        more: impl FnOnce(&mut SerializedRowGroupWriter<'_, File>) -> Result<()>,
    ) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let u64s = |f: fn(&IoEvent) -> u64| events.iter().map(|e| bits64(f(e))).collect::<Vec<_>>();
        let u32s = |f: fn(&IoEvent) -> u32| events.iter().map(|e| bits32(f(e))).collect::<Vec<_>>();
        write_column::<Int64Type>(&mut group, &u64s(|e| e.t_ns), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.pid), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.tid), None)?;
        write_column::<Int32Type>(&mut group, &u32s(|e| e.file_id), None)?;
        let ops: Vec<ByteArray> = events
            .iter()
            .map(|e| self.op_names[e.op as usize].clone())
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
        more(&mut group)?;
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.file.close().map(drop)
    }
}

/// Passes the events of `io.parquet` on, many at a time, in the order of the rows. Rows with an
/// operation that this build does not know are skipped.
pub(crate) fn read_io(path: &Path, mut each: impl FnMut(&[IoEvent])) -> Result<()> {
    read_io_while(path, |events| {
        each(events);
        true
    })
}

/// As [`read_io`], until `each` wants no more.
pub(crate) fn read_io_while(path: &Path, mut each: impl FnMut(&[IoEvent]) -> bool) -> Result<()> {
    let mut events = Vec::with_capacity(BATCH);
    let mut more = true;
    for_each_group(path, |columns| {
        if !more {
            return Ok(());
        }
        let mut group = EventColumns::of(columns)?;
        let mut rows = columns.rows;
        while more && rows > 0 {
            events.clear();
            events.resize(rows.min(BATCH), BLANK);
            group.fill(&mut events)?;
            rows -= events.len();
            if group.unknown_ops {
                let mut known = group.ops.iter().map(Option::is_some);
                events.retain(|_| known.next().unwrap_or(false));
            }
            more = each(&events);
        }
        Ok(())
    })
}

/// What an event is before its columns are filled in.
const BLANK: IoEvent = IoEvent {
    t_ns: 0,
    pid: 0,
    tid: 0,
    file_id: 0,
    op: IoOp::Read,
    flags: IoFlags(0),
    offset: None,
    length: 0,
    latency_ns: 0,
    result: 0,
    device_read_bytes: 0,
    request: None,
};

type Words = ColumnBatches<Int32Type>;
type LongWords = ColumnBatches<Int64Type>;

/// The columns of one row group, and where its reading stands.
struct EventColumns {
    t_ns: LongWords,
    pid: Words,
    tid: Words,
    file_id: Words,
    op: ColumnBatches<ByteArrayType>,
    offset: LongWords,
    length: Words,
    latency_ns: LongWords,
    result: Words,
    flags: Words,
    device_read_bytes: Words,
    /// Sector, major, minor. Files written before requests were traced lack these columns.
    request: Option<(LongWords, Words, Words)>,
    /// Operations of the latest batch, `None` where this build does not know one.
    ops: Vec<Option<IoOp>>,
    unknown_ops: bool,
}

impl EventColumns {
    fn of(columns: &Columns<'_>) -> Result<Self> {
        let request = if columns.has("sector") {
            let (major, minor) = (
                columns.batches("disk_major")?,
                columns.batches("disk_minor")?,
            );
            Some((columns.batches("sector")?, major, minor))
        } else {
            None
        };
        Ok(Self {
            t_ns: columns.batches("t_ns")?,
            pid: columns.batches("pid")?,
            tid: columns.batches("tid")?,
            file_id: columns.batches("file_id")?,
            op: columns.batches("op")?,
            offset: columns.batches("offset")?,
            length: columns.batches("length")?,
            latency_ns: columns.batches("latency_ns")?,
            result: columns.batches("result")?,
            flags: columns.batches("flags")?,
            device_read_bytes: columns.batches("device_read_bytes")?,
            request,
            ops: Vec::new(),
            unknown_ops: false,
        })
    }

    fn fill(&mut self, events: &mut [IoEvent]) -> Result<()> {
        self.fill_ops(events)?;
        self.t_ns.fill(events, |e, v| e.t_ns = v.cast_unsigned())?;
        self.pid.fill(events, |e, v| e.pid = v.cast_unsigned())?;
        self.tid.fill(events, |e, v| e.tid = v.cast_unsigned())?;
        self.file_id
            .fill(events, |e, v| e.file_id = v.cast_unsigned())?;
        self.offset
            .fill(events, |e, v| e.offset = Some(v.cast_unsigned()))?;
        self.length
            .fill(events, |e, v| e.length = v.cast_unsigned())?;
        self.latency_ns
            .fill(events, |e, v| e.latency_ns = v.cast_unsigned())?;
        self.result.fill(events, |e, v| e.result = *v)?;
        self.flags.fill(events, |e, v| {
            e.flags = IoFlags(u16::try_from(v & 0xffff).unwrap_or(0));
        })?;
        self.device_read_bytes
            .fill(events, |e, v| e.device_read_bytes = v.cast_unsigned())?;
        let Some((sectors, majors, minors)) = &mut self.request else {
            return Ok(());
        };
        sectors.fill(events, |e, v| {
            e.request = Some(BlockRequest {
                disk_major: 0,
                disk_minor: 0,
                sector: v.cast_unsigned(),
            });
        })?;
        majors.fill(events, |e, v| {
            if let Some(request) = &mut e.request {
                request.disk_major = v.cast_unsigned();
            }
        })?;
        minors.fill(events, |e, v| {
            if let Some(request) = &mut e.request {
                request.disk_minor = v.cast_unsigned();
            }
        })
    }

    /// Neighbours mostly share their operation, so it is looked up by name only when it changes.
    fn fill_ops(&mut self, events: &mut [IoEvent]) -> Result<()> {
        self.ops.clear();
        self.unknown_ops = false;
        let (ops, unknown_ops) = (&mut self.ops, &mut self.unknown_ops);
        let mut latest = BLANK.op;
        self.op.fill(events, |event, name| {
            let name = name.data();
            let known = if name == latest.name().as_bytes() {
                Some(latest)
            } else {
                std::str::from_utf8(name).ok().and_then(IoOp::from_name)
            };
            ops.push(known);
            *unknown_ops |= known.is_none();
            latest = known.unwrap_or(latest);
            event.op = latest;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nulls, requests and operations change from row to row, and in stretches.
    fn event(i: u64) -> IoEvent {
        IoEvent {
            t_ns: u64::MAX - i * 7 % 1000,
            tid: u32::try_from(i % 5).unwrap(),
            op: if (i / 100).is_multiple_of(2) {
                IoOp::Pread
            } else {
                IoOp::ALL[usize::try_from(i % 25).unwrap()]
            },
            flags: IoFlags(u16::try_from(i % 65_536).unwrap()),
            offset: (!i.is_multiple_of(3) && i / 5000 != 1).then_some(i << 40),
            latency_ns: u64::MAX / (i + 1),
            result: -i32::try_from(i).unwrap(),
            request: (i % 4 == 1).then_some(BlockRequest {
                disk_major: u32::MAX,
                disk_minor: 1,
                sector: i << 30,
            }),
            ..BLANK
        }
    }

    fn read(path: &Path) -> Vec<IoEvent> {
        let mut events = Vec::new();
        read_io(path, |batch| events.extend_from_slice(batch)).unwrap();
        events
    }

    #[test]
    fn batches_and_groups_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("io.parquet");
        let events: Vec<IoEvent> = (0..20_000).map(event).collect();
        let mut writer = IoParquetWriter::create(&path).unwrap();
        for group in [&events[..1], &events[1..BATCH], &events[BATCH..]] {
            writer.write_group(group).unwrap();
        }
        writer.finish().unwrap();
        assert!(read(&path) == events);
        let mut batches = 0;
        read_io_while(&path, |_| {
            batches += 1;
            batches < 2
        })
        .unwrap();
        assert_eq!(batches, 2, "it ends when no more is wanted");
    }

    #[test]
    fn operations_of_a_newer_build_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("io.parquet");
        let mut events: Vec<IoEvent> = (0..5000).map(event).collect();
        let mut writer = IoParquetWriter::create(&path).unwrap();
        writer.op_names[IoOp::Pread as usize] = ByteArray::from("read_by_thought");
        writer.write_group(&events).unwrap();
        writer.finish().unwrap();
        events.retain(|e| e.op != IoOp::Pread);
        assert!(!events.is_empty() && read(&path) == events);
    }
}
