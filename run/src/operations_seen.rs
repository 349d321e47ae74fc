//! What a server was doing, as it showed it in samples: kinds of operations, and what they select documents by. Names
//! of fields are kept, and never their values.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An operation as `currentOp` showed it in one or several samples, or as the server's log tells of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OperationSeen {
    /// "query", "getmore", "command find", "index build", "initial sync", "compact", …
    pub kind: String,
    pub namespace: Option<String>,
    /// Summary of the query plan, with key names only, e.g. "COLLSCAN", "IXSCAN { a: 1 }".
    pub plan: Option<String>,
    /// The longest time that it was seen to have been running, µs.
    pub running_us: u64,
    /// Number of samples in which it, or one like it (same kind, namespace, plan and filter), was running.
    pub looks: u32,
    /// The most such operations seen in one sample.
    pub at_once: u32,
    /// Number of such operations in all samples together; 0 in records of versions that did not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub sightings: u32,
    /// Number of samples in which one of them waited for a lock, a ticket or flow control.
    pub waiting_looks: u32,
    /// Number of samples since the last one in which it was running.
    #[serde(skip_serializing_if = "is_zero")]
    pub looks_since: u32,
    /// Progress reported by the server in the last sample: (done, total).
    pub progress: Option<(u64, u64)>,
    /// What it selects documents by; `None` if that is not known.
    pub filter: Option<FilterSeen>,
    /// What the server's log tells of those that it calls slow; `None` if it tells of none, or was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedOperations>,
}

/// What a server's log tells of operations that took longer than its `slowms` (100 ms by default) and ended during the
/// watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LoggedOperations {
    pub count: u64,
    /// The time that they took together during the watch, µs.
    pub took_us: u64,
    /// The time that the longest took, µs.
    pub longest_us: u64,
    pub documents_examined: u64,
    pub keys_examined: u64,
    /// Documents that were returned, updated or deleted.
    pub results: u64,
    /// How many of them were sorts or aggregations that returned a first batch only, and the rest later: `results` has
    /// none of that rest.
    #[serde(skip_serializing_if = "is_zero")]
    pub first_batches: u64,
    /// What the operations themselves read from files.
    pub read_bytes: u64,
    /// The time that this took them, µs.
    pub reading_us: u64,
}

impl LoggedOperations {
    /// Adds others of the same kind.
    pub fn add(&mut self, others: &Self) {
        let sum = |a: u64, b: u64| a.saturating_add(b);
        *self = Self {
            count: sum(self.count, others.count),
            took_us: sum(self.took_us, others.took_us),
            longest_us: self.longest_us.max(others.longest_us),
            documents_examined: sum(self.documents_examined, others.documents_examined),
            keys_examined: sum(self.keys_examined, others.keys_examined),
            results: sum(self.results, others.results),
            first_batches: sum(self.first_batches, others.first_batches),
            read_bytes: sum(self.read_bytes, others.read_bytes),
            reading_us: sum(self.reading_us, others.reading_us),
        };
    }
}

fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl OperationSeen {
    /// The kind of a transaction that is open while its client does nothing.
    pub const IDLE_TRANSACTION: &str = "idle transaction";
    /// The kind of a write that is made, and waits for other members to acknowledge it.
    pub const UNACKNOWLEDGED_WRITE: &str = "unacknowledged write";
    /// The kind of what the server's thread that deletes expired documents does, by that thread's name.
    pub const TTL_MONITOR: &str = "TTLMonitor";

    /// Returns whether it had ended when it was looked for the last time. A single look may miss an operation between
    /// two of its phases.
    pub fn has_ended(&self) -> bool {
        self.looks_since > 1
    }

    /// Returns how often such operations were seen, each of those at once counted; at least once in each sample that
    /// showed any.
    pub fn times_seen(&self) -> u32 {
        self.sightings.max(self.looks)
    }

    /// Sums up what was seen in separate samples, earlier ones first. The longest comes first.
    pub fn summed_up<'a>(all: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut sums: Vec<Self> = Vec::new();
        for seen in all {
            match sums.iter_mut().find(|sum| sum.is_like(seen)) {
                Some(sum) => sum.add(seen),
                None => sums.push(seen.clone()),
            }
        }
        sums.sort_by_key(|sum| Reverse(sum.running_us));
        sums
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.plan, &self.filter)
            == (&other.kind, &other.namespace, &other.plan, &other.filter)
    }

    fn add(&mut self, later: &Self) {
        self.looks = self.looks.saturating_add(later.looks);
        self.sightings = self.sightings.saturating_add(later.sightings);
        self.waiting_looks = self.waiting_looks.saturating_add(later.waiting_looks);
        self.at_once = self.at_once.max(later.at_once);
        self.running_us = self.running_us.max(later.running_us);
        self.looks_since = later.looks_since;
        self.progress = later.progress.or(self.progress);
        if let Some(logged) = &later.logged {
            self.logged.get_or_insert_default().add(logged);
        }
    }
}

/// What an operation selects documents by: names of fields, never their values.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default,
)]
#[serde(default)]
pub struct FilterSeen {
    /// Field names, and operators such as "$or" that take the place of one. Empty if it selects every document.
    pub fields: Vec<String>,
    /// Whether matching documents are grouped, counted or cut off before they are returned, so that the number
    /// returned does not show how many matched.
    pub reduced: bool,
    /// Keys of an index that would let the server read only what it returns: those of a sort that a limit cuts off, or
    /// the field whose distinct values are asked for. Empty for others.
    pub keys: Vec<KeySeen>,
    /// Whether distinct values are asked for.
    pub distinct: bool,
    /// The fields among `fields` that are compared with one value or several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<String>,
    /// The fields among `fields` in which it looks for a pattern that may begin anywhere, or whatever the letters'
    /// case.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Conditions for which an ordinary index on the field is not read at a few places only, patterns apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond: Vec<ConditionSeen>,
    /// The collation by which it compares texts, as a JSON document; `None` if it compares their bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
    /// Whether it asks for documents as they lie in the collection (`$natural`), for which no index is used.
    #[serde(skip_serializing_if = "is_false")]
    pub natural: bool,
    /// Whether it selects by several conditions on one element of an array (`$elemMatch`).
    #[serde(skip_serializing_if = "is_false")]
    pub elements: bool,
    /// Whether it ends after a number of documents, whatever their order.
    #[serde(skip_serializing_if = "is_false")]
    pub limited: bool,
    /// Whether it skips so many of the documents found that reading them is most of the work.
    #[serde(skip_serializing_if = "is_false")]
    pub skips: bool,
    /// Collections whose documents an aggregation adds to its own by the value of a field (`$lookup`, `$graphLookup`).
    pub joins: Vec<JoinSeen>,
}

/// A condition on a field, without its value.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default,
)]
#[serde(default)]
pub struct ConditionSeen {
    pub field: String,
    /// The operator, e.g. "$size".
    pub operator: String,
}

/// A collection that an aggregation looks documents up in.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default,
)]
#[serde(default)]
pub struct JoinSeen {
    /// Name of the collection, in the database of the aggregation.
    pub collection: String,
    /// Field of its documents that is compared.
    pub field: String,
}

/// A key of a sort, or the field of a `distinct`.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default,
)]
#[serde(default)]
pub struct KeySeen {
    pub field: String,
    pub descending: bool,
}
