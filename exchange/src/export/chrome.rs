//! Trace-event JSON, which Perfetto and chrome://tracing display: a row per thread, a slice per
//! call (the format's own document: "Trace Event Format", complete events `X` and metadata `M`).

use std::collections::HashSet;
use std::io::{self, Write};

use seekscope_run::{CacheOutcome, IoEvent};
use serde_json::json;

use super::Names;

/// Writes the JSON document.
pub struct ChromeWriter<'a, W> {
    out: W,
    names: &'a Names,
    named_threads: HashSet<u32>,
    first: bool,
}

impl<'a, W: Write> ChromeWriter<'a, W> {
    /// Starts the document.
    pub fn begin(mut out: W, names: &'a Names) -> io::Result<Self> {
        write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Self {
            out,
            names,
            named_threads: HashSet::new(),
            first: true,
        })
    }

    /// Writes an event, preceded by the thread's name if it is the thread's first.
    pub fn event(&mut self, event: &IoEvent) -> io::Result<()> {
        if self.named_threads.insert(event.tid) {
            let name = self.names.thread(event.tid);
            if !name.is_empty() {
                let metadata = json!({
                    "name": "thread_name", "ph": "M", "pid": event.pid, "tid": event.tid,
                    "args": { "name": name },
                });
                self.item()?;
                write!(self.out, "{metadata}")?;
            }
        }
        let cache = event.cache_outcome().map(|outcome| match outcome {
            CacheOutcome::Hit => "hit",
            CacheOutcome::Miss => "miss",
            CacheOutcome::WaitedForOthers => "waited for others",
            CacheOutcome::Direct => "direct",
        });
        let arguments = json!({
            "file": self.names.path(event.file_id),
            "offset": event.offset,
            "length": event.length,
            "result": event.result,
            "cache": cache,
            "device_read_bytes": event.device_read_bytes,
            "sector": event.request.map(|r| r.sector),
        });
        self.item()?;
        // Times are microseconds; written by hand, because a float would lose the nanoseconds.
        write!(
            self.out,
            "{{\"name\":\"{}\",\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{}.{:03},\"dur\":{}.{:03},\"pid\":{},\"tid\":{},\"args\":{arguments}}}",
            event.op.name(),
            cache.unwrap_or("io"),
            event.t_ns / 1000,
            event.t_ns % 1000,
            event.latency_ns / 1000,
            event.latency_ns % 1000,
            event.pid,
            event.tid,
        )
    }

    fn item(&mut self) -> io::Result<()> {
        let before = if self.first { "\n" } else { ",\n" };
        self.first = false;
        self.out.write_all(before.as_bytes())
    }

    /// Ends the document.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.out, "\n]}}")?;
        self.out.flush()
    }
}
