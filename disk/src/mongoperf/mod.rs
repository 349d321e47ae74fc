//! A drop-in replacement for mongoperf, the disk test that came with MongoDB until 3.6: it has the
//! same input language (`input`), the same ramp of threads and the same lines in the same order,
//! without its faults. Faults that a script may rely on are in [`CompatOptions`].
//!
//! [`run`] does everything. The transcript:
//!
//! ```text
//! mongoperf
//! use -h for help
//! parsed options:
//! { nThreads: 32, fileSizeMB: 1000, r: true }
//! creating test file size:1000MB ...
//! 1GB...                              when more than this many GiB have been written
//! testing...
//! options:{ nThreads: 32, fileSizeMB: 1000, r: true }
//! wthr 32
//! new thread, total running : 1       before each step
//! read:1 write:0                      for each thread of it that was added
//! 4759 ops/sec 18 MB/sec              eight times; with mmf `4759 ops/sec `
//! ```
//!
//! The block of `summary` follows. With r and w each round of a thread counts as two operations, as
//! it used to. Both figures of a sample are truncated to whole numbers; MB is 2^20 bytes, counting
//! what was transferred. All checks of the options come before the line `creating`, whereas the old
//! program created the file first; nThreads 0 is therefore reported there.
//!
//! Where the old program could not do what was requested, this one does the nearest thing and says
//! so: records that direct I/O does not accept are rounded up to the device's block, and with mmf
//! records are rounded up to pages.
//!
//! A mapping has a weakness that cannot be fixed here: when the disk fails to deliver a page, the
//! kernel ends the process. Callers should have [`crate::end_process_on_bus_error`] say why.

mod access;
mod compat;
mod document;
mod echo;
mod error;
mod file;
mod input;
mod options;
mod output;
mod ramp;
mod ramp_run;
mod report;
mod summary;
#[cfg(test)]
mod tests;
mod worker;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use seekscope_run::monotonic_ns;
use seekscope_stats::SplitMix64;

use crate::TestFile;
use access::Access;
use document::Document;
use options::{Options, PAGE_BYTES};
use ramp_run::Ramp;
use worker::Load;

pub use compat::CompatOptions;
pub use error::MongoperfError;
pub use file::KEPT_NAME;
pub use input::{InputError, read_input};
pub use options::OptionsError;
pub use output::Output;
pub use report::{Ending, Report, Sample, StepReport};

/// The text that the old program printed after its name for any command-line argument.
pub const USAGE: &str = "
usage:

  mongoperf < options.json        or        echo '{nThreads:8,fileSizeMB:1000,r:true}' | mongoperf

  {
    nThreads:<n>,     // threads of the last step; the steps are 1, 2, 4, 8 ... (default 1)
    fileSizeMB:<n>,   // size of the test file (default 1)
    recSizeKB:<n>,    // size of each read and write, up to 64000 (default 4)
    r:<bool>,         // read (default false)
    w:<bool>,         // write, each followed by fdatasync (default false)
    mmf:<bool>,       // through a memory mapping and so the page cache (default false: direct I/O)
    sleepMicros:<n>,  // pause of each thread after each round (default 0)
    syncDelay:<n>     // with mmf: seconds between two syncs of the mapping (default 0: never)
  }

One of r and w must be true. Quotes around names may be left out. The file is made in the current
directory and is gone afterwards. Make it larger than the memory to test mmf with a cold cache.
";

/// The parameters of a run.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The bytes that [`read_input`] returned.
    pub input: &'a [u8],
    /// Where the test file is created.
    pub directory: &'a Path,
    pub compat: CompatOptions,
    /// Time between two readings.
    sample: Duration,
}

impl<'a> Request<'a> {
    /// Returns a request with a sample every second.
    pub fn new(input: &'a [u8], directory: &'a Path, compat: CompatOptions) -> Self {
        Self {
            input,
            directory,
            compat,
            sample: Duration::from_secs(1),
        }
    }
}

