//! Stores the sample in one way.

use std::time::{Duration, Instant};

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, oid::ObjectId};
use futures_util::TryStreamExt;
use seekscope_server::{Server, storage_facts};

use super::counters::{self, Blocks};
use super::{DATABASE, SAMPLED, TrialOptions};
use crate::AdviceError;
use crate::sample::store as store_batch;
use crate::values::{date_ms, set_at, value_at};
use crate::way::Way;

const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 16 << 20;
/// Name of an index that a way needs and the target does not have.
const NEW_INDEX: &str = "advised";
/// Field of a bucket that holds its documents.
pub(super) const SAMPLES: &str = "samples";
/// WiredTiger has learnt how well a file's pages compress after some twenty of them.
const LEAVES_LEARNT: u64 = 100;

/// A stored sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// Documents of the sample, and those that they are stored as.
    pub sampled: u64,
    pub documents: u64,
    /// Bytes of the files, the indexes' included.
    pub bytes: u64,
    /// Blocks that a scan reads with cold caches.
    pub leaves: u64,
    /// Mean size of these blocks as pages, which are no longer compressed.
    pub page_bytes: f64,
    /// The same of a collection that has more of them.
    pub page_bytes_of_many: f64,
    /// Time that storing took, s.
    pub load_s: f64,
}

/// Creates the collection with its indexes and stores the sample. Returns the number of documents of the sample and
/// the seconds that it took.
///
/// It is stored twice: WiredTiger learns with each page that it writes how well those of a table compress, and makes
/// the first ones up to four times as large as the later ones, which a large collection has next to alone.
pub(super) async fn store(
    server: &Server,
    collection: &str,
    way: &Way,
    options: &TrialOptions,
) -> Result<(u64, f64), AdviceError> {
    let mut create = doc! { "create": collection };
    create.extend(options.create.clone());
    server.command(DATABASE, create).await?;
    let indexes = indexes(way, &options.indexes);
    if !indexes.is_empty() {
        let command = doc! { "createIndexes": collection, "indexes": indexes };
        server.command(DATABASE, command).await?;
    }
    fill(server, collection, way).await?;
    server.command("admin", doc! { "fsync": 1 }).await?;
    let all = doc! { "q": {}, "limit": 0 };
    let empty = doc! { "delete": collection, "deletes": [all] };
    server.command(DATABASE, empty).await?;
    server.command("admin", doc! { "fsync": 1 }).await?;
    fill(server, collection, way).await
}

async fn fill(server: &Server, collection: &str, way: &Way) -> Result<(u64, f64), AdviceError> {
    let failed = |error| server.error("aggregate", &error);
    let from = server.database(DATABASE).collection::<Document>(SAMPLED);
    let to = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(collection);
    let sorted = |stages| from.aggregate(stages).allow_disk_use(true);
    let mut cursor = match way {
        // The newest was stored first.
        Way::Present | Way::Index { .. } => from.find(doc! {}).sort(doc! { "$natural": -1 }).await,
        Way::Order { keys } => sorted(vec![doc! { "$sort": keys.clone() }]).await,
        Way::Buckets {
            keys,
            time,
            span_ms,
        } => sorted(bucket_pipeline(keys, time, *span_ms)).await,
    }
    .map_err(failed)?;
    let (mut sampled, mut bytes) = (0, 0);
    let mut batch = Vec::new();
    let mut storing = Duration::ZERO;
    loop {
        let next = cursor.try_next().await.map_err(failed)?;
        let is_last = next.is_none();
        if let Some(document) = next {
            let document = match way {
                Way::Buckets { keys, time, .. } => {
                    let (bucket, count) = bucket(document, keys, time);
                    sampled += count;
                    bucket
                }
                _ => {
                    sampled += 1;
                    document
                }
            };
            if let Ok(raw) = RawDocumentBuf::try_from(&document) {
                bytes += raw.as_bytes().len();
                batch.push(raw);
            }
        }
        if batch.len() >= BATCH || bytes >= BATCH_BYTES || is_last {
            let begun = Instant::now();
            store_batch(server, &to, std::mem::take(&mut batch)).await?;
            storing += begun.elapsed();
            bytes = 0;
        }
        if is_last {
            return Ok((sampled, storing.as_secs_f64()));
        }
    }
}

