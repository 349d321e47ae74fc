//! A stretch of time during which the server's I/O is recorded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use seekscope_run::directory::IoWriter;
use seekscope_run::{
    FileRecord, IoEvent, Limitation, Phase, ProcessIo, ThreadRecord, monotonic_ns,
};
use seekscope_server::ProcFs;
use seekscope_server::process::io_between;
use seekscope_trace::{EventSink, LiveSource, Recording, SinkError, TraceError, TraceOptions};

use crate::session::{OpenPhase, Session};

/// Recording from [`Measurement::begin`] until it is dropped, also by an interruption. Either way
/// the phase, with what was measured so far, is then in the session.
pub struct Measurement {
    recording: Option<Recording>,
    server: Option<(u32, ProcessIo)>,
    phase: Option<Phase>,
    slot: Arc<Mutex<Option<OpenPhase>>>,
}

impl Measurement {
    /// Starts recording process `pid`. Where tracing is impossible the session's limitations say
    /// why, and the counters of `/proc` are still taken.
    pub fn begin(session: &mut Session, pid: Option<u32>, mut phase: Phase) -> Result<Self> {
        let sink = RunSink {
            writer: session.directory.io_writer()?,
            next_file_id: Arc::clone(&session.next_file_id),
        };
        let recording = match pid.map(start_recording(sink)) {
            Some(Ok(recording)) => Some(recording),
            Some(Err(error)) => {
                session.limit(untraced(&error));
                None
            }
            None => None,
        };
        let server = pid.and_then(|pid| Some((pid, ProcFs::host().io(pid).ok()?)));
        phase.started_ns = monotonic_ns();
        session.open_phase(&phase)?;
        Ok(Self {
            recording,
            server,
            phase: Some(phase),
            slot: session.phase_slot(),
        })
    }

    fn end(&mut self) {
        let Some(mut phase) = self.phase.take() else {
            return;
        };
        phase.ended_ns = monotonic_ns();
        phase.process_io = self
            .server
            .and_then(|(pid, before)| Some(io_between(&before, &ProcFs::host().io(pid).ok()?)));
        let mut trace_failure = None;
        if let Some(recording) = self.recording.take() {
            match recording.stop() {
                Ok((facts, _)) => phase.trace = Some(facts.with_share_of(phase.process_io)),
                Err(error) => trace_failure = Some(error.to_string()),
            }
        }
        let open = OpenPhase {
            phase,
            trace_failure,
        };
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
    }
}

impl Drop for Measurement {
    fn drop(&mut self) {
        self.end();
    }
}

fn start_recording(sink: RunSink) -> impl FnOnce(u32) -> Result<Recording, TraceError> {
    move |pid| {
        // Numbers stay unique in the run although each trace counts its files anew.
        let first_file_id = sink.next_file_id.load(Ordering::Relaxed);
        let source = LiveSource::attach(&TraceOptions::new(pid))?.with_first_file_id(first_file_id);
        Ok(Recording::start(Box::new(source), Box::new(sink)))
    }
}

fn untraced(error: &TraceError) -> Limitation {
    let what = "the server's reads and writes were not traced: no access patterns, latencies or figures per file".into();
    match error {
        TraceError::NoPermission {
            what: action,
            why,
            remedy,
        } => Limitation {
            what,
            why: format!("cannot {action}: {why}"),
            remedy: remedy.clone(),
        },
        other => Limitation {
            what,
            why: other.to_string(),
            remedy: String::new(),
        },
    }
}

/// Passes events on to the run directory and keeps the next trace's file numbers apart.
struct RunSink {
    writer: IoWriter,
    next_file_id: Arc<AtomicU32>,
}

impl EventSink for RunSink {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        EventSink::event(&mut self.writer, event)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.next_file_id
            .fetch_max(file.file_id.saturating_add(1), Ordering::Relaxed);
        EventSink::file(&mut self.writer, file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        EventSink::thread(&mut self.writer, thread)
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        self.writer.drained()
    }
}
