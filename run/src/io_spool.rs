//! The form in which events reach the disk during a run: fixed-size rows, appended.
//!
//! A Parquet file is unreadable until its footer is written, and compressing rows takes CPU time on the machine
//! under study. Events are therefore appended here as they come, and turned into `io.parquet` when the run
//! ends, or by the next reader if it never did (crash, SIGKILL); a torn last row is ignored.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use crate::{BlockRequest, IoEvent, IoFlags, IoOp};

/// Bytes of one row: u64 t_ns, offset, latency_ns; u32 pid, tid, file_id, length, result (i32),
/// device_read_bytes; u16 flags; u8 op; u8 zero; u64 sector; u32 disk_major, disk_minor.
/// Little-endian. An unknown offset and an absent sector are all ones.
pub(crate) const ROW_BYTES: usize = 68;

fn encode(event: &IoEvent) -> [u8; ROW_BYTES] {
    let mut row = [0u8; ROW_BYTES];
    row[0..8].copy_from_slice(&event.t_ns.to_le_bytes());
    row[8..16].copy_from_slice(&event.offset.unwrap_or(u64::MAX).to_le_bytes());
    row[16..24].copy_from_slice(&event.latency_ns.to_le_bytes());
    let words = [
        event.pid,
        event.tid,
        event.file_id,
        event.length,
        event.result.cast_unsigned(),
        event.device_read_bytes,
    ];
    for (i, word) in words.iter().enumerate() {
        row[24 + 4 * i..28 + 4 * i].copy_from_slice(&word.to_le_bytes());
    }
    row[48..50].copy_from_slice(&event.flags.0.to_le_bytes());
    row[50] = event.op as u8;
    let request = event.request.unwrap_or(BlockRequest {
        disk_major: 0,
        disk_minor: 0,
        sector: u64::MAX,
    });
    row[52..60].copy_from_slice(&request.sector.to_le_bytes());
    row[60..64].copy_from_slice(&request.disk_major.to_le_bytes());
    row[64..68].copy_from_slice(&request.disk_minor.to_le_bytes());
    row
}

/// Decodes a row; `None` if it names an operation that does not exist.
fn decode(row: &[u8; ROW_BYTES]) -> Option<IoEvent> {
    let u64_at = |i: usize| {
        row[i..i + 8]
            .iter()
            .rev()
            .fold(0u64, |v, b| v << 8 | u64::from(*b))
    };
    let u32_at = |i: usize| {
        row[i..i + 4]
            .iter()
            .rev()
            .fold(0u32, |v, b| v << 8 | u32::from(*b))
    };
    let offset = u64_at(8);
    let sector = u64_at(52);
    Some(IoEvent {
        t_ns: u64_at(0),
        offset: (offset != u64::MAX).then_some(offset),
        latency_ns: u64_at(16),
        pid: u32_at(24),
        tid: u32_at(28),
        file_id: u32_at(32),
        length: u32_at(36),
        result: u32_at(40).cast_signed(),
        device_read_bytes: u32_at(44),
        flags: IoFlags(u16::from_le_bytes([row[48], row[49]])),
        op: IoOp::from_code(row[50])?,
        request: (sector != u64::MAX).then(|| BlockRequest {
            disk_major: u32_at(60),
            disk_minor: u32_at(64),
            sector,
        }),
    })
}

/// Appends events to a spool.
#[derive(Debug)]
pub(crate) struct SpoolWriter {
    file: BufWriter<File>,
}

impl SpoolWriter {
    pub(crate) fn append_to(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        // A full disk may have left half a row; everything after it would be misaligned.
        let whole_rows = file.metadata()?.len() / ROW_BYTES as u64 * ROW_BYTES as u64;
        file.set_len(whole_rows)?;
        Ok(Self {
            file: BufWriter::with_capacity(1 << 20, file),
        })
    }

    pub(crate) fn write(&mut self, event: &IoEvent) -> io::Result<()> {
        self.file.write_all(&encode(event))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Reads what a [`SpoolWriter`] wrote, up to `limit` events at a time.
pub(crate) struct SpoolReader {
    file: BufReader<File>,
    /// Rows in the file when it was opened.
    rows: usize,
}

impl SpoolReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let rows = file.metadata()?.len() / ROW_BYTES as u64;
        Ok(Self {
            file: BufReader::with_capacity(1 << 20, file),
            rows: usize::try_from(rows).unwrap_or(usize::MAX),
        })
    }

    /// Replaces `events` by the next ones; fewer than `limit` only at the end. Invalid rows are skipped.
    pub(crate) fn read(&mut self, limit: usize, events: &mut Vec<IoEvent>) -> io::Result<()> {
        events.clear();
        // A vector that grows by itself copies millions of events.
        events.reserve_exact(limit.min(self.rows));
        let mut row = [0u8; ROW_BYTES];
        while events.len() < limit {
            match self.file.read_exact(&mut row) {
                Ok(()) => events.extend(decode(&row)),
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_torn_tail() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("io.spool");
        let event = IoEvent {
            t_ns: 1,
            pid: 2,
            tid: 3,
            file_id: 4,
            op: IoOp::Pwritev2,
            flags: IoFlags(IoFlags::WAITED | IoFlags::DIRECT),
            offset: None,
            length: 5,
            latency_ns: u64::MAX,
            result: -5,
            device_read_bytes: 6,
            request: None,
        };
        let second = IoEvent {
            offset: Some(1 << 45),
            op: IoOp::BlockRead,
            result: i32::MAX,
            request: Some(BlockRequest {
                disk_major: 254,
                disk_minor: 3,
                sector: 1 << 40,
            }),
            ..event
        };
        let mut writer = SpoolWriter::append_to(&path).unwrap();
        writer.write(&event).unwrap();
        writer.write(&second).unwrap();
        writer.flush().unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&[1; ROW_BYTES / 2]).unwrap();
        let read = || {
            let mut events = Vec::new();
            let mut reader = SpoolReader::open(&path).unwrap();
            reader.read(usize::MAX, &mut events).unwrap();
            events
        };
        assert_eq!(read(), [event, second]);
        let mut writer = SpoolWriter::append_to(&path).unwrap();
        writer.write(&event).unwrap();
        writer.flush().unwrap();
        assert_eq!(read(), [event, second, event], "the torn row is gone");
    }
}
