//! Traces a process for a while and prints the trailer: `trace_pid PID SECONDS [auto|tp_btf|tracepoint] [RING_BYTES]`.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use seekscope_run::{FileRecord, IoEvent};
use seekscope_trace::{BackendChoice, EventSink, LiveSource, Recording, SinkError, TraceOptions};

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
    let usage = "usage: trace_pid PID SECONDS [auto|tp_btf|tracepoint] [RING_BYTES]";
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or(usage)?.parse()?;
    let seconds = arguments.next().ok_or(usage)?.parse()?;
    let backend = match arguments.next().as_deref() {
        None | Some("auto") => BackendChoice::Auto,
        Some("tp_btf") => BackendChoice::TpBtf,
        Some("tracepoint") => BackendChoice::Tracepoint,
        Some(_) => return Err(usage.into()),
    };
    let source = LiveSource::attach(&TraceOptions {
        backend,
        ..TraceOptions::new(pid)
    })?;
    let recording = Recording::start(Box::new(source), Box::new(Discard));
    sleep(Duration::from_secs_f64(seconds));
    let (facts, _) = recording.stop()?;
    println!("{} events\n{facts:#?}", facts.written);
    Ok(())
}
