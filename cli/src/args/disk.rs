//! What may be typed after `seekscope disk` and `seekscope mongoperf`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use seekscope_run::units::{parse_bytes, parse_duration};

use super::{EmulatedDisk, OutputArgs, share};

/// Measure what a disk can do for a database, and build a model of it
///
/// Creates a file without a name in DIR (so nothing can be left behind, whatever happens), fills it with
/// incompressible data, measures, and finally builds a device model that other commands use. Never writes
/// to an existing file.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  seekscope disk /var/lib/mongodb-volume
  seekscope disk --read-existing /data/collection-7--42.wt --budget 30s"
)]
pub struct DiskArgs {
    #[command(subcommand)]
    pub verb: Option<DiskVerb>,
    #[command(flatten)]
    pub survey: SurveyArgs,
}

impl DiskArgs {
    /// How the verb's results are shown.
    pub fn output(&self) -> &OutputArgs {
        match &self.verb {
            None => &self.survey.place.output,
            Some(DiskVerb::Run(args)) => &args.place.output,
            Some(DiskVerb::Predict(args)) => &args.output,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum DiskVerb {
    Run(JobArgs),
    Predict(PredictArgs),
}

/// Where it is measured; shared by the survey and the single job.
#[derive(Debug, Args)]
pub struct DiskTargetArgs {
    /// Size of the file [default: 4 GiB, or less if space is short]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "read_existing")]
    pub size: Option<u64>,
    /// Read this file or block device instead of creating one; it is never written
    #[arg(long, value_name = "FILE")]
    pub read_existing: Option<PathBuf>,
    /// Measure even if a database runs in DIR: with at most 200 requests and 20 MB per second, and only until
    /// the host waits for I/O most of the time. This says little about what the disk can do
    #[arg(long)]
    pub next_to_database: bool,
    /// Throttle this process's reads to resemble a slower disk [default: none]
    #[arg(long, value_name = "DISK")]
    pub emulate_disk: Option<EmulatedDisk>,
    /// Seed for data and offsets; the same seed gives the same accesses
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Folder for the run [default: ./seekscope-runs/disk-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// False where the measurement is a part of another command, which shows its own results.
    #[arg(skip = true)]
    pub shown: bool,
}

#[derive(Debug, Args)]
pub struct SurveyArgs {
    /// Directory on the disk to measure
    #[arg(
        value_name = "DIR",
        default_value = ".",
        conflicts_with = "read_existing"
    )]
    pub directory: PathBuf,
    /// How thoroughly to measure
    #[arg(long, value_name = "PROFILE", value_enum, default_value_t = ProfileName::Quick)]
    pub profile: ProfileName,
    /// Time for the whole measurement, including filling the file [default: 90s for quick, none for the others]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub budget: Option<Duration>,
    /// How long `--profile sustained` reads at the end
    #[arg(long, value_name = "TIME", default_value = "20m", value_parser = parse_duration)]
    pub sustained_for: Duration,
    /// Engine for the direct reads [default: uring where permitted, else sync]
    #[arg(long, value_name = "ENGINE", value_enum)]
    pub engine: Option<SurveyEngine>,
    /// Go through the page cache if direct I/O is not possible
    #[arg(long)]
    pub buffered: bool,
    #[command(flatten)]
    pub place: DiskTargetArgs,
}

impl SurveyArgs {
    /// The quick survey as a part of another command.
    pub fn within(directory: PathBuf, budget: Duration, output: OutputArgs) -> Self {
        Self {
            directory,
            profile: ProfileName::Quick,
            budget: Some(budget),
            sustained_for: Duration::ZERO,
            engine: None,
            buffered: false,
            place: DiskTargetArgs {
                size: None,
                read_existing: None,
                next_to_database: false,
                emulate_disk: None,
                seed: 1,
                out: None,
                output,
                shown: false,
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileName {
    /// Everything within 90 s
    Quick,
    /// Everything for eight times as long, about ten minutes
    Full,
    /// Quick, then random reads for --sustained-for, to see whether burst credits or caches run out
    Sustained,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SurveyEngine {
    Uring,
    Sync,
}

/// Run a single job and show its latencies second by second
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope disk run --rw randread --bs 4k --depth 32 --threads 4 --runtime 10s
  seekscope disk run /data --rw randrw --read-share 0.7 --rate 5000 --poisson --json")]
pub struct JobArgs {
    /// Directory on the disk to measure
    #[arg(
        value_name = "DIR",
        default_value = ".",
        conflicts_with = "read_existing"
    )]
    pub directory: PathBuf,
    /// Order and direction: read, write, rw, randread, randwrite, randrw
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Rw::Randread)]
    pub rw: Rw,
    /// Bytes per access
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "4k")]
    pub bs: u64,
    /// uring: requests through io_uring; sync: pread and pwrite; mmap: page faults; null: no I/O, only
    /// the load generator
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = JobEngine::Uring)]
    pub engine: JobEngine,
    /// Requests in flight per thread (uring and null)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub depth: u32,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub threads: u32,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub runtime: Duration,
    /// How long to warm up beforehand, which is not measured
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_duration)]
    pub warm_up: Duration,
    /// Operations per second of all threads together; latency then counts from the intended start
    /// [default: as fast as possible]
    #[arg(long, value_name = "N")]
    pub rate: Option<f64>,
    /// Distribute the gaps between intended starts exponentially, as if the users were independent
    #[arg(long, requires = "rate")]
    pub poisson: bool,
    /// Share of reads in rw and randrw, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0.5")]
    pub read_share: f64,
    /// Go through the page cache instead of around it
    #[arg(long)]
    pub buffered: bool,
    /// Call fdatasync after each write; both count as one operation
    #[arg(long)]
    pub sync: bool,
    /// What the kernel is told about the order of buffered and mapped accesses
    #[arg(long, value_name = "ADVICE", value_enum, default_value_t = AdviceName::Normal)]
    pub advice: AdviceName,
    /// Exit with code 6 if fewer operations per second are reached
    #[arg(long, value_name = "N", value_parser = positive)]
    pub min_iops: Option<f64>,
    /// Exit with code 6 if the 99th percentile of latency is longer
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub max_p99: Option<Duration>,
    #[command(flatten)]
    pub place: DiskTargetArgs,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0 is expected".into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(clippy::enum_variant_names, reason = "fio's names")]
