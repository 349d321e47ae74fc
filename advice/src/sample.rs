//! Copies the newest documents of a collection to the server of the trial, and learns of them what proposals need.
//!
//! The newest documents lie side by side in the file, so what lies between two documents of one series in the
//! collection lies between them in the sample, too; random ones would be further apart. They are read against their
//! order and so stored backwards; whoever reads the stored sample backwards has them in their order again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use bson::{Bson, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::QueryShape;
use seekscope_server::{Namespace, Server, float};

use crate::AdviceError;
use crate::values::{date_ms, decoded, holds_list, value_at};

/// Documents per round trip.
const BATCH: u32 = 1_000;
/// The most that is read of the target per second, so that it does not notice.
const BYTES_PER_S: f64 = 20e6;
/// Share of the pairs of documents of which the newer one must have the larger value, for a field to follow age.
const FOLLOWS_AGE_MIN: f64 = 0.95;
/// How far apart the documents of such pairs are, as parts of the sample: what rises again and again rises between
/// neighbours, too.
const PAIRS_APART: [usize; 3] = [2, 7, 64];

/// What is known of the sampled documents.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleFacts {
    pub documents: u64,
    pub bytes: u64,
    pub fields: Vec<FieldFacts>,
}

/// What is known of a field that queries name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldFacts {
    pub path: String,
    /// Documents that have it, and documents in which it is a date.
    pub present: u64,
    pub dates: u64,
    /// Documents in which a list is at its path or on the way to it.
    pub lists: u64,
    pub distinct: u64,
    /// Whether newer documents have larger values.
    pub follows_age: bool,
    /// First and last date, ms since 1970.
    pub dates_ms: Option<(i64, i64)>,
}

impl SampleFacts {
    pub fn field(&self, path: &str) -> Option<&FieldFacts> {
        self.fields.iter().find(|field| field.path == path)
    }

    /// Returns the first field of a shape that no document has.
    pub fn missing_field<'a>(&self, shape: &'a QueryShape) -> Option<&'a String> {
        let is_missing = |path: &&String| self.field(path).is_none_or(|field| field.present == 0);
        shape.fields().find(is_missing)
    }

    /// Returns the mean size of a document, bytes.
    pub fn document_bytes(&self) -> f64 {
        self.bytes as f64 / self.documents.max(1) as f64
    }
}

/// What to take of the target.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub namespace: &'a Namespace,
    pub documents: u64,
    pub bytes_max: u64,
    /// The fields that queries name.
    pub fields: &'a [String],
}

