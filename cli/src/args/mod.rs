//! The command line: what may be typed, what it means, and nothing else.

mod bench;
mod bench_common;
mod bench_index;
mod bench_own;
mod bench_schema;
mod bench_values;
mod disk;
mod layout;
mod prefetch;
mod reorder;
mod replay;
mod trace;
mod trace_files;
mod tune;

use std::path::PathBuf;
use std::time::Duration;

pub use bench::{
    BenchArgs, BenchVerb, EditionName, EraName, KeyHashName, MergeArgs, SysbenchArgs, WorkloadName,
    YcsbArgs, YcsbPhase,
};
pub use bench_common::{BenchTargetArgs, ClientName, KeepArgs, SendArgs, VersusArgs, WarmUpName};
pub use bench_index::{IndexArgs, IndexDataName};
pub use bench_own::{PrintArgs, RunArgs, SampleArgs};
pub use bench_schema::{BUCKET_SAMPLES, SchemaArgs};
#[cfg(test)]
pub use bench_values::parse_slo;
pub use bench_values::{ArrivalsName, Slo, StartAt};
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use disk::{
    AdviceName, DiskArgs, DiskVerb, JobArgs, JobEngine, MongoperfArgs, PlaceArgs, PredictArgs,
    ProfileName, Rw, SurveyArgs, SurveyEngine,
};
pub use layout::{CompareArgs, LayoutArgs, ScanDiskArgs};
pub use prefetch::PrefetchArgs;
pub use reorder::{ReorderArgs, WritersArgs};
pub use replay::{LoopName, ReplayArgs, Speed};
use seekscope_run::units::{parse_bytes, parse_duration};
pub use trace::{BackendName, OpName, RecordArgs, TraceArgs, TraceVerb, WhoArgs};
pub use trace_files::{ExportArgs, ExportFormat, ImportArgs, ImportFormat};
pub use tune::{
    TuneApplyArgs, TuneArgs, TuneForm, TuneInitArgs, TuneKnobArgs, TuneLocalArgs, TuneMeasuredArgs,
    TuneSessionArgs, TuneShowArgs, TuneVerb,
};

/// Why is this document database slow on disk, how sure is that, and what to type about it.
#[derive(Debug, Parser)]
#[command(
    name = "seekscope",
    version,
    max_term_width = 100,
    after_help = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 target unreachable or refused, 4 permission missing,
5 data inconsistent, 6 a threshold of yours was missed, 130 interrupted (the partial run is kept)."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Doctor(DoctorArgs),
    Bench(Box<BenchArgs>),
    Disk(Box<DiskArgs>),
    Trace(Box<TraceArgs>),
    Layout(Box<LayoutArgs>),
    Reorder(Box<ReorderArgs>),
    Prefetch(Box<PrefetchArgs>),
    Tune(Box<TuneArgs>),
    Mongoperf(MongoperfArgs),
    Replay(Box<ReplayArgs>),
    Compare(CompareArgs),
    Merge(MergeArgs),
    Report(ReportArgs),
    Clean(CleanArgs),
}

/// How results are shown; the same for every command.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Print one JSON document on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print no progress and no hints on stderr, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Find out why a server is slow on disk, and write a report
///
/// Without TARGET: starts a private local server, loads the same documents twice, updates 10 % of
/// one copy at random, and shows what that does to an index build. Everything is removed at the end.
///
/// With TARGET (a mongodb:// connection string of a server on this host): traces every file read
/// and write of the server for a while. Nothing is written to it unless --allow-index-build says so.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope doctor
  seekscope doctor mongodb://localhost:27017/ --collection shop.orders --for 60s")]
pub struct DoctorArgs {
    /// Connection string of the server to examine; without it, a local server is started
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,

    /// Folder for the run: records and report [default: ./seekscope-runs/doctor-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub demo: DemoArgs,
    #[command(flatten)]
    pub existing: ExistingArgs,
}