/// Returns the specifications of the indexes that a way has.
fn indexes(way: &Way, present: &[Document]) -> Vec<Document> {
    let new = |keys: Document| doc! { "key": keys, "name": NEW_INDEX };
    let has = |keys: &Document| {
        let begins = |known: &Document| known.iter().take(keys.len()).eq(keys.iter());
        present
            .iter()
            .any(|index| index.get_document("key").is_ok_and(begins))
    };
    match way {
        Way::Buckets { .. } => way.keys().map(new).into_iter().collect(),
        Way::Present => kept(present, None),
        Way::Index { keys, replaces } => {
            let mut all = kept(present, replaces.as_ref());
            all.push(new(keys.clone()));
            all
        }
        Way::Order { keys } => {
            let mut all = kept(present, None);
            if !has(keys) {
                all.push(new(keys.clone()));
            }
            all
        }
    }
}

/// Returns the indexes of the target but the one that is made anyway and the one that is replaced. Documents do not
/// expire in a trial.
fn kept(present: &[Document], replaced: Option<&Document>) -> Vec<Document> {
    let is_kept = |index: &&Document| {
        let keys = index.get_document("key").ok();
        index.get_str("name").is_ok_and(|name| name != "_id_")
            && (replaced.is_none() || keys != replaced)
    };
    let without = ["expireAfterSeconds", "ns", "background", "v"];
    let bare = |index: &Document| {
        let mut index = index.clone();
        for name in without {
            index.remove(name);
        }
        index
    };
    present.iter().filter(is_kept).map(bare).collect()
}

/// Returns the stages that join documents in buckets, in the order in which the buckets come into being.
fn bucket_pipeline(keys: &[String], time: &str, span_ms: i64) -> Vec<Document> {
    let ms = doc! { "$toLong": format!("${time}") };
    let start = doc! { "$subtract": [ms.clone(), { "$mod": [ms, span_ms] }] };
    let mut id = doc! { "start": start };
    let mut order = doc! { "_id.start": 1 };
    for (number, key) in keys.iter().enumerate() {
        id.insert(format!("k{number}"), format!("${key}"));
        order.insert(format!("_id.k{number}"), 1);
    }
    vec![
        doc! { "$group": { "_id": id, SAMPLES: { "$push": "$$ROOT" } } },
        doc! { "$sort": order },
    ]
}

/// Makes a bucket of a group, with its documents by time and without what the bucket says for all of them; returns
/// the number of documents, too.
fn bucket(mut group: Document, keys: &[String], time: &str) -> (Document, u64) {
    let samples = match group.remove(SAMPLES) {
        Some(Bson::Array(samples)) => samples,
        _ => Vec::new(),
    };
    let mut samples: Vec<Document> = samples
        .into_iter()
        .filter_map(|sample| match sample {
            Bson::Document(sample) => Some(sample),
            _ => None,
        })
        .collect();
    samples.sort_by_key(|sample| value_at(sample, time).as_ref().and_then(date_ms));
    let mut bucket = doc! { "_id": ObjectId::new() };
    if let Some(first) = samples.first() {
        for key in keys {
            set_at(&mut bucket, key, value_at(first, key).unwrap_or(Bson::Null));
        }
    }
    let start = group
        .get_document("_id")
        .ok()
        .and_then(|id| id.get("start").cloned());
    let start = start.and_then(|start| match start {
        Bson::Int64(ms) => Some(Bson::DateTime(DateTime::from_millis(ms))),
        _ => None,
    });
    set_at(&mut bucket, time, start.unwrap_or(Bson::Null));
    let count = samples.len() as u64;
    for sample in &mut samples {
        sample.remove("_id");
        keys.iter().for_each(|key| drop(sample.remove(key)));
    }
    bucket.insert(SAMPLES, samples);
    (bucket, count)
}

