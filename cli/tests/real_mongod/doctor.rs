//! `doctor URI` on every topology.

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;

use crate::running::shared;
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine};

const WATCHED: &str = "3s";
const DOCUMENTS: u64 = 2_000;

/// Examines it, and checks that the document is as promised.
fn examined(topology: Topology) -> serde_json::Value {
    let running = shared(topology);
    running.load("doctor.orders", DOCUMENTS);
    examined_at(running.uri())
}

fn examined_at(uri: &str) -> serde_json::Value {
    let _machine = machine();
    let bench = Bench::new();
    let arguments = ["doctor", uri, "--for", WATCHED, "--out", "run"];
    let document = json(&mut bench.seekscope(&arguments));
    assert_valid("doctor", &document);
    let run = std::fs::read_to_string(bench.path("run/run.json")).unwrap();
    assert!(!run.contains("correct horse") && !run.contains("correct%20"));
    document
}

#[test]
fn a_standalone_server() {
    let document = examined(Topology::Standalone);
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
}

#[test]
fn a_server_with_a_password() {
    let document = examined(Topology::StandaloneWithPassword);
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
}

#[test]
fn a_server_with_tls() {
    let document = examined(Topology::StandaloneWithTls);
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
}

#[test]
fn replica_sets() {
    for members in [1, 3] {
        let document = examined(Topology::ReplicaSet { members });
        assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
    }
}

#[test]
fn a_member_of_a_cluster() {
    let running = shared(Topology::Sharded { shards: 2 });
    examined_at(&running.member("shard-0").uri());
}

/// On a set the index is built on the primary, which is traced, and nothing of it stays.
#[test]
fn permitted_index_builds() {
    for topology in [Topology::Standalone, Topology::ReplicaSet { members: 3 }] {
        let running = shared(topology);
        running.load("doctor.built", DOCUMENTS);
        let _machine = machine();
        let bench = Bench::new();
        let keys = r#"{"s1": 1}"#;
        let arguments = [
            "doctor",
            running.uri(),
            "--collection",
            "doctor.built",
            "--index",
            keys,
            "--allow-index-build",
            "--out",
            "run",
        ];
        let document = json(&mut bench.seekscope(&arguments));
        assert_valid("doctor", &document);
        assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);
        let build = &document["summary"]["answers"]["index_builds"][0];
        assert_eq!(build["documents"], DOCUMENTS, "{topology:?}: {document:#}");
        assert!(
            document["summary"]["trace"].is_object(),
            "{topology:?}: {:#}",
            document["limitations"]
        );
        let reply = running.command("doctor", doc! { "listIndexes": "built" });
        let indexes = reply.get_document("cursor").unwrap();
        assert_eq!(indexes.get_array("firstBatch").unwrap().len(), 1, "{reply}");
    }
}
