//! What may be typed after `seekscope bench index`.

use std::time::Duration;

use clap::builder::ArgPredicate;
use clap::{Args, ValueEnum};
use seekscope_run::units::parse_duration;
use seekscope_workload::index_lab::is_kind;

use super::bench_common::{BenchTargetArgs, ClientName, KeepArgs};
use super::bench_shard::ShardArgs;
use super::bench_values::parse_rate;

/// Build indexes of several kinds on existing data, alone or under other load
///
/// Loads documents, waits until the server is quiet, then builds and drops each index in turn. A kind that the
/// server refuses is shown with the reason. With --shard or --vs, the reads of each server with data on this host are
/// traced while it builds alone (needs root), and the order of its file is read beforehand. To see the reads and
/// writes of other builds, run `seekscope trace --pid PID` at the same time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  seekscope bench index --docs 1000000 --memory-mb 100 --repeats 5
  seekscope bench index mongodb://db1/ --kinds int,text --foreground 500/s
  seekscope bench index mongodb://mongos1/ --shard hashed --vs mongodb://db1/ --data sdu --kinds int --repeats 5")]
pub struct IndexArgs {
    #[command(flatten)]
    pub target: BenchTargetArgs,
    /// A second server to compare with: both get the same documents, and each index is built on both in turn (first,
    /// second, second, first, …)
    #[arg(
        long,
        value_name = "URI2",
        requires = "uri",
        conflicts_with = "foreground"
    )]
    pub vs: Option<String>,
    /// Number of documents
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub docs: u64,
    /// Which documents: genny: as in its workload CreateBigIndex, about 300 bytes each; sdu: 3 KiB each
    #[arg(long, value_name = "DATA", value_enum, default_value_t = IndexDataName::Genny)]
    pub data: IndexDataName,
    /// Kinds of indexes, separated by commas: int, string, 2d, 2dsphere-coordinates, 2dsphere-geojson, hashed, text,
    /// unique, wildcard; for sdu: int, date, string, array, hashed [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', value_parser = parse_kind)]
    pub kinds: Vec<String>,
    /// How often each index is built [default: 2; 4 with --vs, because fewer can hardly show a difference]
    #[arg(long, value_name = "N", default_value_t = 2, default_value_if("vs", ArgPredicate::IsPresent, "4"), hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: u32,
    /// Memory in which the server may sort keys, MiB (maxIndexBuildMemoryUsageMegabytes); the original value is
    /// restored at the end [default: unchanged]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub memory_mb: Option<u32>,
    /// Also run reads, updates, inserts and deletes at this rate before, during and after each build
    #[arg(long, value_name = "N/s", value_parser = parse_rate)]
    pub foreground: Option<f64>,
    /// Maximum operations of this load in flight
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub in_flight: u32,
    /// How long this load runs before and after each build
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub margin: Duration,
    /// Client that sends this load
    #[arg(long, value_name = "CLIENT", value_enum, default_value_t = ClientName::Auto)]
    pub client: ClientName,
    /// Seed for the documents and this load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    #[command(flatten)]
    pub keep: KeepArgs,
    #[command(flatten)]
    pub sharding: ShardArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IndexDataName {
    Genny,
    Sdu,
}

/// Whether the data that were asked for have such an index is known later.
fn parse_kind(name: &str) -> Result<String, String> {
    match is_kind(name) {
        true => Ok(name.into()),
        false => Err("there is no such kind of index; --help names them".into()),
    }
}
