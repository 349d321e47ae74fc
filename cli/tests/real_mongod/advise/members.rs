//! Servers that do not take the writes that are advised: a shard of a cluster, a secondary.

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_server::LocalServer;
use serde_json::Value;

use super::{DATABASE, text};
use crate::running::{Running, programs, shared};
use crate::support::{Bench, assert_fails, json, shared_machine};

const DOCUMENTS: i64 = 20_000;
const CUSTOMERS: i64 = 400;
const QUERY: &str = r#"{"customer": "?"}"#;

fn insert(running: &Running, collection: &str, copies: i32) {
    let numbers: Vec<i64> = (0..DOCUMENTS).collect();
    let inserts = numbers.chunks(1_000).map(|batch| {
        let document =
            |n: &i64| doc! { "_id": *n, "customer": (*n * 7) % CUSTOMERS, "text": text(*n, 300) };
        let documents: Vec<Document> = batch.iter().map(document).collect();
        doc! { "insert": collection, "documents": documents, "writeConcern": { "w": copies } }
    });
    running.commands(DATABASE, inserts);
}

/// What `advise` says of the collection as one server has it: the whole, and the commands that it prints.
fn advised(bench: &Bench, member: &LocalServer, collection: &str) -> (Value, String) {
    let namespace = format!("{DATABASE}.{collection}");
    let uri = format!(
        "mongodb://127.0.0.1:{}/?directConnection=true",
        member.port()
    );
    let arguments = ["advise", &uri, &namespace, "--query", QUERY, "--out", "run"];
    let mut asking = bench.seekscope(&arguments);
    let document = json(asking.arg("--server-binary").arg(&programs().mongod.path));
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    (document, String::from_utf8(shown.stdout).unwrap())
}

#[test]
fn an_index_of_a_sharded_collection_is_made_through_a_router() {
    let _machine = shared_machine();
    let cluster = shared(Topology::Sharded { shards: 2 });
    cluster.command("admin", doc! { "enableSharding": DATABASE });
    let namespace = format!("{DATABASE}.spread");
    let key = doc! { "_id": "hashed" };
    cluster.command("admin", doc! { "shardCollection": &namespace, "key": key });
    insert(&cluster, "spread", 1);
    let bench = Bench::new();
    let (document, shown) = advised(&bench, cluster.member("shard-0"), "spread");
    let ways = document["summary"]["ways"].as_array().unwrap();
    let kinds: Vec<&str> = ways.iter().filter_map(|way| way["kind"].as_str()).collect();
    assert_eq!(kinds, ["present", "index"], "no copy could take its place");
    assert!(
        shown.contains("mongosh mongodb://MONGOS/ --eval"),
        "{shown}"
    );
    assert!(shown.contains("through a mongos"), "{shown}");
    let mongos = cluster.member("mongos").uri();
    let routed = ["advise", &mongos, &namespace, "--query", QUERY];
    let output = bench.seekscope(&routed).output().unwrap();
    assert_fails(
        &output,
        3,
        &["it is sharded: ask a server of one of its shards"],
    );
    cluster.command(DATABASE, doc! { "drop": "spread" });
}

#[test]
fn an_index_for_queries_of_a_secondary_is_made_at_the_primary() {
    let _machine = shared_machine();
    let set = shared(Topology::ReplicaSet { members: 3 });
    insert(&set, "copied", 3);
    let status = set.command("admin", doc! { "replSetGetStatus": 1 });
    let state = |wanted: &str| {
        let mut members = status.get_array("members").unwrap().iter();
        let member = members.find_map(|member| {
            let member = member.as_document().unwrap();
            (member.get_str("stateStr").ok() == Some(wanted))
                .then(|| member.get_str("name").unwrap())
        });
        member.unwrap().to_string()
    };
    let (primary, secondary) = (state("PRIMARY"), state("SECONDARY"));
    let is_it = |name: &&&str| secondary.ends_with(&format!(":{}", set.member(name).port()));
    let members = set.members();
    let member = set.member(members.iter().find(is_it).unwrap());
    let bench = Bench::new();
    let (_, shown) = advised(&bench, member, "copied");
    let at_primary = format!("mongosh 'mongodb://{primary}/?directConnection=true' --eval");
    assert!(shown.contains(&at_primary), "{shown}");
    set.command(DATABASE, doc! { "drop": "copied" });
}
