//! What `seekscope bench` measured: one record per step (a load, a run, a probe), and what steps say
//! together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LatencySummary, Limitation, latency_of_any};

/// How operations are started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Arrivals {
    /// Each virtual user starts its next operation when its last one has ended: the server sets the pace,
    /// and a stall delays what would have been measured.
    #[default]
    Closed,
    /// At even distances.
    Constant { per_s: f64 },
    /// At exponentially distributed distances.
    Poisson { per_s: f64 },
    /// The rate grows evenly.
    Ramp { from_per_s: f64, to_per_s: f64 },
    /// At recorded times.
    Replayed { file: String },
}

/// What operations are sent with.
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
    /// Our own, on MongoDB's wire protocol.
    #[default]
    Raw,
    /// MongoDB's official driver.
    Driver,
    /// ScyllaDB's driver of Cassandra's protocol.
    Cql,
}

/// What a benchmark did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct BenchMeasurement {
    /// e.g. "ycsb-a", "sysbench-mongodb", "index-build", "schema", or a workload file's name.
    pub workload: String,
    /// Which rules it followed, e.g. "ycsb" (bit-exact) or "corrected", "2013-2015".
    pub edition: String,
    /// Every setting as resolved, by its name; no credentials.
    pub settings: BTreeMap<String, String>,
    /// The database written to.
    pub database: String,
    /// Where this process was one of several: its number from 1, and of how many.
    pub client_number: Option<(u32, u32)>,
    /// Run directories that a merged run was made of.
    pub merged_from: Vec<String>,
    pub steps: Vec<BenchStep>,
    /// Load against latency, where a maximum was searched.
    pub saturation: Option<Saturation>,
    pub index_builds: Vec<BenchIndexBuild>,
    /// One for each shape of a schema lab.
    pub shapes: Vec<SchemaShape>,
    /// What the lab's published forerunners found, beside what it found.
    pub experiments: Vec<SchemaExperiment>,
    /// What the lab recommends, with its reason.
    pub recommendation: Option<String>,
}

impl BenchMeasurement {
    /// Was nothing measured at all?
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
    /// Which of several servers or settings, with `--vs` and `--vs-config`; else empty.
    pub variant: String,
    /// Which repetition, from 1.
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
    /// Up to here the step was warming up: kept in the intervals, left out of all figures below.
    /// `None`: no warm-up was seen or wanted.
    pub warm_up_ended_ns: Option<u64>,
    /// Whether the rest of the step was steady, and how that was judged.
    pub steady: Option<Steady>,
    /// Why the figures must not be believed; empty if they may.
    pub invalid: Vec<String>,
    /// Requests that were answered or failed, warm-up included: what CPU times are divided by.
    pub requests: u64,
    /// Transactions begun, warm-up included. A request that belongs to no transaction is one by itself.
    pub transactions: u64,
    /// Transactions due per second; `None` in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Transactions that ended well, per second without the warm-up.
    pub throughput_per_s: f64,
    /// 95 % interval of it (batch means); `None` where the time was too short.
    pub throughput_interval: Option<(f64, f64)>,
    pub operations: Vec<OperationResult>,
    /// Failures by operation and name, with one message each: `(operation, name, count, message)`.
    pub failures: Vec<(String, String, u64, String)>,
    /// Operations that were due but never sent when the step ended.
    pub backlog_at_end: u64,
    /// The generator's own lateness, although a virtual user was free.
    pub lag: LatencySummary,
    /// This process's CPU time (user and system) and peak memory.
    pub client_cpu_ns: u64,
    pub client_rss_bytes: u64,
    /// The server's CPU time over the step, where its process can be seen.
    pub server_cpu_ns: Option<u64>,
    /// CPU time of this host over the step that went to others than this process and the server, or was kept from
    /// it by its hypervisor; `None` where the server is on this host and its process cannot be seen.
    pub others_cpu_ns: Option<u64>,
    /// Bytes that the server's process got from its disk, and those that it handed to it, from the checkpoint
    /// before the step to the end of the one after it.
    pub server_read_bytes: Option<u64>,
    pub server_write_bytes: Option<u64>,
    /// At these checkpoints: before one, files do not yet hold what was written.
    pub storage_before: Option<StorageFacts>,
    pub storage_after: Option<StorageFacts>,
    pub verification: Option<Verification>,
}

