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
    /// Chunks of users' collections that were moved between shards while the cluster was watched; `None` if it is not
    /// known.
    pub moved_chunks: Option<u64>,
    /// The size that a chunk may have before it is split, bytes; `None` where the server's default applies.
    pub chunk_bytes: Option<u64>,
    /// All shards.
    pub shards: Vec<ShardOnDisk>,
    /// Sharded collections, those with most chunks first.
    pub collections: Vec<SpreadCollection>,
    /// Sharded collections that are not among them because there are so many.
    pub collections_left_out: u64,
}

/// What a shard keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardOnDisk {
    /// The shard's name.
    pub shard: String,
    /// Bytes that its collections and indexes take on disk, sharded or not; `None` if it is not known.
    pub disk_bytes: Option<u64>,
}

/// A sharded collection and how it is spread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SpreadCollection {
    /// `database.collection`.
    pub namespace: String,
    /// The pattern of its shard key, as JSON.
    pub key: String,
    pub shards: Vec<ShardShare>,
}
