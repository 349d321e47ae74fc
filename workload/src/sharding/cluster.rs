//! Asks a router how collections are sharded and where their chunks and documents are. All questions only read.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};
use seekscope_server::{Namespace, SHARDS_MAX, Server, ServerError, first_batch, float, number};

/// The database in which a cluster keeps its own records.
const CONFIG: &str = "config";

/// A sharded collection, as the cluster has recorded it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharded {
    /// The pattern of its shard key.
    pub key: Document,
    /// Chunks belong to the collection's name before MongoDB 5.0 and to this since.
    uuid: Option<Bson>,
}

/// Returns how a collection is sharded; `None` if it is not, or does not exist.
pub async fn sharded(
    server: &Server,
    namespace: &Namespace,
) -> Result<Option<Sharded>, ServerError> {
    // Before MongoDB 5.0 entries of dropped collections stay; since 8.0 some that are not sharded have one.
    let filter = doc! {
        "_id": namespace.to_string(),
        "dropped": { "$ne": true },
        "unsplittable": { "$ne": true },
    };
    let command = doc! { "find": "collections", "filter": filter, "limit": 1 };
    let reply = server.command_in_time(CONFIG, command).await?;
    let found = first_batch(&reply).next().and_then(|entry| {
        Some(Sharded {
            key: entry.get_document("key").ok()?.clone(),
            uuid: entry.get("uuid").cloned(),
        })
    });
    Ok(found)
}

/// Returns whether two patterns of a shard key mean the same: shells send `1.0` for `1`.
pub fn is_same_key(a: &Document, b: &Document) -> bool {
    let is_same = |a: &Bson, b: &Bson| a == b || (float(a).is_some() && float(a) == float(b));
    let mut pairs = a.iter().zip(b);
    a.len() == b.len() && pairs.all(|(a, b)| a.0 == b.0 && is_same(a.1, b.1))
}

/// Returns the number of chunks by shard; none if the collection is not sharded. A shard without chunks is not listed.
pub async fn chunks_by_shard(
    server: &Server,
    namespace: &Namespace,
) -> Result<BTreeMap<String, u64>, ServerError> {
    let Some(sharded) = sharded(server, namespace).await? else {
        return Ok(BTreeMap::new());
    };
    let pipeline = [
        doc! { "$match": of_collection(namespace, &sharded) },
        doc! { "$group": { "_id": "$shard", "count": { "$sum": 1_i64 } } },
    ];
    let command = doc! { "aggregate": "chunks", "pipeline": pipeline.to_vec(), "cursor": {} };
    let entries = server.documents_in_time(CONFIG, command, SHARDS_MAX);
    Ok(counts(&entries.await?, "_id"))
}

fn of_collection(namespace: &Namespace, sharded: &Sharded) -> Document {
    let by_name = doc! { "ns": namespace.to_string() };
    match &sharded.uuid {
        Some(uuid) => doc! { "$or": [by_name, { "uuid": uuid.clone() }] },
        None => by_name,
    }
}

/// Returns the number of documents by shard, as each shard counts them: copies that moves of chunks have left are
/// included. A shard without the collection is not listed.
pub async fn documents_by_shard(
    server: &Server,
    namespace: &Namespace,
) -> Result<BTreeMap<String, u64>, ServerError> {
    let stage = doc! { "$collStats": { "count": {} } };
    let command = doc! { "aggregate": namespace.collection(), "pipeline": [stage], "cursor": {} };
    let entries = server.documents_in_time(namespace.database(), command, SHARDS_MAX);
    Ok(counts(&entries.await?, "shard"))
}

/// Returns whether the balancer is on.
pub async fn balancer_on(server: &Server) -> Result<Option<bool>, ServerError> {
    let reply = server
        .command_in_time("admin", doc! { "balancerStatus": 1 })
        .await?;
    Ok(reply.get_str("mode").ok().map(|mode| mode == "full"))
}

/// Returns how many chunks of these collections were ever moved, as far back as the cluster's log reaches.
pub async fn moves(
    server: &Server,
    database: &str,
    collections: &[String],
) -> Result<Option<u64>, ServerError> {
    let names: Vec<String> = collections
        .iter()
        .map(|collection| format!("{database}.{collection}"))
        .collect();
    let query = doc! { "what": "moveChunk.commit", "ns": { "$in": names } };
    let command = doc! { "count": "changelog", "query": query };
    let reply = server.command_in_time(CONFIG, command).await?;
    Ok(reply.get("n").and_then(number))
}

/// Returns the field `count` of each document by its field `name`.
fn counts(entries: &[Document], name: &str) -> BTreeMap<String, u64> {
    let pair = |entry: &Document| {
        let name = entry.get_str(name).ok()?;
        Some((name.to_string(), entry.get("count").and_then(number)?))
    };
    entries.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_shells_and_ours_are_the_same() {
        let same = |a, b| is_same_key(&a, &b);
        assert!(same(doc! { "a": 1 }, doc! { "a": 1.0 }));
        assert!(same(doc! { "a": "hashed" }, doc! { "a": "hashed" }));
        for other in [
            doc! { "a": "hashed" },
            doc! { "b": 1 },
            doc! { "a": 1, "b": 1 },
            doc! { "a": -1 },
            doc! {},
        ] {
            assert!(!same(doc! { "a": 1 }, other.clone()), "{other}");
        }
    }

    #[test]
    fn hostile_replies_are_survived() {
        let entries = [
            doc! { "shard": "s1", "count": 5 },
            doc! { "shard": 7, "count": 5 },
            doc! { "shard": "s2", "count": -5 },
            doc! { "shard": "s3", "count": 5.0 },
            doc! {},
        ];
        assert_eq!(
            counts(&entries, "shard"),
            BTreeMap::from([("s1".into(), 5), ("s3".into(), 5)])
        );
    }
}