/// Runs mongoperf; see the module. Setting `cancel` ends the run within the time of the operations
/// in flight, with the summary of what was measured and [`Ending::Interrupted`]. After a failure of
/// the disk the summary is printed too, before the error is returned.
pub fn run(
    request: &Request<'_>,
    output: &mut dyn Output,
    cancel: &AtomicBool,
) -> Result<Report, MongoperfError> {
    output.line("mongoperf")?;
    output.line("use -h for help")?;
    let document = read_options(request.input, output)?;
    let echo = echo::echo(&document);
    output.line("parsed options:")?;
    output.line(&echo)?;
    let options = Options::of(&document, &mut |text| output.notice(text))?;
    let mut report = Report {
        ending: Ending::Complete,
        file_bytes: options.file_bytes,
        operation_bytes: options.record_bytes,
        access: "",
        reads: options.reads,
        writes: options.writes,
        mapped: options.mapped,
        seed: request.compat.fixed_seed.unwrap_or_else(drawn_seed),
        steps: Vec::new(),
    };
    if options.threads == 0 {
        output.line("bad threads field value")?;
        let accepted = request.compat.zero_threads_ok.then_some(report);
        return accepted.ok_or(MongoperfError::NoThreads);
    }
    let outcome = measure(request, &options, &echo, &mut report, output, cancel);
    report.ending = match &outcome {
        Ok(()) => Ending::Complete,
        Err(error) if error.is_interruption() => Ending::Interrupted,
        Err(_) => Ending::Failed,
    };
    if !report.steps.is_empty() {
        for line in summary::summary(&report) {
            output.line(&line)?;
        }
    }
    match outcome {
        Err(error) if !error.is_interruption() => Err(error),
        _ => Ok(report),
    }
}

/// Parses the input, printing what the old program did about input that it could not use.
fn read_options(input: &[u8], output: &mut dyn Output) -> Result<Document, MongoperfError> {
    let text = input::stripped(input);
    if text.is_empty() {
        output.line("error no options found on stdin for mongoperf")?;
        return Err(MongoperfError::NoInput);
    }
    match input::parse(input) {
        Ok(document) => Ok(document),
        Err(error) => {
            output.line("couldn't parse json options. input was:")?;
            output.line(&format!("|{text}|"))?;
            Err(error.into())
        }
    }
}

/// Measures, from the creation of the file to the last sample.
fn measure(
    request: &Request<'_>,
    options: &Options,
    echo: &str,
    report: &mut Report,
    output: &mut dyn Output,
    cancel: &AtomicBool,
) -> Result<(), MongoperfError> {
    let compat = &request.compat;
    let file = create_file(request, options, report.seed, output, cancel)?;
    let access = Access::open(&file, options, compat, &mut |text| output.notice(text))?;
    let alignment_bytes = access.alignment_bytes();
    report.access = access.name();
    report.operation_bytes = options.record_bytes.next_multiple_of(alignment_bytes);
    if report.operation_bytes != options.record_bytes {
        output.notice(&format!(
            "records of {} KiB are rounded up to {} KiB, the next size that can be transferred here",
            options.record_bytes >> 10,
            report.operation_bytes >> 10
        ));
    }
    output.line("testing...")?;
    output.line(&format!("options:{echo}"))?;
    output.line(&format!("wthr {}", options.threads))?;
    let offset_step_bytes = PAGE_BYTES.max(alignment_bytes);
    let last_offset = options.file_bytes.saturating_sub(report.operation_bytes);
    let ramp = Ramp {
        options,
        compat,
        access: &access,
        load: Load {
            reads: options.reads,
            writes: options.writes,
            operation_bytes: usize::try_from(report.operation_bytes).unwrap_or(usize::MAX),
            offset_step_bytes,
            offset_steps: last_offset / offset_step_bytes + 1,
            sleep: options.sleep,
            sleep_shared: compat.sleep_shared,
            zero_fill: compat.zero_fill,
            seed: report.seed,
        },
        sample: request.sample,
        cancel,
    };
    let (steps, outcome) = ramp.run(output);
    report.steps = steps;
    outcome
}

fn create_file(
    request: &Request<'_>,
    options: &Options,
    seed: u64,
    output: &mut dyn Output,
    cancel: &AtomicBool,
) -> Result<TestFile, MongoperfError> {
    output.line(&format!(
        "creating test file size:{}MB ...",
        options.file_bytes >> 20
    ))?;
    output.notice(&what_is_written(request, options));
    let mut full_gib = 0;
    let mut printed = Ok(());
    let mut progress = |written_bytes: u64| {
        let written_bytes = written_bytes.min(options.file_bytes);
        while (full_gib + 1) << 30 < written_bytes && printed.is_ok() {
            full_gib += 1;
            printed = output.line(&format!("{full_gib}GB..."));
        }
    };
    let file = file::create(
        request.directory,
        options,
        &request.compat,
        seed,
        &mut progress,
        cancel,
    )?;
    printed?;
    Ok(file)
}

/// Returns a warning to show before anything is written: disks wear, and clouds send bills.
fn what_is_written(request: &Request<'_>, options: &Options) -> String {
    let mut text = format!(
        "writes {} MiB into {}",
        options.file_bytes >> 20,
        request.directory.display()
    );
    if options.writes {
        text += ", then keeps overwriting parts of it";
    }
    if request.compat.keep_file {
        text += &format!("; {KEPT_NAME} stays there");
    }
    text
}

/// Returns a different seed for each run.
fn drawn_seed() -> u64 {
    SplitMix64::new(monotonic_ns()).next_u64()
}
