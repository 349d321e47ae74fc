//! What all readers share: where records go, what can go wrong, what was left out.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use seekscope_run::{FileRecord, IoEvent, IoWriter, RunError, ThreadRecord};

use crate::format::Format;
use crate::lines::{Line, LineState, Lines};
use crate::tables::Tables;
use crate::{blkparse, csv_trace, fio, strace};

/// The destination of a reader's records: a run directory, or memory.
pub trait RecordSink {
    /// Takes an event. Its file has been passed before.
    fn event(&mut self, event: &IoEvent) -> Result<(), RunError>;
    /// Takes a file; one with the same number replaces it.
    fn file(&mut self, file: &FileRecord) -> Result<(), RunError>;
    /// Takes a thread; one with the same number replaces it.
    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), RunError>;
}

impl RecordSink for IoWriter {
    fn event(&mut self, event: &IoEvent) -> Result<(), RunError> {
        Self::event(self, event)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), RunError> {
        Self::file(self, file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), RunError> {
        Self::thread(self, thread)
    }
}

/// Why a text could not be read to its end. Everything before that point has reached the sink.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error("line {line} is not valid in {format}: {reason}: `{text}`")]
    Malformed {
        format: &'static str,
        /// Line number, from 1.
        line: u64,
        reason: String,
        /// The line, shortened. It still contains control characters: escape it before showing it.
        text: String,
    },
    #[error(
        "line {line} names more files or threads than can be kept in memory; import the trace in parts"
    )]
    TooManyNames { line: u64 },
    #[error("cannot read the trace: {0}")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Write(#[from] RunError),
    #[error("stopped at line {line}")]
    Stopped { line: u64 },
}

/// Lines that made no event, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    pub lines: u64,
    /// Number of the first of these lines, from 1.
    pub first_line: u64,
}

/// What a text contained.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportSummary {
    pub events: u64,
    /// Lines read.
    pub lines: u64,
    /// Lines that made no event, by reason. A call that spans two lines makes one event.
    pub skipped: BTreeMap<&'static str, Skipped>,
    /// The earliest start and the latest end of an event, ns; `None` if there are no events.
    pub span_ns: Option<(u64, u64)>,
    /// Whether times count from 1970 UTC, not from an unknown moment.
    pub since_1970: bool,
    /// Whether the text gives no times, so that those of the events only show their order.
    pub untimed: bool,
    /// Whether the text gives no latencies.
    pub without_latency: bool,
}

impl ImportSummary {
    fn count(&mut self, event: &IoEvent) {
        self.events += 1;
        let end_ns = event.t_ns.saturating_add(event.latency_ns);
        let (first, last) = self.span_ns.unwrap_or((u64::MAX, 0));
        self.span_ns = Some((first.min(event.t_ns), last.max(end_ns)));
    }
}

/// A reader's working state, wrapped around the sink.
pub(crate) struct Import<'a, S> {
    sink: &'a mut S,
    pub(crate) tables: Tables,
    pub(crate) summary: ImportSummary,
    format: Format,
    /// Number of the current line, from 1.
    line: u64,
}

/// The result for one line.
pub(crate) type LineResult<T> = Result<T, LineError>;

/// An error in the line, or in the sink.
#[derive(Debug)]
pub(crate) enum LineError {
    Malformed(String),
    TooManyNames,
    Write(RunError),
}

impl From<RunError> for LineError {
    fn from(error: RunError) -> Self {
        Self::Write(error)
    }
}

/// Makes a [`LineError`], for `ok_or_else` and the like.
pub(crate) fn malformed(reason: impl Into<String>) -> LineError {
    LineError::Malformed(reason.into())
}

