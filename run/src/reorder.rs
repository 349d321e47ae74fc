//! What `reorder` plans, does and finds when it rewrites a collection in scan order.
//!
//! All sizes are bytes, shares 0 to 1, times seconds. What could not be found out is `None`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LayoutMeasurement, OrderDecay};

/// What `reorder` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum ReorderTask {
    /// Report what would be done; nothing is changed.
    #[default]
    Plan,
    /// Do the reordering.
    Apply,
    /// Continue an interrupted reordering.
    Resume,
    /// Undo an interrupted reordering.
    Rollback,
}

/// What `reorder` found and did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderMeasurement {
    /// `database.collection`.
    pub namespace: String,
    /// "natural", or the key pattern of the index that decides the order, as JSON text.
    pub by: String,
    pub task: ReorderTask,
    pub plan: Option<ReorderPlan>,
    /// The collection and its indexes when the command began; `None` if the files are not on this host or may
    /// not be read.
    pub before: Option<LayoutMeasurement>,
    /// The same after the rewriting and a checkpoint.
    pub after: Option<LayoutMeasurement>,
    /// `None` if the run was only a plan, or did not finish.
    pub done: Option<Reordered>,
    /// Time from the command's start to the swap, s.
    pub elapsed_s: Option<f64>,
    /// Whether `fsync` made the server take a checkpoint before the second examination of the layout.
    pub checkpoint_forced: bool,
    /// What was found interrupted and what became of it, one sentence each.
    pub recovered: Vec<String>,
}

/// Whether reordering is worthwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ReorderVerdict {
    /// Reordering would gain much.
    Worthwhile,
    /// Reordering would gain less than a tenth.
    LittleGain,
    /// The collection is as ordered as a copy would be.
    InOrder,
    /// The collection is in memory, where order matters little.
    Cached,
    /// Other clients write so much that the copy would lose its order before it replaces the original.
    Undone,
    /// There are no two leaves to be put in order.
    NothingToOrder,
    /// The disk has not the room for a copy.
    NoRoom,
    /// The layout is unknown, and therefore the gain.
    #[default]
    Unknown,
}

/// What would be done, what it takes and what it gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderPlan {
    pub verdict: ReorderVerdict,
    /// Number of documents, by the server's statistics.
    pub documents: u64,
    pub data_bytes: u64,
    pub storage_bytes: u64,
    pub index_bytes: u64,
    pub indexes: u64,
    /// Cold scan of the whole collection. An index build reads the same leaves in the same order.
    pub scan: Option<ReorderScan>,
    /// Cached share of the collection's file, now.
    pub cached_share: Option<f64>,
    /// Set for `--by` an index.
    pub clustering: Option<Clustering>,
    pub writes: Option<WriteRate>,
    pub lasts: Option<OrderLasts>,
    pub space: ReorderSpace,
    /// `None` if the layout is not known.
    pub time: Option<ReorderTime>,
    pub blocking: ReorderBlocking,
}

/// A scan as predicted for the disk that the run names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderScan {
    pub now_s: f64,
    /// A range that the true value of `now_s` should lie in.
    pub now_low_s: f64,
    pub now_high_s: f64,
    pub ordered_s: f64,
    pub after_compact_s: f64,
    /// Bytes that `compact` would give back.
    pub free_bytes: u64,
    pub file_bytes: u64,
    pub sequential_share: f64,
    pub seeks: u64,
    /// Whether the table holds other collections too; the figures are then for all of them.
    pub shared_table: bool,
}

impl ReorderScan {
    /// Returns what order saves for each cold scan and each index build, seconds.
    pub fn gain_s(&self) -> f64 {
        (self.now_s - self.ordered_s).max(0.0)
    }

    /// Returns the gain as a share of what they take now.
    pub fn gain_share(&self) -> f64 {
        if self.now_s > 0.0 {
            self.gain_s() / self.now_s
        } else {
            0.0
        }
    }
}

/// How many leaves a query that follows an index reads, estimated from a sample of record ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Clustering {
    /// Number of documents whose places were looked up.
    pub sampled_documents: u64,
    /// Number of stretches of neighbouring index entries that these documents were taken from.
    pub stretches: u64,
    /// Number of distinct leaves that hold a thousand documents that follow one another in the index, now.
    #[schemars(range(min = 0))]
    pub leaves_per_1000_now: f64,
    /// The same number after reordering.
    #[schemars(range(min = 0))]
    pub leaves_per_1000_ordered: f64,
}

/// Writes seen while the command watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct WriteRate {
    /// Time watched, s.
    #[schemars(range(min = 0))]
    pub watched_s: f64,
    /// Source of the counts: "top" counts the collection's writes, "serverStatus" those of the whole server.
    #[schemars(extend("enum" = ["top", "serverStatus"]))]
    pub source: String,
    /// Whether the counts are for this collection alone; if false, they are for the whole server.
    pub of_collection: bool,
    pub inserts: u64,
    pub updates: u64,
    pub removes: u64,
}

