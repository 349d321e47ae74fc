//! fio's iolog, versions 2 and 3 (fio's manual, "Trace file format"), which `fio --read_iolog`
//! replays: on the files it names, unless fio is told otherwise (`--replay_redirect`).

use std::collections::HashSet;
use std::io::{self, Write};

use seekscope_run::{IoEvent, IoLayer, IoOp};

use super::Names;
use super::start_order::StartOrder;
use crate::fio::{HEADER_2, HEADER_3};

/// The version of an iolog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioVersion {
    /// Order only; every version of fio reads it.
    V2,
    /// Order and times in milliseconds; fio 3.31 and later.
    V3,
}

/// Writes an iolog. Leaves out calls that failed, moved nothing, or have an unknown offset, and
/// also requests of disks, since fio makes its own.
pub struct FioWriter<'a, W> {
    out: W,
    version: FioVersion,
    names: &'a Names,
    order: StartOrder,
    opened: HashSet<u32>,
    /// Start of the first event written; times are relative to it.
    first_ns: Option<u64>,
    latest_ms: u64,
    left_out: u64,
}

impl<'a, W: Write> FioWriter<'a, W> {
    /// Writes the header.
    pub fn begin(mut out: W, version: FioVersion, names: &'a Names) -> io::Result<Self> {
        let header = match version {
            FioVersion::V2 => HEADER_2,
            FioVersion::V3 => HEADER_3,
        };
        writeln!(out, "{header}")?;
        Ok(Self {
            out,
            version,
            names,
            order: StartOrder::default(),
            opened: HashSet::new(),
            first_ns: None,
            latest_ms: 0,
            left_out: 0,
        })
    }

    /// Takes an event.
    pub fn event(&mut self, event: &IoEvent) -> io::Result<()> {
        let transfers = event.op.is_read() || event.op.is_write();
        let known = event.offset.is_some() && event.length > 0;
        let replayable = event.op.layer() == IoLayer::File
            && event.op != IoOp::MmapFault
            && event.result >= 0
            && (known || !transfers);
        if !replayable {
            self.left_out += 1;
            return Ok(());
        }
        match self.order.push(event) {
            Some(earliest) => self.write(&earliest),
            None => Ok(()),
        }
    }

    /// Writes the events held back and closes the files. Returns how many events were left out.
    pub fn finish(mut self) -> io::Result<u64> {
        while let Some(event) = self.order.pop() {
            self.write(&event)?;
        }
        let mut opened: Vec<u32> = self.opened.drain().collect();
        opened.sort_unstable();
        for file_id in opened {
            self.action(file_id, "close")?;
        }
        self.out.flush()?;
        Ok(self.left_out)
    }

    fn write(&mut self, event: &IoEvent) -> io::Result<()> {
        let first_ns = *self.first_ns.get_or_insert(event.t_ns);
        let ms = event.t_ns.saturating_sub(first_ns) / 1_000_000;
        self.latest_ms = self.latest_ms.max(ms);
        if self.opened.insert(event.file_id) {
            self.action(event.file_id, "add")?;
            self.action(event.file_id, "open")?;
        }
        let action = match event.op {
            op if op.is_read() => "read",
            op if op.is_write() => "write",
            IoOp::Fdatasync => "datasync",
            _ => "sync",
        };
        let (offset, length) = match action {
            "read" | "write" => (event.offset.unwrap_or(0), event.length),
            _ => (0, 0),
        };
        self.begin_line(event.file_id)?;
        writeln!(self.out, "{action} {offset} {length}")
    }

    fn action(&mut self, file_id: u32, action: &str) -> io::Result<()> {
        self.begin_line(file_id)?;
        writeln!(self.out, "{action}")
    }

    /// Writes the time and the name. fio can only read names without white space.
    fn begin_line(&mut self, file_id: u32) -> io::Result<()> {
        if self.version == FioVersion::V3 {
            write!(self.out, "{} ", self.latest_ms)?;
        }
        let path = self.names.path(file_id);
        if path.is_empty() {
            return write!(self.out, "file-{file_id} ");
        }
        let word = path.replace(|c: char| c.is_whitespace() || c.is_control(), "_");
        write!(self.out, "{word} ")
    }
}
