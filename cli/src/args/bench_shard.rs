//! What the benchmarks that load data may be told about shards.

use clap::{Args, ValueEnum};
use seekscope_workload::sharding::KeyField;

/// How collections are spread over the shards of a cluster.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Sharding")]
pub struct ShardArgs {
    /// Through a mongos: shard the loaded collections by a hash of the key, or by ranges of it with equal numbers of
    /// documents; they are dropped like any other collection of seekscope's
    #[arg(long, value_name = "KIND", value_enum)]
    pub shard: Option<ShardName>,
    /// Field of the shard key; loaded documents must have it
    #[arg(
        long,
        value_name = "FIELD",
        default_value = "_id",
        requires = "shard",
        alias = "shards-key"
    )]
    pub shard_key: KeyField,
    /// Chunks of each collection before the load, at least one per shard [default: two per
    /// shard]
    #[arg(long, value_name = "N", requires = "shard", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub pre_split: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShardName {
    Hashed,
    Ranged,
}
