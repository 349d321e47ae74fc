//! Ways of storing a collection.

use bson::{Bson, Document, doc};
use seekscope_run::{QueryShape, WayKind};

/// Field of a bucket that holds its documents.
pub(crate) const SAMPLES: &str = "samples";
pub(crate) const MINUTE_MS: i64 = 60_000;
pub(crate) const HOUR_MS: i64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: i64 = 24 * HOUR_MS;

/// A way of storing a collection.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// As it is stored now.
    Present,
    /// With another index, which replaces one that is of no more use then, if there is one.
    Index {
        keys: Document,
        replaces: Option<Document>,
        /// Whether it holds all that a query asks for.
        covers: bool,
    },
    /// With several other indexes, each for queries that the others do not serve.
    Indexes { each: Vec<Document> },
    /// With its documents in the order of an index, which is created if there is none.
    Order { keys: Document, creates_index: bool },
    /// With another compressor of the collection's blocks.
    Compressor { name: String },
    /// With an `_id` that the server's drivers make, which is larger for newer documents.
    GrowingId,
    /// With the documents of one key and one stretch of time in one document.
    Buckets {
        keys: Vec<String>,
        time: String,
        span_ms: i64,
    },
}

impl Way {
    pub fn kind(&self) -> WayKind {
        match self {
            Self::Present => WayKind::Present,
            Self::Index { covers: true, .. } => WayKind::Covering,
            Self::Index { .. } => WayKind::Index,
            Self::Indexes { .. } => WayKind::Indexes,
            Self::Order { .. } => WayKind::Order,
            Self::Compressor { .. } => WayKind::Compressor,
            Self::GrowingId => WayKind::GrowingId,
            Self::Buckets { .. } => WayKind::Buckets,
        }
    }

    /// Returns what it is, in a few words.
    pub fn name(&self) -> String {
        match self {
            Self::Present => "as it is".into(),
            Self::Index { keys, .. } => format!("index {}", keys),
            Self::Indexes { each } => {
                let each: Vec<String> = each.iter().map(ToString::to_string).collect();
                format!("indexes {}", each.join(" and "))
            }
            Self::Order { keys, .. } => format!("documents in the order of {}", keys),
            Self::Compressor { name } => format!("the compressor {name}"),
            Self::GrowingId => "an _id that grows".into(),
            Self::Buckets { keys, span_ms, .. } => {
                format!(
                    "one document per {} and {}",
                    keys.join(", "),
                    span(*span_ms)
                )
            }
        }
    }

    /// Returns whether the documents stay in the file in which they are.
    pub fn keeps_file(&self) -> bool {
        self.kind().keeps_file()
    }

    /// Returns what is taken of a document that is stored one by one: all of it, or all but an `_id` that is made anew.
    pub(crate) fn projection(&self) -> Document {
        match self {
            Self::GrowingId => doc! { "_id": 0 },
            _ => Document::new(),
        }
    }

    /// Returns the keys of the indexes that it needs.
    pub fn keys(&self) -> Vec<Document> {
        match self {
            Self::Present | Self::Compressor { .. } | Self::GrowingId => Vec::new(),
            Self::Index { keys, .. } | Self::Order { keys, .. } => vec![keys.clone()],
            Self::Indexes { each } => each.clone(),
            Self::Buckets { keys, time, .. } => {
                let fields = keys.iter().chain(std::iter::once(time));
                let keys = fields.map(|field| (field.clone(), Bson::Int32(1)));
                vec![keys.collect()]
            }
        }
    }

    /// Returns whether the indexes that it needs have to be created.
    pub fn creates_index(&self) -> bool {
        match self {
            Self::Present | Self::Compressor { .. } | Self::GrowingId => false,
            Self::Index { .. } | Self::Indexes { .. } | Self::Buckets { .. } => true,
            Self::Order { creates_index, .. } => *creates_index,
        }
    }

    /// Returns whether queries of this shape can be asked.
    pub fn answers(&self, shape: &QueryShape) -> bool {
        let (keys, time) = match self {
            Self::Buckets { keys, time, .. } => (keys, time),
            Self::GrowingId => {
                let asks_for_id = |field: &String| field == "_id" || field.starts_with("_id.");
                return !shape.fields().any(asks_for_id);
            }
            _ => return true,
        };
        let compares_keys = shape.equality.len() == keys.len()
            && shape.equality.iter().all(|field| keys.contains(field));
        let sorts = |field: &String| field == time || keys.contains(field);
        compares_keys
            && shape.range.iter().all(|field| field == time)
            && shape.sort.iter().all(|sort| sorts(&sort.field))
    }
}

/// Returns a stretch of time in words.
fn span(ms: i64) -> String {
    for (unit_ms, name) in [(DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute")] {
        if ms >= unit_ms {
            let count = ms / unit_ms;
            return match count {
                1 => name.into(),
                _ => format!("{count} {name}s"),
            };
        }
    }
    format!("{ms} ms")
}

/// Returns whether these are the keys of one index: other than for documents, their order counts.
pub(crate) fn are_same(keys: &Document, others: &Document) -> bool {
    keys.iter().eq(others.iter())
}
