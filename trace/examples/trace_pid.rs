//! Traces a process for a while and prints the trailer: `trace_pid PID SECONDS [auto|tp_btf|tracepoint] [all|whole-disk]`.
//! With `all` it also follows rings, faults and the requests for the process's files, with `whole-disk`
//! all requests of their disks.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use seekscope_run::{FileRecord, IoEvent};
use seekscope_trace::{
    BackendChoice, EventSink, Group, LiveSource, Recording, RequestScope, SinkError, TraceOptions,
};

/// Counts, and forgets.
struct Discard;

impl EventSink for Discard {
    fn event(&mut self, _: &IoEvent) -> Result<(), SinkError> {
        Ok(())
    }
    fn file(&mut self, _: &FileRecord) -> Result<(), SinkError> {
        Ok(())
    }
}

#[allow(clippy::print_stdout, reason = "an example prints")]
fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: trace_pid PID SECONDS [auto|tp_btf|tracepoint] [all|whole-disk]";
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or(usage)?.parse()?;
    let seconds = arguments.next().ok_or(usage)?.parse()?;
    let backend = match arguments.next().as_deref() {
        None | Some("auto") => BackendChoice::Auto,
        Some("tp_btf") => BackendChoice::TpBtf,
        Some("tracepoint") => BackendChoice::Tracepoint,
        Some(_) => return Err(usage.into()),
    };
    let (groups, requests) = match arguments.next().as_deref() {
        None => (vec![Group::Calls], RequestScope::default()),
        Some("all") => (Group::ALL.to_vec(), RequestScope::TracedFiles),
        Some("whole-disk") => (Group::ALL.to_vec(), RequestScope::WholeDisk),
        Some(_) => return Err(usage.into()),
    };
    let source = LiveSource::attach(&TraceOptions {
        backend,
        groups,
        requests,
        ..TraceOptions::new(pid)
    })?;
    let recording = Recording::start(Box::new(source), Box::new(Discard));
    sleep(Duration::from_secs_f64(seconds));
    let (facts, _) = recording.stop()?;
    println!("{} events\n{facts:#?}", facts.written);
    Ok(())
}
