//! What `reorder` plans, does and finds: the rewriting of a collection in scan order.
//!
//! All sizes are bytes, shares 0 to 1, times seconds. What could not be found out is `None`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LayoutMeasurement, OrderDecay};

/// What `reorder` was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum ReorderTask {
    /// Say what would be done; nothing is changed.
    #[default]
    Plan,
    /// Do it.
    Apply,
    /// Go on with an interrupted one.
    Resume,
    /// Undo an interrupted one.
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
    /// The collection and its indexes, when the command began; `None` where the files are not on this
    /// host or may not be read.
    pub before: Option<LayoutMeasurement>,
    /// The same after the rewriting and a checkpoint.
    pub after: Option<LayoutMeasurement>,
    /// `None` where the run was a plan only, or did not come to its end.
    pub done: Option<Reordered>,
    /// From the command's beginning to the swap, s.
    pub elapsed_s: Option<f64>,
    /// Did `fsync` make the server take a checkpoint before the second look at the layout?
    pub checkpoint_forced: bool,
    /// What was found interrupted and what became of it, a sentence each.
    pub recovered: Vec<String>,
}

/// Is it worth it?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum ReorderVerdict {
    /// Order would gain much.
    Worthwhile,
    /// Order would gain less than a tenth.
    LittleGain,
    /// The collection is in memory, where order matters little.
    Cached,
    /// Others write so much that the copy would have lost its order before it takes its place.
    Undone,
    /// The layout is not known, so the gain is not.
    #[default]
    Unknown,
}

/// What would be done, what it takes and what it gains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderPlan {
    pub verdict: ReorderVerdict,
    /// By the server's statistics.
    pub documents: u64,
    pub data_bytes: u64,
    pub storage_bytes: u64,
    pub index_bytes: u64,
    pub indexes: u64,
    /// Cold scan of the whole collection. An index build reads the same leaves in the same order.
    pub scan: Option<ReorderScan>,
    /// Of the collection's file, now.
    pub cached_share: Option<f64>,
    /// For `--by` an index.
    pub clustering: Option<Clustering>,
    pub writes: Option<WriteRate>,
    pub lasts: Option<OrderLasts>,
    pub space: ReorderSpace,
    /// `None` where the layout is not known.
    pub time: Option<ReorderTime>,
    pub blocking: ReorderBlocking,
}

/// Predicted for the disk that the run names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderScan {
    pub now_s: f64,
    /// A range that the truth of `now_s` should lie in.
    pub now_low_s: f64,
    pub now_high_s: f64,
    pub ordered_s: f64,
    pub after_compact_s: f64,
    /// What `compact` would give back.
    pub free_bytes: u64,
    pub file_bytes: u64,
    pub sequential_share: f64,
    pub seeks: u64,
    /// The table holds other collections too, and the figures are of all of them.
    pub shared_table: bool,
}

impl ReorderScan {
    /// What order saves each cold scan and each index build, seconds.
    pub fn gain_s(&self) -> f64 {
        (self.now_s - self.ordered_s).max(0.0)
    }

    /// The same as a share of what they take now.
    pub fn gain_share(&self) -> f64 {
        if self.now_s > 0.0 {
            self.gain_s() / self.now_s
        } else {
            0.0
        }
    }
}

/// How many leaves a query reads that follows an index, by a sample of record ids.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Clustering {
    /// Documents whose places were looked at, in `stretches` stretches of neighbours in the index.
    pub sampled_documents: u64,
    pub stretches: u64,
    /// Distinct leaves that a thousand documents in a row of the index lie in now.
    #[schemars(range(min = 0))]
    pub leaves_per_1000_now: f64,
    /// The same after the rewriting.
    #[schemars(range(min = 0))]
    pub leaves_per_1000_ordered: f64,
}

/// Writes seen while the command watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct WriteRate {
    #[schemars(range(min = 0))]
    pub watched_s: f64,
    /// Where the counts come from: "top" counts the collection's, "serverStatus" all of the server's.
    #[schemars(extend("enum" = ["top", "serverStatus"]))]
    pub source: String,
    /// True where the counts are of this collection alone; false: of the whole server.
    pub of_collection: bool,
    pub inserts: u64,
    pub updates: u64,
    pub removes: u64,
}

