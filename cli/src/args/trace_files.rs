//! What may be typed after `seekscope trace import` and `seekscope trace export`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::OutputArgs;

/// Turn a trace that another tool recorded into a run
///
/// Reads fio's iolog (versions 2 and 3), blkparse's text, strace's output (best with -f -ttt -T -y)
/// and comma-separated values as a bpftrace script prints them: with a header that names at least
/// time_ns, op, file, offset and length, and better also tid, latency_ns, comm and result. What the
/// format does not say is listed as a limitation of the run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  strace -f -ttt -T -y -o calls.txt -p $(pgrep -x mongod)
  seekscope trace import calls.txt
  blkparse -i vda | seekscope trace import - --format blkparse --out requests")]
pub struct ImportArgs {
    /// The trace; - reads stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Format of the trace
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ImportFormat::Auto)]
    pub format: ImportFormat,
    /// Folder for the run [default: ./seekscope-runs/trace-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportFormat {
    /// Detected from the beginning of the trace
    Auto,
    Fio,
    Blkparse,
    Strace,
    /// Comma-separated values with a header; also what `trace export --to csv` writes
    #[value(alias = "csv")]
    Bpftrace,
}

/// Write a run's events for another tool
///
/// fio's iolog leaves out what cannot be replayed: failed calls, unknown offsets, requests of disks.
/// Beware: `fio --read_iolog` reads and WRITES the files that it names, unless --replay_redirect
/// names another.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope trace export RUN --to fio3 --file collection-7--42.wt --output pattern.iolog
  seekscope trace export RUN --to chrome --output trace.json     # open it in ui.perfetto.dev
  seekscope trace export RUN --to csv | head")]
pub struct ExportArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub to: ExportFormat,
    /// Write only events on this file: its path, the last part of that, or its number in the run; may be
    /// repeated [default: all]
    #[arg(long = "file", value_name = "PATH|ID")]
    pub files: Vec<String>,
    /// File to write; - is stdout
    #[arg(long = "output", value_name = "FILE", default_value = "-")]
    pub destination: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ExportArgs {
    /// Do the events go to stdout?
    pub fn to_stdout(&self) -> bool {
        self.destination == Path::new("-")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// fio's iolog, version 2: order without times; every version of fio reads it
    Fio,
    /// fio's iolog, version 3: with times in milliseconds; fio 3.31 and later
    Fio3,
    /// Comma-separated values
    Csv,
    /// Trace-event JSON for Perfetto and chrome://tracing
    Chrome,
    /// One Parquet file that includes the names of files and threads
    Parquet,
}
