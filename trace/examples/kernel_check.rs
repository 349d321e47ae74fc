//! Does tracing work on this kernel? Traces a child that makes known calls, once per backend, and
//! prints a line for each: `kernel_check FOLDER`. `trace/kernels/matrix` runs it, linked statically,
//! on kernels that this machine does not run.
//!
//! ```text
//! seekscope-check KERNEL BACKEND exact USED seen=N written=N lost=N
//! seekscope-check KERNEL BACKEND wrong USED seen=N written=N lost=N: the first differences
//! seekscope-check KERNEL BACKEND failed - the error
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example prints, and what fails here fails the check"
)]

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write, stdin};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use seekscope_run::{FileRecord, IoEvent, TraceFacts};
use seekscope_trace::{BackendChoice, EventSink, LiveSource, Recording, SinkError, TraceOptions};

#[path = "../tests/integration_tests/known_program.rs"]
mod known_program;
use known_program::{CALLS_BEFORE, CALLS_PER_ROUND, differences, event_line, filled, run};

const THREADS: usize = 8;
const ROUNDS: usize = 20;
const BACKENDS: [(&str, BackendChoice); 3] = [
    ("tp_btf", BackendChoice::TpBtf),
    ("tracepoint", BackendChoice::Tracepoint),
    ("auto", BackendChoice::Auto),
];
/// Differences that are printed; the rest is more of the same.
const SHOWN: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [folder] => check(Path::new(folder)),
        [job, folder] if job == "work" => work(Path::new(folder)),
        _ => Err("usage: kernel_check FOLDER".into()),
    }
}

fn check(folder: &Path) -> Result<(), Box<dyn Error>> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    for (name, choice) in BACKENDS {
        let verdict = trace_child(folder, choice).unwrap_or_else(|e| format!("failed - {e}"));
        println!("seekscope-check {} {name} {verdict}", kernel.trim());
    }
    Ok(())
}

/// Traces one run of the known program and judges what was recorded.
fn trace_child(folder: &Path, backend: BackendChoice) -> Result<String, Box<dyn Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["work".as_ref(), folder.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let verdict = trace_running(&mut child, backend);
    // Its end of the pipe closes, and it leaves.
    drop(child.stdin.take());
    child.wait()?;
    verdict
}

fn trace_running(child: &mut Child, backend: BackendChoice) -> Result<String, Box<dyn Error>> {
    let mut said = BufReader::new(child.stdout.take().ok_or("the child has no output")?).lines();
    said.next().ok_or("the child did not get ready")??;
    let traced = Traced::default();
    let source = LiveSource::attach(&TraceOptions {
        backend,
        ..TraceOptions::new(child.id())
    })?;
    let recording = Recording::start(Box::new(source), Box::new(traced.clone()));
    child.stdin.as_mut().ok_or("no input")?.write_all(b"go\n")?;
    let calls = THREADS * (CALLS_BEFORE + ROUNDS * CALLS_PER_ROUND);
    let expected: Vec<String> = said.take(calls).collect::<Result<_, _>>()?;
    let (facts, _) = recording.stop()?;
    let found = traced.lines();
    Ok(verdict(&facts, &differences(found, expected)))
}

fn verdict(facts: &TraceFacts, differences: &[String]) -> String {
    let TraceFacts {
        backend,
        backend_reason,
        seen,
        written,
        lost,
        ..
    } = facts;
    let figures = format!("{backend} seen={seen} written={written} lost={lost}");
    if differences.is_empty() && *lost == 0 && seen == written {
        return format!("exact {figures}");
    }
    let shown = &differences[..differences.len().min(SHOWN)];
    format!(
        "wrong {figures} ({backend_reason}): {} differences: {}",
        differences.len(),
        shown.join("; ")
    )
}

/// The child: says when it is ready, works when told, says what it did and stays until dismissed.
fn work(folder: &Path) -> Result<(), Box<dyn Error>> {
    // The threads' own files may be closed before anyone looks; this one tells their folder.
    let _neighbour = filled(&folder.join("neighbour.dat"), 1);
    println!("ready");
    if stdin().lines().next().is_none() {
        return Ok(()); // there is no tracer
    }
    println!("{}", run(folder, THREADS, ROUNDS).join("\n"));
    stdin().lines().for_each(drop);
    Ok(())
}

/// Everything that was traced.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    events: Vec<IoEvent>,
    paths: HashMap<u32, String>,
}

impl Traced {
    fn lines(&self) -> Vec<String> {
        let record = self.0.lock().unwrap();
        let line = |event: &IoEvent| event_line(&record.paths[&event.file_id], event);
        record.events.iter().map(line).collect()
    }
}

impl EventSink for Traced {
    fn event(&mut self, event: &IoEvent) -> Result<(), SinkError> {
        self.0.lock().unwrap().events.push(*event);
        Ok(())
    }

    fn file(&mut self, file: &FileRecord) -> Result<(), SinkError> {
        let mut record = self.0.lock().unwrap();
        record.paths.insert(file.file_id, file.path.clone());
        Ok(())
    }
}
