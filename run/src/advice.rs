//! What `advise` learnt about a collection and the queries on it, and what other ways of storing it cost.
//!
//! For queries and indexes, the names of fields are kept, never a value. Blocks are pages that WiredTiger read from
//! its files. What could not be found out is `None`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What `advise` found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct AdviceRecord {
    /// `database.collection`.
    pub namespace: String,
    pub collection: AdvisedCollection,
    /// The queries on the collection, the most frequent first.
    pub shapes: Vec<QueryShape>,
    /// The queries that all figures leave out, the most frequent first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutQueries>,
    /// The documents that the ways were tried with; null if none were taken.
    pub sample: Option<AdviceSample>,
    /// The server that they were tried on.
    pub trial: Option<AdviceTrial>,
    /// The ways of storing that fit the queries; the first is the present one.
    pub ways: Vec<StoringWay>,
    /// The advice; null if too little was measured for one.
    pub verdict: Option<AdviceVerdict>,
    /// Indexes that no operation has used since the server began to count, and none of the queries would use, as JSON key
    /// patterns.
    pub unused_indexes: Vec<String>,
    /// How long the server had counted then, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused_for_s: Option<f64>,
    /// Whose counts these are.
    pub unused_counted_by: IndexUseCounted,
    /// What a trace saw of the collection's files, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traced: Option<TracedReads>,
    /// What became of the advice of an earlier run, where one was given; there are no ways then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<AdviceSince>,
    /// Where what is advised is to be sent, if not to the server that was asked: a secondary takes no writes, and a
    /// shard none but those of its cluster's routers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_uri: Option<String>,
    /// The disk that seconds are predicted for, e.g. "typical SATA SSD".
    pub disk: Option<String>,
    /// Whether that disk was measured rather than taken to be typical.
    pub disk_measured: bool,
}

/// The collection on the server that was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct AdvisedCollection {
    pub documents: u64,
    /// Size of all documents as BSON.
    pub data_bytes: u64,
    /// Size of the collection's file.
    pub storage_bytes: u64,
    pub index_bytes: u64,
    /// Key patterns of the indexes as JSON.
    pub indexes: Vec<String>,
    /// Time that queries were watched for, s.
    pub watched_s: f64,
    /// Queries per second while they were watched, of all shapes, by the server's own count.
    pub reads_per_s: Option<f64>,
    /// Inserts, updates and deletes per second meanwhile.
    pub writes_per_s: Option<f64>,
    /// Share of the pages asked for that the server had to read: while queries were watched, else since it started; null
    /// if too few were asked for, or most of what was read since then may have been read for the first time.
    pub missed_share: Option<f64>,
    /// What the server did for the collection while queries were watched, or else while ways were tried; null if it does
    /// not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<CollectionUse>,
    /// Mean size of the pages that the server has read of the collection's file since it started, without compression;
    /// `None` if they are too few to speak for the file.
    pub page_bytes: Option<f64>,
    /// The table of the storage engine that its documents are in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}

/// What a server did for a collection over a stretch of time, by its own counts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct CollectionUse {
    /// The time, s.
    pub elapsed_s: f64,
    /// Queries, and requests for more of their answers.
    pub reads: u64,
    /// Inserts, updates and deletes.
    pub writes: u64,
    /// Time that the server spent on the reads together, s.
    pub reads_s: f64,
    /// Pages that it read from the files of the collection and of its indexes; null if it does not say.
    pub pages_read: Option<u64>,
}

impl CollectionUse {
    /// Fewer reads are too few to compare what a read costs with what it costs at another time.
    pub const COMPARED_READS_MIN: u64 = 50;

    /// Returns why nothing can be compared with it, if that is so. `when` says when it was.
    pub fn too_few_reads(&self, when: &str) -> Option<String> {
        (self.reads < Self::COMPARED_READS_MIN).then(|| {
            let (reads, are) = match self.reads {
                1 => ("1 read".into(), "is"),
                reads => (format!("{reads} reads"), "are"),
            };
            format!(
                "{reads} in {:.0} s {when} {are} too few to compare: {} are needed",
                self.elapsed_s,
                Self::COMPARED_READS_MIN
            )
        })
    }

    /// Returns the reads per second.
    pub fn reads_per_s(&self) -> f64 {
        self.reads as f64 / self.elapsed_s.max(1e-3)
    }

    /// Returns the writes per second.
    pub fn writes_per_s(&self) -> f64 {
        self.writes as f64 / self.elapsed_s.max(1e-3)
    }

    /// Returns the pages read from files for each read; `None` without reads.
    pub fn pages_per_read(&self) -> Option<f64> {
        let pages = self.pages_read.filter(|_| self.reads > 0)?;
        Some(pages as f64 / self.reads as f64)
    }

    /// Returns the mean time of a read in the server, ns; `None` without reads.
    pub fn read_ns(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.reads_s * 1e9 / self.reads as f64)
    }
}