impl<S: RecordSink> Import<'_, S> {
    pub(crate) fn event(&mut self, event: &IoEvent) -> LineResult<()> {
        self.sink.event(event)?;
        self.summary.count(event);
        Ok(())
    }

    /// Returns the number of the file with this path.
    pub(crate) fn file_id(&mut self, path: &str) -> LineResult<u32> {
        self.tables.file_id(path, |file| self.sink.file(file))
    }

    /// Returns the number of the pseudo-file for the requests of a disk.
    pub(crate) fn disk_id(&mut self, major: u32, minor: u32) -> LineResult<u32> {
        let sink = &mut *self.sink;
        self.tables.disk_id(major, minor, |file| sink.file(file))
    }

    pub(crate) fn thread(&mut self, tid: u32, pid: u32, name: &str) -> LineResult<()> {
        let sink = &mut *self.sink;
        self.tables
            .thread(tid, pid, name, |thread| sink.thread(thread))
    }

    /// Counts the current line as one that makes no event.
    pub(crate) fn skip(&mut self, why: &'static str) {
        let skipped = self.summary.skipped.entry(why).or_insert(Skipped {
            lines: 0,
            first_line: self.line,
        });
        skipped.lines += 1;
    }
}

/// A format's reader, which is given every line in order.
pub(crate) trait LineReader {
    fn line<S: RecordSink>(&mut self, import: &mut Import<'_, S>, text: &str) -> LineResult<()>;

    /// Called after the last line.
    fn end<S: RecordSink>(&mut self, _import: &mut Import<'_, S>) {}
}

/// Reads a trace to its end. `go_on` is called now and then, and reading stops when it returns
/// false. Returns what was read, and how that ended.
///
/// # Errors
/// [`ImportError`] if the format's tool cannot have written a line (lines that are merely of no
/// interest are counted instead), or if reading or writing fails.
pub fn import<S: RecordSink>(
    format: Format,
    reader: impl BufRead,
    sink: &mut S,
    go_on: impl FnMut() -> bool,
) -> (ImportSummary, Result<(), ImportError>) {
    let mut import = Import {
        sink,
        tables: Tables::default(),
        summary: ImportSummary::default(),
        format,
        line: 0,
    };
    let ended = match format {
        Format::Fio => import.read(reader, fio::Reader::default(), go_on),
        Format::Blkparse => import.read(reader, blkparse::Reader::default(), go_on),
        Format::Strace => import.read(reader, strace::Reader::default(), go_on),
        Format::Csv => import.read(reader, csv_trace::Reader::default(), go_on),
    };
    (import.summary, ended)
}

/// Lines between two calls of `go_on`.
const LINES_PER_QUESTION: u64 = 1024;

impl<S: RecordSink> Import<'_, S> {
    fn read(
        &mut self,
        reader: impl BufRead,
        mut format: impl LineReader,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<(), ImportError> {
        let mut lines = Lines::of(reader);
        while let Some(line) = lines.next()? {
            self.line = line.number;
            self.summary.lines = line.number;
            if line.number % LINES_PER_QUESTION == 0 && !go_on() {
                return Err(ImportError::Stopped { line: self.line });
            }
            self.one_line(&mut format, &line)?;
        }
        format.end(self);
        Ok(())
    }

    fn one_line(
        &mut self,
        format: &mut impl LineReader,
        line: &Line<'_>,
    ) -> Result<(), ImportError> {
        if line.state == LineState::TooLong {
            self.skip("it is longer than 1 MiB");
            return Ok(());
        }
        match format.line(self, &line.text) {
            Ok(()) => {}
            Err(LineError::Malformed(_)) if line.state == LineState::Last => {
                self.skip("it is cut off at the end of the text");
            }
            Err(LineError::Malformed(reason)) => {
                return Err(ImportError::Malformed {
                    format: self.format.tool(),
                    line: line.number,
                    reason,
                    text: shortened(&line.text),
                });
            }
            Err(LineError::TooManyNames) => {
                return Err(ImportError::TooManyNames { line: line.number });
            }
            Err(LineError::Write(error)) => return Err(error.into()),
        }
        Ok(())
    }
}

fn shortened(text: &str) -> String {
    const CHARS: usize = 120;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
