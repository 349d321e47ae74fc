//! What `seekscope bench` measured: one record per step (a load, a run, a probe), and what the steps show
//! together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BenchIndexBuild, BenchSharding, IndexedFile, LatencySummary, Limitation, StepShards,
    latency_of_any,
};

/// How operations are started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Arrivals {
    /// Each virtual user starts its next operation when its previous one has ended: the server sets the pace, and a
    /// stall delays the operations that would have been measured.
    #[default]
    Closed,
    /// Starts at even intervals.
    Constant { per_s: f64 },
    /// Starts at exponentially distributed intervals.
    Poisson { per_s: f64 },
    /// Starts at a rate that grows evenly from `from_per_s` to `to_per_s`.
    Ramp { from_per_s: f64, to_per_s: f64 },
    /// Starts at the times recorded in `file`.
    Replayed { file: String },
}

/// The client that sends operations.
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
pub enum ClientKind {
    /// seekscope's own client for MongoDB's wire protocol.
    #[default]
    Raw,
    /// MongoDB's official driver.
    Driver,
    /// ScyllaDB's driver for Cassandra's protocol.
    Cql,
}

/// The record of a benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct BenchMeasurement {
    /// e.g. "ycsb-a", "sysbench-mongodb", "index-build", "schema", or a workload file's name.
    pub workload: String,
    /// The rules it followed, e.g. "ycsb" (bit-exact) or "corrected", "2013-2015".
    pub edition: String,
    /// Every setting as resolved, by its name; no credentials.
    pub settings: BTreeMap<String, String>,
    /// The database written to.
    pub database: String,
    /// This process's number, from 1, and the number of processes, if it was one of several.
    pub client_number: Option<(u32, u32)>,
    /// Run directories that a merged run was made of.
    pub merged_from: Vec<String>,
    /// How the collections were sharded, if that was asked for.
    pub sharding: Option<BenchSharding>,
    /// Whether a killed run had left settings of a measured server changed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_left_changed: bool,
    pub steps: Vec<BenchStep>,
    /// Load against latency, if a maximum was searched for.
    pub saturation: Option<Saturation>,
    pub index_builds: Vec<BenchIndexBuild>,
    /// The files that index builds read, with `--shard` and `--vs`.
    pub indexed_files: Vec<IndexedFile>,
    /// One for each shape of a schema lab.
    pub shapes: Vec<SchemaShape>,
    /// What the lab's published forerunners found, beside what it found.
    pub experiments: Vec<SchemaExperiment>,
    /// What the lab recommends, with its reason.
    pub recommendation: Option<String>,
}

impl BenchMeasurement {
    /// Returns whether nothing at all was measured.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.index_builds.is_empty() && self.shapes.is_empty()
    }
}

