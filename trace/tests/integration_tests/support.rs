//! A traced child process (this very binary, started again), and a sink that remembers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use seekscope_run::{FileRecord, IoEvent, ThreadRecord, TraceFacts};
use seekscope_trace::{
    BackendChoice, EventSink, EventSource, LiveSource, Recording, SinkError, TraceOptions,
};

pub(crate) const BOTH: [BackendChoice; 2] = [BackendChoice::TpBtf, BackendChoice::Tracepoint];

/// Names the job that the child does; see `jobs`.
pub(crate) const JOB: &str = "SEEKSCOPE_TRACE_TEST_JOB";
pub(crate) const FOLDER: &str = "SEEKSCOPE_TRACE_TEST_FOLDER";

/// One traced test at a time: they look at programs of this process, and 2 CPUs are soon full.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static TRACEFS: Once = Once::new();
    TRACEFS.call_once(|| {
        if !Path::new("/sys/kernel/tracing/events").exists() {
            let mounted = Command::new("mount")
                .args(["-t", "tracefs", "tracefs", "/sys/kernel/tracing"])
                .status();
            assert!(
                mounted.unwrap().success(),
                "classic tracepoints need tracefs"
            );
        }
    });
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The command that makes this binary do a job.
pub(crate) fn job_command(wrapper: &[&str], job: &str, folder: &Path) -> Command {
    let binary = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = wrapper.iter().map(AsRef::as_ref).collect();
    words.push(binary.as_os_str());
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .args(["--exact", "jobs::entry", "--nocapture", "--test-threads=1"])
        .env(JOB, job)
        .env(FOLDER, folder)
        .stdout(Stdio::null());
    command
}

/// A child that prepares, waits, works when told, and stays until dismissed.
pub(crate) struct Worker {
    child: Child,
    said: BufReader<ChildStderr>,
}

impl Worker {
    /// Starts the child and waits until it has prepared.
    pub(crate) fn start(job: &str, folder: &Path) -> Self {
        let mut child = job_command(&[], job, folder)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut worker = Self { child, said };
        assert_eq!(worker.lines_until("ready"), Vec::<String>::new());
        worker
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the child work; returns what it says about it, once it is done.
    pub(crate) fn work(&mut self) -> Vec<String> {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"go\n")
            .unwrap();
        self.lines_until("done")
    }

    fn lines_until(&mut self, end: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.said.read_line(&mut line).unwrap(),
                0,
                "the child ended early, having said {lines:?}"
            );
            match line.trim_end() {
                line if line == end => return lines,
                line => lines.push(line.to_string()),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Everything that was traced.
#[derive(Default)]
pub(crate) struct Traced {
    pub(crate) events: Vec<IoEvent>,
    pub(crate) files: HashMap<u32, FileRecord>,
    pub(crate) threads: HashMap<u32, ThreadRecord>,
}

impl Traced {
    pub(crate) fn path(&self, event: &IoEvent) -> &str {
        &self.files[&event.file_id].path
    }

    pub(crate) fn events_on<'a>(
        &'a self,
        path: &'a str,
    ) -> impl Iterator<Item = &'a IoEvent> + Clone {
        self.events
            .iter()
            .filter(move |event| self.path(event) == path)
    }
}

#[derive(Clone, Default)]
pub(crate) struct Collector(pub(crate) Arc<Mutex<Traced>>);

impl Collector {
    pub(crate) fn take(&self) -> Traced {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl EventSink for Collector {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        let mut traced = self.0.lock().unwrap();
        assert!(
            traced.files.contains_key(&event.file_id),
            "a file must be announced before its events"
        );
        traced.events.push(*event);
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.0
            .lock()
            .unwrap()
            .files
            .insert(file.file_id, file.clone());
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        let mut traced = self.0.lock().unwrap();
        traced.threads.insert(thread.tid, thread.clone());
        Ok(())
    }
}

/// Traces a whole job with a draining thread.
pub(crate) fn trace(
    job: &str,
    folder: &Path,
    backend: BackendChoice,
) -> (TraceFacts, Traced, Vec<String>) {
    let mut worker = Worker::start(job, folder);
    let sink = Collector::default();
    let source = attach(&worker, backend, 16 << 20);
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    let said = worker.work();
    let (facts, _) = recording.stop().unwrap();
    assert_eq!(facts.seen, facts.written + facts.lost, "{facts:?}");
    assert_eq!(facts.lost, 0, "{facts:?}");
    (facts, sink.take(), said)
}

pub(crate) fn attach(worker: &Worker, backend: BackendChoice, ring_bytes: u32) -> LiveSource {
    LiveSource::attach(&TraceOptions {
        ring_bytes,
        backend,
        ..TraceOptions::new(worker.pid())
    })
    .unwrap()
}

/// Ends a source that nobody drained until now.
pub(crate) fn finish(mut source: LiveSource) -> (TraceFacts, Traced) {
    let mut sink = Collector::default();
    let facts = source.finish(&mut sink).unwrap();
    (facts, sink.take())
}
