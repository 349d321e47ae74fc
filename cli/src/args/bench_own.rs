//! What may be typed after `seekscope bench run`, `print` and `sample`.

use std::path::PathBuf;

use clap::Args;

use super::bench_common::{ClientName, KeepArgs, WarmUpName, parse_warm_up};
use super::bench_shard::ShardArgs;
use super::bench_values::parse_clients;
use super::{BenchTargetArgs, OutputArgs};

/// Run a workload of your own, written as TOML: phases, roles, values, operations
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
    /// Multiply the number of records in each collection by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_scale)]
    pub scale: f64,
    /// Threads that send operations, for each role [default: half of the processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// raw: seekscope's own client on the wire protocol; driver: MongoDB's official driver; auto: raw unless
    /// the connection string asks for something that only the driver can do
    #[arg(long, value_name = "CLIENT", value_enum, default_value_t = ClientName::Auto)]
    pub client: ClientName,
    /// How much of the beginning of each role to leave out of the figures: auto, none, or a time
    #[arg(long, value_name = "WHAT", value_parser = parse_warm_up, default_value = "auto")]
    pub warm_up: WarmUpName,
    /// Exit successfully even if some operations failed
    #[arg(long)]
    pub allow_errors: bool,
    /// This process is number N of M that do one job together; `seekscope merge` adds up their runs
    #[arg(long, value_name = "N/M", value_parser = parse_clients)]
    pub clients: Option<(u32, u32)>,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub sharding: ShardArgs,
}

/// Print a workload that comes with seekscope, or list their names
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

/// Derive a workload from existing documents, without copying their content
///
/// Field names, types, lengths, ranges of numbers and dates, indexes, and how well texts compress are kept. Values
/// of texts and binary data are not, except with --keep-values. Types that cannot be generated, and index options
/// that are lost, are listed.
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
    /// How many documents to look at: the first ones of a file, random ones of a collection
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub documents: u64,
    /// Number of records that the workload loads
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    pub records: u64,
    /// Copy the values of text fields with few different values (never those of other fields)
    #[arg(long)]
    pub keep_values: bool,
    /// Write the workload to this file, which must not exist yet [default: stdout]
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
