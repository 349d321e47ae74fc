//! Checks that acknowledged writes are there afterwards: every document is counted, and a sample is read back
//! and compared.
//!
//! A workload states what it expects ([`ExpectedData`], one for each collection); [`verify`] asks the
//! primary, whatever members the connection string reads from.

use std::collections::HashMap;

use bson::raw::cstr;
use bson::{Bson, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::options::{CollectionOptions, ReadPreference, SelectionCriteria};
use seekscope_run::Verification;
use seekscope_server::{Namespace, Server};
use seekscope_stats::SplitMix64;

use crate::WorkloadError;

/// The most keys in one query.
const KEYS_PER_QUERY: usize = 500;

/// What a collection should hold after a run.
pub trait ExpectedData: Send + Sync {
    /// Returns its name.
    fn collection(&self) -> &str;

    /// Returns the number of documents that were acknowledged and must exist; `None` if the workload cannot
    /// know, in which case they are not counted.
    fn expected_count(&self) -> Option<u64>;

    /// Returns the `_id` of a document that must exist, drawn each time; `None` if there is none.
    fn sample(&self, random: &mut SplitMix64) -> Option<Bson>;

    /// Could the workload have left this document under that `_id`?
    fn matches(&self, id: &Bson, document: &RawDocument) -> bool;
}

/// How much is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerificationOptions {
    /// Documents to read back from each collection; those drawn twice are read once.
    pub samples: u64,
    /// Seed of the draws.
    pub seed: u64,
    /// Writes that failed in a way that leaves unknown if they were done.
    pub in_doubt: u64,
}

/// Counts the documents that acknowledged writes must have left, and reads a sample of them back. The figures
/// are sums over all collections.
pub async fn verify(
    server: &Server,
    database: &str,
    expected: &[&dyn ExpectedData],
    options: &VerificationOptions,
) -> Result<Verification, WorkloadError> {
    let mut found = Verification {
        in_doubt: options.in_doubt,
        ..Verification::default()
    };
    let mut random = SplitMix64::new(options.seed);
    for data in expected {
        let collection = primary(server, database, data.collection());
        if let Some(count) = data.expected_count() {
            found.add_count(count, count_exactly(server, &collection).await?);
        }
        let mut sample = draw(*data, options.samples, &mut random).into_iter();
        loop {
            let batch: HashMap<_, _> = sample.by_ref().take(KEYS_PER_QUERY).collect();
            if batch.is_empty() {
                break;
            }
            compare(server, &collection, *data, batch, &mut found).await?;
        }
    }
    Ok(found)
}

fn primary(server: &Server, database: &str, collection: &str) -> Collection<RawDocumentBuf> {
    let options = CollectionOptions::builder()
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .build();
    server
        .database(database)
        .collection_with_options(collection, options)
}

/// Counts the documents of a collection exactly.
pub async fn count_documents(server: &Server, namespace: &Namespace) -> Result<u64, WorkloadError> {
    let collection = primary(server, namespace.database(), namespace.collection());
    count_exactly(server, &collection).await
}

/// Counts by a scan of the `_id` index: the count that servers keep may be wrong after a crash, and includes
/// orphaned documents of sharded collections.
async fn count_exactly(
    server: &Server,
    collection: &Collection<RawDocumentBuf>,
) -> Result<u64, WorkloadError> {
    let all = doc! { "_id": { "$gt": Bson::MinKey } };
    let counted = collection.count_documents(all).await;
    Ok(counted.map_err(|error| server.error("count", &error))?)
}

/// Draws distinct keys, by what identifies them.
fn draw(data: &dyn ExpectedData, samples: u64, random: &mut SplitMix64) -> HashMap<Vec<u8>, Bson> {
    let keys = (0..samples).map_while(|_| data.sample(random));
    keys.map(|id| (identity_of(&id), id)).collect()
}

async fn compare(
    server: &Server,
    collection: &Collection<RawDocumentBuf>,
    data: &dyn ExpectedData,
    mut wanted: HashMap<Vec<u8>, Bson>,
    found: &mut Verification,
) -> Result<(), WorkloadError> {
    let failed = |error| server.error("find", &error);
    found.sampled += wanted.len() as u64;
    let keys: Vec<Bson> = wanted.values().cloned().collect();
    let mut cursor = collection
        .find(doc! { "_id": { "$in": keys } })
        .await
        .map_err(failed)?;
    while let Some(document) = cursor.try_next().await.map_err(failed)? {
        let id = document.get("_id").ok().flatten();
        if let Some(id) = id.and_then(|id| wanted.remove(&identity_of_raw(id)))
            && !data.matches(&id, &document)
        {
            found.different += 1;
        }
    }
    found.missing += wanted.len() as u64;
    Ok(())
}

fn identity_of(id: &Bson) -> Vec<u8> {
    let id = RawBson::try_from(id.clone());
    id.map_or_else(|_| Vec::new(), |id| identity_of_raw(id.as_raw_bson_ref()))
}

/// Returns a key's identity: servers treat equal numbers of different types as the same `_id`.
fn identity_of_raw(id: RawBsonRef<'_>) -> Vec<u8> {
    let id = match id {
        RawBsonRef::Int32(n) => RawBsonRef::Int64(n.into()),
        #[expect(clippy::cast_possible_truncation, reason = "checked just before")]
        RawBsonRef::Double(n) if n.fract() == 0.0 && n.abs() < 9e15 => RawBsonRef::Int64(n as i64),
        other => other,
    };
    let mut document = RawDocumentBuf::new();
    document.append(cstr!(""), id);
    document.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_the_same_key() {
        let five = identity_of(&Bson::Int64(5));
        assert_eq!(five, identity_of(&Bson::Int32(5)));
        assert_eq!(five, identity_of(&Bson::Double(5.0)));
        assert_ne!(five, identity_of(&Bson::Double(5.5)));
        assert_ne!(five, identity_of(&Bson::String("5".into())));
        assert_ne!(identity_of(&Bson::Null), identity_of(&Bson::MinKey));
        assert_ne!(identity_of(&Bson::Double(f64::NAN)), five);
    }
}
