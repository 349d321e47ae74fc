//! How the data of a sharded cluster is spread over its shards, as its router told it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ShardShare;

/// What the router of a sharded cluster said of its data and its balancer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ClusterRecord {
    /// Whether the balancer was on when the cluster was first asked. `None` if it is not known.
    pub balancer_on: Option<bool>,
    /// The only hours in which the balancer may work, as they were set: `23:00-06:00`. `None` if it always may, or it
    /// is not known.
    pub balancer_window: Option<String>,
    /// Chunks of users' collections that were moved between shards while the cluster was watched; `None` if it is not
    /// known.
    pub moved_chunks: Option<u64>,
    /// The size that a chunk may have before it is split, bytes; `None` where the server's default applies.
    pub chunk_bytes: Option<u64>,
    /// All shards.
    pub shards: Vec<ShardOnDisk>,
    /// Sharded collections; of very many those whose chunks are spread least evenly.
    pub collections: Vec<SpreadCollection>,
    /// How many sharded collections there are; `None` if it is not known.
    pub sharded_collections: Option<u64>,
    /// Operations that the router sent to shards while the cluster was watched, by kind; empty if it does not count
    /// them. Other routers of the cluster count their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<SentOperations>,
}

/// Attempts to move chunks of one collection from one shard to another that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct FailedMoves {
    /// The shard that has the chunks.
    pub from: String,
    /// The shard that was to get them.
    pub to: String,
    /// How many attempts failed.
    pub attempts: u64,
}

/// How many shards a router sent the operations of one kind to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SentOperations {
    /// "find", "insert", "update", "delete" or "aggregate".
    pub kind: String,
    /// Operations sent to every shard that has chunks of their collection, of several such shards.
    pub all_shards: u64,
    /// Operations sent to several of these shards, but not to all.
    pub several_shards: u64,
    /// Operations sent to one shard.
    pub one_shard: u64,
    /// Operations on collections that are not sharded.
    pub not_sharded: u64,
}

impl ClusterRecord {
    /// Returns whether every sharded collection is known.
    pub fn lists_all(&self) -> bool {
        self.sharded_collections == Some(self.collections.len() as u64)
    }
}

/// What a shard keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardOnDisk {
    /// The shard's name.
    pub shard: String,
    /// Bytes that its collections and indexes take on disk, sharded or not; `None` if it is not known.
    pub disk_bytes: Option<u64>,
    /// Chunks of all sharded collections; `None` if it is not known.
    pub chunks: Option<u64>,
    /// Whether it is being removed: the balancer moves its chunks to the other shards.
    pub draining: bool,
    /// If the shard is being removed, the databases that have it as primary shard: only a command moves them.
    pub databases: Vec<String>,
}

/// A sharded collection and how it is spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SpreadCollection {
    /// `database.collection`.
    pub namespace: String,
    /// The pattern of its shard key, as JSON.
    pub key: String,
    /// Each shard's part at the end of the watch, or at its beginning if nobody answered at the end.
    pub shards: Vec<ShardShare>,
    /// Whether the balancer was told to leave it alone.
    pub balancing_off: bool,
    /// Zones that tie ranges of its shard key to shards.
    pub zones: Vec<String>,
    /// Chunks that were found too large to move; `None` if it is not known.
    pub jumbo_chunks: Option<u64>,
    /// Chunks of it that were moved while the cluster was watched; `None` if it is not known.
    pub moved_chunks: Option<u64>,
    /// Attempts to move chunks of it that failed in the last hour, if nothing of it was moved after them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_moves: Vec<FailedMoves>,
    /// Shards from which chunks of it were moved in the hour before: copies of what moved may still be there.
    pub moved_from: Vec<String>,
}
