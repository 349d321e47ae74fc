//! `seekscope mongoperf`, also under the name `mongoperf`: reads options from stdin, prints the classic lines
//! on stdout and everything new on stderr.

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use seekscope_disk::mongoperf::{
    self, CompatOptions, Ending, MongoperfError, Output, Report, Request, read_input,
};

use crate::args::MongoperfArgs;
use crate::exit::Interrupted;
use crate::interruption::Interruption;

/// The seed of `--fixed-seed`: any value will do as long as it stays the same.
const SEED: u64 = 1;

/// Writes lines one by one, as people and scripts watch them.
struct Streams;

impl Output for Streams {
    fn line(&mut self, text: &str) -> std::io::Result<()> {
        let mut out = stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    }

    fn notice(&mut self, text: &str) {
        // A closed stderr is no reason to fail.
        let _ = writeln!(stderr(), "mongoperf: {text}");
    }
}

/// Runs the command.
pub async fn run(args: &MongoperfArgs) -> Result<()> {
    let compat = CompatOptions {
        mongoperf_mbs: args.mongoperf_mbs,
        forever: args.forever,
        keep_file: args.keep_file,
        zero_fill: args.zero_fill,
        sleep_shared: args.sleep_shared,
        allow_cached: args.allow_cached,
        read_around: args.read_around,
        fixed_seed: args.fixed_seed.then_some(SEED),
        zero_threads_ok: args.zero_threads_ok,
        next_to_database: args.next_to_database,
    };
    // Before signals are caught: Ctrl-C while typing ends the process as it should.
    let input = read_input(std::io::stdin()).context("cannot read the options from stdin")?;
    seekscope_disk::end_process_on_bus_error();
    let interruption = Interruption::listen();
    let measuring = move |cancel: &AtomicBool| measure(&input, compat, cancel);
    let (ended, signal) = interruption.cancelling(measuring).await;
    let report = match ended.context("the measuring thread ended unexpectedly")? {
        // The reader of a pipe (head, less) may have had enough: that is success.
        Err(MongoperfError::Output(e)) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            return Ok(());
        }
        other => other?,
    };
    match report.ending {
        // A failure came as an error above; its report covers the time until then.
        Ending::Complete | Ending::Failed => Ok(()),
        Ending::Interrupted => Err(Interrupted(signal.unwrap_or("a signal")).into()),
    }
}

fn measure(
    input: &[u8],
    compat: CompatOptions,
    cancel: &AtomicBool,
) -> Result<Report, MongoperfError> {
    let request = Request::new(input, Path::new("."), compat);
    mongoperf::run(&request, &mut Streams, cancel)
}