/// A stretch of work of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct BenchStep {
    /// Unique in the run; the `step` of its intervals and histograms.
    pub name: String,
    /// "load", "run" or "probe".
    pub kind: String,
    /// e.g. "ycsb-a".
    pub workload: String,
    /// Which of several servers or settings, with `--vs` and `--vs-config`; otherwise empty.
    pub variant: String,
    /// The repetition, counted from 1.
    pub repetition: u32,
    pub client: ClientKind,
    /// Why this client, for people.
    pub client_reason: String,
    pub arrivals: Arrivals,
    /// Operations that could be in flight at once.
    pub in_flight: u32,
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// The end of the warm-up, which is kept in the intervals and left out of all figures below. `None`: no
    /// warm-up was seen or wanted.
    pub warm_up_ended_ns: Option<u64>,
    /// Whether the rest of the step was steady, and how that was judged.
    pub steady: Option<Steady>,
    /// Why the figures must not be trusted; empty if they may be.
    pub invalid: Vec<String>,
    /// Requests that were answered or failed, warm-up included; CPU times are divided by this.
    pub requests: u64,
    /// Transactions begun, warm-up included. A request that belongs to no transaction counts as one.
    pub transactions: u64,
    /// Transactions due per second; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Transactions that succeeded, per second, without the warm-up.
    pub throughput_per_s: f64,
    /// 95 % interval of `throughput_per_s` (batch means); `None` if the time was too short.
    pub throughput_interval: Option<(f64, f64)>,
    pub operations: Vec<OperationResult>,
    /// Failures by operation and name, with one message each: `(operation, name, count, message)`.
    pub failures: Vec<(String, String, u64, String)>,
    /// Operations that were due but never sent when the step ended.
    pub backlog_at_end: u64,
    /// The generator's own lateness while a virtual user was free.
    pub lag: LatencySummary,
    /// This process's CPU time (user and system) and peak memory.
    pub client_cpu_ns: u64,
    pub client_rss_bytes: u64,
    /// The server's CPU time over the step, if its process can be seen.
    pub server_cpu_ns: Option<u64>,
    /// CPU time of this host over the step that went to processes other than this one and the server, or was
    /// withheld from the host by its hypervisor; `None` if the server is on this host and its process cannot be
    /// seen.
    pub others_cpu_ns: Option<u64>,
    /// Bytes that the server's process read from its disk and wrote to it, from the checkpoint before the step
    /// to the end of the one after it.
    pub server_read_bytes: Option<u64>,
    pub server_write_bytes: Option<u64>,
    /// Taken at these checkpoints: before a checkpoint, files do not yet hold what was written.
    pub storage_before: Option<StorageFacts>,
    pub storage_after: Option<StorageFacts>,
    pub verification: Option<Verification>,
    /// What each shard did; `None` unless the server is a router.
    pub shards: Option<StepShards>,
}

/// Whether a stretch of time was steady.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    /// `None` where the stretch is too short or too noisy to tell.
    pub steady: Option<bool>,
    /// How that was judged, for people, e.g. "throughput fell 3.1 % per minute (MSER-5, block bootstrap)".
    pub how: String,
}

/// One kind of operation over a step, warm-up left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OperationResult {
    pub name: String,
    /// Whether it is made up of several requests that are also counted by themselves.
    pub is_transaction: bool,
    /// Operations that succeeded.
    pub count: u64,
    pub errors: u64,
    pub documents: u64,
    pub bytes: u64,
    /// `count` over the measured time.
    pub per_s: f64,
    /// 95 % interval of `per_s` (batch means: seconds are correlated); `None` if the time was too short.
    pub per_s_interval: Option<(f64, f64)>,
    pub service: LatencySummary,
    pub response: Option<LatencySummary>,
}

/// The storage that the data take, from the server's own statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct StorageFacts {
    /// Number of documents by the servers' own statistics, which on shards include copies left by chunk migrations.
    pub documents: u64,
    /// Total size of all documents as BSON, bytes.
    pub data_bytes: u64,
    /// Size of the collections' files, bytes.
    pub storage_bytes: u64,
    /// Size of all indexes, bytes.
    pub index_bytes: u64,
    /// Size on disk of the tables in the directory of a private server, bytes, without logs, measured after it has
    /// ended and written everything to them. `None` for other servers, whose directories hold other data too.
    pub directory_bytes: Option<u64>,
}

/// Whether acknowledged writes were there afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Verification {
    /// Number of documents that should be there; `None` if that is not known, for example because other clients
    /// write too.
    pub expected: Option<u64>,
    /// Number of documents that the server counted.
    pub counted: Option<u64>,
    /// Number of documents read back.
    pub sampled: u64,
    /// Number of the sampled documents that were not there.
    pub missing: u64,
    /// Number of the sampled documents that differed from what had been written.
    pub different: u64,
    /// Number of writes whose outcome is not known (connection lost, timed out, write concern not met): they may or may
    /// not be there.
    pub in_doubt: u64,
}

impl BenchStep {
    /// Returns the amount per request; `None` if there were no requests.
    pub fn per_request(&self, amount: u64) -> Option<f64> {
        (self.requests > 0).then(|| amount as f64 / self.requests as f64)
    }

