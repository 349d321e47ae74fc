//! Where events come from and where they go.

use seekscope_run::directory::IoWriter;
use seekscope_run::{FileRecord, IoEvent, ThreadRecord, TraceFacts};

use crate::error::{SinkError, TraceError};

/// Receives events, e.g. a run directory.
pub trait EventSink {
    /// Takes one event. Its file was announced before.
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError>;

    /// Takes a file. Called again with the same `file_id` when more is known about it (its name,
    /// its size, that it was deleted): the last record counts.
    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError>;

    /// Takes a thread. The last record with the same `tid` counts.
    fn thread(&mut self, _: &ThreadRecord) -> Result<(), SinkError> {
        Ok(())
    }

    /// Reports how many events were lost so far. Called now and then; the trailer is authoritative.
    fn lost(&mut self, _events: u64) {}

    /// Called when all available events have been handed over: a chance to make them durable.
    fn drained(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

impl<S: EventSink + ?Sized> EventSink for Box<S> {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        (**self).event(event)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        (**self).file(file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        (**self).thread(thread)
    }

    fn lost(&mut self, events: u64) {
        (**self).lost(events);
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        (**self).drained()
    }
}

/// Writes into a run directory. Each drain is flushed to the file, so that a killed run loses
/// little.
impl EventSink for IoWriter {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        Ok(IoWriter::event(self, event)?)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        Ok(IoWriter::file(self, file)?)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        Ok(IoWriter::thread(self, thread)?)
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        Ok(self.flush()?)
    }
}

/// Produces events: the kernel programs, a stored run, a list in a test.
pub trait EventSource: Send {
    /// Hands over the available events, without waiting for more, and returns how many. May stop
    /// early and leave the rest for the next call, so that a flood cannot hold it forever.
    fn drain(&mut self, sink: &mut dyn EventSink) -> Result<usize, TraceError>;

    /// Stops producing. Removing programs from the kernel takes tens of milliseconds of CPU time,
    /// but after the traced time, so it is separate from [`EventSource::finish`], whose cost
    /// counts.
    fn stop(&mut self) {}

    /// Stops producing if that has not been done, hands over what is left and returns the trailer,
    /// without the cost of the thread that called `drain`, which that thread measures.
    fn finish(&mut self, sink: &mut dyn EventSink) -> Result<TraceFacts, TraceError>;

    /// Waits until `drain` should be called again: about [`DRAIN_INTERVAL`], longer when idle.
    fn wait(&mut self) {
        std::thread::sleep(DRAIN_INTERVAL);
    }
}

/// How often events are collected. Rarely enough that an idle server costs nothing noticeable; a
/// busy one is bridged by the ring, which wakes the reader early when it is half full.
pub const DRAIN_INTERVAL: std::time::Duration = std::time::Duration::from_millis(80);
