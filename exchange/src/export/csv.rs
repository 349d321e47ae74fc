//! Comma-separated values (RFC 4180): the columns of `io.parquet`, with names of files and threads
//! instead of their numbers. An empty field means unknown. [`crate::Format::Csv`] reads it back.

use std::io::{self, Write};

use seekscope_run::IoEvent;

use super::Names;
use crate::csv_line::write_text;

/// The header.
pub const COLUMNS: &str = "t_ns,pid,tid,thread,path,op,offset,length,latency_ns,result,flags,device_read_bytes,disk_major,disk_minor,sector";

/// Writes CSV.
pub struct CsvWriter<'a, W> {
    out: W,
    names: &'a Names,
}

impl<'a, W: Write> CsvWriter<'a, W> {
    /// Writes the header.
    pub fn begin(mut out: W, names: &'a Names) -> io::Result<Self> {
        writeln!(out, "{COLUMNS}")?;
        Ok(Self { out, names })
    }

    /// Writes a row.
    pub fn event(&mut self, event: &IoEvent) -> io::Result<()> {
        let out = &mut self.out;
        write!(out, "{},{},{},", event.t_ns, event.pid, event.tid)?;
        write_text(out, self.names.thread(event.tid))?;
        write!(out, ",")?;
        write_text(out, self.names.path(event.file_id))?;
        write!(out, ",{},", event.op.name())?;
        if let Some(offset) = event.offset {
            write!(out, "{offset}")?;
        }
        write!(
            out,
            ",{},{},{},{},{},",
            event.length, event.latency_ns, event.result, event.flags.0, event.device_read_bytes
        )?;
        match event.request {
            Some(r) => writeln!(out, "{},{},{}", r.disk_major, r.disk_minor, r.sector),
            None => writeln!(out, ",,"),
        }
    }

    /// Flushes the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
