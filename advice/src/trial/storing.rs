//! Stores the sample in one way.

use std::time::{Duration, Instant};

use bson::{Document, RawDocument, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::QueryShape;
use seekscope_server::{Server, storage_facts};

use super::counters;
use super::{DATABASE, SAMPLED, TrialOptions, pages};
use crate::AdviceError;
use crate::index_keys::is_served_by;
use crate::proposals::{keys_of, serves_some};
use crate::sample::store as store_batch;
use crate::way::{SAMPLES, Way, are_same};

const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 16 << 20;
/// Name of an index that a way needs and the target does not have.
const NEW_INDEX: &str = "advised";
/// The collection that is stored to see how well its documents compress.
const REHEARSAL: &str = "rehearsal";
/// The last page of a file is half full on average.
const LAST_PAGE: f64 = 0.5;
/// The time that fewer blocks take hardly differs from that of a scan without them.
const UNPACKED_MIN: u64 = 50;

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
    /// The same of a collection that has many of them, all but one of them full.
    pub page_bytes_of_many: f64,
    /// The size of its blocks in the file.
    pub block_bytes: f64,
    /// Whether a page of the whole holds as much as one of the target's file does.
    pub keeps_pages: bool,
    /// Time that it takes to make such a page of a block that is in the page cache, ns; `None` if too few were read.
    pub unpack_ns: Option<f64>,
    /// Time that storing took, s.
    pub load_s: f64,
}

/// Returns the options with which the collection of a way is created.
pub(super) fn creation(way: &Way, options: &TrialOptions) -> Document {
    match way {
        Way::Compressor { name } => pages::with_compressor(&options.create, name),
        _ => options.create.clone(),
    }
}

/// Creates the collection with its indexes and pages of at most this many bytes, and stores the sample. Returns the
/// number of documents of the sample and the seconds that it took.
pub(super) async fn store(
    server: &Server,
    collection: &str,
    way: &Way,
    options: &TrialOptions,
    page_bytes: f64,
) -> Result<(u64, f64), AdviceError> {
    let file = pages::with_pages(&creation(way, options), page_bytes);
    create(server, collection, file).await?;
    let indexes = indexes(way, &options.indexes);
    if !indexes.is_empty() {
        let command = doc! { "createIndexes": collection, "indexes": indexes };
        server.command(DATABASE, command).await?;
    }
    fill(server, collection, way).await
}

async fn create(server: &Server, collection: &str, file: Document) -> Result<(), AdviceError> {
    let mut create = doc! { "create": collection };
    create.extend(file);
    server.command(DATABASE, create).await?;
    Ok(())
}

/// Returns how many bytes of blocks a byte of documents takes that are stored in a way; `None` if its blocks are not
/// compressed.
pub(super) async fn compressed(
    server: &Server,
    way: &Way,
    options: &TrialOptions,
) -> Result<Option<f64>, AdviceError> {
    let file = creation(way, options);
    if pages::compressor(&file).is_empty() {
        return Ok(None);
    }
    let file = pages::with_pages(&file, pages::to_see(&file));
    create(server, REHEARSAL, file).await?;
    fill(server, REHEARSAL, way).await?;
    server.command("admin", doc! { "fsync": 1 }).await?;
    let facts = storage_facts(server, DATABASE, &[REHEARSAL]).await?;
    let blocks = counters::read(server, DATABASE, REHEARSAL).await?;
    server.command(DATABASE, doc! { "drop": REHEARSAL }).await?;
    Ok(Some(
        blocks.file_bytes as f64 / facts.data_bytes.max(1) as f64,
    ))
}

