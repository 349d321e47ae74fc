//! `seekscope trace export`: writes a run's events for another tool.

use std::collections::HashSet;
use std::fs::Permissions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use seekscope_exchange::export::{ChromeWriter, CsvWriter, FioVersion, FioWriter, Names};
use seekscope_run::units::format_count;
use seekscope_run::{FileRecord, Finding, IoEvent, JoinedParquetWriter, Outcome, RunDirectory};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::args::{ExportArgs, ExportFormat};
use crate::exit::Usage;
use crate::output;
use crate::progress::Progress;

/// What `--json` prints for an export. Names are stable; fields may be added.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExportOutput {
    /// Name and version of this format.
    schema: String,
    command: &'static str,
    #[schemars(extend("const" = "ok"))]
    outcome: Outcome,
    /// The run whose events were exported.
    run_dir: String,
    summary: ExportSummary,
    /// Always empty: an export draws no conclusions.
    findings: [Finding; 0],
}

#[derive(Debug, Serialize, JsonSchema)]
struct ExportSummary {
    /// The file written.
    output: String,
    /// Number of events written.
    events: u64,
    /// Number of events that the format cannot hold.
    left_out: u64,
}

/// Runs the command. `stop` ends it early, leaving nothing behind.
pub fn run(args: &ExportArgs, stop: &AtomicBool) -> Result<()> {
    check_destination(args)?;
    let (directory, _) = RunDirectory::open(&args.run)?;
    let files = directory.files()?;
    let wanted = wanted_files(&args.files, &files)?;
    let counts = if args.to_stdout() {
        let out = BufWriter::new(io::stdout().lock());
        match write_text(args, &directory, files, wanted.as_ref(), out, stop) {
            // The reader of a pipe (head, less) may have had enough: that is success.
            Err(e) if is_broken_pipe(&e) => return Ok(()),
            counts => counts?,
        }
    } else {
        write_file(args, &directory, files, wanted.as_ref(), stop)?
    };
    let Some(counts) = counts else {
        return Ok(());
    };
    if counts.events == 0 {
        let run = args.run.display();
        return Err(Usage(format!("{run} holds no events to export")).into());
    }
    if args.output.json {
        return output::print_json(&ExportOutput {
            schema: output::versioned("trace-export"),
            command: "trace export",
            outcome: Outcome::Ok,
            run_dir: directory.path().display().to_string(),
            summary: ExportSummary {
                output: args.destination.display().to_string(),
                events: counts.events - counts.left_out,
                left_out: counts.left_out,
            },
            findings: [],
        });
    }
    if counts.left_out > 0 {
        let count = format_count(counts.left_out);
        Progress::new(args.output.quiet).say(format!(
            "{count} events that fio cannot replay were left out: failed calls, unknown offsets, \
             page faults, disk requests"
        ));
    }
    Ok(())
}

/// Checks the destination before a long run is read in vain.
fn check_destination(args: &ExportArgs) -> Result<()> {
    let refuse = |text: String| Err(Usage(text).into());
    if args.to_stdout() {
        if args.to == ExportFormat::Parquet {
            return refuse(
                "a Parquet file cannot be written to stdout: name a file with --output FILE".into(),
            );
        }
        if args.output.json {
            return refuse(
                "--json and the events cannot both be written to stdout: name a \
                 file with --output FILE"
                    .into(),
            );
        }
        return Ok(());
    }
    let name = args.destination.display();
    match args.destination.symlink_metadata() {
        Ok(metadata) if !metadata.is_file() => refuse(format!(
            "{name} is not a regular file, so it cannot be replaced"
        )),
        Ok(_) if !args.force => refuse(format!("{name} exists; use --force to replace it")),
        _ => Ok(()),
    }
}

/// Returns the ids of the named files; `None` for all.
fn wanted_files(names: &[String], files: &[FileRecord]) -> Result<Option<HashSet<u32>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut wanted = HashSet::new();
    for name in names {
        let is_meant = |file: &&FileRecord| {
            file.is_at(name) || file.name() == name || name.parse() == Ok(file.file_id)
        };
        let before = wanted.len();
        wanted.extend(files.iter().filter(is_meant).map(|file| file.file_id));
        if wanted.len() == before && !files.iter().any(|f| is_meant(&f)) {
            return Err(Usage(format!("the run holds no file `{name}`")).into());
        }
    }
    Ok(Some(wanted))
}