/// Was a stretch of seconds steady?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steady {
    pub steady: bool,
    /// For people, e.g. "throughput fell 3.1 % per minute (MSER-5, block bootstrap)".
    pub how: String,
}

/// One kind of operation over a step, warm-up left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OperationResult {
    pub name: String,
    /// Is it made of several requests that are counted by themselves too?
    pub is_transaction: bool,
    /// Ended well.
    pub count: u64,
    pub errors: u64,
    pub documents: u64,
    pub bytes: u64,
    /// `count` over the measured time.
    pub per_s: f64,
    /// 95 % interval of `per_s` (batch means: seconds are correlated); `None` where the time was too short.
    pub per_s_interval: Option<(f64, f64)>,
    pub service: LatencySummary,
    pub response: Option<LatencySummary>,
}

/// What the data take, from the server's own statistics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct StorageFacts {
    pub documents: u64,
    /// BSON bytes of all documents.
    pub data_bytes: u64,
    /// Bytes of the collections' files, by the server's statistics.
    pub storage_bytes: u64,
    pub index_bytes: u64,
    /// What the tables in the directory of a server of our own take on its disk, once it has ended and
    /// everything is in them; logs left out. `None` of other servers, whose directories hold other data
    /// too.
    pub directory_bytes: Option<u64>,
}

/// Were acknowledged writes there afterwards?
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Verification {
    /// Documents that should be there; `None` where that is not known: other clients write too, for example.
    pub expected: Option<u64>,
    /// Documents that the server counted.
    pub counted: Option<u64>,
    /// Documents read back.
    pub sampled: u64,
    /// Those of them that were not there.
    pub missing: u64,
    /// Those of them that were not as they had been written.
    pub different: u64,
    /// Writes without an answer (connection lost, timed out): they may or may not be there.
    pub in_doubt: u64,
}

impl BenchStep {
    /// An amount for each request; `None` without requests.
    pub fn per_request(&self, amount: u64) -> Option<f64> {
        (self.requests > 0).then(|| amount as f64 / self.requests as f64)
    }

    /// Bytes of documents that a load added, and what the server wrote meanwhile; `None` of a step that
    /// added none.
    pub fn added_and_written(&self) -> Option<(u64, u64)> {
        let before = self.storage_before.as_ref().map_or(0, |s| s.data_bytes);
        let after = self.storage_after.as_ref()?.data_bytes;
        let added = after.checked_sub(before)?;
        (self.kind == "load" && added > 0).then_some((added, self.server_write_bytes?))
    }
}

impl StorageFacts {
    /// Data files and indexes: as they lie on the disk where that was seen, else as the server says.
    pub fn disk_bytes(&self) -> Option<u64> {
        let said = |data: u64| data.saturating_add(self.index_bytes);
        self.directory_bytes.or(self.data_file_bytes().map(said))
    }

    /// Of the data files. `None` where the server gives the documents' own size as that of its files,
    /// as servers do that do not know what compression made of them.
    pub fn data_file_bytes(&self) -> Option<u64> {
        let is_known = self.storage_bytes != self.data_bytes || self.data_bytes == 0;
        is_known.then_some(self.storage_bytes)
    }

    /// [`Self::disk_bytes`] for each document; `None` without documents.
    pub fn bytes_per_document(&self) -> Option<f64> {
        let disk_bytes = self.disk_bytes()? as f64;
        (self.documents > 0).then(|| disk_bytes / self.documents as f64)
    }
}

impl Verification {
    /// Adds what a collection should hold, and does.
    pub fn add_count(&mut self, expected: u64, counted: u64) {
        *self.expected.get_or_insert_default() += expected;
        *self.counted.get_or_insert_default() += counted;
    }

    /// [`Self::holds`]; `None` where nothing was looked at.
    pub fn verdict(&self) -> Option<bool> {
        let looked = self.counted.is_some() || self.sampled > 0;
        looked.then(|| self.holds())
    }

