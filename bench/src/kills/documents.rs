//! The collection of the trials: every byte of a document is a function of its `_id` and version, so
//! that a version that came back from the dead is told from the last one.

use anyhow::Result;
use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use seekscope_server::{Namespace, Server};
use seekscope_stats::SplitMix64;

pub const DATABASE: &str = "shop";
pub const COLLECTION: &str = "orders";
/// A time in the year 2100: the TTL index must not remove any document.
const EXPIRY_MS: i64 = 4_102_444_800_000;
const TEXT_MAX_BYTES: u64 = 1500;
const BATCH_DOCUMENTS: i64 = 500;

pub fn namespace() -> Result<Namespace> {
    Ok(Namespace::new(DATABASE, COLLECTION)?)
}

/// The fields that change with the version.
pub fn changing(id: i64, version: i64) -> RawDocumentBuf {
    let mut random = SplitMix64::new(id.cast_unsigned() << 24 ^ version.cast_unsigned());
    let length = usize::try_from(200 + random.below(TEXT_MAX_BYTES)).unwrap_or(200);
    let piece = format!("{:016x}", random.next_u64());
    let text: String = piece.chars().cycle().take(length).collect();
    let group = i64::try_from(random.below(50)).unwrap_or(0);
    rawdoc! { "v": version, "g": group, "t": text }
}

/// The whole document.
pub fn document(id: i64, version: i64) -> RawDocumentBuf {
    let mut whole = rawdoc! { "_id": id, "u": id, "e": DateTime::from_millis(EXPIRY_MS) };
    for (name, value) in changing(id, version).iter().flatten() {
        whole.append(name, value);
    }
    whole
}

/// Makes the collection with options and indexes that a copy could lose, and documents `0..count` in
/// version 0.
pub async fn create(server: &Server, count: i64) -> Result<()> {
    let create = doc! {
        "create": COLLECTION,
        "validator": { "v": { "$gte": 0 } },
        "validationLevel": "moderate",
        "collation": { "locale": "de", "strength": 2 },
    };
    server.command(DATABASE, create).await?;
    let collection = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(COLLECTION);
    let mut first = 0;
    while first < count {
        let last = (first + BATCH_DOCUMENTS).min(count);
        let batch = (first..last).map(|id| document(id, 0));
        collection.insert_many(batch).await?;
        first = last;
    }
    server.command(DATABASE, indexes()).await?;
    // Whatever else lies there must be left alone.
    let others = server.database(DATABASE).collection::<Document>("others");
    others
        .insert_many((0..100).map(|i| doc! { "_id": i }))
        .await?;
    Ok(())
}

fn indexes() -> Document {
    doc! {
        "createIndexes": COLLECTION,
        "indexes": [
            { "key": { "v": 1 }, "name": "v_1" },
            { "key": { "u": 1 }, "name": "unique", "unique": true },
            { "key": { "e": 1 }, "name": "expiry", "expireAfterSeconds": 3600 },
            { "key": { "g": 1, "v": -1 }, "name": "partial", "partialFilterExpression": { "g": { "$lt": 10 } } },
            { "key": { "absent": 1 }, "name": "sparse", "sparse": true },
        ],
    }
}