/// Writes under another name until the file is complete; an incomplete file is removed. `None` if stopped.
fn write_file(
    args: &ExportArgs,
    directory: &RunDirectory,
    files: Vec<FileRecord>,
    wanted: Option<&HashSet<u32>>,
    stop: &AtomicBool,
) -> Result<Option<Counts>> {
    let name = args.destination.display();
    let parent = match args.destination.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".seekscope-export-")
        // As for any new file; the process's umask applies.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)
        .with_context(|| format!("cannot write to {}", parent.display()))?;
    let counts = if args.to == ExportFormat::Parquet {
        let threads = directory.threads()?;
        let writer = JoinedParquetWriter::create(file.path(), &files, &threads)?;
        pass_events(
            directory,
            wanted,
            Writer::<io::Sink>::Parquet(Box::new(writer)),
            stop,
        )?
    } else {
        let out = BufWriter::new(file.as_file());
        write_text(args, directory, files, wanted, out, stop)
            .with_context(|| format!("cannot write {name}"))?
    };
    if counts.as_ref().is_some_and(|counts| counts.events > 0) {
        put_in_place(file, args).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(counts)
}

fn put_in_place(file: NamedTempFile, args: &ExportArgs) -> io::Result<()> {
    file.as_file().sync_all()?;
    if args.force {
        file.persist(&args.destination)?;
    } else {
        file.persist_noclobber(&args.destination)?;
    }
    Ok(())
}

fn write_text(
    args: &ExportArgs,
    directory: &RunDirectory,
    files: Vec<FileRecord>,
    wanted: Option<&HashSet<u32>>,
    out: impl Write,
    stop: &AtomicBool,
) -> Result<Option<Counts>> {
    let names = Names::of(files, directory.threads()?);
    let writer = match args.to {
        ExportFormat::Fio => Writer::Fio(FioWriter::begin(out, FioVersion::V2, &names)?),
        ExportFormat::Fio3 => Writer::Fio(FioWriter::begin(out, FioVersion::V3, &names)?),
        ExportFormat::Chrome => Writer::Chrome(ChromeWriter::begin(out, &names)?),
        ExportFormat::Csv | ExportFormat::Parquet => Writer::Csv(CsvWriter::begin(out, &names)?),
    };
    pass_events(directory, wanted, writer, stop)
}

/// What was written and what was not.
struct Counts {
    /// Events on the wanted files.
    events: u64,
    /// Events among them that the format cannot represent.
    left_out: u64,
}

enum Writer<'a, W> {
    Fio(FioWriter<'a, W>),
    Csv(CsvWriter<'a, W>),
    Chrome(ChromeWriter<'a, W>),
    Parquet(Box<JoinedParquetWriter>),
}

impl<W: Write> Writer<'_, W> {
    fn event(&mut self, event: &IoEvent) -> Result<()> {
        match self {
            Self::Fio(writer) => writer.event(event)?,
            Self::Csv(writer) => writer.event(event)?,
            Self::Chrome(writer) => writer.event(event)?,
            Self::Parquet(writer) => writer.event(event)?,
        }
        Ok(())
    }

    /// Finishes the file. Returns the number of events left out.
    fn finish(self) -> Result<u64> {
        match self {
            Self::Fio(writer) => return Ok(writer.finish()?),
            Self::Csv(writer) => writer.finish()?,
            Self::Chrome(writer) => writer.finish()?,
            Self::Parquet(writer) => writer.finish()?,
        }
        Ok(0)
    }
}

/// Passes the events to the writer. The first failure ends the writing, but not the reading, which cannot be
/// ended from within.
fn pass_events<W: Write>(
    directory: &RunDirectory,
    wanted: Option<&HashSet<u32>>,
    mut writer: Writer<'_, W>,
    stop: &AtomicBool,
) -> Result<Option<Counts>> {
    let mut events = 0;
    let mut written = Ok(());
    directory.for_each_event(|event| {
        let is_wanted = wanted.is_none_or(|ids| ids.contains(&event.file_id));
        if is_wanted && written.is_ok() && !stop.load(Ordering::Relaxed) {
            events += 1;
            written = writer.event(event);
        }
    })?;
    written?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let left_out = writer.finish()?;
    Ok(Some(Counts { events, left_out }))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
