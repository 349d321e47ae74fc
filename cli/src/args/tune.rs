//! What may be typed after `seekscope tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use seekscope_run::units::{parse_bytes, parse_duration};
use serde::{Deserialize, Serialize};

use super::OutputArgs;
use super::bench_values::{parse_database, parse_setting};

/// Find better settings, prove them in a duel, and restore the original ones
///
/// Runs a workload or a command under different settings, one run each, and lets a model choose what to try next.
/// At the end, the best setting, the smallest change that keeps its gain, and any --also compete with the original
/// settings in fresh, interleaved runs (the duel): only a gain in these counts. Changed settings are restored at the
/// end, also after an error or Ctrl-C; after a kill, use --restore.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  seekscope tune local --workload ycsb:a --budget 45m
  seekscope tune mongodb://test1/ --command './load.sh' --metric json:/rate --maximize --trials 40"
)]
pub struct TuneArgs {
    #[command(subcommand)]
    pub verb: Option<TuneVerb>,
    #[command(flatten)]
    pub session: TuneSessionArgs,
}

impl TuneArgs {
    /// How results are shown.
    pub fn output(&self) -> &OutputArgs {
        match &self.verb {
            None => &self.session.output,
            Some(TuneVerb::Init(args)) => &args.output,
            Some(TuneVerb::Show(args)) => &args.output,
            Some(TuneVerb::Apply(args)) => &args.output,
        }
    }
}

#[derive(Debug, Subcommand)]
pub enum TuneVerb {
    Init(TuneInitArgs),
    Show(TuneShowArgs),
    Apply(TuneApplyArgs),
}

/// Tune.
#[derive(Debug, Args)]
pub struct TuneSessionArgs {
    /// Connection string of the server, or `local`: a private server that is started and removed; may be omitted
    /// if --command needs no server that seekscope knows of
    #[arg(value_name = "URI|local", required_unless_present_any = ["resume", "restore", "command"])]
    pub target: Option<String>,
    #[command(flatten)]
    pub measured: TuneMeasuredArgs,
    #[command(flatten)]
    pub search: TuneSearchArgs,
    #[command(flatten)]
    pub knobs: TuneKnobArgs,
    #[command(flatten)]
    pub local: TuneLocalArgs,
    /// Continue a session that was interrupted or killed, in a new run that begins with what was measured; all
    /// options are as they were given then
    #[arg(long, value_name = "RUN", conflicts_with = "restore")]
    pub resume: Option<PathBuf>,
    /// Restore the settings that a killed session, or a killed `bench index --memory-mb`, left changed
    #[arg(long, value_name = "RUN")]
    pub restore: Option<PathBuf>,
    /// Folder for the run: trials and report [default: ./seekscope-runs/tune-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is run, and which of its figures counts.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[command(next_help_heading = "What is measured")]
pub struct TuneMeasuredArgs {
    /// ycsb:a to ycsb:f, sysbench, or a file as `bench run` takes; it is loaded once into a database of its own
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub workload: Option<String>,
    /// Options of the workload as `seekscope bench` takes them, e.g. '--records 500000 --in-flight 16'
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true
    )]
    pub workload_options: String,
    /// A shell command that puts load on the server and prints what it measured. Knobs with
    /// `set = { environment = "NAME" }` are passed in its environment
    #[arg(long, value_name = "CMD")]
    pub command: Option<String>,
    /// A run of --command that takes longer than this has failed
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m")]
    pub command_limit: Duration,
    /// What to improve: throughput, throughput:OPERATION (one of the workload's), p50, p99, p999, cpu_us_per_op,
    /// read_bytes_per_op, write_bytes_per_op, memory, seconds; for a --command: output (the last number that it
    /// prints), json:/path, seconds [default: throughput; for a --command, output]
    #[arg(long, value_name = "METRIC")]
    pub metric: Option<String>,
    /// A lower value of --metric is better
    #[arg(long, visible_alias = "minimise", conflicts_with = "maximize")]
    pub minimize: bool,
    /// A higher value of --metric is better
    #[arg(long, visible_alias = "maximise")]
    pub maximize: bool,
    /// A condition that must hold, e.g. 'p99 <= 20ms', 'memory <= 4GiB'; a setting that violates it is rejected. May be
    /// repeated
    #[arg(long, value_name = "LIMIT")]
    pub constraint: Vec<String>,
    /// How long each run of a workload takes; for a --command, about how long it takes, so that knobs that need
    /// longer runs are left out [default: 20s; for a --command, unknown]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub trial_for: Option<Duration>,
    /// A shell command to run before each run, once the new setting is in place, e.g. to empty caches
    #[arg(long, value_name = "CMD")]
    pub prepare: Option<String>,
    /// Load the data again before each run; a local server gets a copy of the loaded data each time anyway
    #[arg(long)]
    pub fresh_data: bool,
    /// Database into which the workload is loaded; one with a collection that seekscope did not fill is
    /// refused
    #[arg(long, value_name = "NAME", value_parser = parse_database, default_value = "seekscope_tune")]
    pub database: String,
}

