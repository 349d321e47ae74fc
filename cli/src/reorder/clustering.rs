//! Measures how far apart neighbours in an index are, by the record ids of some stretches of it.
//!
//! Record ids order a collection's file, so a document's position in the range of ids is its position among the
//! leaves. Only the index is read, if the server can do without the documents.

use std::collections::HashSet;

use anyhow::Result;
use mongodb::bson::{Bson, Document, doc};
use seekscope_run::Clustering;
use seekscope_server::{Namespace, Server};

/// Number of consecutive documents in a stretch, and number of stretches.
const STRETCH: i64 = 1000;
const STRETCHES: usize = 32;
/// Random documents for each stretch, whose places in the index spread the stretches evenly over it: parts of an index
/// differ much where a field is missing in many documents.
const PLACES_PER_STRETCH: usize = 8;

/// Samples the stretches. `keys` are all those of the index; `leaf_pages` and `documents` are the collection's. `None` if
/// the server does not reveal record ids, or they are not numbers (clustered collections).
pub async fn sample(
    server: &Server,
    namespace: &Namespace,
    keys: &Document,
    leaf_pages: u64,
    documents: u64,
) -> Result<Option<Clustering>> {
    let first = end_of_collection(server, namespace, 1).await?;
    let last = end_of_collection(server, namespace, -1).await?;
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(None);
    };
    let mut stretches = Vec::new();
    // Some servers instead number the documents of each reply.
    if last > first {
        for start in starts(server, namespace, keys).await? {
            stretches.push(record_ids(server, namespace, keys, &start).await?);
        }
    }
    let collection = Leaves {
        first,
        last,
        leaf_pages,
        documents,
    };
    Ok(collection.of_stretches(&stretches))
}

/// The collection's leaves; record ids are taken to be spread evenly over them.
struct Leaves {
    first: i64,
    last: i64,
    leaf_pages: u64,
    documents: u64,
}

impl Leaves {
    fn of_stretches(&self, stretches: &[Vec<i64>]) -> Option<Clustering> {
        let known = stretches.iter().filter(|ids| !ids.is_empty());
        let sampled: usize = known.clone().map(Vec::len).sum();
        if sampled == 0 || self.last <= self.first || self.leaf_pages == 0 || self.documents == 0 {
            return None;
        }
        let distinct = |ids: &Vec<i64>| ids.iter().map(|id| self.leaf(*id)).collect::<HashSet<_>>();
        let leaves: usize = known.clone().map(|ids| distinct(ids).len()).sum();
        let ordered = self.leaf_pages as f64 * 1000.0 / self.documents as f64;
        Some(Clustering {
            sampled_documents: sampled as u64,
            stretches: known.count() as u64,
            leaves_per_1000_now: leaves as f64 * 1000.0 / sampled as f64,
            leaves_per_1000_ordered: ordered.clamp(1.0, 1000.0),
        })
    }

    /// Returns the leaf's number, as the bits of a whole number.
    fn leaf(&self, record_id: i64) -> u64 {
        let share = (record_id - self.first) as f64 / (self.last - self.first) as f64;
        let number = share.clamp(0.0, 1.0) * (self.leaf_pages - 1) as f64;
        number.round().to_bits()
    }
}

/// Returns the smallest (`direction` 1) or largest (-1) record id.
async fn end_of_collection(
    server: &Server,
    namespace: &Namespace,
    direction: i32,
) -> Result<Option<i64>> {
    let command = doc! {
        "find": namespace.collection(), "sort": { "$natural": direction }, "limit": 1,
        "projection": { "_id": 1 }, "showRecordId": true,
    };
    let found = first_batch(server, namespace, command).await?;
    Ok(found.first().and_then(record_id))
}

/// Returns the key values of documents that are about as far apart in the index.
async fn starts(server: &Server, namespace: &Namespace, keys: &Document) -> Result<Vec<Document>> {
    let places = i32::try_from(STRETCHES * PLACES_PER_STRETCH).unwrap_or(i32::MAX);
    let pipeline = vec![
        doc! { "$sample": { "size": places } },
        doc! { "$project": projection(keys) },
        doc! { "$sort": keys },
    ];
    let command = doc! {
        "aggregate": namespace.collection(), "pipeline": pipeline, "cursor": { "batchSize": places },
    };
    let found = first_batch(server, namespace, command).await?;
    let middles = evenly_spread(&found).into_iter();
    Ok(middles.map(|document| key_of(document, keys)).collect())
}

