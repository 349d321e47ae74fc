//! Spreads a benchmark's own collections over the shards of a cluster, through its router (mongos), and tells how
//! they are spread.
//!
//! Read [`ShardPlan`] first: what is wanted of a collection, made from its documents before anything is changed.
//! [`create()`] then shards it and spreads its chunks while it is empty.

mod create;
mod key_field;
mod split_points;

use bson::{Bson, Document, RawDocumentBuf, doc};
use seekscope_client::BsonWriter;
use seekscope_run::ShardKind;

pub use create::create;
pub use key_field::{KeyField, KeyFieldError};
pub use split_points::{SplitError, split_points};

/// The most documents that are made to find split points, and to see whether they have the key at all.
const SAMPLES_MAX: u64 = 10_000;
const SAMPLES_OF_HASHED: u64 = 100;
/// Chunks per shard of a ranged collection unless told otherwise: as many as mongod makes of a hashed one.
const CHUNKS_PER_SHARD: usize = 2;

/// How collections are to be sharded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardWish {
    pub kind: ShardKind,
    pub key: KeyField,
    /// Chunks of each collection before the load.
    pub pre_split: Option<u32>,
}

/// A collection that is to be sharded: what will be loaded into it.
pub struct LoadedCollection<'a> {
    pub name: String,
    /// Number of documents.
    pub records: u64,
    /// Returns the document of a record, or another one with a value of the shard key from the same range.
    pub document: Box<dyn Fn(u64) -> RawDocumentBuf + Send + Sync + 'a>,
}

/// What is to be done with one collection.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardPlan {
    pub collection: String,
    pub kind: ShardKind,
    pub key: KeyField,
    /// Chunks, as asked for.
    pub pre_split: Option<u32>,
    /// Values of the key at which a ranged collection is split, ascending; none if it is hashed.
    pub split_points: Vec<Bson>,
}

/// Why a collection cannot be sharded as wanted.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("no document of {collection} has the field {field}")]
    NoSuchField { collection: String, field: String },
    #[error(
        "documents of {collection} have an array in {field}, which a shard key must not contain"
    )]
    Array { collection: String, field: String },
    #[error("{chunks} chunks are too few for {shards} shards: each shard needs at least one")]
    FewerChunksThanShards { chunks: u32, shards: usize },
    #[error("{collection} cannot be split by {field}: {why}")]
    Split {
        collection: String,
        field: String,
        why: SplitError,
    },
}

impl ShardWish {
    /// Returns the key pattern for `shardCollection`.
    pub fn pattern(&self) -> Document {
        pattern(self.kind, &self.key)
    }

    /// Plans a collection on this many shards, from a sample of the documents that will be loaded.
    ///
    /// # Errors
    /// Fails if the documents do not have the field, or its values cannot be split.
    pub fn plan(
        &self,
        collection: &LoadedCollection<'_>,
        shards: usize,
    ) -> Result<ShardPlan, PlanError> {
        let shards = shards.max(1);
        if let Some(chunks) = self.pre_split
            && (chunks as usize) < shards
        {
            return Err(PlanError::FewerChunksThanShards { chunks, shards });
        }
        let values = self.values(collection)?;
        let split_points = match self.kind {
            ShardKind::Hashed => Vec::new(),
            ShardKind::Ranged => {
                let asked = self.pre_split.map(|chunks| chunks as usize);
                let chunks = asked.unwrap_or(CHUNKS_PER_SHARD * shards);
                split_points(values, chunks, shards).map_err(|why| PlanError::Split {
                    collection: collection.name.clone(),
                    field: self.key.to_string(),
                    why,
                })?
            }
        };
        Ok(ShardPlan {
            collection: collection.name.clone(),
            kind: self.kind,
            key: self.key.clone(),
            pre_split: self.pre_split,
            split_points,
        })
    }

