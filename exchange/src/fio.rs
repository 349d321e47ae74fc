//! fio's iolog, versions 2 and 3 (fio's manual, "Trace file format"): the lines
//! `FILE ACTION [OFFSET LENGTH]`, in version 3 with a time in milliseconds before them.

use seekscope_run::{IoEvent, IoFlags, IoOp};

use crate::import::{Import, LineReader, LineResult, RecordSink, malformed};

pub(crate) const HEADER_2: &str = "fio version 2 iolog";
pub(crate) const HEADER_3: &str = "fio version 3 iolog";

#[derive(Default)]
pub(crate) struct Reader {
    /// The iolog's version; 0 before the first line.
    version: u8,
    /// Time of the latest event, ns. Events of the same moment are placed a nanosecond apart, so
    /// that their order is kept.
    clock_ns: u64,
}

impl LineReader for Reader {
    fn line<S: RecordSink>(&mut self, import: &mut Import<'_, S>, text: &str) -> LineResult<()> {
        let text = text.trim();
        if self.version == 0 {
            self.version = match text {
                HEADER_2 => 2,
                HEADER_3 => 3,
                _ => {
                    return Err(malformed(
                        "the first line names neither version 2 nor version 3",
                    ));
                }
            };
            import.summary.untimed = self.version == 2;
            import.summary.without_latency = true;
            import.skip("header");
            return Ok(());
        }
        let mut fields = text.split_ascii_whitespace();
        let mut next = |what: &str| fields.next().ok_or_else(|| malformed(format!("no {what}")));
        if self.version == 3 {
            let ms = number::<u64>(next("time")?, "time")?;
            let ns = ms
                .checked_mul(1_000_000)
                .ok_or_else(|| malformed("the time is larger than any clock's"))?;
            self.clock_ns = self.clock_ns.max(ns);
        }
        let (path, action) = (next("file")?, next("action")?);
        let op = match action {
            "add" | "open" | "close" => {
                import.skip("a file that is added, opened or closed");
                return Ok(());
            }
            "trim" => {
                import.skip("a trim");
                return Ok(());
            }
            "wait" => {
                let us = number::<u64>(next("offset")?, "waiting time")?;
                self.clock_ns = self.clock_ns.saturating_add(us.saturating_mul(1000));
                import.skip("a wait");
                return Ok(());
            }
            "read" => IoOp::Pread,
            "write" => IoOp::Pwrite,
            "sync" => IoOp::Fsync,
            "datasync" => IoOp::Fdatasync,
            _ => return Err(malformed("unknown action")),
        };
        let offset = number::<u64>(next("offset")?, "offset")?;
        let length = number::<i32>(next("length")?, "length")?;
        let length = u32::try_from(length).map_err(|_| malformed("negative length"))?;
        let transfers = op.is_read() || op.is_write();
        let file_id = import.file_id(path)?;
        import.event(&IoEvent {
            t_ns: self.clock_ns,
            pid: 0,
            tid: 0,
            file_id,
            op,
            flags: IoFlags(IoFlags::CACHE_UNKNOWN),
            offset: transfers.then_some(offset),
            length,
            latency_ns: 0,
            result: if transfers { length.cast_signed() } else { 0 },
            device_read_bytes: 0,
            request: None,
        })?;
        self.clock_ns = self.clock_ns.saturating_add(1);
        Ok(())
    }
}

/// Parses a number, or says what is wrong with it.
pub(crate) fn number<T: std::str::FromStr>(text: &str, what: &str) -> LineResult<T> {
    text.parse().map_err(|_| {
        malformed(format!(
            "{what} `{}` is not a number in the allowed range",
            brief(text)
        ))
    })
}

fn brief(text: &str) -> &str {
    text.char_indices()
        .nth(24)
        .map_or(text, |(end, _)| &text[..end])
}