/// Options of `doctor` without a target.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without TARGET")]
pub struct DemoArgs {
    /// Documents in each of the two collections; about 3 KiB each
    #[arg(long, value_name = "N", default_value_t = 80_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000), conflicts_with = "target")]
    pub docs: u64,
    /// Seed of the documents and of the choice which to update; the same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "target")]
    pub seed: u64,
    /// How well the documents' text compresses, 0 (not at all) to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share, conflicts_with = "target")]
    pub compressibility: f64,
    /// Throttle the server's reads to resemble a slower disk, beside the plain disk [default: hdd where permitted]
    #[arg(long, value_name = "DISK", conflicts_with = "target")]
    pub emulate_disk: Option<EmulatedDisk>,
    /// Index builds per collection and disk; more give an interval, each adds its time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with = "target")]
    pub repeats: u32,
    /// WiredTiger cache of the local server [default: a quarter of a collection, at least 32 MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "target")]
    pub cache_size: Option<u64>,
    /// Server program to start: mongod or secantusd-rs [default: mongod on PATH, else secantusd-rs]
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub server_binary: Option<PathBuf>,
    /// Folder below which the private data lies, on the disk to be examined [default: beside the run]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub data_dir: Option<PathBuf>,
    /// Keep the local server's data directory
    #[arg(long, conflicts_with = "target")]
    pub keep_data: bool,
}

/// Options of `doctor TARGET`.
#[derive(Debug, Args)]
#[command(next_help_heading = "With TARGET")]
pub struct ExistingArgs {
    /// The collection in question, DB.COLL
    #[arg(long, value_name = "DB.COLL", requires = "target")]
    pub collection: Option<String>,
    /// An index that is slow to build, as JSON: '{"customer": 1}'
    #[arg(long, value_name = "KEYS", requires = "collection")]
    pub index: Option<String>,
    /// Permit building that index on that collection, traced, and dropping it again
    #[arg(long, requires = "index")]
    pub allow_index_build: bool,
    /// The server's process id, where it cannot be found by its port (containers)
    #[arg(long, value_name = "PID", requires = "target")]
    pub pid: Option<u32>,
    /// How long to trace what the server does by itself
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = parse_duration, requires = "target")]
    pub duration: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EmulatedDisk {
    /// 150 read requests/s and 150 MB/s, like one hard disk (needs root and the blkio controller)
    Hdd,
    /// The plain disk only
    None,
}

/// Show a finished or interrupted run again, and write its report.html anew
///
/// Works from the run directory alone: no server, no root, also on another host.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope report seekscope-runs/doctor-20260901-101500
  seekscope report RUN --json | jq .findings")]
pub struct ReportArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Remove what killed runs left behind: servers, their data, cgroups
///
/// Touches only what a run of this user recorded as its own and whose process is gone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope clean
  seekscope clean --yes")]
pub struct CleanArgs {
    /// Remove without asking
    #[arg(long)]
    pub yes: bool,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(v) if (0.0..=1.0).contains(&v) => Ok(v),
        _ => Err("a number from 0 to 1 is expected".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_of_the_other_mode_are_refused() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' '));
        assert!(parse("seekscope doctor --docs 1000").is_ok());
        assert!(parse("seekscope doctor mongodb://h/ --for 5s").is_ok());
        assert!(parse("seekscope doctor mongodb://h/ --docs 1000").is_err());
        assert!(parse("seekscope doctor --collection a.b").is_err());
        assert!(parse("seekscope doctor mongodb://h/ --index {}").is_err());
        assert!(parse("seekscope doctor --compressibility NaN").is_err());
        assert!(parse("seekscope doctor --docs 0").is_err());
        assert!(parse("seekscope layout /d a.b --watch --every 1s").is_ok());
        assert!(parse("seekscope layout /d --every 1s").is_err());
        assert!(parse("seekscope layout /d --leaves --json").is_err());
        assert!(parse("seekscope layout /d --updates-per-hour NaN").is_err());
        assert!(parse("seekscope layout /d --watch --measure-disk /d").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --watch 9s").is_ok());
        assert!(parse("seekscope reorder mongodb://h/ --rollback").is_ok());
        assert!(parse("seekscope reorder mongodb://h/").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --apply --resume").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --force").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --apply --pause-writers x").is_err());
        assert!(parse("seekscope reorder mongodb://h/ a.b --max-rate 0").is_err());
    }
}