impl WriteRate {
    /// Returns the rate of all writes together.
    pub fn per_second(&self) -> f64 {
        if self.watched_s > 0.0 {
            (self.inserts + self.updates + self.removes) as f64 / self.watched_s
        } else {
            0.0
        }
    }

    /// Returns the rate of updates and removes, which move leaves; inserts are appended.
    pub fn moves_per_hour(&self) -> f64 {
        if self.watched_s > 0.0 {
            (self.updates + self.removes) as f64 / self.watched_s * 3600.0
        } else {
            0.0
        }
    }
}

/// How long a restored order is expected to last if writes continue as seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OrderLasts {
    pub decay: OrderDecay,
    /// Hours until the share of sequential steps falls below 0.9; `None` if that is not in sight.
    #[schemars(range(min = 0))]
    pub hours_to_0_9: Option<f64>,
    /// Hours until the share of sequential steps falls below 0.5; `None` if that is not in sight.
    #[schemars(range(min = 0))]
    pub hours_to_0_5: Option<f64>,
    /// Share of sequential steps (0 to 1) of the copy when it replaces the original; below 1 because applying other
    /// clients' changes moves leaves. `None` if the time that takes is not known.
    #[schemars(range(min = 0, max = 1))]
    pub share_at_swap: Option<f64>,
}

/// Disk space for the copy and its indexes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ReorderSpace {
    /// Space needed, bytes.
    pub needed_bytes: u64,
    /// Space free, bytes.
    pub free_bytes: Option<u64>,
}

/// What the steps are expected to take, seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderTime {
    pub copy_s: f64,
    pub check_s: f64,
    pub indexes_s: f64,
    /// Time for bringing over what others write meanwhile; `None` if their writes to the collection are not
    /// known, or if it never ends.
    pub catch_up_s: Option<f64>,
    /// Whether others write to the collection at least as fast as it can be brought over.
    pub catch_up_never_ends: bool,
}

impl ReorderTime {
    pub fn total_s(&self) -> f64 {
        self.copy_s + self.check_s + self.indexes_s + self.catch_up_s.unwrap_or_default()
    }
}

/// How writers are stopped at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum WritersStop {
    /// The server stops them, with `setUserWriteBlockMode`.
    Server,
    /// Commands given by the user stop them.
    Commands,
    /// The user says that nobody writes.
    Quiesced,
    /// No way was named, and the server has none.
    #[default]
    Unsettled,
}

/// What is blocked, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ReorderBlocking {
    /// Whether writes may continue until the last moment, because a change stream reports them.
    pub replica_set: bool,
    /// How writers are stopped.
    pub writers: WritersStop,
    /// The primary, `host:port`, at which the copy is made; null outside replica sets, or if the server named none.
    pub primary: Option<String>,
    /// Whether the server takes no writes, being no primary; the reordering is then refused.
    pub read_only: bool,
}

/// A finished reordering: the collection has been replaced by its verified copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Reordered {
    /// "natural", or the key pattern of the index that gave the order, as JSON text.
    pub by: String,
    /// Number of documents copied, before changes made meanwhile were applied.
    pub documents: u64,
    /// Size of these documents as BSON, bytes.
    pub bytes: u64,
    /// Number of indexes built on the copy, not counting that of `_id`.
    pub indexes: u64,
    /// The phase that an interrupted run had reached, if this run continued it; times and counts are then for this
    /// run alone.
    pub resumed_from: Option<String>,
    /// Time for reading and writing all documents, pauses and throttling included, s.
    #[schemars(range(min = 0))]
    pub copy_s: f64,
    /// Number of checkpoints that the server took during the copy on request, so that the copy's leaves are written
    /// in order.
    pub checkpoints: u64,
    /// Why no further checkpoints were requested: the login is not permitted to.
    pub checkpoint_refused: Option<String>,
    /// Number of further checkpoints that were requested but not taken for another reason.
    pub checkpoints_failed: u64,
    /// The last reason for which a checkpoint was not taken.
    pub checkpoint_failure: Option<String>,
    /// Time for reading the copy once more, s.
    #[schemars(range(min = 0))]
    pub verify_s: f64,
    /// Time for building the indexes on the copy, s.
    #[schemars(range(min = 0))]
    pub index_s: f64,
    /// Time for applying what others wrote meanwhile, until writers were stopped, s.
    #[schemars(range(min = 0))]
    pub catch_up_s: f64,
    /// Number of rounds in which their changes were applied.
    pub catch_up_rounds: u32,
    /// Number of changed documents applied to the copy, each counted once per round.
    pub applied_changes: u64,
    /// Time from the request that writers stop until they may continue, s.
    #[schemars(range(min = 0))]
    pub blocked_s: f64,
    /// Number of times that the guard paused the copy.
    pub pauses: u32,
    /// Total duration of these pauses, s.
    #[schemars(range(min = 0))]
    pub paused_s: f64,
    /// How it was ensured that no write was lost, for people, e.g. "change stream".
    pub writes_seen_by: String,
}
