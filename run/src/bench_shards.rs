//! What a benchmark through a router (mongos) records of the shards behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How documents are assigned to shards.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    Default,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ShardKind {
    /// Distributed by a hash of the shard key.
    #[default]
    Hashed,
    /// Distributed by ranges of the shard key.
    Ranged,
}

/// How a benchmark was told to shard its collections, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct BenchSharding {
    pub kind: ShardKind,
    /// The field of the shard key.
    pub key: String,
    /// Chunks that each collection was to have before the load; `None`: two for each shard if it is ranged, as many as
    /// the server makes if it is hashed.
    pub pre_split: Option<u32>,
    /// The collections after each load, or before the runs if nothing was loaded.
    pub collections: Vec<ShardedCollection>,
    /// What the router adds to a read, on each of the first shards; measured after the work.
    pub router: Vec<RouterCost>,
}

/// What a router adds to the read of one document by its shard key: the same cached documents of one shard, read through
/// the router and directly from the shard's primary in turn, one at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct RouterCost {
    /// Which of several servers, with `--vs`; otherwise empty.
    pub variant: String,
    pub collection: String,
    /// The shard's name.
    pub shard: String,
    /// Number of documents that were read both ways.
    pub pairs: u64,
    /// Mean time through the router, ns.
    pub through_router_ns: f64,
    /// Mean time directly from the shard, ns.
    pub direct_ns: f64,
    /// Mean difference of the two, ns.
    pub added_ns: f64,
    /// Lower bound of the 95 % interval of `added_ns`; `None` if there were too few.
    pub added_low_ns: Option<f64>,
    /// Upper bound of the 95 % interval of `added_ns`; `None` if there were too few.
    pub added_high_ns: Option<f64>,
}

/// The documents of one sharded collection by shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardedCollection {
    pub name: String,
    /// Which of several servers, with `--vs`; otherwise empty.
    pub variant: String,
    /// The load after which the shards were asked; empty if an earlier run had loaded the documents.
    pub after: String,
    /// Number of documents that should be there; `None` if that is not known, for example because an earlier run
    /// loaded them.
    pub expected: Option<u64>,
    /// Sum over all shards; `None` if a shard did not say.
    pub documents: Option<u64>,
    /// Documents that shards hold beyond those of the collection: copies that moves of chunks have left or not finished,
    /// and that no query returns. They are included in the figures of the shards.
    pub orphans: Option<u64>,
    pub shards: Vec<ShardShare>,
}

/// One shard's part of a collection. Copies that moves of chunks have left are included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardShare {
    /// The shard's name.
    pub shard: String,
    /// `None` if the login may not read the cluster's configuration.
    pub chunks: Option<u64>,
    /// Documents, by the shard's own count.
    pub documents: Option<u64>,
    /// Size of these documents, not compressed, bytes.
    pub data_bytes: Option<u64>,
    /// Bytes that they and their indexes take on disk, with the free space in their files.
    pub disk_bytes: Option<u64>,
    /// `documents` as a share of those on all shards, 0 to 1.
    pub share: Option<f64>,
    /// Operations of users that read it while the cluster was watched; `None` if the shard was not asked twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    /// The same of operations that wrote to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<u64>,
}

/// The shards and the balancer during a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct StepShards {
    pub shards: Vec<ShardFigures>,
    /// Whether the balancer was on before the step. Seekscope never changes that. `None` if it is not known.
    pub balancer_on: Option<bool>,
    /// Chunks of the step's collections that were moved between shards during the step; `None` if it is not known.
    pub moved_chunks: Option<u64>,
}

/// What one shard did during a step without its warm-up, by the counters of its primary: work of others on the shard
/// is included, and an operation that the router sends to several shards counts on each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShardFigures {
    /// The shard's name.
    pub shard: String,
    /// The primary that was asked, as `host:port`; `None` if it could not be reached, and then all figures are unknown.
    pub primary: Option<String>,
    /// The time over which the operations were counted, seconds.
    pub measured_s: Option<f64>,
    /// Documents inserted.
    pub inserts: Option<u64>,
    pub queries: Option<u64>,
    pub updates: Option<u64>,
    pub deletes: Option<u64>,
    /// Inserts, queries, updates and deletes per second.
    pub operations_per_s: Option<f64>,
    /// Mean time of reads in the server, ns; `None` if there were none.
    pub read_latency_ns: Option<f64>,
    /// Mean time of writes in the server, ns: of whole commands, each of which may write many documents. `None` if
    /// there were none.
    pub write_latency_ns: Option<f64>,
}

impl ShardedCollection {
    /// Sums up the shards' documents, sets their shares, and notes how many exceed the exact count of the collection,
    /// if that is known.
    #[must_use]
    pub fn summed_up(mut self, exact: Option<u64>) -> Self {
        // Without a list of the shards nothing was counted.
        let all: Option<u64> = self.shards.iter().map(|shard| shard.documents).sum();
        self.documents = all.filter(|_| !self.shards.is_empty());
        if let Some(total) = self.documents.filter(|total| *total > 0) {
            for shard in &mut self.shards {
                shard.share = shard
                    .documents
                    .map(|documents| documents as f64 / total as f64);
            }
        }
        let beyond = self.documents.zip(exact);
        self.orphans = beyond.and_then(|(total, exact)| total.checked_sub(exact));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(documents: &[Option<u64>]) -> ShardedCollection {
        let shards = documents.iter().map(|documents| ShardShare {
            documents: *documents,
            ..ShardShare::default()
        });
        ShardedCollection {
            shards: shards.collect(),
            ..ShardedCollection::default()
        }
    }

    #[test]
    fn shares_are_of_all_shards_and_unknown_ones_make_the_sum_unknown() {
        let whole = collection(&[Some(30), Some(70)]).summed_up(Some(90));
        assert_eq!((whole.documents, whole.orphans), (Some(100), Some(10)));
        assert_eq!(whole.shards[0].share, Some(0.3));
        let unknown = collection(&[Some(30), None]).summed_up(Some(90));
        assert_eq!((unknown.documents, unknown.orphans), (None, None));
        assert_eq!(unknown.shards[0].share, None);
        let empty = collection(&[Some(0), Some(0)]).summed_up(Some(0));
        assert_eq!((empty.documents, empty.shards[0].share), (Some(0), None));
        assert_eq!(collection(&[]).summed_up(Some(9)).documents, None);
        // Fewer than there are: the shards' own counts are wrong, and nothing is known of orphans.
        assert_eq!(collection(&[Some(5)]).summed_up(Some(6)).orphans, None);
    }
}
