//! A period during which the server's I/O is recorded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use seekscope_run::directory::IoWriter;
use seekscope_run::{
    CacheState, Disk, FileRecord, IoEvent, IoKind, Limitation, Phase, ProcessIo, ThreadRecord,
    monotonic_ns,
};
use seekscope_server::process::io_between;
use seekscope_server::{Namespace, ProcFs};
use seekscope_trace::{
    BackendChoice, EventSink, Group, LiveSource, Recording, SinkError, TraceError, TraceOptions,
};

use crate::session::{OpenPhase, Session};

/// Loads the programs that record a database's read and write calls, syncs, rings, and the requests for its
/// files. What the kernel does not support becomes a limitation.
pub fn attach(pid: u32) -> Result<LiveSource, TraceError> {
    LiveSource::attach(&TraceOptions {
        kinds: vec![IoKind::Read, IoKind::Write, IoKind::Sync],
        groups: [&Group::OF_DATABASES[..], &[Group::Block]].concat(),
        backend: BackendChoice::Sparing,
        ..TraceOptions::new(pid)
    })
}

/// Returns a phase for a server that is watched.
pub fn observed(activity: String, namespace: Option<&Namespace>, disk: Disk) -> Phase {
    Phase {
        name: "observed".into(),
        activity,
        namespace: namespace.map(ToString::to_string),
        disk,
        cache: as_found(),
        started_ns: 0,
        ended_ns: 0,
        index_build: None,
        trace: None,
        process_io: None,
    }
}

/// Describes caches that nobody emptied.
pub fn as_found() -> CacheState {
    CacheState::AsFound {
        why: "caches of a server that is not ours are left alone; reads that hit them cost a cold server more".into(),
    }
}

/// A recording that runs from [`Measurement::begin`] until it is dropped, even by an interruption. Either way
/// the phase is then in the session, with what was measured so far.
pub struct Measurement {
    recording: Option<Recording>,
    events: Arc<AtomicU64>,
    server: Option<(u32, ProcessIo)>,
    phase: Option<Phase>,
    slot: Arc<Mutex<Option<OpenPhase>>>,
}

impl Measurement {
    /// Starts recording process `pid` with a source attached beforehand, as that takes the kernel a while;
    /// `None` if nothing is to be traced. If tracing is impossible, the session's limitations say why, and the
    /// counters of `/proc` are still taken.
    pub fn begin(
        session: &mut Session,
        pid: Option<u32>,
        source: Option<Result<LiveSource, TraceError>>,
        mut phase: Phase,
    ) -> Result<Self> {
        let sink = RunSink {
            writer: session.directory.io_writer()?,
            events: Arc::default(),
        };
        let events = Arc::clone(&sink.events);
        let recording = match source {
            Some(Ok(source)) => {
                note_refused(session, &source);
                Some(Recording::start(Box::new(source), Box::new(sink)))
            }
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
            events,
            server,
            phase: Some(phase),
            slot: session.phase_slot(),
        })
    }

    /// Returns the number of events recorded so far; `None` if nothing is traced.
    pub fn events(&self) -> Option<u64> {
        self.recording.as_ref()?;
        Some(self.events.load(Ordering::Relaxed))
    }

    /// Returns whether the recording ended by itself, which happens only on an error.
    pub fn has_failed(&self) -> bool {
        self.recording.as_ref().is_some_and(Recording::has_failed)
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
                Ok((facts, _)) => {
                    phase.trace = Some(facts.with_share_of(phase.process_io, phase.duration_ns()));
                }
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

/// Records in the run what this kernel does not let us trace.
fn note_refused(session: &mut Session, source: &LiveSource) {
    for group in source.refused() {
        session.limit(Limitation {
            what: format!("{} were not followed", group.group),
            why: group.how,
            remedy: String::new(),
        });
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

/// Passes events on to the run directory and counts them.
struct RunSink {
    writer: IoWriter,
    events: Arc<AtomicU64>,
}

impl EventSink for RunSink {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.events.fetch_add(1, Ordering::Relaxed);
        EventSink::event(&mut self.writer, event)
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        EventSink::file(&mut self.writer, file)
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        EventSink::thread(&mut self.writer, thread)
    }

    fn drained(&mut self) -> Result<(), SinkError> {
        self.writer.drained()
    }
}