impl WriteRate {
    /// All of them.
    pub fn per_second(&self) -> f64 {
        if self.watched_s > 0.0 {
            (self.inserts + self.updates + self.removes) as f64 / self.watched_s
        } else {
            0.0
        }
    }

    /// Updates and removes, which move leaves; inserts are appended.
    pub fn moves_per_hour(&self) -> f64 {
        if self.watched_s > 0.0 {
            (self.updates + self.removes) as f64 / self.watched_s * 3600.0
        } else {
            0.0
        }
    }
}

/// How long a restored order is expected to last, if writes go on as seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OrderLasts {
    pub decay: OrderDecay,
    /// Until the share of sequential steps falls below 0.9; `None`: not in sight.
    #[schemars(range(min = 0))]
    pub hours_to_0_9: Option<f64>,
    /// Until it falls below 0.5; `None`: not in sight.
    #[schemars(range(min = 0))]
    pub hours_to_0_5: Option<f64>,
    /// Share of sequential steps (0 to 1) of the copy when it takes the original's place: changes that are
    /// brought over move its leaves. `None` where the time it takes is not known.
    #[schemars(range(min = 0, max = 1))]
    pub share_at_swap: Option<f64>,
}

/// Room for the copy and its indexes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ReorderSpace {
    pub needed_bytes: u64,
    pub free_bytes: Option<u64>,
}

/// What the steps are expected to take, seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderTime {
    pub copy_s: f64,
    pub check_s: f64,
    pub indexes_s: f64,
    /// Bringing over what others write meanwhile; `None` where their writes to the collection are not known,
    /// or it never ends.
    pub catch_up_s: Option<f64>,
    /// They write to the collection at least as fast as it can be brought over.
    pub catch_up_never_ends: bool,
}

impl ReorderTime {
    pub fn total_s(&self) -> f64 {
        self.copy_s + self.check_s + self.indexes_s + self.catch_up_s.unwrap_or_default()
    }
}

/// How writers are kept out at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum WritersStop {
    /// By the server, with `setUserWriteBlockMode`.
    Server,
    /// By commands of the user.
    Commands,
    /// The user says that nobody writes.
    Quiesced,
    /// Nothing was named, and the server cannot.
    #[default]
    Unsettled,
}

/// What is blocked, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ReorderBlocking {
    /// Writes may go on until the last moment, for a change stream tells of them.
    pub replica_set: bool,
    pub writers: WritersStop,
}

/// A reordering that came to its end: the collection is its verified copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Reordered {
    /// "natural", or the key pattern of the index that gave the order, as JSON text.
    pub by: String,
    /// Documents copied, before changes that came meanwhile were applied.
    pub documents: u64,
    /// Of these, as BSON.
    pub bytes: u64,
    /// Indexes built on the copy, beside that of `_id`.
    pub indexes: u64,
    /// The phase that an interrupted run had reached, where this one carried on from it; times and
    /// counts are then of this run alone.
    pub resumed_from: Option<String>,
    /// Reading and writing all documents, s; with pauses and throttling.
    #[schemars(range(min = 0))]
    pub copy_s: f64,
    /// Checkpoints that the server took meanwhile because it was asked to, so that the copy's leaves are
    /// written in their order.
    pub checkpoints: u64,
    /// Why no more were asked for after these: the login may not.
    pub checkpoint_refused: Option<String>,
    /// How many more the server was asked for and did not take for another reason.
    pub checkpoints_failed: u64,
    /// The last such reason.
    pub checkpoint_failure: Option<String>,
    /// Reading the copy once more, s.
    #[schemars(range(min = 0))]
    pub verify_s: f64,
    /// Building the indexes on the copy.
    #[schemars(range(min = 0))]
    pub index_s: f64,
    /// Applying what others wrote meanwhile, s, until writers were stopped.
    #[schemars(range(min = 0))]
    pub catch_up_s: f64,
    /// Rounds in which that was done.
    pub catch_up_rounds: u32,
    /// Changed documents that were brought over, each counted once in a round.
    pub applied_changes: u64,
    /// From the request that writers stop until they may go on, s.
    #[schemars(range(min = 0))]
    pub blocked_s: f64,
    /// How often the guard paused the copy.
    pub pauses: u32,
    /// For how long in all.
    #[schemars(range(min = 0))]
    pub paused_s: f64,
    /// How it was made sure that no write was lost, for people: e.g. "change stream".
    pub writes_seen_by: String,
}
