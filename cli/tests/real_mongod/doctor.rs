//! `doctor URI` on every topology.

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;

use crate::mongod::Mongod;
use crate::running::{own, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, shared_machine};

const WATCHED: &str = "3s";
const DOCUMENTS: u64 = 2_000;

/// Examines it, and checks that the document is as promised.
fn examined(topology: Topology) -> serde_json::Value {
    let _machine = shared_machine();
    let running = shared(topology);
    running.load("doctor.orders", DOCUMENTS);
    examined_at(running.uri())
}

fn examined_at(uri: &str) -> serde_json::Value {
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
    assert_eq!(document["target"]["has_user"], true);
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
    let _machine = shared_machine();
    let running = shared(Topology::Sharded { shards: 2 });
    examined_at(&running.member("shard-0").uri());
}

/// On a replica set, the index is built on the primary, which is traced, and nothing of it remains.
#[test]
fn permitted_index_builds() {
    let _machine = shared_machine();
    for topology in [Topology::Standalone, Topology::ReplicaSet { members: 3 }] {
        let running = shared(topology);
        running.load("doctor.built", DOCUMENTS);
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

#[test]
fn a_member_that_is_down_is_named() {
    let _machine = shared_machine();
    let running = own(Topology::ReplicaSet { members: 3 }, &[]);
    let down = running.member("member-2");
    let uri = down.uri();
    let address = uri.split(['/', '?']).nth(2).unwrap();
    // SAFETY: plain kill(2) on a server of this test.
    let killed = unsafe { libc::kill(i32::try_from(down.pid()).unwrap(), libc::SIGKILL) };
    assert_eq!(killed, 0);
    let others = ["member-0", "member-1"].map(|name| running.member(name).uri());
    let hosts = others
        .each_ref()
        .map(|uri| uri.split(['/', '?']).nth(2).unwrap());
    let set = running.command("admin", doc! { "hello": 1 });
    let set = set.get_str("setName").unwrap();
    let whole = format!("mongodb://{}/?replicaSet={set}", hosts.join(","));
    for uri in [&whole, &others[0]] {
        let document = examined_at(uri);
        let limitations = document["limitations"].to_string();
        let expected = format!("nothing is known of the member {address}");
        assert!(limitations.contains(&expected), "{limitations}");
    }
}

#[test]
fn a_collection_that_is_not_there_is_refused() {
    let running = shared(Topology::Standalone);
    let bench = Bench::new();
    let named = [
        "doctor",
        running.uri(),
        "--for",
        "1s",
        "--collection",
        "doctor.ordres",
    ];
    let output = bench.seekscope(&named).output().unwrap();
    assert_fails(&output, 2, &["there is no collection doctor.ordres"]);
    assert!(!bench.path("seekscope-runs").exists());
}

/// With one member of a set on this host, members that are down used to be named only under what was not measured.
#[test]
fn a_member_that_is_down_is_told_first() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (_alive, mut down, uri) = Mongod::set_of_two(&bench);
    down.end(libc::SIGKILL);
    let arguments = ["doctor", &uri, "--for", WATCHED, "--out", "run"];
    let document = json(&mut bench.seekscope(&arguments));
    let verdict = document["summary"]["verdict"].as_str().unwrap();
    let expected = format!("Of 2 members 1 could not be asked: {} (", down.address());
    assert!(verdict.starts_with(&expected), "{verdict}");
}