async fn fill(server: &Server, collection: &str, way: &Way) -> Result<(u64, f64), AdviceError> {
    let failed = |error| server.error("aggregate", &error);
    // Not decoded: texts that are no UTF-8 are stored as they are.
    let from = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(SAMPLED);
    let to = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(collection);
    let sorted = |stages| {
        let sorted = from.aggregate(stages).allow_disk_use(true);
        sorted.with_type::<RawDocumentBuf>()
    };
    let mut cursor = match way {
        // The newest was stored first.
        Way::Present
        | Way::Index { .. }
        | Way::Indexes { .. }
        | Way::Compressor { .. }
        | Way::GrowingId => {
            let newest_last = from.find(doc! {}).sort(doc! { "$natural": -1 });
            newest_last.projection(way.projection()).await
        }
        Way::Order { keys, .. } => sorted(vec![doc! { "$sort": keys.clone() }]).await,
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
            sampled += match way {
                Way::Buckets { .. } => samples_in(&document),
                _ => 1,
            };
            bytes += document.as_bytes().len();
            batch.push(document);
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

/// Returns the number of documents that a bucket holds.
fn samples_in(bucket: &RawDocument) -> u64 {
    let samples = bucket.get_array(SAMPLES);
    samples.map_or(0, |samples| samples.into_iter().count() as u64)
}

/// Returns the specifications of the indexes that a way has.
fn indexes(way: &Way, present: &[Document]) -> Vec<Document> {
    let keys = way.keys();
    let new = keys.iter().enumerate().map(|(number, keys)| {
        let name = match number {
            0 => NEW_INDEX.into(),
            _ => format!("{NEW_INDEX} {number}"),
        };
        doc! { "key": keys.clone(), "name": name }
    });
    match way {
        Way::Buckets { .. } => new.collect(),
        _ if !way.creates_index() => kept(present, &[]),
        _ => {
            let old = match way {
                Way::Index { replaces, .. } => replaces.as_ref(),
                _ => None,
            };
            let replaced: Vec<&Document> = old.into_iter().chain(&keys).collect();
            kept(present, &replaced).into_iter().chain(new).collect()
        }
    }
}

/// Returns whether the server may plan queries of one shape differently, since an index serves some of them only: it leaves
/// out documents, or has no keys for some values.
pub(super) fn plans_vary(way: &Way, present: &[Document]) -> bool {
    let is_wildcard = |index: &Document| {
        keys_of(index).is_some_and(|keys| keys.keys().any(|key| key.ends_with("$**")))
    };
    indexes(way, present)
        .iter()
        .any(|index| serves_some(index) || is_wildcard(index))
}

/// Returns the name of an index that a way has and that serves a shape as well as any can, if there is one.
pub(super) fn serving_index(way: &Way, present: &[Document], shape: &QueryShape) -> Option<String> {
    let indexes = indexes(way, present);
    let mut serving = indexes.iter().filter(|index| !serves_some(index));
    let serves = |index: &&Document| keys_of(index).is_some_and(|keys| is_served_by(shape, keys));
    let name = serving.find(serves)?.get_str("name");
    name.ok().map(Into::into)
}

/// Returns the indexes of the target but the one that is made anyway and those that are replaced: some servers do not
/// make an index of the same keys as one that serves some queries only. Documents do not expire in a trial.
fn kept(present: &[Document], replaced: &[&Document]) -> Vec<Document> {
    let is_kept = |index: &&Document| {
        index.get_str("name").is_ok_and(|name| name != "_id_")
            && keys_of(index)
                .is_some_and(|keys| !replaced.iter().any(|other| are_same(keys, other)))
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

/// Returns the stages that join documents in buckets, in the order in which the buckets come into being. The script of
/// the report has the same ones, so that what was measured is what the script makes.
fn bucket_pipeline(keys: &[String], time: &str, span_ms: i64) -> Vec<Document> {
    // $mod of a date before 1970 is negative.
    let number = doc! { "$divide": [{ "$toLong": format!("${time}") }, span_ms] };
    let start = doc! { "$toDate": { "$multiply": [{ "$floor": number }, span_ms] } };
    let mut id = doc! { "start": start };
    let mut without = doc! { format!("{SAMPLES}._id"): 0 };
    let mut bucket = doc! { "_id": 0, time: "$_id.start", SAMPLES: 1 };
    for (number, key) in keys.iter().enumerate() {
        id.insert(format!("k{number}"), format!("${key}"));
        without.insert(format!("{SAMPLES}.{key}"), 0);
        bucket.insert(key, format!("$_id.k{number}"));
    }
    vec![
        doc! { "$sort": { time: 1 } },
        doc! { "$group": { "_id": id, SAMPLES: { "$push": "$$ROOT" } } },
        doc! { "$sort": { "_id": 1 } },
        // A bucket says once what its documents have in common.
        doc! { "$project": without },
        doc! { "$project": bucket },
    ]
}

/// Returns the sizes of what was stored, after a restart with nothing cached.
pub(super) async fn size(
    server: &Server,
    collection: &str,
    (sampled, load_s): (u64, f64),
) -> Result<Stored, AdviceError> {
    let facts = storage_facts(server, DATABASE, &[collection]).await?;
    let before = counters::read(server, DATABASE, collection).await?;
    scan(server, collection).await?;
    let after = counters::read(server, DATABASE, collection).await?;
    let leaves = after.collection.saturating_sub(before.collection);
    let read_bytes = after
        .collection_bytes
        .saturating_sub(before.collection_bytes);
    let full = match leaves {
        0 | 1 => 1.0,
        leaves => leaves as f64 - LAST_PAGE,
    };
    Ok(Stored {
        sampled,
        documents: facts.documents,
        bytes: facts.storage_bytes.saturating_add(facts.index_bytes),
        leaves,
        page_bytes: read_bytes as f64 / leaves.max(1) as f64,
        page_bytes_of_many: read_bytes as f64 / full,
        block_bytes: after.file_bytes as f64 / full,
        keeps_pages: false,
        unpack_ns: None,
        load_s,
    })
}

/// Makes the server read everything and find nothing. Returns the time that it took.
async fn scan(server: &Server, collection: &str) -> Result<Duration, AdviceError> {
    let begun = Instant::now();
    let scan = doc! { "find": collection, "filter": { "no field of this name": 1 }, "hint": { "$natural": 1 } };
    server.command(DATABASE, scan).await?;
    Ok(begun.elapsed())
}

/// Returns the time that the server, which has been started anew, takes to make a page of a block that is in the page
/// cache, ns per byte of the page: by how much the first scan takes longer than the next one. `None` if there are too few
/// blocks.
pub(super) async fn unpack_ns_per_byte(
    server: &Server,
    collection: &str,
    stored: &Stored,
) -> Result<Option<f64>, AdviceError> {
    if stored.leaves < UNPACKED_MIN {
        return Ok(None);
    }
    let opened = doc! { "find": collection, "limit": 1 };
    server.command(DATABASE, opened).await?;
    let first = scan(server, collection).await?;
    let next = scan(server, collection).await?;
    let more = first.saturating_sub(next);
    let read_bytes = stored.leaves as f64 * stored.page_bytes;
    Ok(Some(more.as_secs_f64() * 1e9 / read_bytes.max(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::told;

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
            covers: false,
        };
        assert_eq!(
            indexes(&turned, &present),
            [doc! { "key": { "device": 1, "ts": 1 }, "name": NEW_INDEX }]
        );
        let order = |keys: Document, creates_index| Way::Order {
            keys,
            creates_index,
        };
        assert_eq!(indexes(&order(doc! { "ts": 1 }, false), &present).len(), 1);
        let partial = [doc! { "name": "a", "key": { "ts": 1 }, "sparse": true }];
        assert_eq!(
            indexes(&order(doc! { "ts": 1 }, true), &partial),
            [doc! { "key": { "ts": 1 }, "name": NEW_INDEX }]
        );
    }

    #[test]
    fn the_index_that_serves_best_is_known_by_name() {
        let by_device = || doc! { "name": "d", "key": { "device": 1 } };
        let shape = told(r#"{"device": "?", "ts": {"$gte": "?"}}"#).unwrap();
        let of = |way: &Way, indexes: &[Document]| serving_index(way, indexes, &shape);
        let longer = Way::Index {
            keys: doc! { "device": 1, "ts": 1 },
            replaces: None,
            covers: false,
        };
        assert_eq!(of(&Way::Present, &[by_device()]), None);
        assert_eq!(of(&longer, &[by_device()]), Some(NEW_INDEX.into()));
        let both = |key| doc! { "name": "b", "key": { "device": 1, "ts": 1 }, key: true };
        assert_eq!(
            of(&Way::Present, &[by_device(), both("unique")]),
            Some("b".into())
        );
        assert_eq!(of(&Way::Present, &[by_device(), both("hidden")]), None);
    }

    #[test]
    fn plans_vary_where_an_index_serves_some_queries_only() {
        let index = |keys: Document, options: Document| {
            let mut index = doc! { "name": "a", "key": keys };
            index.extend(options);
            [index]
        };
        let status = || doc! { "status": 1 };
        for plain in [doc! {}, doc! { "unique": true }, doc! { "sparse": false }] {
            assert!(!plans_vary(&Way::Present, &index(status(), plain)));
        }
        let filter = doc! { "amt": { "$gt": 9_000 } };
        for some in [
            index(status(), doc! { "partialFilterExpression": filter }),
            index(status(), doc! { "sparse": true }),
            index(status(), doc! { "collation": { "locale": "de" } }),
            index(doc! { "$**": 1 }, doc! {}),
            index(doc! { "a.$**": 1 }, doc! {}),
        ] {
            assert!(plans_vary(&Way::Present, &some), "{some:?}");
            let other = Way::Index {
                keys: doc! { "status": -1 },
                replaces: None,
                covers: false,
            };
            assert!(plans_vary(&other, &some), "it is there beside the new one");
            let buckets = Way::Buckets {
                keys: vec!["status".into()],
                time: "ts".into(),
                span_ms: 100,
            };
            assert!(!plans_vary(&buckets, &some));
        }
    }

    #[test]
    fn buckets_begin_below_their_dates_and_say_once_what_is_common() {
        let stages = bucket_pipeline(&["m.d".into()], "ts", 100);
        let text = format!("{stages:?}");
        assert!(text.contains("$floor") && !text.contains("$mod"), "{text}");
        assert_eq!(
            stages[3],
            doc! { "$project": { "samples._id": 0, "samples.m.d": 0 } }
        );
        assert_eq!(
            stages[4],
            doc! { "$project": { "_id": 0, "ts": "$_id.start", "samples": 1, "m.d": "$_id.k0" } }
        );
    }
}
