//! The formats, how they are recognised, and what each of them leaves unknown.

use seekscope_run::Limitation;

use crate::import::ImportSummary;
use crate::{blkparse, csv_trace, fio, strace};

/// How much of a text [`detect`] examines, bytes.
pub const DETECTION_BYTES: usize = 64 << 10;

/// The most lines before the first recognisable one: mostly a server's own messages.
const DETECTION_LINES: usize = 100;

/// A foreign trace format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// fio's iolog, version 2 or 3.
    Fio,
    /// blkparse's default text.
    Blkparse,
    /// strace with -f, -ttt (or -tt, -t, -r), -T and -y.
    Strace,
    /// Comma-separated values with a header, as a bpftrace script prints them.
    Csv,
}

/// Detects the format of a text from its beginning.
pub fn detect(beginning: &[u8]) -> Option<Format> {
    let beginning = &beginning[..beginning.len().min(DETECTION_BYTES)];
    let text = String::from_utf8_lossy(beginning);
    let first = text.lines().next()?.trim();
    if first == fio::HEADER_2 || first == fio::HEADER_3 {
        return Some(Format::Fio);
    }
    text.lines().take(DETECTION_LINES).find_map(|line| {
        if csv_trace::Columns::of(line).is_some() {
            Some(Format::Csv)
        } else if blkparse::head(line).is_some() {
            Some(Format::Blkparse)
        } else if strace::is_line(line) {
            Some(Format::Strace)
        } else {
            None
        }
    })
}

impl Format {
    /// Returns the name of the tool that writes it.
    pub fn tool(self) -> &'static str {
        match self {
            Self::Fio => "fio",
            Self::Blkparse => "blkparse",
            Self::Strace => "strace",
            Self::Csv => "a CSV trace",
        }
    }

    /// Returns what a trace of this format cannot tell, given what was read.
    pub fn limitations(self, summary: &ImportSummary) -> Vec<Limitation> {
        let mut limitations = Vec::new();
        let mut limit = |what: &str, why: &str, remedy: &str| {
            limitations.push(Limitation {
                what: what.into(),
                why: why.into(),
                remedy: remedy.into(),
            });
        };
        let tool = self.tool();
        if summary.untimed {
            limit(
                "the times of the events show only their order",
                &format!("the trace of {tool} has no times"),
                "write version 3 with fio; trace with strace -f -ttt -T -y",
            );
        } else if self == Self::Fio {
            limit(
                "times are exact to a millisecond; within a millisecond they show only the order",
                "the times in fio's iolog are in milliseconds",
                "record with `seekscope trace`",
            );
        }
        if summary.without_latency {
            limit(
                "latencies are unknown and are given as 0",
                &format!("the trace of {tool} has no latencies"),
                "trace with strace -T, or record with `seekscope trace`",
            );
        }
        match self {
            Self::Fio => limit(
                "threads, results of calls and page-cache hits are unknown; all calls are taken to \
                 be successful",
                "fio's iolog describes what to do, not what happened",
                "record with `seekscope trace`",
            ),
            Self::Blkparse => limit(
                "files, and offsets in them, are unknown: these are requests to a disk",
                "blktrace records below the filesystem",
                "record with `seekscope trace`, which relates requests to files",
            ),
            Self::Strace => limit(
                "page-cache hits, mapped files and io_uring are missing; latencies include the \
                 overhead of strace",
                "strace sees system calls from outside",
                "record with `seekscope trace`",
            ),
            Self::Csv => limit(
                "it is unknown how many calls the tracer lost",
                "the trace does not record it",
                "record with `seekscope trace`",
            ),
        }
        limitations
    }
}
