//! What `seekscope bench index` records of its builds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ScanOrder, StepShards};

/// One index built on existing data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct BenchIndexBuild {
    /// Which of several servers, with `--vs`; otherwise empty.
    pub variant: String,
    /// e.g. "int", "text", "2dsphere (GeoJSON)".
    pub kind: String,
    pub keys: String,
    pub repetition: u32,
    pub documents: u64,
    /// Start of the build, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub elapsed_ns: u64,
    /// Keys in the index divided by the build's time, per second.
    pub keys_per_s: f64,
    /// Size of the index after a checkpoint has written all of it to its file, bytes; `None` if there was no
    /// checkpoint.
    pub index_bytes: Option<u64>,
    /// Highest resident memory of the server during the build, bytes.
    pub server_rss_bytes: Option<u64>,
    /// Largest size of temporary files seen in the data directory, bytes.
    pub temp_bytes: Option<u64>,
    /// Bytes that the server read during the build.
    pub read_bytes: Option<u64>,
    /// Bytes that the server wrote during the build.
    pub write_bytes: Option<u64>,
    /// p99 response time of the other load before, during and after the build, ns; `None` for what had too few
    /// operations or was too short to tell.
    pub foreground_p99_ns: Option<[Option<u64>; 3]>,
    /// How each server with data on this host read the collection, with `--shard` and `--vs`; empty if that was not
    /// traced.
    pub reads: Vec<BuildReads>,
    /// The balancer during the build; `None` unless the server is a router. It has no figures of shards.
    pub shards: Option<StepShards>,
    /// Whether a count by the new index agreed with the collection's.
    pub verified: Option<bool>,
    /// Why the build failed, or why this server cannot do it.
    pub failure: Option<String>,
}

/// How one server read the file of a collection while an index on it was built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct BuildReads {
    /// The shard's name, or `host:port`.
    pub member: String,
    pub reads: u64,
    pub bytes: u64,
    /// "sequential", "random", …; `None` if nothing was read.
    pub pattern: Option<String>,
    /// Share of steps that continue where the last read ended, or at most 128 KiB further (0 to 1).
    pub sequential_share: Option<f64>,
}

/// How the collection whose indexes are built lies in the file of one server, after the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct IndexedFile {
    /// Which of several servers, with `--vs`; otherwise empty.
    pub variant: String,
    /// The shard's name, or `host:port`.
    pub member: String,
    pub file_bytes: Option<u64>,
    /// The order of the leaves; `None` with fewer than two.
    pub order: Option<ScanOrder>,
    /// Why it was not read; `None` if it was.
    pub not_measured: Option<String>,
}