pub enum Rw {
    Read,
    Write,
    Rw,
    Randread,
    Randwrite,
    Randrw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum JobEngine {
    Uring,
    Sync,
    Mmap,
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AdviceName {
    Normal,
    Random,
    Sequential,
}

/// Predict how long a recorded trace, or an order of blocks, takes on a measured disk
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope disk predict --model seekscope-runs/disk-20260901-101500 --trace seekscope-runs/doctor-20260901-102000
  seekscope disk predict --model RUN --order runs:8 --bs 32k --region 300M")]
pub struct PredictArgs {
    /// Run of `seekscope disk` that holds the device model
    #[arg(long, value_name = "RUN")]
    pub model: PathBuf,
    /// Run whose recorded file reads and writes are predicted
    #[arg(
        long,
        value_name = "RUN",
        required_unless_present = "order",
        conflicts_with = "order"
    )]
    pub trace: Option<PathBuf>,
    /// Order of blocks: sequential, shuffled, backwards, runs:N or every:N
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// Bytes per access of --order
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "32k")]
    pub bs: u64,
    /// Bytes that --order covers
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, default_value = "1G")]
    pub region: u64,
    /// Let --order go around the page cache
    #[arg(long)]
    pub direct: bool,
    /// Size of the page cache, which is empty at the start [default: half of the measured host's memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub cache: Option<u64>,
    /// Seed for shuffled orders
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Run as the old mongoperf did: read its options from stdin and print its lines
///
/// A link named mongoperf to the program does the same. The same input gives the same lines in the
/// same order; then it prints a summary with percentiles, and ends. It creates a file without a name in
/// the current directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Options on stdin: nThreads (1), fileSizeMB (1), recSizeKB (4), r, w (false), mmf (false), sleepMicros (0),
syncDelay (0).
Examples:
  echo '{nThreads:32,fileSizeMB:1000,r:true}' | seekscope mongoperf
  echo '{recSizeKB:8,nThreads:8,fileSizeMB:1000,r:true,mmf:true}' | mongoperf --forever")]
pub struct MongoperfArgs {
    /// Go on until interrupted, as the original did, instead of ending after 8 seconds with all threads
    #[arg(long)]
    pub forever: bool,
    /// Compute MB/sec as the original did: operations x 4096 bytes, whatever recSizeKB is
    #[arg(long)]
    pub mongoperf_mbs: bool,
    /// Leave the file mongoperf__testfile__tmp in the current directory, as the original did; it must not exist yet
    #[arg(long)]
    pub keep_file: bool,
    /// Fill the file with zeros, as the original did; devices that compress will look faster than they are
    #[arg(long)]
    pub zero_fill: bool,
    /// Divide sleepMicros by the number of running threads, as the original did
    #[arg(long)]
    pub sleep_shared: bool,
    /// Use the page cache if direct I/O is refused, as the original did
    #[arg(long)]
    pub allow_cached: bool,
    /// Use the same offsets in every run, as the original did
    #[arg(long)]
    pub fixed_seed: bool,
    /// With mmf, let the kernel read ahead around each fault, as the original did
    #[arg(long)]
    pub read_around: bool,
    /// Exit with code 0 after complaining about nThreads 0, as the original did
    #[arg(long)]
    pub zero_threads_ok: bool,
    /// Measure even if a database runs in the current directory; it will be slowed down
    #[arg(long)]
    pub next_to_database: bool,
}