/// What a trace saw the server read of the files of the collection and of its indexes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct TracedReads {
    /// Name of the trace's folder.
    pub run: String,
    /// Time that it covers, s.
    pub elapsed_s: f64,
    /// Blocks that the server read from the files.
    pub blocks: u64,
    /// Blocks among them that came from the disk rather than the page cache; null if that is not known.
    pub disk_blocks: Option<u64>,
    /// Time that the reads took together, s.
    pub reads_s: f64,
}

/// What became of the advice of an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct AdviceSince {
    /// Name of the earlier run's folder.
    pub run: String,
    /// Wall-clock time of its start, ns since 1970.
    pub started_realtime_ns: u64,
    /// The way that it advised.
    pub way: String,
    /// Share of the blocks of a query that this way was to save: predicted.
    pub predicted_saved: f64,
    /// What the server did for the collection then.
    pub before: Option<CollectionUse>,
    /// Share of the pages per read that it reads no longer; null if that cannot be told.
    pub measured_saved: Option<f64>,
    /// Why it cannot be told.
    pub cannot_tell: Option<String>,
}

/// Whose counts of the use of indexes were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum IndexUseCounted {
    /// The counts of the only server.
    #[default]
    Server,
    /// The counts of each data-bearing member of the replica set.
    AllMembers,
    /// The counts of the primary of each shard, which a mongos asks.
    PrimariesOfShards,
}

/// Where a shape is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ShapeSource {
    /// The command line.
    #[default]
    Told,
    /// The server's profile, `system.profile`.
    Profile,
    /// Operations that were seen running, `currentOp`.
    Running,
    /// Operations that the server's log calls slow, `getLog`.
    Log,
}

/// Queries that differ in their values only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct QueryShape {
    /// Fields that are compared with one value, or with each of a list.
    pub equality: Vec<String>,
    /// The fields among `equality` that are compared with a list (`$in`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_of: Vec<String>,
    /// How many values these lists hold, by field: the mean where queries differ in it. A trial asks for as many, but for at
    /// most 100 of a field, and for one value of a list that is missing here because its length is not known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub one_of_values: BTreeMap<String, f64>,
    /// Fields of which a range is asked.
    pub range: Vec<String>,
    pub sort: Vec<SortField>,
    /// Fields that a query asks for: none if it only counts documents; null if it asks for whole documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection: Option<Vec<String>>,
    pub source: ShapeSource,
    /// Queries per second; null if only their kind is known.
    pub per_s: Option<f64>,
    /// Documents that one query returns; null if unknown.
    pub returned: Option<f64>,
    /// Documents after which a query stops although more match, those that it skips included: the mean where queries differ
    /// in it; null if it does not stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// Queries of one kind that were seen or told, and that the figures leave out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LeftOutQueries {
    /// Their fields and operators as JSON, never a value; empty if they are not shown.
    pub shape: String,
    /// Why they are left out.
    pub why: String,
    /// Queries per second; null if only their kind is known.
    pub per_s: Option<f64>,
    /// Their share of all queries that were seen or told; null if that is not known.
    pub share: Option<f64>,
    /// Their share of the documents that those queries examined; null if that is not known.
    pub examined_share: Option<f64>,
}

impl QueryShape {
    /// Documents that a query for a range is taken to return where it is not known.
    pub const RANGE_RETURNS: f64 = 100.0;
    /// The most values of one list that a query of a trial asks for.
    pub const LISTED_MAX: f64 = 100.0;

    /// Returns whether it has neither a condition nor an order.
    pub fn is_empty(&self) -> bool {
        self.fields().next().is_none()
    }

    /// Returns the fields of its conditions and of its order, some of them twice.
    pub fn fields(&self) -> impl Iterator<Item = &String> {
        let sorted = self.sort.iter().map(|sort| &sort.field);
        self.equality.iter().chain(&self.range).chain(sorted)
    }

    /// Returns how many values of a field a query asks for: one, unless it is known to ask for a list.
    pub fn values_of(&self, field: &str) -> f64 {
        self.one_of_values.get(field).copied().unwrap_or(1.0)
    }

    /// Returns whether there is a list of which it is not known how many values it holds.
    pub fn has_unknown_list(&self) -> bool {
        let is_known = |field: &String| self.one_of_values.contains_key(field);
        !self.one_of.iter().all(is_known)
    }

    /// Returns how many documents match a query for a range, if that is known: as many as it returns, unless it stopped
    /// before the end of the range.
    pub fn range_matches(&self) -> Option<f64> {
        let stopped = |returned: &f64| self.limit.is_some_and(|limit| *returned >= limit);
        self.returned.filter(|returned| !stopped(returned))
    }

    /// Returns how many documents are taken to match a query for a range where that is not known: at least those after
    /// which it stops.
    pub fn range_taken_to_match(&self) -> f64 {
        self.limit.unwrap_or(0.0).max(Self::RANGE_RETURNS)
    }
}

/// A field of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SortField {
    pub field: String,
    pub descending: bool,
}

/// Documents that were copied to the server of the trial: the newest ones, in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct AdviceSample {
    pub documents: u64,
    /// Their size as BSON, which is what was read of the target.
    pub bytes: u64,
}

/// The server of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct AdviceTrial {
    pub product: String,
    pub version: String,
    /// Time that the trial took, s.
    pub elapsed_s: f64,
}