/// Returns the sizes of what was stored, after a restart with nothing cached.
pub(super) async fn size(
    server: &Server,
    collection: &str,
    (sampled, load_s): (u64, f64),
) -> Result<Stored, AdviceError> {
    let facts = storage_facts(server, DATABASE, &[collection]).await?;
    let before = counters::read(server, DATABASE, collection).await?;
    // It reads everything and finds nothing.
    let scan = doc! { "find": collection, "filter": { "no field of this name": 1 }, "hint": { "$natural": 1 } };
    server.command(DATABASE, scan).await?;
    let after = counters::read(server, DATABASE, collection).await?;
    let leaves = after.collection.saturating_sub(before.collection);
    let read_bytes = after
        .collection_bytes
        .saturating_sub(before.collection_bytes);
    let page_bytes = read_bytes as f64 / leaves.max(1) as f64;
    Ok(Stored {
        sampled,
        documents: facts.documents,
        bytes: facts.storage_bytes.saturating_add(facts.index_bytes),
        leaves,
        page_bytes,
        page_bytes_of_many: page_bytes_of_many(leaves, page_bytes, &after),
        load_s,
    })
}

/// Returns the mean size of the pages of a collection that has many. Few, which WiredTiger writes while it learns, differ
/// from trial to trial; but how well they compress does not, and it learns to make pages that compress to full blocks.
fn page_bytes_of_many(leaves: u64, page_bytes: f64, read: &Blocks) -> f64 {
    if leaves >= LEAVES_LEARNT || read.file_bytes == 0 {
        return page_bytes;
    }
    let compressed = read.file_bytes as f64 / leaves.max(1) as f64;
    page_bytes / compressed * read.leaf_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_pages_say_how_well_they_compress_and_many_how_large_they_are() {
        let read = Blocks {
            collection: 20,
            collection_bytes: 2_000_000,
            indexes: 0,
            file_bytes: 1_000_000,
            leaf_bytes: 32_768,
        };
        assert_eq!(page_bytes_of_many(20, 100_000.0, &read), 65_536.0);
        assert_eq!(page_bytes_of_many(100, 100_000.0, &read), 100_000.0);
    }

    #[test]
    fn a_bucket_says_once_what_its_documents_have_in_common() {
        let sample =
            |ms: i64| doc! { "_id": ms, "m": { "d": 7 }, "ts": DateTime::from_millis(ms), "v": 1 };
        let group =
            doc! { "_id": { "start": 100_i64, "k0": 7 }, SAMPLES: [sample(150), sample(120)] };
        let (bucket, count) = bucket(group, &["m.d".into()], "ts");
        assert_eq!(count, 2);
        assert_eq!(bucket.get_document("m").unwrap(), &doc! { "d": 7 });
        assert_eq!(bucket.get_datetime("ts").unwrap().timestamp_millis(), 100);
        let samples = bucket.get_array(SAMPLES).unwrap();
        let first = samples[0].as_document().unwrap();
        assert_eq!(first.get_datetime("ts").unwrap().timestamp_millis(), 120);
        assert!(!first.contains_key("_id"));
    }

    #[test]
    fn ways_have_the_indexes_that_they_name() {
        let present = [
            doc! { "v": 2, "name": "_id_", "key": { "_id": 1 } },
            doc! { "v": 2, "name": "a", "key": { "ts": 1, "device": 1 }, "expireAfterSeconds": 5 },
        ];
        assert_eq!(
            indexes(&Way::Present, &present),
            [doc! { "name": "a", "key": { "ts": 1, "device": 1 } }]
        );
        let turned = Way::Index {
            keys: doc! { "device": 1, "ts": 1 },
            replaces: Some(doc! { "ts": 1, "device": 1 }),
        };
        assert_eq!(
            indexes(&turned, &present),
            [doc! { "key": { "device": 1, "ts": 1 }, "name": NEW_INDEX }]
        );
        let order = Way::Order {
            keys: doc! { "ts": 1 },
        };
        assert_eq!(indexes(&order, &present).len(), 1);
    }
}
