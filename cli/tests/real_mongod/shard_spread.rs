//! What `doctor` says of data that is spread unevenly over the shards of a cluster.

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::running::{Running, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, until};

const UNEVEN: &str = "spread.uneven";
const EVEN: &str = "spread.even";
/// Of about 3 KiB.
const DOCUMENTS: u64 = 4_000;

/// A cluster that keeps chunks small and where they are, with a collection on one shard and another on both.
fn cluster() -> Running {
    let cluster = own(Topology::Sharded { shards: 2 }, &[]);
    cluster.command("admin", doc! { "balancerStop": 1 });
    let size =
        doc! { "q": { "_id": "chunksize" }, "u": { "$set": { "value": 1 } }, "upsert": true };
    cluster.command("config", doc! { "update": "settings", "updates": [size] });
    cluster.command("admin", doc! { "enableSharding": "spread" });
    for (namespace, key) in [
        (UNEVEN, doc! { "_id": 1 }),
        (EVEN, doc! { "_id": "hashed" }),
    ] {
        cluster.command("admin", doc! { "shardCollection": namespace, "key": key });
        cluster.load(namespace, DOCUMENTS);
    }
    cluster.command("admin", doc! { "fsync": 1 });
    cluster
}

fn examined(bench: &Bench, cluster: &Running, length: &str, run: &str) -> Value {
    let mongos = cluster.member("mongos").uri();
    json(&mut bench.seekscope(&["doctor", &mongos, "--for", length, "--out", run]))
}

fn findings<'a>(document: &'a Value, id: &str) -> Vec<&'a Value> {
    let findings = document["findings"].as_array().unwrap().iter();
    findings.filter(|finding| finding["id"] == id).collect()
}

/// Moves the first chunk of a few documents to the other shard.
fn move_a_chunk(cluster: &Running) {
    let first = doc! { "find": "uneven", "sort": { "_id": 1 }, "skip": 100, "limit": 1 };
    let reply = cluster.command("spread", first);
    let cursor: &Document = reply.get_document("cursor").unwrap();
    let first = cursor.get_array("firstBatch").unwrap()[0].as_document();
    let middle = doc! { "_id": first.unwrap().get("_id").unwrap().clone() };
    cluster.command("admin", doc! { "split": UNEVEN, "middle": middle });
    let least = doc! { "_id": mongodb::bson::Bson::MinKey };
    let chunk = doc! { "find": "chunks", "filter": { "ns": UNEVEN, "min": least.clone() } };
    let reply = cluster.command("config", chunk);
    let chunks = reply.get_document("cursor").unwrap();
    let chunk = chunks.get_array("firstBatch").unwrap()[0].as_document();
    let shard = chunk.unwrap().get_str("shard").unwrap();
    let to = if shard == "shard-0" {
        "shard-1"
    } else {
        "shard-0"
    };
    cluster.command(
        "admin",
        doc! { "moveChunk": UNEVEN, "find": least, "to": to },
    );
}

#[test]
fn a_shard_with_too_much_of_a_collection_is_named_and_chunks_that_move_are_counted() {
    let _machine = machine();
    let bench = Bench::new();
    let cluster = cluster();
    let document = std::thread::scope(|scope| {
        let examining = scope.spawn(|| examined(&bench, &cluster, "12s", "run"));
        // The members' runs begin when the router has been asked, or right before.
        until(|| bench.path("run/member-1/io.spool").exists());
        std::thread::sleep(std::time::Duration::from_secs(1));
        move_a_chunk(&cluster);
        examining.join().unwrap()
    });
    assert_valid("doctor", &document);
    let cluster_record = &document["examination"]["cluster"];
    assert_eq!(cluster_record["moved_chunks"], 1, "{cluster_record:#}");
    assert_eq!(cluster_record["balancer_on"], false);
    assert_eq!(cluster_record["chunk_bytes"], 1 << 20);
    let collections = cluster_record["collections"].as_array().unwrap();
    for collection in collections {
        let shards = collection["shards"].as_array().unwrap().iter();
        let documents: u64 = shards.map(|s| s["documents"].as_u64().unwrap()).sum();
        assert_eq!(documents, DOCUMENTS, "{collection:#}");
    }
    assert_eq!(collections.len(), 2, "{cluster_record:#}");

    let uneven = findings(&document, "shards.uneven");
    let [uneven] = uneven.as_slice() else {
        panic!("{uneven:#?}");
    };
    assert_eq!(uneven["subject"], UNEVEN, "{uneven:#}");
    let said = uneven["evidence"].to_string();
    assert!(said.contains("balancer is off"), "{said}");
    assert_eq!(findings(&document, "shards.moving").len(), 1);

    let shards = document["summary"]["answers"]["shards"].as_array().unwrap();
    let shares = shards
        .iter()
        .map(|shard| shard["disk_share"].as_f64().unwrap());
    let sum: f64 = shares.sum();
    assert!((sum - 1.0).abs() < 1e-9, "{shards:#?}");
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("ONE CHUNK WAS MOVED between shards during the observation"));

    // With chunks of the usual size this is not worth a move.
    let usual = doc! { "q": { "_id": "chunksize" }, "limit": 1 };
    cluster.command("config", doc! { "delete": "settings", "deletes": [usual] });
    let document = examined(&bench, &cluster, "3s", "later");
    assert!(findings(&document, "shards.uneven").is_empty());
    assert!(findings(&document, "shards.moving").is_empty());
    assert_eq!(document["examination"]["cluster"]["moved_chunks"], 0);
}
