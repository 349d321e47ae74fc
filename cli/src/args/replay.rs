//! What may be typed after `seekscope replay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use seekscope_run::units::{parse_size, parse_stretch};

use super::OutputArgs;

/// Replay a recorded I/O pattern on another file or disk, and compare latencies with the recording
///
/// RUN is the folder of a run that holds events: of `doctor`, `trace` or `trace import`. Each
/// recorded thread is replayed by one thread, in its order, with the same offsets and lengths. Before
/// the start, the target's pages are evicted from the page cache.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope replay seekscope-runs/trace-20260901-101500 --copy-of /data/collection-7--42.wt --create /mnt/new-disk
  seekscope replay RUN --create /mnt/new-disk --speed max --model seekscope-runs/disk-20260901-103000")]
pub struct ReplayArgs {
    /// Run whose recorded reads and writes are replayed
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    #[command(flatten)]
    pub target: TargetArgs,
    /// File to replay, by path, name, ID, or the collection or index that it holds (DB.COLL,
    /// DB.COLL/INDEX); may be repeated. `all` stands for all files. Several files are laid out one
    /// after another [default: the file with the most bytes read]
    #[arg(long, value_name = "FILE")]
    pub of: Vec<String>,
    /// Replay only this phase of the run [default: all, with the time between them]
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// as-recorded; max: without waiting; or a factor: 2 is twice as fast
    #[arg(long, value_name = "SPEED", value_parser = parse_speed, default_value = "as-recorded")]
    pub speed: Speed,
    /// closed: each thread waits between its operations as long as recorded. open: each operation
    /// starts at its recorded time, and latency also counts from there
    #[arg(long = "loop", value_name = "LOOP", value_enum, default_value_t = LoopName::Closed)]
    pub pacing: LoopName,
    /// Go around the page cache, whatever was recorded [default: as recorded]
    #[arg(long, conflicts_with = "buffered")]
    pub direct: bool,
    /// Go through the page cache, whatever was recorded [default: as recorded]
    #[arg(long)]
    pub buffered: bool,
    /// Do not evict the target's pages from the page cache first
    #[arg(long)]
    pub warm: bool,
    /// Stop after this time with what has been replayed so far [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_stretch)]
    pub time_limit: Option<Duration>,
    /// Run of `seekscope disk` on the target's disk; its device model predicts the same accesses
    #[arg(long, value_name = "DISK_RUN")]
    pub model: Option<PathBuf>,
    /// Replay even if a database runs there: with at most 200 requests and 20 MB per second, and only until the
    /// host waits for I/O most of the time
    #[arg(long)]
    pub next_to_database: bool,
    /// Seed for the data that is written
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Folder for the run [default: ./seekscope-runs/replay-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What it is played on.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct TargetArgs {
    /// Replay the reads on this file or block device, which is opened read-only; writes are left out
    #[arg(long, value_name = "PATH", conflicts_with_all = ["copy_of", "create"])]
    pub file: Option<PathBuf>,
    /// Replay reads and writes on a private copy of this file, made in --create DIR or beside it
    #[arg(long, value_name = "PATH")]
    pub copy_of: Option<PathBuf>,
    /// Replay reads and writes on a new file in DIR, as large as the recorded one; it has no name
    /// and is gone afterwards, as is a copy
    #[arg(long, value_name = "DIR")]
    pub create: Option<PathBuf>,
    /// Size of the new file; accesses beyond its end wrap around [default: as recorded]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "create", conflicts_with_all = ["copy_of", "file"])]
    pub size: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Speed {
    Max,
    /// 1 is as recorded.
    Factor(f64),
}

impl Speed {
    /// Recorded seconds per played second; `None` without waiting.
    pub fn factor(self) -> Option<f64> {
        match self {
            Self::Max => None,
            Self::Factor(factor) => Some(factor),
        }
    }
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    match text {
        "as-recorded" => return Ok(Speed::Factor(1.0)),
        "max" => return Ok(Speed::Max),
        _ => {}
    }
    match text.parse::<f64>() {
        Ok(factor) if (0.001..=1000.0).contains(&factor) => Ok(Speed::Factor(factor)),
        _ => Err("as-recorded, max, or a factor from 0.001 to 1000 is expected".into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LoopName {
    Closed,
    Open,
}