/// Returns the middle one of each of as many equal parts as there are stretches, or all if there are fewer.
fn evenly_spread<T>(sorted: &[T]) -> Vec<&T> {
    let parts = sorted.len().min(STRETCHES);
    let middle = |part: usize| sorted.get((2 * part + 1) * sorted.len() / (2 * parts));
    (0..parts).filter_map(middle).collect()
}

/// Returns a projection to the keys.
fn projection(keys: &Document) -> Document {
    let mut projection: Document = keys
        .keys()
        .map(|path| (path.clone(), Bson::Int32(1)))
        .collect();
    if !projection.contains_key("_id") {
        projection.insert("_id", 0);
    }
    projection
}

/// Returns the values that an index on `keys` has for a document; null for a missing field.
fn key_of(document: &Document, keys: &Document) -> Document {
    let value = |path: &String| {
        let mut parts = path.split('.');
        let first = document.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.as_document()?.get(part))
    };
    let with_value = |path: &String| (path.clone(), value(path).cloned().unwrap_or(Bson::Null));
    keys.keys().map(with_value).collect()
}

/// Returns the record ids of the documents that follow `start` in the index.
async fn record_ids(
    server: &Server,
    namespace: &Namespace,
    keys: &Document,
    start: &Document,
) -> Result<Vec<i64>> {
    let command = doc! {
        "find": namespace.collection(), "hint": keys, "min": start, "limit": STRETCH,
        "batchSize": STRETCH, "projection": projection(keys), "showRecordId": true,
    };
    let found = first_batch(server, namespace, command).await?;
    Ok(found.iter().filter_map(record_id).collect())
}

fn record_id(document: &Document) -> Option<i64> {
    match document.get("$recordId")? {
        Bson::Int64(id) => Some(*id),
        Bson::Int32(id) => Some(i64::from(*id)),
        _ => None,
    }
}

async fn first_batch(
    server: &Server,
    namespace: &Namespace,
    command: Document,
) -> Result<Vec<Document>> {
    let reply = server.command(namespace.database(), command).await?;
    Ok(seekscope_server::first_batch(&reply).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_side_by_side_share_leaves_and_spread_ones_do_not() {
        let leaves = Leaves {
            first: 1,
            last: 100_001,
            leaf_pages: 2001,
            documents: 100_001,
        };
        let of = |step: i64| {
            let ids = (0..1000).map(|n| 1 + n * step).collect();
            leaves.of_stretches(&[ids, Vec::new()]).unwrap()
        };
        let (close, spread) = (of(1), of(100));
        assert_eq!((close.stretches, close.sampled_documents), (1, 1000));
        assert_eq!(close.leaves_per_1000_now, 21.0);
        assert_eq!(spread.leaves_per_1000_now, 1000.0);
        assert!((close.leaves_per_1000_ordered - 20.0).abs() < 0.1);
        assert_eq!(leaves.of_stretches(&[Vec::new()]), None);
    }

    #[test]
    fn stretches_begin_evenly_spread() {
        let sorted: Vec<usize> = (0..STRETCHES * PLACES_PER_STRETCH).collect();
        let starts = evenly_spread(&sorted);
        assert_eq!(starts.len(), STRETCHES);
        assert_eq!((starts[0], starts[1], starts[31]), (&4, &12, &252));
        assert_eq!(evenly_spread(&[7, 8, 9]), [&7, &8, &9]);
        assert_eq!(evenly_spread::<u8>(&[]), Vec::<&u8>::new());
    }

    #[test]
    fn keys_follow_the_pattern() {
        let document = doc! { "client": 7, "address": { "town": "Bern" } };
        let key = |keys: Document| key_of(&document, &keys);
        assert_eq!(
            key(doc! { "address.town": 1, "client": -1, "none.at": 1 }),
            doc! { "address.town": "Bern", "client": 7, "none.at": null }
        );
    }
}
