//! What may be typed after `seekscope trace`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use seekscope_run::units::{parse_bytes, parse_duration, parse_size, parse_stretch};

use super::{ExportArgs, ImportArgs, OutputArgs};

/// Record every file read and write of a server, and show what they mean
///
/// Follows the I/O of the named processes in the kernel: which file, which offset, how many bytes,
/// how long it took, and whether the page cache held them. Nothing is changed in the processes, and the
/// kernel programs disappear with seekscope, however it ends. Without --for, it goes on until Ctrl-C
/// or until the processes have ended. Needs CAP_BPF and CAP_PERFMON.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  seekscope trace -p $(pgrep -x mongod) --for 60s
  seekscope trace --target mongodb://localhost:27017/ --min-latency 10ms --live
  seekscope trace --target mongodb://mongos1/ --for 60s"
)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub verb: Option<TraceVerb>,
    #[command(flatten)]
    pub record: RecordArgs,
}

#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    Import(ImportArgs),
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// How long to record [default: until Ctrl-C, or until the processes have ended; if Ctrl-C ends a --command, the
    /// run is partial]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch)]
    pub duration: Option<Duration>,
    /// Folder for the run: records and report [default: ./seekscope-runs/trace-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    // After the others: the heading of a flattened group holds for what follows it.
    #[command(flatten)]
    pub who: WhoArgs,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub mode: ModeArgs,
}

/// Whose I/O. One of them must be named.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whose I/O (name one)")]
#[group(id = "who", multiple = false)]
pub struct WhoArgs {
    /// Process ID; may be repeated. With several, the children that they start later are followed too
    #[arg(long, short, value_name = "PID", group = "who")]
    pub pid: Vec<u32>,
    /// Start this shell command, and follow it and its children. It runs as the user who runs seekscope
    #[arg(long, value_name = "COMMAND", group = "who")]
    pub command: Option<String>,
    /// The processes of a systemd unit, e.g. mongod or mongod.service
    #[arg(long, value_name = "NAME", group = "who")]
    pub unit: Option<String>,
    /// The processes of a control group: a folder below /sys/fs/cgroup, or its path relative to that
    #[arg(long, value_name = "PATH", group = "who")]
    pub cgroup: Option<PathBuf>,
    /// The server behind a connection string, on this host; its files are shown with their collections' names. For a
    /// replica set or a cluster (mongos), all members on this host at once, named as in shard0/shop.orders
    #[arg(long, value_name = "URI", group = "who")]
    pub target: Option<String>,
}

/// Which I/O. The kernel programs apply it; what they leave out costs next to nothing.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which I/O")]
pub struct WhatArgs {
    /// Record only this file; may be repeated [default: all]
    #[arg(long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Record only files below this folder; may be repeated [default: all]
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Record only files on the filesystem that holds this path; may be repeated [default: all]
    #[arg(long, value_name = "PATH")]
    pub device: Vec<PathBuf>,
    /// Record only these operations, separated by commas [default: all]
    #[arg(long, value_name = "OPS", value_enum, value_delimiter = ',')]
    pub op: Vec<OpName>,
    /// Record all requests of these disks. Otherwise, requests for files of these processes are recorded,
    /// whoever submits them, and all others are only counted
    #[arg(long)]
    pub whole_disk: bool,
    /// Record only calls that took at least this long [default: all]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub min_latency: Option<Duration>,
    /// Record one region in N of each file, the same ones throughout, and all syncs [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sample: Option<u32>,
    /// Size of a region of --sample, a power of two
    #[arg(long, value_name = "SIZE", value_parser = power_of_two, default_value = "1M", requires = "sample")]
    pub sample_region: u64,
}

fn power_of_two(text: &str) -> Result<u64, String> {
    match parse_bytes(text) {
        Ok(bytes) if bytes.is_power_of_two() && bytes >= 512 => Ok(bytes),
        Ok(_) => Err("a power of two of at least 512 bytes is expected, such as 1M".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A group of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OpName {
    /// read, pread, readv, preadv, preadv2
    Read,
    /// write, pwrite, writev, pwritev, pwritev2
    Write,
    /// fsync, fdatasync, sync_file_range
    Sync,
    /// Reads, writes and syncs through io_uring
    Uring,
    /// Reads, writes and syncs through libaio
    Aio,
    /// Major faults of mapped files
    Mmap,
    /// Requests of the disks that hold these processes' files (see --whole-disk)
    Block,
}

/// What is kept, and how it is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Mode")]
pub struct ModeArgs {
    /// Only count, in the kernel: totals and latencies per file, one row every --interval; suitable for weeks
    #[arg(long, conflicts_with_all = ["ring", "live"])]
    pub aggregate: bool,
    /// How often --aggregate writes its counts to disk
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_stretch, requires = "aggregate")]
    pub interval: Duration,
    /// Flight recorder: keep the last TIME in memory, and write it to disk on SIGUSR1, after a call as slow
    /// as --dump-latency, and at the end
    #[arg(long, value_name = "TIME", value_parser = parse_stretch)]
    pub ring: Option<Duration>,
    /// A call that takes this long makes --ring write what it holds to disk
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "ring")]
    pub dump_latency: Option<Duration>,
    /// Memory for --ring; at high rates it holds less than the time asked for
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size, requires = "ring")]
    pub ring_memory: u64,
    /// Show files, rates, patterns and latencies while recording
    #[arg(long)]
    pub live: bool,
    /// Size of the buffer between kernel and seekscope; 16M holds one second of 300,000 calls per second
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = parse_size)]
    pub buffer: u64,
    /// How the kernel programs are attached
    #[arg(long, value_name = "WAY", value_enum, default_value_t = BackendName::Auto)]
    pub backend: BackendName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackendName {
    /// The fastest one that loads; the reason is printed
    Auto,
    /// Typed tracepoints
    TpBtf,
    /// Classic tracepoints
    Tracepoint,
}
