//! The process that traces: seekscope's tracer, into a run directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use seekscope_run::directory::IoWriter;
use seekscope_run::{FileRecord, IoEvent, RunDirectory, RunDocument, ThreadRecord};
use seekscope_trace::{
    BackendChoice, EventSink, EventSource, Group, LiveSource, Recording, SinkError, TraceOptions,
};
use serde::{Deserialize, Serialize};

use crate::role::{Role, serve as serve_role};

const LOOK_EVERY: Duration = Duration::from_millis(80);

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    TpBtf,
    Tracepoint,
    Auto,
    /// Counts and records nothing, as the exporter does.
    Totals,
    /// All kinds of I/O, as `seekscope trace` records unless told otherwise.
    AllGroups,
}

/// What a trace came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) backend: String,
    pub(crate) seen: u64,
    pub(crate) written: u64,
    pub(crate) lost: u64,
    /// CPU time of the thread that empties the ring and stores the events, ns.
    pub(crate) drain_cpu_ns: u64,
    /// Drains that found events.
    pub(crate) drains: u64,
    /// Largest memory of the whole process, at the end of tracing and after the events were put
    /// into Parquet, bytes.
    pub(crate) tracing_peak_bytes: u64,
    pub(crate) peak_bytes: u64,
}

/// Begins to trace `pid` into a new run directory; [`finish`] ends it.
pub(crate) fn start(pid: u32, backend: Backend, folder: &Path) -> Result<Role> {
    let backend = backend.to_possible_value().context("a backend's name")?;
    Role::start(&[
        "trace".into(),
        pid.to_string(),
        backend.get_name().into(),
        folder.display().to_string(),
    ])
}

/// Ends the trace.
pub(crate) fn finish(mut tracer: Role) -> Result<Outcome> {
    Ok(serde_json::from_str(&tracer.go()?)?)
}

/// Runs in the tracing process.
pub(crate) fn serve(pid: u32, backend: Backend, folder: &Path) -> Result<()> {
    if backend == Backend::Totals {
        return serve_totals(pid);
    }
    let run = RunDirectory::create(folder, &RunDocument::begin("bench", Vec::new()))?;
    let choice = match backend {
        Backend::TpBtf => BackendChoice::TpBtf,
        Backend::Tracepoint => BackendChoice::Tracepoint,
        Backend::Auto | Backend::Totals | Backend::AllGroups => BackendChoice::Auto,
    };
    let source = LiveSource::attach(&TraceOptions {
        backend: choice,
        groups: match backend {
            Backend::AllGroups => Group::ALL.to_vec(),
            _ => vec![Group::Calls],
        },
        ..TraceOptions::new(pid)
    })?;
    let sink = Counted {
        writer: run.io_writer()?,
        drains: Arc::default(),
    };
    let drains = Arc::clone(&sink.drains);
    let mut recording = Some(Recording::start(Box::new(source), Box::new(sink)));
    serve_role(|| {
        let (facts, sink) = recording.take().context("it has ended")?.stop()?;
        drop(sink);
        let tracing_peak_bytes = peak_bytes()?;
        run.finish_records()?;
        let outcome = Outcome {
            backend: facts.backend,
            seen: facts.seen,
            written: facts.written,
            lost: facts.lost,
            drain_cpu_ns: facts.cost.drain_cpu_ns,
            drains: drains.load(Ordering::Relaxed),
            tracing_peak_bytes,
            peak_bytes: peak_bytes()?,
        };
        Ok(serde_json::to_string(&outcome)?)
    })
}

/// Counts until it is told to end.
fn serve_totals(pid: u32) -> Result<()> {
    let mut source = LiveSource::attach(&TraceOptions::totals_of_server(pid))?;
    let (end, ended) = mpsc::channel::<()>();
    // As often as a recording looks, so that as much of the time is spent measuring what the programs cost.
    let counting = std::thread::spawn(move || -> Result<Outcome> {
        while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
            source.drain(&mut Ignored)?;
        }
        let totals = source.take_totals(&mut Ignored)?;
        let calls = totals.iter().map(|file| file.totals.calls).sum();
        let lost = source.lost()?;
        Ok(Outcome {
            backend: "totals".into(),
            seen: calls,
            written: calls,
            lost,
            drain_cpu_ns: 0,
            drains: 0,
            tracing_peak_bytes: peak_bytes()?,
            peak_bytes: peak_bytes()?,
        })
    });
    let mut running = Some((end, counting));
    serve_role(|| {
        let (end, counting) = running.take().context("it has ended")?;
        drop(end);
        let outcome = counting.join().ok().context("it panicked")??;
        Ok(serde_json::to_string(&outcome)?)
    })
}

/// Takes no notice of the files that calls refer to.
struct Ignored;

impl EventSink for Ignored {
    fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
        Ok(())
    }
    fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A run directory's writer that counts its drains.
struct Counted {
    writer: IoWriter,
    drains: Arc<AtomicU64>,
}

impl EventSink for Counted {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        EventSink::event(&mut self.writer, event)
    }
    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        EventSink::file(&mut self.writer, file)
    }
    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        EventSink::thread(&mut self.writer, thread)
    }
    fn drained(&mut self) -> Result<(), SinkError> {
        self.drains.fetch_add(1, Ordering::Relaxed);
        self.writer.drained()
    }
}

/// Largest resident memory of this process so far.
fn peak_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("no VmHWM")?.parse::<u64>()? * 1024)
}