    /// Returns the bytes of documents that a load added, and what the server wrote meanwhile; `None` for a step
    /// that added none.
    pub fn added_and_written(&self) -> Option<(u64, u64)> {
        let before = self.storage_before.as_ref().map_or(0, |s| s.data_bytes);
        let after = self.storage_after.as_ref()?.data_bytes;
        let added = after.checked_sub(before)?;
        (self.kind == "load" && added > 0).then_some((added, self.server_write_bytes?))
    }

    /// Returns how many documents the shards together held after the step beyond those that were counted through the
    /// router: copies that moves of chunks have left behind or not finished. Zero if nothing was counted.
    pub fn copies_on_shards(&self) -> u64 {
        let counted = self.verification.as_ref().and_then(|v| v.counted);
        let held = self.storage_after.as_ref().map(|facts| facts.documents);
        let beyond = held.zip(counted).filter(|_| self.shards.is_some());
        beyond.map_or(0, |(held, counted)| held.saturating_sub(counted))
    }

    /// Returns the bytes of data files and indexes after the step per document of the collections; leftover
    /// copies on shards are not counted; `None` if there are no documents.
    pub fn disk_bytes_per_document(&self) -> Option<f64> {
        let facts = self.storage_after.as_ref()?;
        let documents = facts.documents.saturating_sub(self.copies_on_shards());
        let disk_bytes = facts.disk_bytes()? as f64;
        (documents > 0).then(|| disk_bytes / documents as f64)
    }
}

impl StorageFacts {
    /// Returns the bytes of data files and indexes: as they lie on the disk if that was seen, otherwise as the
    /// server reports them.
    pub fn disk_bytes(&self) -> Option<u64> {
        let said = |data: u64| data.saturating_add(self.index_bytes);
        self.directory_bytes.or(self.data_file_bytes().map(said))
    }

    /// Returns the bytes of the data files. `None` if the server gives the documents' own size as that of its
    /// files, as servers do that do not know the effect of compression.
    pub fn data_file_bytes(&self) -> Option<u64> {
        let is_known = self.storage_bytes != self.data_bytes || self.data_bytes == 0;
        is_known.then_some(self.storage_bytes)
    }
}

impl Verification {
    /// Adds the documents that a collection should hold and those that it does.
    pub fn add_count(&mut self, expected: u64, counted: u64) {
        *self.expected.get_or_insert_default() += expected;
        *self.counted.get_or_insert_default() += counted;
    }

    /// Returns [`Self::holds`], or `None` if nothing was checked.
    pub fn verdict(&self) -> Option<bool> {
        let looked = self.counted.is_some() || self.sampled > 0;
        looked.then(|| self.holds())
    }

    /// Says what is wrong, as the beginning of a sentence; `None` if nothing is.
    pub fn fault(&self) -> Option<&'static str> {
        let counts = self.expected.zip(self.counted);
        let is_more = counts.is_some_and(|(expected, counted)| counted > expected);
        match is_more && self.missing == 0 && self.different == 0 {
            _ if self.holds() => None,
            true => Some("there are more documents than were acknowledged"),
            false => Some("acknowledged writes are missing"),
        }
    }

    /// Returns whether everything agrees, as far as that can be known.
    pub fn holds(&self) -> bool {
        let agrees = |(expected, counted): (u64, u64)| {
            (expected..=expected.saturating_add(self.in_doubt)).contains(&counted)
        };
        self.missing == 0
            && self.different == 0
            && self.expected.zip(self.counted).is_none_or(agrees)
    }
}

