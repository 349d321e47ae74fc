//! A cluster with more shards than the first batch of an answer has room for. Its mongos is scripted: a cluster of
//! that size cannot be started here.

use mongodb::bson::{Bson, Document, doc};
use seekscope_server::examination::{FoundDeployment, refuse_router};
use seekscope_server::{ProcFs, Server, storage_facts};

use crate::scripted_server::{hello, start};

const SHARDS: i32 = 150;
const FIRST_BATCH: usize = 101;
const CURSOR: i64 = 7;

fn answer(question: &Document) -> Document {
    let (command, value) = question.iter().next().unwrap();
    match command.as_str() {
        "hello" | "isMaster" | "ismaster" => {
            let mut hello = hello(21);
            hello.insert("msg", "isdbgrid");
            hello
        }
        "ping" => doc! { "ok": 1.0 },
        "listShards" => {
            // Whoever listens there is no member.
            let shard = |n: i32| {
                let host = format!("s{n}/127.0.0.1:{},127.0.0.1:{}", 2 * n + 1, 2 * n + 2);
                Bson::from(doc! { "_id": format!("s{n}"), "host": host })
            };
            let shards: Vec<Bson> = (0..SHARDS).map(shard).collect();
            doc! { "shards": shards, "ok": 1.0 }
        }
        "aggregate" => {
            let first = statistics().into_iter().take(FIRST_BATCH);
            batch("firstBatch", first.collect(), CURSOR)
        }
        "getMore" if *value == Bson::Int64(CURSOR) => {
            let rest = statistics().into_iter().skip(FIRST_BATCH);
            batch("nextBatch", rest.collect(), 0)
        }
        _ => {
            doc! { "ok": 0.0, "code": 59, "codeName": "CommandNotFound", "errmsg": "no such command" }
        }
    }
}

fn batch(name: &str, entries: Vec<Document>, cursor: i64) -> Document {
    let entries: Vec<Bson> = entries.into_iter().map(Bson::from).collect();
    doc! { "cursor": { name: entries, "id": cursor, "ns": "shop.orders" }, "ok": 1.0 }
}

/// Returns the statistics of each shard.
fn statistics() -> Vec<Document> {
    let of_shard = |shard: i32| {
        let stats = doc! { "count": 10, "size": 1_000, "storageSize": 4_096 };
        doc! { "shard": format!("s{shard}"), "storageStats": stats }
    };
    (0..SHARDS).map(of_shard).collect()
}

#[tokio::test]
async fn sizes_are_added_up_over_all_shards() {
    let server = Server::connect(&format!("mongodb://{}/", start(answer))).await;
    let facts = storage_facts(&server.unwrap(), "shop", &["orders"]).await;
    let facts = facts.unwrap();
    assert_eq!(
        (facts.documents, facts.data_bytes, facts.storage_bytes),
        (1_500, 150_000, 614_400)
    );
}

#[tokio::test]
async fn members_that_are_too_many_are_counted() {
    let uri = format!("mongodb://{}/", start(answer));
    let found = FoundDeployment::find(&uri, &ProcFs::host()).await.unwrap();
    assert_eq!(found.members.len(), 200);
    let missing = found.missing.iter();
    let told: Vec<&str> = missing.map(|missing| missing.what.as_str()).collect();
    assert_eq!(told, ["100 members of shards were left out"]);
    let router = Server::connect(&uri).await.unwrap();
    let refused = refuse_router(&router).await.unwrap_err().to_string();
    assert!(refused.ends_with(" and 288 more"), "{refused}");
}

#[tokio::test]
async fn no_more_is_taken_than_was_wanted() {
    let server = Server::connect(&format!("mongodb://{}/", start(answer))).await;
    let server = server.unwrap();
    let stats = doc! { "$collStats": { "storageStats": {} } };
    let command = doc! { "aggregate": "orders", "pipeline": [stats], "cursor": {} };
    for (most, expected) in [(0, 0), (5, 5), (120, 120), (1_000, 150)] {
        let found = server.documents("shop", command.clone(), most).await;
        assert_eq!(found.unwrap().len(), expected, "{most}");
    }
    let no_cursor = server.documents_in_time("admin", doc! { "ping": 1 }, 5);
    assert!(no_cursor.await.is_err());
}
