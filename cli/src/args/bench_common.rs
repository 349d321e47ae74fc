//! What every kind of `seekscope bench` may be told: which server, how operations are sent, what is
//! kept.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use seekscope_run::units::{parse_bytes, parse_duration, parse_stretch};

use super::OutputArgs;
use super::bench_values::{
    ArrivalsName, Slo, StartAt, parse_alternatives, parse_arrivals, parse_clients, parse_database,
    parse_rate, parse_setting, parse_slo, parse_start,
};

/// Which server, and what may be written to it.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The server")]
pub struct BenchTargetArgs {
    /// Connection string; without one, a private local server is started, and removed at the end
    #[arg(value_name = "URI")]
    pub uri: Option<String>,
    /// Database to write to; one with a collection that seekscope did not fill is refused. Whatever others add to its
    /// collections is removed with them. An empty collection, e.g. one that was sharded beforehand, is used as it is
    #[arg(long, value_name = "NAME", value_parser = parse_database, default_value = "seekscope_bench")]
    pub database: String,
    /// Drop the data at the end, also after Ctrl-C, and the database if nothing else is left in it; a collection that
    /// existed before, or was sharded by others, is only emptied [default: keep the data, so that further runs need no
    /// load]
    #[arg(long, conflicts_with = "keep")]
    pub drop: bool,
    /// Keep the database at the end; for a local server, keep its data directory
    #[arg(long)]
    pub keep: bool,
    /// The server's process ID, if it cannot be found by its port (containers)
    #[arg(long, value_name = "PID", requires = "uri")]
    pub pid: Option<u32>,
    /// Local server: program to start [default: mongod on PATH, else secantusd-rs]
    #[arg(long, value_name = "FILE", conflicts_with = "uri")]
    pub server_binary: Option<PathBuf>,
    /// Local server: size of WiredTiger's cache [default: 1 GiB; for `bench schema`, a quarter of the samples]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "uri")]
    pub cache: Option<u64>,
    /// Local server: a setting, e.g. block_compressor=zlib, write_tickets=4, checkpoint_seconds=10 or
    /// data_nonlogged=true; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_setting, conflicts_with = "uri")]
    pub server_setting: Vec<(String, String)>,
    /// Local server: folder for its data [default: beside the run]
    #[arg(long, value_name = "DIR", conflicts_with = "uri")]
    pub data_dir: Option<PathBuf>,
    /// Local server: restart it and evict its files from the page cache before each run
    #[arg(long, conflicts_with = "uri")]
    pub cold: bool,
}

/// How operations are sent.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sending")]
pub struct SendArgs {
    /// Maximum operations in flight; each has its own connection [default: 8; for sysbench-mongodb what its
    /// era uses, 10 to 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub in_flight: Option<u32>,
    /// Threads that send operations [default: half of the processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Open loop: operations per second over all connections, each started on time however slow the
    /// server is [default: closed loop, in which each starts when the previous one has ended]
    #[arg(long, value_name = "N/s", value_parser = parse_rate)]
    pub rate: Option<f64>,
    /// How the operations of --rate are spread: constant, poisson, ramp:FROM..TO:TIME, or replay:FILE with
    /// one time in seconds per line [default: constant]
    #[arg(long, value_name = "SPREAD", value_parser = parse_arrivals)]
    pub arrivals: Option<ArrivalsName>,
    /// Run for this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_stretch)]
    pub duration: Option<Duration>,
    /// raw: seekscope's own client on the wire protocol; driver: MongoDB's official driver; auto: raw unless
    /// the connection string asks for something that only the driver can do
    #[arg(long, value_name = "CLIENT", value_enum, default_value_t = ClientName::Auto)]
    pub client: ClientName,
    /// An operation that is not answered within this time has failed
    #[arg(long, value_name = "TIME", value_parser = parse_stretch, default_value = "30s")]
    pub timeout: Duration,
    /// How much of the beginning to leave out of the figures: auto, none, or a time
    #[arg(long, value_name = "WHAT", value_parser = parse_warm_up, default_value = "auto")]
    pub warm_up: WarmUpName,
    /// Seed for everything random; the same seed sends the same operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Objective for the response time; if it is missed, the exit code is 6
    #[arg(long, value_name = "p99=TIME,…", value_parser = parse_slo)]
    pub slo: Option<Slo>,
    /// Search for the highest rate that meets --slo, and show the curve of load and latency
    #[arg(long, requires = "slo", conflicts_with_all = ["rate", "arrivals"])]
    pub find_max: bool,
    /// Exit successfully even if some operations failed
    #[arg(long)]
    pub allow_errors: bool,
    /// This process is number N of M that do one job together; `seekscope merge` adds up their runs
    #[arg(long, value_name = "N/M", value_parser = parse_clients, conflicts_with = "find_max")]
    pub clients: Option<(u32, u32)>,
    /// When to begin the work: 2026-09-01T10:15:00Z, +10s, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_start)]
    pub start_at: Option<StartAt>,
}

/// Servers or settings measured in turn.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Side by side")]
#[command(group = ArgGroup::new("versus").args(["vs", "vs_config"]).multiple(true))]
pub struct VersusArgs {
    /// Another server to compare with: a standalone, a replica set (with its own w= or readPreference=) or a mongos.
    /// All get the same work in turn (first, second, second, first, …). May be given up to seven times. The same server
    /// with another w=, journal= or readPreference= is loaded only once
    #[arg(long, value_name = "URI2", requires = "uri", conflicts_with_all = ["vs_config", "find_max", "clients"])]
    pub vs: Vec<String>,
    /// Compare local servers that differ in one setting, each with the same data, measured in turn
    #[arg(long, value_name = "NAME=V1,V2", value_parser = parse_alternatives, conflicts_with_all = ["uri", "find_max", "clients"])]
    pub vs_config: Option<(String, Vec<String>)>,
    /// How often each of them is measured. With fewer than 4 for a workload, hardly any difference can be shown; with
    /// more, smaller differences can
    #[arg(long, value_name = "N", requires = "versus", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
}

impl VersusArgs {
    /// Are several servers or settings to be measured in turn?
    pub fn are_several(&self) -> bool {
        !self.vs.is_empty() || self.vs_config.is_some()
    }
}

/// What is kept and shown.
#[derive(Debug, Clone, Args)]
pub struct KeepArgs {
    /// Folder for the run: records and report [default: ./seekscope-runs/bench-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientName {
    Raw,
    Driver,
    Auto,
}

/// What of a step's beginning is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmUpName {
    Auto,
    None,
    For(Duration),
}

pub fn parse_warm_up(text: &str) -> Result<WarmUpName, String> {
    match text {
        "auto" => Ok(WarmUpName::Auto),
        "none" => Ok(WarmUpName::None),
        _ => match parse_duration(text) {
            Ok(time) => Ok(WarmUpName::For(time)),
            Err(_) => Err("auto, none, or a time such as 30s is expected".into()),
        },
    }
}