/// Copies documents to a collection, and tells `progress` how many there are.
///
/// # Errors
/// Fails if a server does, and if there are no documents.
pub async fn copy_newest(
    target: &Server,
    wanted: Wanted<'_>,
    to: &mongodb::Collection<RawDocumentBuf>,
    trial: &Server,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<SampleFacts, AdviceError> {
    let failed = |error| target.error("find", &error);
    let from = target.database(wanted.namespace.database());
    let from = from.collection::<RawDocumentBuf>(wanted.namespace.collection());
    let limit = i64::try_from(wanted.documents).unwrap_or(i64::MAX);
    let cursor = from
        .find(doc! {})
        .sort(doc! { "$natural": -1 })
        .limit(limit)
        .batch_size(BATCH);
    let mut cursor = cursor.await.map_err(failed)?;
    let mut learnt = Learnt::of(wanted.fields);
    let mut batch = Vec::new();
    let begun = Instant::now();
    while let Some(document) = cursor.try_next().await.map_err(failed)? {
        learnt.add(&document);
        batch.push(document);
        let is_last = learnt.bytes >= wanted.bytes_max;
        if batch.len() >= BATCH as usize || is_last {
            store(trial, to, std::mem::take(&mut batch)).await?;
            progress(learnt.documents);
            let due = Duration::from_secs_f64(learnt.bytes as f64 / BYTES_PER_S);
            tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
        }
        if is_last {
            break;
        }
    }
    store(trial, to, batch).await?;
    if learnt.documents == 0 {
        let namespace = wanted.namespace.to_string();
        return Err(AdviceError::Empty { namespace });
    }
    Ok(learnt.facts())
}

/// Inserts a batch, which may be empty.
pub(crate) async fn store(
    server: &Server,
    to: &mongodb::Collection<RawDocumentBuf>,
    batch: Vec<RawDocumentBuf>,
) -> Result<(), AdviceError> {
    if !batch.is_empty() {
        let inserted = to.insert_many(batch).await;
        inserted.map_err(|error| server.error("insert", &error))?;
    }
    Ok(())
}

struct Learnt {
    documents: u64,
    bytes: u64,
    fields: Vec<Learning>,
}

struct Learning {
    facts: FieldFacts,
    hashes: HashSet<u64>,
    /// Ranks, counted from the newest document.
    ranks: Vec<f64>,
}

impl Learnt {
    fn of(fields: &[String]) -> Self {
        let fields = fields.iter().map(|path| Learning {
            facts: FieldFacts {
                path: path.clone(),
                ..FieldFacts::default()
            },
            hashes: HashSet::new(),
            ranks: Vec::new(),
        });
        Self {
            documents: 0,
            bytes: 0,
            fields: fields.collect(),
        }
    }

    fn add(&mut self, raw: &RawDocumentBuf) {
        self.documents += 1;
        self.bytes += raw.as_bytes().len() as u64;
        let Some(document) = decoded(raw) else {
            return;
        };
        for field in &mut self.fields {
            field.facts.lists += u64::from(holds_list(&document, &field.facts.path));
            if let Some(value) = value_at(&document, &field.facts.path) {
                field.add(&value);
            }
        }
    }

    fn facts(self) -> SampleFacts {
        let fields = self.fields.into_iter().map(|field| FieldFacts {
            distinct: field.hashes.len() as u64,
            follows_age: follows_age(&field.ranks),
            ..field.facts
        });
        SampleFacts {
            documents: self.documents,
            bytes: self.bytes,
            fields: fields.collect(),
        }
    }
}

impl Learning {
    fn add(&mut self, value: &Bson) {
        self.facts.present += 1;
        let mut hasher = DefaultHasher::new();
        value.to_string().hash(&mut hasher);
        self.hashes.insert(hasher.finish());
        if let Some(ms) = date_ms(value) {
            self.facts.dates += 1;
            let (first, last) = self.facts.dates_ms.unwrap_or((ms, ms));
            self.facts.dates_ms = Some((first.min(ms), last.max(ms)));
        }
        self.ranks.extend(rank(value));
    }
}

/// Returns whether values, from that of the newest document on, are the smaller the older their documents are.
fn follows_age(ranks: &[f64]) -> bool {
    PAIRS_APART.iter().all(|parts| {
        let apart = (ranks.len() / parts).max(1);
        let pairs = ranks.iter().zip(ranks.iter().skip(apart));
        let (mut all, mut falling) = (0_u64, 0_u64);
        for (newer, older) in pairs {
            all += 1;
            falling += u64::from(older <= newer);
        }
        all > 0 && falling as f64 >= FOLLOWS_AGE_MIN * all as f64
    })
}

/// Returns a number that is larger for larger values; `None` for types that say nothing of age.
fn rank(value: &Bson) -> Option<f64> {
    match value {
        Bson::ObjectId(id) => Some(id.timestamp().timestamp_millis() as f64),
        Bson::Timestamp(time) => Some(f64::from(time.time)),
        other => date_ms(other).map(|ms| ms as f64).or_else(|| float(other)),
    }
}

#[cfg(test)]
mod tests {
    use bson::{DateTime, rawdoc};

    use super::*;
    use crate::shape::told;

    #[test]
    fn what_grows_with_age_and_what_does_not() {
        let fields = ["ts", "device", "none"].map(String::from);
        let mut learnt = Learnt::of(&fields);
        for n in (0..100_i64).rev() {
            learnt.add(&rawdoc! { "ts": DateTime::from_millis(n * 10), "device": n % 7, "x": n });
        }
        let facts = learnt.facts();
        let ts = facts.field("ts").unwrap();
        assert!(ts.follows_age && ts.distinct == 100 && ts.dates == 100);
        assert_eq!(ts.dates_ms, Some((0, 990)));
        let device = facts.field("device").unwrap();
        assert!(!device.follows_age && device.distinct == 7, "{device:?}");
        assert_eq!(facts.field("none").unwrap().present, 0);
        assert_eq!(facts.field("x"), None);
        let missing = |query: &str| facts.missing_field(&told(query).unwrap()).cloned();
        assert_eq!(missing(r#"{"device": 1, "ts": {"$gt": 1}}"#), None);
        assert_eq!(missing(r#"{"device": 1, "none": 1}"#), Some("none".into()));
    }

    #[test]
    fn what_rises_again_and_again_does_not_follow_age() {
        let saw: Vec<f64> = (0..10_000)
            .rev()
            .map(|n| f64::from(n * 7_919 % 200_000))
            .collect();
        assert!(!follows_age(&saw));
        let late: Vec<f64> = (0..10_000)
            .rev()
            .map(|n| f64::from(n / 10 * 10 + n * 7 % 10))
            .collect();
        assert!(follows_age(&late));
        assert!(!follows_age(&[]));
    }
}
