//! What may be typed after `seekscope layout` and `seekscope compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use seekscope_run::units::{parse_duration, parse_stretch};

use super::OutputArgs;

/// Show how far collections and indexes have drifted from disk order, and what that costs a scan
///
/// Reads the internal pages of each file's B-tree, about a thousandth of the file: where each leaf
/// page lies, in the order in which a scan visits them. Works on stopped and running servers, hot
/// backups, snapshots and copies. Nothing is written or locked there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope layout /var/lib/mongodb
  seekscope layout mongodb://localhost:27017/ shop.orders --watch --for 1h
  seekscope layout mongodb://mongos1/ shop.orders")]
pub struct LayoutArgs {
    /// Data directory, one of its .wt files, or the connection string of a server on this host; for a replica set or a
    /// cluster (mongos), all members on this host are read, and named as in shard0/shop.orders
    #[arg(value_name = "WHERE", default_value = ".")]
    pub place: String,
    /// What to show in detail: DB.COLL, DB.COLL/INDEX, a file name or an ident [default: an overview of
    /// everything]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Print only the leaf pages of the single named file, one per line: [offset, length], in key order
    #[arg(long, conflicts_with_all = ["watch", "json", "out"])]
    pub leaves: bool,
    /// Treat WHERE as a single file; do not look for the data directory that it belongs to
    #[arg(long, conflicts_with = "watch")]
    pub lone: bool,
    /// The server's process ID, if it cannot be found by its port (containers)
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    #[command(flatten)]
    pub disk: ScanDiskArgs,
    #[command(flatten)]
    pub decay: DecayArgs,
    #[command(flatten)]
    pub gentle: GentleArgs,
    /// Folder for the run: records and report [default: ./seekscope-runs/layout-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Which disk scans are predicted for.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which disk scans are predicted for")]
pub struct ScanDiskArgs {
    /// A run of `seekscope disk` on the data's disk
    #[arg(long, value_name = "RUN", conflicts_with_all = ["typical", "measure_disk"])]
    pub disk_run: Option<PathBuf>,
    /// First measure the disk that holds this folder, as `seekscope disk DIR` does: in a file of its own
    /// there, which it removes
    #[arg(long, value_name = "DIR", conflicts_with = "typical")]
    pub measure_disk: Option<PathBuf>,
    /// How long measuring the disk may take
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = parse_duration, requires = "measure_disk")]
    pub measure_for: Duration,
    /// A typical disk, without the limits of the server's control group [default: the type that the data's disk looks
    /// most like, within these limits]
    #[arg(long, value_name = "DISK", value_enum)]
    pub typical: Option<TypicalDiskName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TypicalDiskName {
    /// A hard disk with 7,200 rpm
    Hdd,
    /// An SSD on SATA
    Ssd,
    /// An SSD on PCIe
    Nvme,
    /// A cloud volume with 3,000 IOPS and 125 MB/s
    Cloud,
}

impl TypicalDiskName {
    /// As the layout crate calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdd => "hdd",
            Self::Ssd => "ssd",
            Self::Nvme => "nvme",
            Self::Cloud => "cloud",
        }
    }
}

/// How fast the order is lost.
#[derive(Debug, Args)]
#[command(next_help_heading = "How fast the order is lost")]
pub struct DecayArgs {
    /// Follow the server's checkpoints, one line for each, until --for is over or Ctrl-C is pressed
    #[arg(long, conflicts_with = "measure_disk")]
    pub watch: bool,
    /// How often to look for a new checkpoint
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_stretch, requires = "watch")]
    pub every: Duration,
    /// How long to watch [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch, requires = "watch")]
    pub duration: Option<Duration>,
    /// An earlier run of `seekscope layout` on the same data, as the first of two snapshots
    #[arg(long, value_name = "RUN", conflicts_with = "updates_per_hour")]
    pub since: Option<PathBuf>,
    /// Estimate for this many updates of random documents per hour in each collection
    #[arg(long, value_name = "N", value_parser = updates_per_hour)]
    pub updates_per_hour: Option<f64>,
}

fn updates_per_hour(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number of 0 or more is expected".into()),
    }
}

/// Going easy on production.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limiting the load on production")]
pub struct GentleArgs {
    /// Maximum reads per second [default: as many as the disk serves]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_reads_per_s: Option<u64>,
    /// Maximum reads in flight; 1 suits hard disks, 16 to 64 suit SSDs
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub parallel_reads: u16,
}

/// Compare runs: before and after, members of a replica set, or several servers
///
/// Two runs of `layout`: their files are matched by namespace and index. Two runs of `doctor` on one server: their
/// findings are matched, which shows which are gone, new, better or worse. Runs of `doctor` on different members of
/// one replica set or sharded cluster, made at the same time on several hosts: they become one run of the deployment,
/// joined by wall-clock time, which shows how a member differs from the others. Two to eight runs of `bench` that did
/// the same work on different servers or with different settings: all are compared with the first. Two runs of
/// `bench index` without other load: their builds of the same index. Runs of `bench schema` cannot be compared. Instead
/// of a run, a bundle of `seekscope collect` may be named; it is unpacked into seekscope-runs/compare-DATE-TIME.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope compare seekscope-runs/layout-20260901-101500 seekscope-runs/layout-20260902-101500
  seekscope compare RUN_OF_MEMBER_A RUN_OF_MEMBER_B RUN_OF_MEMBER_C
  seekscope compare BENCH_OF_SERVER_A BENCH_OF_SERVER_B BENCH_OF_SERVER_C")]
pub struct CompareArgs {
    /// The first run directory (A)
    #[arg(value_name = "RUN_A")]
    pub first: PathBuf,
    /// The second run directory (B)
    #[arg(value_name = "RUN_B")]
    pub second: PathBuf,
    /// Further run directories, of `bench`, or of `doctor` on other members
    #[arg(value_name = "RUN_C")]
    pub others: Vec<PathBuf>,
    /// Compare benchmarks even if their workloads or data differ
    #[arg(long)]
    pub anyway: bool,
    /// Folder for the run that joins the runs of several members [default: seekscope-runs/doctor-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}
