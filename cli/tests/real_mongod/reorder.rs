//! `reorder`: the order that a server's eviction would leave, and collections whose indexes expire documents,
//! of which versions take different ones.

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::aged;
use crate::running::{Running, own, shared};
use crate::support::{Bench, assert_fails, json, machine};

const DOCUMENTS: u64 = 5_000;
const DOCUMENTS_AGED: u64 = 15_000;

fn create_index(running: &Running, collection: &str, index: Document) {
    let command = doc! { "createIndexes": collection, "indexes": [index] };
    running.command("reorder", command);
}

/// Names of the indexes, and what they say of expiring; as whole numbers, for `collMod` stores those.
fn indexes(running: &Running, collection: &str) -> Vec<(String, Option<i64>)> {
    let listed = running.command("reorder", doc! { "listIndexes": collection });
    let cursor = listed.get_document("cursor").unwrap();
    let listed = cursor.get_array("firstBatch").unwrap().iter();
    let described = listed.map(|index| {
        let index = index.as_document().unwrap();
        let seconds = index.get("expireAfterSeconds");
        let seconds = seconds.and_then(|s| s.as_i64().or_else(|| s.as_i32().map(i64::from)));
        (index.get_str("name").unwrap().to_owned(), seconds)
    });
    described.collect()
}

fn collections(running: &Running) -> String {
    running
        .command("reorder", doc! { "listCollections": 1, "nameOnly": true })
        .to_string()
}

#[test]
fn a_collection_that_expires_is_copied_to_the_end() {
    let _machine = machine();
    let bench = Bench::new();
    let running = shared(Topology::ReplicaSet { members: 1 });
    running.load("reorder.expiring", DOCUMENTS);
    let ttl = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 86_400 };
    create_index(&running, "expiring", ttl);
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.expiring"]);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    let document = json(&mut command);
    let done = &document["summary"]["done"];
    assert_eq!(done["documents"], DOCUMENTS, "{document:#}");
    let expected = [("_id_".into(), None), ("at_1".into(), Some(86_400))];
    assert_eq!(indexes(&running, "expiring"), expected);
    let collections = collections(&running);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// NaN, which 4.4 lets in and takes for 0 later.
#[test]
fn an_index_that_is_not_taken_again_is_told_before_the_copy() {
    // What the other test records is in the same database.
    let _machine = machine();
    let running = shared(Topology::ReplicaSet { members: 1 });
    if !running.version().starts_with("4.4.") {
        return;
    }
    let bench = Bench::new();
    running.load("reorder.odd", 100);
    let odd = doc! { "key": { "at": 1 }, "name": "odd_ttl", "expireAfterSeconds": f64::NAN };
    create_index(&running, "odd", odd);
    let mut command = bench.seekscope(&["reorder", running.uri(), "reorder.odd"]);
    command.args(["--apply", "--force", "--quiesced", "--watch", "0s"]);
    assert_fails(&command.output().unwrap(), 3, &["odd_ttl", "empty copy"]);
    let collections = collections(&running);
    assert!(!collections.contains("seekscope_reorder"), "{collections}");
}

/// Several threads evict pages of the copy at once, and by their leaves 70 to 87 % of the steps were
/// sequential under zlib.
#[test]
fn a_copy_made_in_peace_is_in_order() {
    let _machine = machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let zlib = doc! { "wiredTiger": { "configString": "block_compressor=zlib" } };
    server.command(
        aged::DATABASE,
        doc! { "create": "aged", "storageEngine": zlib },
    );
    aged::prepare(&server, DOCUMENTS_AGED);
    // What is in memory needs no order.
    aged::forget(&server);
    let mut command = bench.seekscope(&["reorder", server.uri(), "opinion.aged"]);
    command.args(["--apply", "--quiesced", "--watch", "0s"]);
    let document = json(&mut command);
    let share = |layout: &Value| layout["files"][0]["sequential_share"].as_f64().unwrap();
    let summary = &document["summary"];
    assert!(share(&summary["before"]) < 0.6, "{document:#}");
    assert!(share(&summary["after"]) > 0.95, "{document:#}");
    assert!(
        summary["done"]["checkpoints"].as_u64() > Some(3),
        "{document:#}"
    );
}
