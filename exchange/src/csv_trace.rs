//! Comma-separated values with a header: what a bpftrace script prints, and what [`crate::export`]
//! writes.
//!
//! Columns are found by name, in any order; unknown ones are ignored. Needed: `time_ns` (or `t_ns`),
//! `op` (a name of [`IoOp::name`], or `pread`, `pwrite`, `vfs_read`, `vfs_write`), `file` (or
//! `path`), `offset` (may be empty), `length`. Optional: `tid`, `pid`, `thread` (or `comm`),
//! `latency_ns`, `result` (bytes or negative errno; without it calls count as successful), `flags`
//! (bits of [`IoFlags`]; without it cache hits are unknown), `device_read_bytes`, `disk_major`,
//! `disk_minor`, `sector`.

use std::borrow::Cow;

use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoOp};

use crate::csv_line::split;
use crate::fio::number;
use crate::import::{Import, LineReader, LineResult, RecordSink, malformed};

/// The most bytes of a record, which may span lines if a path contains line ends.
const RECORD_BYTES_MAX: usize = 1 << 16;

#[derive(Default)]
pub(crate) struct Reader {
    columns: Option<Columns>,
    /// The beginning of a record that continues on the next line.
    open_record: String,
}

/// The position of each column in a record.
#[derive(Default)]
pub(crate) struct Columns {
    time: usize,
    op: usize,
    file: usize,
    offset: usize,
    length: usize,
    tid: Option<usize>,
    pid: Option<usize>,
    thread: Option<usize>,
    latency: Option<usize>,
    result: Option<usize>,
    flags: Option<usize>,
    device_read_bytes: Option<usize>,
    disk_major: Option<usize>,
    disk_minor: Option<usize>,
    sector: Option<usize>,
}

impl Columns {
    /// Finds the columns; `None` if the line is not a header with the required columns.
    pub(crate) fn of(header: &str) -> Option<Self> {
        let names = split(header)?;
        let find = |wanted: &[&str]| {
            let is = |name: &Cow<'_, str>| wanted.contains(&name.trim());
            names.iter().position(is)
        };
        Some(Self {
            time: find(&["time_ns", "t_ns"])?,
            op: find(&["op"])?,
            file: find(&["file", "path"])?,
            offset: find(&["offset"])?,
            length: find(&["length"])?,
            tid: find(&["tid"]),
            pid: find(&["pid"]),
            thread: find(&["thread", "comm"]),
            latency: find(&["latency_ns"]),
            result: find(&["result"]),
            flags: find(&["flags"]),
            device_read_bytes: find(&["device_read_bytes"]),
            disk_major: find(&["disk_major"]),
            disk_minor: find(&["disk_minor"]),
            sector: find(&["sector"]),
        })
    }
}

impl LineReader for Reader {
    fn line<S: RecordSink>(&mut self, import: &mut Import<'_, S>, text: &str) -> LineResult<()> {
        let Some(columns) = &self.columns else {
            self.columns = Columns::of(text);
            if let Some(columns) = &self.columns {
                import.summary.without_latency = columns.latency.is_none();
            }
            import.skip("the header and the lines before it");
            return Ok(());
        };
        let joined;
        let record = if self.open_record.is_empty() {
            text
        } else {
            joined = std::mem::take(&mut self.open_record) + "\n" + text;
            &joined
        };
        if record.trim().is_empty() {
            import.skip("empty");
            return Ok(());
        }
        let Some(fields) = split(record) else {
            if record.len() > RECORD_BYTES_MAX {
                return Err(malformed("a quoted field that is not closed"));
            }
            import.skip("a part of a record that spans several lines");
            self.open_record = record.into();
            return Ok(());
        };
        if fields.len() == 1 && record.starts_with('@') {
            import.skip("a map that bpftrace prints when it ends");
            return Ok(());
        }
        event(columns, &Fields(&fields), import)
    }

    fn end<S: RecordSink>(&mut self, import: &mut Import<'_, S>) {
        if !self.open_record.is_empty() {
            import.skip("cut off at the end of the text");
        }
    }
}

/// The fields of one record.
struct Fields<'a>(&'a [Cow<'a, str>]);

impl Fields<'_> {
    fn text(&self, column: usize, what: &str) -> LineResult<&str> {
        let field = self.0.get(column);
        field
            .map(|text| text.trim())
            .ok_or_else(|| malformed(format!("no {what}")))
    }

    fn number<T: std::str::FromStr>(&self, column: usize, what: &str) -> LineResult<T> {
        number(self.text(column, what)?, what)
    }

    /// Parses a field; `None` if the column is missing or the field is empty.
    fn optional<T: std::str::FromStr>(
        &self,
        column: Option<usize>,
        what: &str,
    ) -> LineResult<Option<T>> {
        let Some(column) = column else {
            return Ok(None);
        };
        match self.text(column, what)? {
            "" => Ok(None),
            text => number(text, what).map(Some),
        }
    }
}

fn event<S: RecordSink>(
    columns: &Columns,
    fields: &Fields<'_>,
    import: &mut Import<'_, S>,
) -> LineResult<()> {
    let op = operation(fields.text(columns.op, "op")?)?;
    let length: u32 = fields.number(columns.length, "length")?;
    let tid = fields.optional(columns.tid, "tid")?.unwrap_or(0);
    let pid = fields.optional(columns.pid, "pid")?.unwrap_or(tid);
    let transferred = if op.is_read() || op.is_write() {
        i32::try_from(length).unwrap_or(i32::MAX)
    } else {
        0
    };
    let request = match fields.optional(columns.sector, "sector")? {
        Some(sector) => Some(BlockRequest {
            disk_major: fields
                .optional(columns.disk_major, "disk_major")?
                .unwrap_or(0),
            disk_minor: fields
                .optional(columns.disk_minor, "disk_minor")?
                .unwrap_or(0),
            sector,
        }),
        None => None,
    };
    let mut event = IoEvent {
        t_ns: fields.number(columns.time, "time")?,
        pid,
        tid,
        file_id: 0,
        op,
        flags: IoFlags(
            fields
                .optional(columns.flags, "flags")?
                .unwrap_or(IoFlags::CACHE_UNKNOWN),
        ),
        offset: fields.optional(Some(columns.offset), "offset")?,
        length,
        latency_ns: fields.optional(columns.latency, "latency_ns")?.unwrap_or(0),
        result: fields
            .optional(columns.result, "result")?
            .unwrap_or(transferred),
        device_read_bytes: fields
            .optional(columns.device_read_bytes, "device_read_bytes")?
            .unwrap_or(0),
        request,
    };
    event.file_id = import.file_id(fields.text(columns.file, "file")?)?;
    if columns.tid.is_some() {
        let name = match columns.thread {
            Some(column) => fields.text(column, "thread")?,
            None => "",
        };
        import.thread(tid, pid, name)?;
    }
    import.event(&event)
}

fn operation(name: &str) -> LineResult<IoOp> {
    match name {
        "pread" => Ok(IoOp::Pread),
        "pwrite" => Ok(IoOp::Pwrite),
        "vfs_read" => Ok(IoOp::Read),
        "vfs_write" => Ok(IoOp::Write),
        _ => IoOp::from_name(name).ok_or_else(|| malformed("unknown op")),
    }
}
