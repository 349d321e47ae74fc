//! What may be typed after `seekscope doctor`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use seekscope_run::units::{parse_bytes, parse_stretch};

use super::{OutputArgs, share};

/// How long a server is watched unless the user says otherwise.
const WATCHED_FOR: Duration = Duration::from_secs(60);

/// Find out why a server is slow on disk, and write a report
///
/// If TARGET is a connection string as mongosh takes it: watches that server for a while and reports what
/// costs time, how certain that is and what would help. It only reads; first it states what it will read,
/// what it will never do, and what it will cost. If the string means a replica set or a sharded cluster, it
/// examines every member on this host at once and asks the others; if at most one member of a set is here, it
/// examines that one, or else a secondary.
///
/// If TARGET is a run, a bundle of `seekscope collect`, or a folder of a server's diagnostic files: reports
/// the same from those alone.
///
/// Without TARGET: starts a private local server, loads the same documents twice, updates a random 10 % of
/// one copy, and shows what that does to an index build. Everything is removed at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope doctor
  seekscope doctor mongodb://localhost:27017/ --for 60s --collection shop.orders
  seekscope doctor mongodb://localhost:27017/ --since seekscope-runs/doctor-20260901-101500
  seekscope doctor sick-server.tar.zst")]
pub struct DoctorArgs {
    /// Connection string of a server, a run directory, a bundle, or a folder of diagnostic files
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,

    /// Folder for the run: records and report [default: ./seekscope-runs/doctor-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the smallest role that a user of the server needs, and the rights needed on the host, and exit. With a
    /// connection string, the role fits that server's release; without one, it fits every release
    #[arg(long)]
    pub print_role: bool,

    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub judge: JudgeArgs,
    #[command(flatten)]
    pub demo: DemoArgs,
    #[command(flatten)]
    pub examine: ExamineArgs,
    #[command(flatten)]
    pub build: BuildArgs,
}

/// What is made of the findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "With TARGET")]
pub struct JudgeArgs {
    /// An earlier run on this server: shows what has changed since, and whether its predictions came true
    #[arg(long, value_name = "RUN", requires = "target")]
    pub since: Option<PathBuf>,
    /// Exit with code 6 if a finding matches: an ID ('disk.saturated', 'disk.*'), 'any', 'saves>30s' (per hour),
    /// 'confidence>=medium'. May be repeated
    #[arg(long, value_name = "LIMIT", requires = "target")]
    pub fail_on: Vec<String>,
}

/// Options of `doctor` without a target.
#[derive(Debug, Args)]
#[command(next_help_heading = "Without TARGET")]
pub struct DemoArgs {
    /// Documents in each of the two collections; about 3 KiB each
    #[arg(long, value_name = "N", default_value_t = 80_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000), conflicts_with = "target")]
    pub docs: u64,
    /// Seed for the documents and the choice of those to update; the same seed gives the same data
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "target")]
    pub seed: u64,
    /// How well the documents' text compresses, from 0 (not at all) to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.5, value_parser = share, conflicts_with = "target")]
    pub compressibility: f64,
    /// Also measure a slower disk, emulated by throttling the server's reads [default: hdd where permitted]
    #[arg(long, value_name = "DISK", conflicts_with = "target")]
    pub emulate_disk: Option<EmulatedDisk>,
    /// Index builds per collection and disk; several give an interval for the result, but each takes its time
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with = "target")]
    pub repeats: u32,
    /// WiredTiger cache of the local server [default: a quarter of a collection, at least 32 MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "target")]
    pub cache_size: Option<u64>,
    /// Server program to start: mongod or secantusd-rs [default: mongod on PATH, else secantusd-rs]
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub server_binary: Option<PathBuf>,
    /// Folder for the private data, on the disk to be examined [default: beside the run]
    #[arg(long, value_name = "DIR", conflicts_with = "target")]
    pub data_dir: Option<PathBuf>,
    /// Keep the local server's data directory
    #[arg(long, conflicts_with = "target")]
    pub keep_data: bool,
}

/// An index build, to be seen at work.
#[derive(Debug, Args)]
#[command(next_help_heading = "With the connection string of a server")]
pub struct BuildArgs {
    /// The keys of an index that is slow to build, as JSON: '{"customer": 1}'
    #[arg(long, value_name = "KEYS", requires = "collection")]
    pub index: Option<String>,
    /// Allow seekscope to build that index on that collection and drop it again. The server is watched until
    /// the index is built, instead of for --for
    #[arg(long, requires = "index")]
    pub allow_index_build: bool,
}

/// Options of `doctor` with a connection string; `collect` shares them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "With the connection string of a server")]
pub struct ExamineArgs {
    /// How long to watch the server at its own work [default: 60s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch, requires = "target")]
    pub duration: Option<Duration>,
    /// The collection in question; it is examined whatever its size. May be repeated
    #[arg(long, value_name = "DB.COLL", requires = "target")]
    pub collection: Vec<String>,
    /// The server's data directory as seen from here [default: as reported by the server and its process]
    #[arg(long, value_name = "DIR", requires = "target")]
    pub dbpath: Option<PathBuf>,
    /// The server's process ID, if it cannot be found by its port (containers)
    #[arg(long, value_name = "PID", requires = "target")]
    pub pid: Option<u32>,
    /// Trace the server even if it is a primary that others replicate from
    #[arg(long, requires = "target")]
    pub trace_primary: bool,
    /// Ask only the examined server, not the other members of its set
    #[arg(long, requires = "target")]
    pub no_members: bool,
    /// Measure the disk first, for 10 s at its full speed, in a separate file beside the data, which is
    /// removed afterwards
    #[arg(long, requires = "target", conflicts_with = "disk_run")]
    pub probe_disk: bool,
    /// A run of `seekscope disk` on the data's disk [default: the newest below ./seekscope-runs]
    #[arg(long, value_name = "RUN", requires = "target")]
    pub disk_run: Option<PathBuf>,
}

impl ExamineArgs {
    /// Returns how long to watch.
    pub fn duration(&self) -> Duration {
        self.duration.unwrap_or(WATCHED_FOR)
    }

    /// Returns an option that was given; `None` if none was. None of them has a meaning for what was recorded.
    pub fn given(&self) -> Option<&'static str> {
        let options = [
            ("--for", self.duration.is_some()),
            ("--collection", !self.collection.is_empty()),
            ("--dbpath", self.dbpath.is_some()),
            ("--pid", self.pid.is_some()),
            ("--trace-primary", self.trace_primary),
            ("--no-members", self.no_members),
            ("--probe-disk", self.probe_disk),
            ("--disk-run", self.disk_run.is_some()),
        ];
        let given = options.into_iter().find(|(_, is_given)| *is_given);
        given.map(|(option, _)| option)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EmulatedDisk {
    /// 150 read requests/s and 150 MB/s, like one hard disk (needs root and the blkio controller)
    Hdd,
    /// Only the plain disk
    None,
}
