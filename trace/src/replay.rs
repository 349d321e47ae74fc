//! An event source backed by a list, for tests of code that consumes events.

use std::collections::VecDeque;

use seekscope_run::{FileRecord, IoEvent, TraceFacts};

use crate::error::TraceError;
use crate::source::{EventSink, EventSource};

/// Hands out given files and events.
#[derive(Debug, Clone, Default)]
pub struct VecSource {
    files: Vec<FileRecord>,
    events: VecDeque<IoEvent>,
    per_drain: usize,
    written: u64,
}

impl VecSource {
    /// Announces all files first; then each drain hands over at most `per_drain` events (0: all).
    pub fn new(files: Vec<FileRecord>, events: Vec<IoEvent>, per_drain: usize) -> Self {
        Self {
            files,
            events: events.into(),
            per_drain,
            written: 0,
        }
    }
}

impl EventSource for VecSource {
    fn drain(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError> {
        for file in self.files.drain(..) {
            sink.file(&file).map_err(TraceError::Sink)?;
        }
        let count = match self.per_drain {
            0 => self.events.len(),
            limit => limit.min(self.events.len()),
        };
        for event in self.events.drain(..count) {
            sink.event(&event).map_err(TraceError::Sink)?;
            self.written += 1;
        }
        Ok(count)
    }

    fn finish(&mut self, sink: &mut dyn EventSink) -> Result<TraceFacts, TraceError> {
        self.per_drain = 0;
        self.drain(sink)?;
        Ok(TraceFacts {
            backend: "list".into(),
            backend_reason: "events were given".into(),
            seen: self.written,
            written: self.written,
            ..TraceFacts::default()
        })
    }

    fn wait(&mut self) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