/// The search for the greatest load that meets an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Saturation {
    /// The objective, which applies to the response time, e.g. "p99=20ms".
    pub objective: String,
    pub points: Vec<LoadPoint>,
    /// The greatest rate that met the objective, operations per second; `None` if none did.
    pub maximum_per_s: Option<f64>,
    /// The lowest rate above the maximum that missed the objective; if it was retried, more often than not.
    pub missed_from_per_s: Option<f64>,
    /// The lowest rate above the maximum for which the result is unknown, because the client did not keep up.
    pub untold_from_per_s: Option<f64>,
    /// Whether the maximum was held in a longer confirming step.
    pub confirmed: bool,
    /// Results of the longer steps in the order in which they were run; repeated steps at one rate give one entry.
    pub confirmations: Vec<Confirmation>,
    /// The largest share of this host's CPU time that was used by processes other than client and server during a
    /// probe (`others_cpu_ns` of its step); `None` if that is not known.
    pub others_cpu_share: Option<f64>,
}

impl Saturation {
    /// Returns whether no rate met the objective, and the lowest that was tried missed it: what a late client left open about
    /// higher ones changes nothing.
    pub fn all_missed(&self) -> bool {
        let missed = self.missed_from_per_s.unwrap_or(f64::INFINITY);
        let untold = self.untold_from_per_s;
        self.maximum_per_s.is_none() && untold.is_none_or(|untold| missed <= untold)
    }
}

/// A rate that was tried for longer than a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    pub per_s: f64,
    pub verdict: RateVerdict,
}

/// The result for one rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateVerdict {
    /// The objective was met.
    Met,
    /// The objective was missed.
    Missed,
    /// Unknown: the client was late.
    Untold,
}

/// One load that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LoadPoint {
    /// Name of the step that measured this load.
    pub step: String,
    pub offered_per_s: f64,
    pub achieved_per_s: f64,
    /// Response times; `None` if nothing was answered.
    #[serde(deserialize_with = "latency_of_any")]
    pub response: Option<LatencySummary>,
    pub server_cpu_ns_per_operation: Option<f64>,
    /// Why the objective was missed; empty if it was met, or if the result is unknown.
    pub missed: Vec<String>,
    /// Why it is unknown whether the server met the objective.
    pub untold: Option<String>,
}

/// The results for one way of storing the same samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SchemaShape {
    /// e.g. "one document per sample".
    pub name: String,
    /// Key pattern of the index as JSON text, e.g. `{"metric":1,"client":1,"date":1}`.
    pub index: String,
    pub preallocated: bool,
    /// Time for writing the zero-filled documents before the first sample, ns.
    pub preallocation_ns: Option<u64>,
    /// The disk that the figures are for, e.g. "plain disk".
    pub disk: String,
    pub samples: u64,
    /// Insert rate as the data grow: (samples so far, samples per second).
    pub insert_per_s: Vec<(u64, f64)>,
    /// Number of samples of one series in a year, or in as much of it as the data cover.
    pub year_samples: u64,
    /// Whether the caches were empty when a series was read.
    pub cold: bool,
    /// Times for reading one series for a year, ns, one for each of several series.
    pub year_read_ns: Vec<u64>,
    /// Read calls of the server's process per such query.
    pub reads_per_query: Option<f64>,
    /// Bytes that the server's process got from the disk per such query, read-ahead included.
    pub read_bytes_per_query: Option<f64>,
    /// Number of queries that did not return exactly the samples written (by number and sum).
    pub wrong_answers: u64,
    /// The storage taken; `directory_bytes` is the growth of the data directory. Some servers give uncompressed
    /// sizes in the other figures. `None` if no checkpoint had written everything to the files.
    pub storage: Option<StorageFacts>,
    pub limitations: Vec<Limitation>,
}

/// A repetition of a published experiment: two figures and their ratio, and the published ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SchemaExperiment {
    /// e.g. "one document per month".
    pub name: String,
    /// What is compared, e.g. "time to read a series, one document per sample / per month".
    pub compared: String,
    /// The disk that the figures are for.
    pub disk: String,
    /// Unit of `before` and `after`: "ns" or "samples/s".
    pub unit: String,
    pub before: f64,
    pub after: f64,
    /// `before / after`.
    pub ratio: f64,
    pub published_ratio: f64,
}