    /// Does everything agree, as far as it can be known?
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
    /// e.g. "p99=20ms", on response time.
    pub objective: String,
    pub points: Vec<LoadPoint>,
    /// Operations per second; `None` if none met the objective.
    pub maximum_per_s: Option<f64>,
    /// The lowest rate above the maximum that missed the objective, more often than not where it was tried again.
    pub missed_from_per_s: Option<f64>,
    /// The lowest rate above the maximum of which it cannot be told, for the client did not keep up.
    pub untold_from_per_s: Option<f64>,
    /// Was it held for a longer confirming step?
    pub confirmed: bool,
    /// What the longer steps said, in the order in which they were run; of one rate together.
    pub confirmations: Vec<Confirmation>,
    /// The largest share of this host's CPU time that went to others than client and server during a probe
    /// ([`BenchStep::others_cpu_ns`]); `None` where that is not known.
    pub others_cpu_share: Option<f64>,
}

/// A rate that was tried for longer than a probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Confirmation {
    pub per_s: f64,
    pub verdict: RateVerdict,
}

/// What was found of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RateVerdict {
    /// It met the objective.
    Met,
    /// It did not.
    Missed,
    /// It cannot be told: the client was late.
    Untold,
}

/// One load that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LoadPoint {
    /// The step of this point.
    pub step: String,
    pub offered_per_s: f64,
    pub achieved_per_s: f64,
    /// `None` where nothing was answered.
    #[serde(deserialize_with = "latency_of_any")]
    pub response: Option<LatencySummary>,
    pub server_cpu_ns_per_operation: Option<f64>,
    /// Why it failed the objective; empty if it met it, or if that cannot be told.
    pub missed: Vec<String>,
    /// Why it cannot be told whether the server met it.
    pub untold: Option<String>,
}

/// One index built on existing data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct BenchIndexBuild {
    /// e.g. "int", "text", "2dsphere (GeoJSON)".
    pub kind: String,
    pub keys: String,
    pub repetition: u32,
    pub documents: u64,
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub elapsed_ns: u64,
    /// Keys in the index over the build's time.
    pub keys_per_s: f64,
    /// Once a checkpoint has brought all of it to its file; `None` where there was none.
    pub index_bytes: Option<u64>,
    /// Highest resident memory of the server while building.
    pub server_rss_bytes: Option<u64>,
    /// Most bytes of temporary files seen in the data directory.
    pub temp_bytes: Option<u64>,
    /// Server's reads and writes while building.
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    /// p99 of the other load's response before, during and after, ns.
    pub foreground_p99_ns: Option<[u64; 3]>,
    /// Did a count by the new index agree with the collection's?
    pub verified: Option<bool>,
    /// Why it failed, or cannot be done on this server.
    pub failure: Option<String>,
}

/// What one way of storing the same samples came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SchemaShape {
    /// e.g. "one document per sample".
    pub name: String,
    /// e.g. `{"metric":1,"client":1,"date":1}`.
    pub index: String,
    pub preallocated: bool,
    /// Time of writing the zero-filled documents, before the first sample.
    pub preallocation_ns: Option<u64>,
    /// Which disk the figures are of, as [`crate::Disk::label`] says it.
    pub disk: String,
    pub samples: u64,
    /// Samples inserted per second, over the data's growth: (samples so far, per second).
    pub insert_per_s: Vec<(u64, f64)>,
    /// Samples of one series for a year, as far as the data reach.
    pub year_samples: u64,
    /// Were the caches empty when a series was read?
    pub cold: bool,
    /// Reading one series for a year: ns, one for each of several series.
    pub year_read_ns: Vec<u64>,
    /// Per such query: read calls of the server's process, and bytes that it got from the disk,
    /// read-ahead included.
    pub reads_per_query: Option<f64>,
    pub read_bytes_per_query: Option<f64>,
    /// Queries that did not find exactly the samples that were written (number and sum).
    pub wrong_answers: u64,
    /// `directory_bytes` is by how much the data directory grew. Some servers give uncompressed sizes
    /// in the other figures. `None` where no checkpoint had brought everything to the files.
    pub storage: Option<StorageFacts>,
    pub limitations: Vec<Limitation>,
}

/// A published experiment repeated: two figures and their ratio, beside the published ratio.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct SchemaExperiment {
    /// e.g. "one document per month".
    pub name: String,
    /// What is compared, e.g. "time to read a year, one document per sample / per month".
    pub compared: String,
    /// Which disk the figures are of.
    pub disk: String,
    /// "ns" or "samples/s".
    pub unit: String,
    pub before: f64,
    pub after: f64,
    /// `before / after`.
    pub ratio: f64,
    pub published_ratio: f64,
}
