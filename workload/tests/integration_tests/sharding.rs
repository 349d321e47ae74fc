//! What a router is asked about a collection. The records of a cluster are documents as others, so a server alone can
//! hold those of a cluster that is larger than any that could be started here.

use bson::{Document, doc};
use seekscope_server::cluster;

use crate::support::{Fixture, namespace};

/// More than the first batch of an answer has room for.
const SHARDS: usize = 150;

#[tokio::test]
async fn chunks_are_counted_on_every_shard() {
    let fixture = Fixture::start().await;
    let config = fixture.server.database("config");
    let entry = doc! { "_id": namespace().to_string(), "key": { "_id": "hashed" } };
    let collections = config.collection::<Document>("collections");
    collections.insert_one(entry).await.unwrap();
    let chunks = (0..2 * SHARDS).map(|number| {
        doc! { "_id": format!("c{number}"), "ns": namespace().to_string(), "shard": format!("s{}", number % SHARDS) }
    });
    let all = config.collection::<Document>("chunks");
    all.insert_many(chunks).await.unwrap();
    let found = cluster::chunks_by_shard(&fixture.server, &namespace()).await;
    let found = found.unwrap();
    assert_eq!(found.len(), SHARDS);
    assert!(found.values().all(|chunks| *chunks == 2), "{found:?}");
}
