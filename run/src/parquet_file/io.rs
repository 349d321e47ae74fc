//! `io.parquet`: one row per event.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType};

use super::Result;
use super::column::{self, TableWriter};
use super::read::{ColumnBatches, for_each_group, open_all};
use crate::{BlockRequest, IoEvent, IoFlags, IoOp};

type Column = column::Column<IoEvent>;

/// Rows per row group: few enough that a reader of one phase can skip the others.
pub(crate) const ROWS_PER_GROUP: usize = 1 << 18;

/// Events decoded at a time: few enough to stay in a processor's cache while the columns are filled in one by
/// one.
const BATCH: usize = 2048;

/// Returns the columns of `io.parquet`. Offsets and lengths are bytes. `op_names` is indexed by [`IoOp`] code,
/// so that a row costs no allocation.
fn columns(op_names: Vec<ByteArray>) -> Vec<Column> {
    vec![
        Column::u64("t_ns", |e| e.t_ns, |e, v| e.t_ns = v).with_differences(),
        Column::u32("pid", |e| e.pid, |e, v| e.pid = v),
        Column::u32("tid", |e| e.tid, |e, v| e.tid = v),
        Column::u32("file_id", |e| e.file_id, |e, v| e.file_id = v),
        Column::written(OP, move |e| op_names[e.op as usize].clone()),
        Column::optional_u64("offset", |e| e.offset, |e, v| e.offset = Some(v)),
        Column::u32("length", |e| e.length, |e, v| e.length = v),
        Column::u64("latency_ns", |e| e.latency_ns, |e, v| e.latency_ns = v).with_differences(),
        Column::i32("result", |e| e.result, |e, v| e.result = v),
        Column::u32(
            "flags",
            |e| u32::from(e.flags.0),
            |e, v| e.flags = IoFlags(u16::try_from(v & 0xffff).unwrap_or(0)),
        ),
        Column::u32(
            "device_read_bytes",
            |e| e.device_read_bytes,
            |e, v| e.device_read_bytes = v,
        ),
        Column::optional_u32(
            "disk_major",
            |e| e.request.map(|r| r.disk_major),
            |e, v| request(e).disk_major = v,
        )
        .missing_in_older_files(),
        Column::optional_u32(
            "disk_minor",
            |e| e.request.map(|r| r.disk_minor),
            |e, v| request(e).disk_minor = v,
        )
        .missing_in_older_files(),
        Column::optional_u64(
            "sector",
            |e| e.request.map(|r| r.sector),
            |e, v| request(e).sector = v,
        )
        .with_differences()
        .missing_in_older_files(),
    ]
}

const OP: &str = "op";

fn op_names() -> Vec<ByteArray> {
    let names = IoOp::ALL.iter().map(|op| ByteArray::from(op.name()));
    [ByteArray::new()].into_iter().chain(names).collect()
}

fn request(event: &mut IoEvent) -> &mut BlockRequest {
    event.request.get_or_insert(BlockRequest {
        disk_major: 0,
        disk_minor: 0,
        sector: 0,
    })
}

/// Returns a writer for `io.parquet`, one row group at a time.
pub(crate) fn io_writer(path: &Path) -> Result<TableWriter<IoEvent>> {
    io_writer_with(path, Vec::new())
}

/// Returns the same writer with more columns after those of the events.
pub(super) fn io_writer_with(path: &Path, more: Vec<Column>) -> Result<TableWriter<IoEvent>> {
    let mut columns = columns(op_names());
    columns.extend(more);
    TableWriter::create(path, "io", columns)
}

/// Passes the events of `io.parquet` to `each` in batches, in the order of the rows. Rows with an operation
/// that this build does not know are skipped.
pub(crate) fn read_io(path: &Path, mut each: impl FnMut(&[IoEvent])) -> Result<()> {
    read_io_while(path, |events| {
        each(events);
        true
    })
}

/// Like [`read_io`], until `each` returns false.
pub(crate) fn read_io_while(path: &Path, mut each: impl FnMut(&[IoEvent]) -> bool) -> Result<()> {
    let columns = columns(Vec::new());
    let mut events = Vec::with_capacity(BATCH);
    let mut more = true;
    for_each_group(path, |group| {
        if !more {
            return Ok(());
        }
        let mut fills = open_all(group, &columns)?;
        let mut ops = Operations {
            column: group.batches(OP)?,
            known: Vec::with_capacity(BATCH),
        };
        let mut rows = group.rows;
        while more && rows > 0 {
            events.clear();
            events.resize(rows.min(BATCH), BLANK);
            for fill in &mut fills {
                fill(&mut events)?;
            }
            rows -= events.len();
            ops.fill(&mut events)?;
            more = each(&events);
        }
        Ok(())
    })
}

/// An event before its columns are filled in.
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

/// The column of operations. It is read separately, because rows with an unknown operation are dropped.
struct Operations {
    column: ColumnBatches<ByteArrayType>,
    /// Whether this build knows the operation, for each event of the latest batch.
    known: Vec<bool>,
}

impl Operations {
    /// Fills in the operations. Neighbours mostly share theirs, so it is looked up by name only when it
    /// changes.
    fn fill(&mut self, events: &mut Vec<IoEvent>) -> Result<()> {
        self.known.clear();
        let mut latest = BLANK.op;
        self.column.fill(events, |event, name| {
            let name = name.data();
            let op = if name == latest.name().as_bytes() {
                Some(latest)
            } else {
                std::str::from_utf8(name).ok().and_then(IoOp::from_name)
            };
            self.known.push(op.is_some());
            latest = op.unwrap_or(latest);
            event.op = latest;
        })?;
        if self.known.contains(&false) {
            let mut known = self.known.iter();
            events.retain(|_| known.next().is_some_and(|known| *known));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an event; nulls, requests and operations change from row to row, and in stretches.
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
        let mut writer = io_writer(&path).unwrap();
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
        let mut names = op_names();
        names[IoOp::Pread as usize] = ByteArray::from("read_by_thought");
        let mut writer = TableWriter::create(&path, "io", columns(names)).unwrap();
        writer.write_group(&events).unwrap();
        writer.finish().unwrap();
        events.retain(|e| e.op != IoOp::Pread);
        assert!(!events.is_empty() && read(&path) == events);
    }
}