/// What kind of change a way of storing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum WayKind {
    /// The collection as it is stored now.
    #[default]
    Present,
    /// Another index.
    Index,
    /// Several other indexes, each for queries that the others do not serve.
    Indexes,
    /// An index that holds all fields that a query asks for.
    Covering,
    /// Documents in the order of an index.
    Order,
    /// Documents of one key and one stretch of time joined in one.
    Buckets,
    /// Another compressor of the collection's blocks.
    Compressor,
    /// An `_id` that is larger for newer documents.
    GrowingId,
}

impl WayKind {
    /// Returns whether the documents stay in the file in which they are.
    pub fn keeps_file(self) -> bool {
        matches!(
            self,
            Self::Present | Self::Index | Self::Indexes | Self::Covering
        )
    }
}

/// A way of storing the collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct StoringWay {
    pub kind: WayKind,
    /// What it is, in a few words.
    pub name: String,
    /// Keys of the index that it needs, as JSON; null for the present way.
    pub keys: Option<String>,
    /// Keys of the others, where it needs several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub more_keys: Vec<String>,
    /// Whether that index has to be created.
    pub creates_index: bool,
    /// Key pattern of the index that it replaces, as JSON.
    pub replaces: Option<String>,
    /// The stretch of time that a bucket holds, ms.
    pub bucket_ms: Option<i64>,
    /// The compressor that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compressor: Option<String>,
    /// Why it was tried.
    pub reason: String,
    /// What it costs each shape, in the order of the shapes; null for a shape that cannot be asked this way.
    pub costs: Vec<Option<ShapeCost>>,
    /// Bytes of files, the indexes' included, for each document of the sample.
    pub stored_bytes_per_document: Option<f64>,
    /// Documents of the sample stored per second in the trial, indexes included.
    pub load_documents_per_s: Option<f64>,
    /// Time in which the trial's server adds one document with everything cached, ns: by an insert, or by the update that
    /// adds it to its bucket. The 10th percentile, which others on the host disturb least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub insert_ns: Option<f64>,
    /// Blocks of the index on `_id` that one insert reads of the whole collection when none is cached, while many are
    /// inserted: predicted. Only where `_id` does not follow age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id_blocks_per_insert: Option<f64>,
    /// Mean size of a block of the collection's file, compressed, where it has many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<f64>,
    /// Time that the trial's server takes to make a page of a block that is in the page cache, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpack_ns: Option<f64>,
    /// Time in which a block of the collection is read from the disk and unpacked, ns: predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_ns: Option<f64>,
    /// Time in which a block of an index is read from the disk, ns: predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_block_ns: Option<f64>,
    /// Blocks per query over all shapes, weighted by their rates.
    pub blocks_per_query: Option<f64>,
    /// Time of reading them with cold caches, likewise, ns: predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks_ns_per_query: Option<f64>,
    /// Time of a query with cold caches on the disk, over all shapes likewise, ns: predicted.
    pub query_ns: Option<f64>,
    /// Share of the present way's `query_ns` that it saves; negative if it takes longer.
    pub saved_share: Option<f64>,
    /// Time that the queries take per hour, with the share of the blocks cached that is cached now; null if their rates
    /// are unknown.
    pub s_per_hour: Option<f64>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}

impl StoringWay {
    /// Returns the time in which the blocks of a query are read, ns.
    pub fn blocks_ns(&self, cost: &ShapeCost) -> f64 {
        let of_indexes = cost.index_blocks_of_whole.unwrap_or(0.0);
        let of_collection = (cost.blocks - of_indexes).max(0.0);
        of_collection * self.block_ns.unwrap_or(0.0)
            + of_indexes * self.index_block_ns.unwrap_or(0.0)
    }
}

/// What one query of a shape costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ShapeCost {
    /// Documents returned by one query of the trial.
    pub returned: f64,
    /// Blocks of the collection that one query of the trial read with cold caches.
    pub collection_blocks: f64,
    /// Blocks of its indexes, likewise.
    pub index_blocks: f64,
    /// Blocks that one query reads of the whole collection, of the indexes too: predicted.
    pub blocks: f64,
    /// Blocks among them that belong to indexes; null if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_blocks_of_whole: Option<f64>,
    /// Bounds of the prediction, from the differences between rounds of the trial: 95 %.
    pub blocks_low: f64,
    pub blocks_high: f64,
    /// Median time of a query in the trial, with cold and with warm caches, ns.
    pub cold_ns: u64,
    pub warm_ns: u64,
    /// Time that one query of the whole collection takes with everything cached, ns: predicted from `warm_ns` by what it
    /// examines.
    pub work_ns: f64,
    /// Whether all documents were read for want of an index, by any of the queries.
    pub collection_scan: bool,
}

/// What is advised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct AdviceVerdict {
    /// Number of the advised way in `ways`, from 0; 0 means that none is better enough than the present one.
    pub way: usize,
    /// Other ways that save much of a query with cold caches, the best first. Where none is advised, they save too little of
    /// the time per hour with what the server has in memory now.
    pub also: Vec<usize>,
}
