//! Real traces of fio jobs whose pattern is known. Needs root and fio, and fails, not skips,
//! without.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use seekscope_pattern::{AnalysisOptions, FileTrace, PatternKind, TraceAnalyser, TraceAnalysis};
use seekscope_run::{FileRecord, IoEvent, ThreadRecord};
use seekscope_trace::{EventSink, LiveSource, Recording, SinkError, TraceOptions};

const FILE_BYTES: u64 = 64 << 20;

/// Analyses while recording, like the command does.
struct Sink {
    analyser: TraceAnalyser,
    files: Vec<FileRecord>,
    threads: Vec<ThreadRecord>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Option<Sink>>>);

impl EventSink for Shared {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.0
            .lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .analyser
            .push(event);
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        self.0
            .lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .files
            .push(file.clone());
        Ok(())
    }

    fn thread(&mut self, thread: &ThreadRecord) -> Result<(), SinkError> {
        self.0
            .lock()
            .unwrap()
            .as_mut()
            .unwrap()
            .threads
            .push(thread.clone());
        Ok(())
    }
}

/// Runs fio on a file of 64 MiB, traced, and analyses the trace. Jobs are threads of the process
/// that is started: a shell that becomes fio when tracing has begun.
fn trace(options: &[&str]) -> (TraceAnalysis, u64) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("data");
    fill(&path);
    // Not by name: a file may be gone before its name is looked up.
    let inode = path.metadata().unwrap().ino();
    let mut fio = Command::new("sh")
        .args(["-c", "read go && exec fio \"$@\"", "fio"])
        .args(["--name=job", "--ioengine=psync", "--thread"])
        .args(["--randseed=1", "--fallocate=none", "--bs=4k"])
        .arg(format!("--filename={}", path.display()))
        .args(options)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let shared = Shared(Arc::new(Mutex::new(Some(Sink {
        analyser: TraceAnalyser::new(AnalysisOptions::default()),
        files: Vec::new(),
        threads: Vec::new(),
    }))));
    let source = LiveSource::attach(&TraceOptions::new(fio.id())).unwrap();
    let recording = Recording::start(Box::new(source), Box::new(shared.clone()));
    fio.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(fio.wait().unwrap().success(), "fio {options:?}");
    let (facts, _) = recording.stop().unwrap();
    assert_eq!((facts.lost, facts.seen), (0, facts.written));
    let sink = shared.0.lock().unwrap().take().unwrap();
    let analysis = sink.analyser.finish(&sink.files, &sink.threads);
    assert_eq!((analysis.events, analysis.late_events), (facts.written, 0));
    (analysis, inode)
}

fn fill(path: &Path) {
    let mut random = File::open("/dev/urandom").unwrap();
    let mut file = File::create(path).unwrap();
    std::io::copy(&mut std::io::Read::take(&mut random, FILE_BYTES), &mut file).unwrap();
    file.sync_all().unwrap();
}

fn traced_file(options: &[&str]) -> FileTrace {
    let (analysis, inode) = trace(options);
    let mut files = analysis.files.into_iter().filter(|f| f.file.inode == inode);
    let file = files.next().unwrap();
    assert!(files.next().is_none());
    file
}

fn read_kind(options: &[&str]) -> PatternKind {
    traced_file(options).reads.pattern.unwrap().kind
}

#[test]
fn reads() {
    let file = traced_file(&["--rw=read", "--io_size=16m"]);
    let pattern = file.reads.pattern.unwrap();
    assert_eq!(
        (pattern.kind, pattern.accesses),
        (PatternKind::Sequential, 4096)
    );
    assert_eq!(
        (pattern.contiguous_share, pattern.distinct_bytes),
        (1.0, 16 << 20)
    );
    assert_eq!(file.writes.transfers.calls, 0);
    assert_eq!(
        read_kind(&["--rw=randread", "--io_size=16m"]),
        PatternKind::Random
    );
    let half = ["--rw=randread", "--percentage_random=50", "--io_size=16m"];
    assert_eq!(read_kind(&half), PatternKind::Mixed);
    assert_eq!(
        read_kind(&["--rw=read", "--size=32k", "--loops=200"]),
        PatternKind::ReRead
    );
}

#[test]
fn strides_and_backward_reads() {
    // fio adds the number to the place it would have gone to: 64 KiB of holes are inside the
    // read-ahead window, 1 MiB are not.
    assert_eq!(
        read_kind(&["--rw=read:64k", "--io_size=2m"]),
        PatternKind::Sequential
    );
    let file = traced_file(&["--rw=read:1m", "--io_size=200k"]);
    let pattern = file.reads.pattern.unwrap();
    assert_eq!(
        (pattern.kind, pattern.stride_bytes),
        (PatternKind::Strided, Some(1_052_672))
    );
    assert_eq!(
        read_kind(&["--rw=read:-8k", "--io_size=2m"]),
        PatternKind::Backward
    );
}

#[test]
fn writes_and_both() {
    let file = traced_file(&["--rw=write", "--io_size=8m"]);
    assert_eq!(file.writes.pattern.unwrap().kind, PatternKind::Sequential);
    let random = traced_file(&["--rw=randwrite", "--io_size=8m"]);
    assert_eq!(random.writes.pattern.unwrap().kind, PatternKind::Random);
    let both = traced_file(&["--rw=randrw", "--io_size=8m"]);
    assert_eq!(both.reads.pattern.unwrap().kind, PatternKind::Random);
    assert_eq!(both.writes.pattern.unwrap().kind, PatternKind::Random);
    assert_eq!(
        both.reads.transfers.calls + both.writes.transfers.calls,
        2048
    );
    let both = traced_file(&["--rw=rw", "--io_size=8m"]);
    assert_eq!(both.reads.pattern.unwrap().kind, PatternKind::Sequential);
    assert_eq!(both.writes.pattern.unwrap().kind, PatternKind::Sequential);
}

#[test]
fn four_readers_of_one_file() {
    let file = traced_file(&[
        "--rw=read",
        "--numjobs=4",
        "--offset_increment=16m",
        "--size=4m",
        "--thinktime=100",
    ]);
    let (pattern, shape) = (file.reads.pattern.unwrap(), file.reads.shape.unwrap());
    assert_eq!(pattern.kind, PatternKind::Sequential);
    assert_eq!((shape.threads, shape.sequential_threads), (4, 4));
    assert_eq!(shape.thread_sequential_share, 1.0);
    assert!(
        (2..=4).contains(&pattern.interleaved_streams),
        "{pattern:?}"
    );
    assert!(pattern.sequential_share < 1.0);
}
