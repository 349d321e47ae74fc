//! What may be typed after `seekscope bench run`, `print` and `sample`.

use std::path::PathBuf;

use clap::Args;

use super::bench_common::{ClientName, KeepArgs, WarmUpName, parse_warm_up};
use super::bench_shard::ShardArgs;
use super::bench_values::parse_clients;
use super::{BenchTargetArgs, OutputArgs};

/// A workload of your own, written as TOML: phases, roles, values, operations
///
/// The language is described in docs/workloads.md; `seekscope bench print NAME` shows an example.
/// Documents that an earlier run of the workload left are dropped first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench run orders.toml
  seekscope bench run ycsb-a mongodb://db1/ --scale 10")]
pub struct RunArgs {
    /// A file, or the name of a workload that comes with seekscope
    #[arg(value_name = "FILE|NAME")]
    pub workload: String,
    #[command(flatten)]
    pub target: BenchTargetArgs,
    /// Every collection has so many times the records that the workload says
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    pub scale: f64,
    /// Threads that send, for each role [default: half of the processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// raw: our own on the wire protocol; driver: MongoDB's official one; auto: raw where the
    /// connection string asks for nothing that only the driver can do
    #[arg(long, value_name = "CLIENT", value_enum, default_value_t = ClientName::Auto)]
    pub client: ClientName,
    /// What of the beginning of each role is left out of the figures: auto, none, or a time
    #[arg(long, value_name = "WHAT", value_parser = parse_warm_up, default_value = "auto")]
    pub warm_up: WarmUpName,
    /// End with success although some operations failed
    #[arg(long)]
    pub allow_errors: bool,
    /// This process is number N of M that do one job together; `seekscope merge` adds their runs
    #[arg(long, value_name = "N/M", value_parser = parse_clients)]
    pub clients: Option<(u32, u32)>,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub sharding: ShardArgs,
}

/// Print a workload that comes with seekscope, or their names
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench print
  seekscope bench print sysbench > mine.toml")]
pub struct PrintArgs {
    #[arg(value_name = "NAME")]
    pub workload: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Derive a workload from documents that exist, without copying what they say
///
/// Fields, types, lengths, ranges of numbers and dates, and how well texts compress are kept. Values
/// of texts and of binary data are not, unless --keep-values says so; field names and indexes are. Types that
/// cannot be generated and options of indexes that are lost are named.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench sample dump/shop/orders.bson > orders.toml
  seekscope bench sample shop.orders mongodb://db1/ --documents 5000 > orders.toml")]
pub struct SampleArgs {
    /// A file (JSON lines, a JSON array, mongodump's BSON), or DATABASE.COLLECTION
    #[arg(value_name = "FILE|DB.COLL")]
    pub source: String,
    /// Connection string, for a collection
    #[arg(value_name = "URI")]
    pub uri: Option<String>,
    /// Documents to look at: the first of a file, random ones of a collection
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub documents: u64,
    /// Records that the workload is to load
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub records: u64,
    /// Copy the values of texts that have few different ones (never those of others)
    #[arg(long)]
    pub keep_values: bool,
    /// Write the workload into a file that does not exist yet [default: stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && factor <= 1e9 => Ok(factor),
        _ => Err("a factor above 0 is expected, e.g. 0.1 or 10".into()),
    }
}
