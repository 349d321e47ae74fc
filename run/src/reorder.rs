//! What `seekscope reorder` did to a collection.

use serde::{Deserialize, Serialize};

/// A reordering, from its plan to its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReorderMeasurement {
    /// `database.collection`.
    pub namespace: String,
    /// What was done; `None` where the run was a plan only, or did not come to its end.
    pub done: Option<Reordered>,
}

/// A reordering that came to its end: the collection is its verified copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Reordered {
    /// "natural", or the key pattern of the index that gave the order, as JSON text.
    pub by: String,
    /// Documents copied, before changes that came meanwhile were applied, and their bytes as BSON.
    pub documents: u64,
    pub bytes: u64,
    /// Indexes built on the copy, beside that of `_id`.
    pub indexes: u64,
    /// The phase that an interrupted run had reached, where this one carried on from it; times and
    /// counts are then of this run alone.
    pub resumed_from: Option<String>,
    /// Reading and writing all documents, s; with pauses and throttling.
    pub copy_s: f64,
    /// Reading the copy once more, s.
    pub verify_s: f64,
    pub index_s: f64,
    /// Applying what others wrote meanwhile, s, until writers were stopped.
    pub catch_up_s: f64,
    pub catch_up_rounds: u32,
    /// Changed documents that were brought over, each counted once in a round.
    pub applied_changes: u64,
    /// From the request that writers stop until they may go on, s.
    pub blocked_s: f64,
    /// How often, and for how long in all, the guard paused the copy.
    pub pauses: u32,
    pub paused_s: f64,
    /// How it was made sure that no write was lost, for people: e.g. "change stream".
    pub writes_seen_by: String,
}