    /// Returns the key's values in documents spread evenly over all. If the documents have no `_id` of their own,
    /// whoever sends them adds one, which is known to be there but not what it is.
    fn values(&self, collection: &LoadedCollection<'_>) -> Result<Vec<Bson>, PlanError> {
        let named = || (collection.name.clone(), self.key.to_string());
        let samples = collection.records.min(match self.kind {
            ShardKind::Hashed => SAMPLES_OF_HASHED,
            ShardKind::Ranged => SAMPLES_MAX,
        });
        let record = |sample: u64| {
            let record = u128::from(sample) * u128::from(collection.records) / u128::from(samples);
            u64::try_from(record).unwrap_or(u64::MAX)
        };
        let mut values = Vec::new();
        for sample in 0..samples {
            let document = (collection.document)(record(sample));
            match self.key.value_in(&document) {
                Some(Bson::Array(_)) => {
                    let (collection, field) = named();
                    return Err(PlanError::Array { collection, field });
                }
                Some(value) => values.push(value),
                None => {}
            }
        }
        if values.is_empty() && samples > 0 && !self.key.is_id() {
            let (collection, field) = named();
            return Err(PlanError::NoSuchField { collection, field });
        }
        Ok(values)
    }
}

impl<'a> LoadedCollection<'a> {
    /// Returns a collection whose documents are written like this.
    pub fn written(
        name: &str,
        records: u64,
        write: impl Fn(u64, &mut BsonWriter) + Send + Sync + 'a,
    ) -> Self {
        let document = move |record| {
            let mut writer = BsonWriter::default();
            write(record, &mut writer);
            RawDocumentBuf::from_bytes(writer.bytes().to_vec()).unwrap_or_default()
        };
        Self {
            name: name.into(),
            records,
            document: Box::new(document),
        }
    }
}

impl ShardPlan {
    /// Returns the key pattern for `shardCollection`.
    pub fn pattern(&self) -> Document {
        pattern(self.kind, &self.key)
    }
}

fn pattern(kind: ShardKind, key: &KeyField) -> Document {
    match kind {
        ShardKind::Hashed => doc! { key.as_str(): "hashed" },
        ShardKind::Ranged => doc! { key.as_str(): 1 },
    }
}

#[cfg(test)]
mod tests {
    use bson::cstr;

    use super::*;

    fn numbered<'a>() -> LoadedCollection<'a> {
        LoadedCollection {
            name: "c".into(),
            records: 100_000,
            document: Box::new(|record| {
                let mut document = RawDocumentBuf::new();
                document.append(cstr!("_id"), i64::try_from(record).unwrap());
                document.append(cstr!("tags"), bson::RawArrayBuf::new());
                document
            }),
        }
    }

    fn wish(kind: ShardKind, key: &str, pre_split: Option<u32>) -> ShardWish {
        ShardWish {
            kind,
            key: key.parse().unwrap(),
            pre_split,
        }
    }

    #[test]
    fn ranges_are_of_equal_shares() {
        let plan = wish(ShardKind::Ranged, "_id", None).plan(&numbered(), 2);
        let points = plan.unwrap().split_points;
        let quarters = [25_000_i64, 50_000, 75_000].map(Bson::Int64);
        assert_eq!(points, quarters);
        let plan = wish(ShardKind::Ranged, "_id", Some(5)).plan(&numbered(), 2);
        assert_eq!(plan.unwrap().split_points.len(), 4);
        let hashed = wish(ShardKind::Hashed, "_id", Some(5)).plan(&numbered(), 2);
        let hashed = hashed.unwrap();
        assert!(hashed.split_points.is_empty());
        assert_eq!(hashed.pattern(), doc! { "_id": "hashed" });
    }

    #[test]
    fn a_wrong_key_is_refused_before_anything_is_changed() {
        let plan = |key, pre_split| {
            let plan = wish(ShardKind::Hashed, key, pre_split).plan(&numbered(), 2);
            plan.unwrap_err().to_string()
        };
        assert_eq!(
            plan("custmer", None),
            "no document of c has the field custmer"
        );
        assert!(plan("tags", None).contains("array"));
        assert!(plan("_id", Some(1)).contains("too few for 2 shards"));
    }

    #[test]
    fn an_id_that_is_added_on_the_way_can_be_hashed_but_not_split() {
        let without = LoadedCollection {
            document: Box::new(|_| RawDocumentBuf::new()),
            ..numbered()
        };
        assert!(
            wish(ShardKind::Hashed, "_id", None)
                .plan(&without, 2)
                .is_ok()
        );
        let ranged = wish(ShardKind::Ranged, "_id", None).plan(&without, 2);
        assert!(matches!(ranged, Err(PlanError::Split { .. })), "{ranged:?}");
    }
}
