//! What it takes to add a document in each way: some of the sample are set aside before anything is stored, and added to
//! each way one by one, as an application would.

use std::time::Instant;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_run::units::{nanoseconds, whole};
use seekscope_server::Server;
use seekscope_stats::quantile_sorted;

use super::{DATABASE, SAMPLED};
use crate::AdviceError;
use crate::values::{date_ms, decoded, value_at};
use crate::way::{SAMPLES, Way};

/// The newest documents of the sample, from the newest one on.
const ARRIVING: &str = "arriving";
/// Share of the sample that is set aside, and the most and the fewest documents that are.
const SHARE: f64 = 0.05;
const DOCUMENTS_MAX: u64 = 500;
const DOCUMENTS_MIN: u64 = 60;
/// The quantile of quick ones.
const QUICK: f64 = 0.1;
/// Share of an index's leaves that documents may hit.
const LEAVES_HIT_MAX: f64 = 0.5;
/// Fewer documents do not tell how they are spread.
const SPREAD_MIN: usize = 50;

/// Sets the newest documents of the sample aside.
pub(super) async fn set_aside(server: &Server, sampled: u64) -> Result<(), AdviceError> {
    let count = whole(sampled as f64 * SHARE).min(DOCUMENTS_MAX);
    if count < DOCUMENTS_MIN {
        return Ok(());
    }
    let limit = i64::try_from(count).unwrap_or(i64::MAX);
    let pipeline = vec![doc! { "$limit": limit }, doc! { "$out": ARRIVING }];
    let copy = doc! { "aggregate": SAMPLED, "pipeline": pipeline, "cursor": {}, "hint": { "$natural": 1 } };
    server.command(DATABASE, copy).await?;
    let ids = arriving(server, &Way::Present).await?;
    let ids = ids.iter().filter_map(|raw| decoded(raw)?.remove("_id"));
    let moved = doc! { "q": { "_id": { "$in": ids.collect::<Vec<Bson>>() } }, "limit": 0 };
    server
        .command(DATABASE, doc! { "delete": SAMPLED, "deletes": [moved] })
        .await?;
    Ok(())
}

/// Returns what was set aside in three parts, the oldest document first: to bring into the cache what all need, to be
/// timed, and to be added with cold caches. They are empty if nothing was set aside.
pub(super) async fn parts(
    server: &Server,
    way: &Way,
) -> Result<[Vec<RawDocumentBuf>; 3], AdviceError> {
    let mut all = arriving(server, way).await?;
    all.reverse();
    let third = all.len() / 3;
    let cold = all.split_off(2 * third);
    let timed = all.split_off(third);
    Ok([all, timed, cold])
}

/// Returns how many of this many documents do not hit all leaves of an index, however they are spread; 0 where they
/// would be too few to tell documents that go to the end of one of many series from those that go anywhere.
pub(super) fn few_for(leaves: f64, documents: usize) -> usize {
    let few = usize::try_from(whole(leaves * LEAVES_HIT_MAX)).unwrap_or(usize::MAX);
    match few.min(documents) {
        few if few < SPREAD_MIN => 0,
        few => few,
    }
}

/// Adds documents one by one. Returns the time that a quick one of them takes, ns; `None` if there are none. Whatever else
/// runs on the host makes some slower, and none quicker.
pub(super) async fn add(
    server: &Server,
    collection: &str,
    way: &Way,
    documents: &[RawDocumentBuf],
) -> Result<Option<f64>, AdviceError> {
    let to = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(collection);
    let mut took_ns = Vec::new();
    for document in documents {
        let begun = Instant::now();
        match bucket_update(document, way) {
            Some((filter, update)) => {
                let update = to.update_one(filter, update).upsert(true).await;
                update.map_err(|error| server.error("update", &error))?;
            }
            None => {
                let inserted = to.insert_one(document).await;
                inserted.map_err(|error| server.error("insert", &error))?;
            }
        }
        took_ns.push(nanoseconds(begun.elapsed()));
    }
    took_ns.sort_unstable();
    Ok(quantile_sorted(&took_ns, QUICK).map(|ns| ns as f64))
}

/// Returns what was set aside as it is added, the newest document first.
async fn arriving(server: &Server, way: &Way) -> Result<Vec<RawDocumentBuf>, AdviceError> {
    let failed = |error| server.error("find", &error);
    let from = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(ARRIVING);
    let find = from.find(doc! {}).sort(doc! { "$natural": 1 });
    let found = find.projection(way.projection()).await;
    let found = found.map_err(failed)?.try_collect().await;
    Ok(found.map_err(failed)?)
}

/// Returns the update that adds a document to its bucket, if the way has buckets.
fn bucket_update(document: &RawDocumentBuf, way: &Way) -> Option<(Document, Document)> {
    let Way::Buckets {
        keys,
        time,
        span_ms,
    } = way
    else {
        return None;
    };
    let mut sample = decoded(document)?;
    let at_ms = date_ms(&value_at(&sample, time)?)?;
    let begins_ms = at_ms - at_ms.rem_euclid((*span_ms).max(1));
    let mut filter = doc! { time: DateTime::from_millis(begins_ms) };
    for key in keys {
        filter.insert(key, value_at(&sample, key)?);
    }
    // The bucket says once what its documents have in common.
    for common in keys.iter().map(String::as_str).chain(["_id"]) {
        sample.remove(common);
    }
    Some((filter, doc! { "$push": { SAMPLES: sample } }))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    #[test]
    fn few_documents_for_few_leaves() {
        let few = |leaves| few_for(leaves, 160);
        assert_eq!((few(90.0), few(120.0), few(1_000.0)), (0, 60, 160));
    }

    #[test]
    fn a_document_is_added_to_the_bucket_of_its_time() {
        let buckets = Way::Buckets {
            keys: vec!["m.d".into(), "kind".into()],
            time: "ts".into(),
            span_ms: 100,
        };
        let at = DateTime::from_millis;
        let document = rawdoc! { "_id": 1, "m": { "d": 7 }, "kind": "x", "ts": at(-50), "v": 5 };
        let (filter, update) = bucket_update(&document, &buckets).unwrap();
        assert_eq!(filter, doc! { "ts": at(-100), "m.d": 7, "kind": "x" });
        let pushed = doc! { "m": { "d": 7 }, "ts": at(-50), "v": 5 };
        assert_eq!(update, doc! { "$push": { SAMPLES: pushed } });
        assert_eq!(bucket_update(&document, &Way::Present), None);
    }
}