/// How long and how thoroughly.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[command(next_help_heading = "The search")]
pub struct TuneSearchArgs {
    /// Time for the whole session; the search ends early enough for the duel [default: --trials decides]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub budget: Option<Duration>,
    /// Maximum number of runs in the search
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub trials: u32,
    /// Pairs of runs with the original settings before the search, which show how noisy the measurement is
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=24))]
    pub baseline_pairs: u32,
    /// Maximum pairs of runs in the duel: 4, 6, 8, 12, 16 or 24. It ends as soon as it is decided
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = duel_pairs)]
    pub pairs: u32,
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What may be changed.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[command(next_help_heading = "The knobs")]
pub struct TuneKnobArgs {
    /// Knobs from the catalogue, separated by commas, or a file as `tune init` writes it; those that may not be changed
    /// are left out [default: those of the catalogue that this server has and that may be changed]
    #[arg(long, value_name = "NAMES|FILE")]
    pub knobs: Option<String>,
    /// A setting that takes part in the duel whatever the search finds: the name of a preset, or
    /// NAME=VALUE,NAME=VALUE; may be repeated
    #[arg(long, value_name = "SETTING")]
    pub also: Vec<String>,
    /// Do not begin with the presets of the catalogue or knob file; --also can still name them
    #[arg(long)]
    #[serde(default)]
    pub no_presets: bool,
    /// Start with the best setting of an earlier session
    #[arg(long, value_name = "RUN")]
    pub begin_with: Option<PathBuf>,
    /// Also tune knobs that change what an acknowledged write means, or lengthen recovery
    #[arg(long)]
    pub allow_durability: bool,
    /// Also tune knobs that can make operations fail or mean something else
    #[arg(long)]
    pub allow_availability: bool,
    /// Also tune knobs that only affect new data, such as compressors: the data are loaded once for each value
    #[arg(long)]
    pub reload: bool,
    /// Also tune settings of this host, such as read-ahead (the server must run here)
    #[arg(long)]
    pub host: bool,
    /// The server's configuration file, for knobs that it reads when it starts; needs --restart-command
    #[arg(long, value_name = "FILE", requires = "restart_command")]
    pub config_file: Option<PathBuf>,
    /// A shell command that restarts the server, e.g. 'systemctl restart mongod'
    #[arg(long, value_name = "CMD")]
    pub restart_command: Option<String>,
    /// In a replica set, restart all members in turn: each while all others are up, and the primary last, after it has
    /// stepped down. `{host}` and `{port}` in --config-file and --restart-command stand for those of the member
    #[arg(long, requires = "config_file")]
    #[serde(default)]
    pub allow_stepdown: bool,
    /// Tune even if the server has other traffic, whose clients will feel each setting
    #[arg(long)]
    pub busy: bool,
}

/// The private server of `local`.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[command(next_help_heading = "The local server")]
pub struct TuneLocalArgs {
    /// Program to start [default: mongod on PATH, else secantusd-rs]
    #[arg(long, value_name = "FILE")]
    pub server_binary: Option<PathBuf>,
    /// Size of WiredTiger's cache at the start [default: 256 MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub cache: Option<u64>,
    /// A setting at the start, as `seekscope bench` takes it; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub server_setting: Vec<(String, String)>,
    /// Folder for its data [default: beside the run]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Write a knob file for a server, to edit and pass to --knobs
///
/// It lists the knobs of the catalogue that this server has, with their current values, their ranges, and what a
/// change costs and risks. Nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope tune init mongodb://test1/ > knobs.toml
  seekscope tune init local --out knobs.toml")]
pub struct TuneInitArgs {
    /// Connection string of the server, or `local`
    #[arg(value_name = "URI|local")]
    pub target: String,
    /// The file to write; an existing one is not replaced [default: print it]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub local: TuneLocalArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Show a session, even one in progress: trials, duel, importance, the change and its undo
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope tune show seekscope-runs/tune-20261101-101500
  seekscope tune show RUN --as mongod-conf > change.yaml")]
pub struct TuneShowArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Print only the change, in a form that can be used directly
    #[arg(long = "as", value_name = "FORM", value_enum, conflicts_with = "json")]
    pub form: Option<TuneForm>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A text that makes or undoes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TuneForm {
    MongodConf,
    SetParameter,
    Shell,
    Undo,
}

/// Make the recommended change on a server permanently, or undo it
///
/// Shows what it would do, and does it only with --yes. What a running server accepts is set at once and lasts
/// until its next start; what belongs in its configuration file is written with --config-file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope tune apply seekscope-runs/tune-20261101-101500 mongodb://test1/
  seekscope tune apply seekscope-runs/tune-20261101-101500 mongodb://test1/ --undo --yes")]
pub struct TuneApplyArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Connection string of the server
    #[arg(value_name = "URI")]
    pub uri: String,
    /// Undo the change, except for what somebody else has set since
    #[arg(long)]
    pub undo: bool,
    /// Make the change; without this, it is only shown
    #[arg(long)]
    pub yes: bool,
    /// The server's configuration file; needs --restart-command
    #[arg(long, value_name = "FILE", requires = "restart_command")]
    pub config_file: Option<PathBuf>,
    /// A shell command that restarts the server
    #[arg(long, value_name = "CMD", requires = "config_file")]
    pub restart_command: Option<String>,
    /// In a replica set, set and restart all members in turn, as a session does with this option
    #[arg(long, requires = "config_file")]
    pub allow_stepdown: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// When a duel may be looked at.
fn duel_pairs(text: &str) -> Result<u32, String> {
    let looks = seekscope_tune::duel::LOOKS.map(|look| look.pairs);
    let wanted: usize = text.parse().map_err(|_| "a number is expected")?;
    match looks.contains(&wanted) {
        true => Ok(u32::try_from(wanted).unwrap_or(u32::MAX)),
        false => Err(format!("one of {looks:?} is expected")),
    }
}
