//! `bench` between its requests: what it waits for, empties, compares and says on MongoDB's own servers.

use std::process::Stdio;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_run::RunDirectory;
use serde_json::Value;

use crate::mongod::Mongod;
use crate::running::{Running, own, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, machine, shared_machine, until};

fn queries(server: &Running) -> i64 {
    let status = server.command("admin", doc! { "serverStatus": 1 });
    let count = status.get_document("opcounters").unwrap().get("query");
    let count = count.unwrap();
    count.as_i64().or(count.as_i32().map(i64::from)).unwrap()
}

/// The margin before a build was the time of the checkpoint before its other load. On a machine with other work that load
/// may be behind its rate, which makes the run invalid.
#[test]
fn an_index_build_begins_when_its_other_load_has_begun() {
    const MARGIN: Duration = Duration::from_secs(1);
    let _machine = machine();
    let bench = Bench::new();
    let server = shared(Topology::Standalone);
    let mut command = bench.seekscope(&["bench", "index", server.uri(), "--kinds", "int"]);
    command.args(["--database", "bench_beside", "--docs", "5000", "--drop"]);
    command.args(["--foreground", "200/s", "--margin", "1s", "--out", "run"]);
    json(&mut command);
    let (_, document) = RunDirectory::open(&bench.path("run")).unwrap();
    let measured = document.bench.unwrap();
    let (step, build) = (&measured.steps[0], &measured.index_builds[0]);
    let beside_ns = build.started_ns.checked_sub(step.started_ns).unwrap();
    // The first second of load, then the margin.
    let least = MARGIN + Duration::from_millis(500);
    assert!(u128::from(beside_ns) >= least.as_nanos(), "{beside_ns} ns");
    assert!(build.index_bytes.is_some(), "{build:?}");
}

/// An interrupted emptying of a prepared collection left an entry that said that all of it is there.
#[test]
fn what_was_emptied_in_part_is_not_measured_on() {
    let bench = Bench::new();
    let server = shared(Topology::StandaloneWithPassword);
    let database = "bench_emptied";
    let create = doc! { "create": "usertable" };
    server.command(database, create);
    let actions = [
        "find",
        "insert",
        "update",
        "listCollections",
        "listIndexes",
        "collStats",
    ];
    let resource = doc! { "db": database, "collection": "" };
    let privileges = [doc! { "resource": resource, "actions": actions.to_vec() }];
    let role = doc! { "createRole": "keeps", "privileges": privileges.to_vec(), "roles": [] };
    server.command(database, role);
    for (name, role) in [("empties", "readWrite"), ("keeps", "keeps")] {
        let roles = [doc! { "role": role, "db": database }];
        let user = doc! { "createUser": name, "pwd": "p", "roles": roles.to_vec() };
        server.command(database, user);
    }
    let port = server.member("standalone").port();
    let run = |user: &str, more: &[&str]| {
        let uri = format!("mongodb://{user}:p@127.0.0.1:{port}/?authSource={database}");
        let mut command = bench.seekscope(&["bench", "ycsb", &uri, "--workload", "c"]);
        command.args(["--database", database, "--records", "100"]);
        command.args(["--operations", "100"]).args(more);
        command.output().unwrap()
    };
    assert!(run("empties", &[]).status.success());
    // The deletion fails, as it may be broken off by a signal.
    let refused = run("keeps", &["--phase", "run", "--drop"]);
    assert!(!refused.status.success());
    let entry = doc! { "find": "seekscope_owner" };
    let found = server.command(database, entry);
    let first = found.get_document("cursor").unwrap();
    let first: &Document = first.get_array("firstBatch").unwrap()[0]
        .as_document()
        .unwrap();
    assert!(!first.get_bool("loaded").unwrap(), "{first}");
    let measured = run("empties", &["--phase", "run"]);
    assert_fails(&measured, 2, &["was not loaded to its end"]);
    assert!(run("empties", &["--drop"]).status.success());
}

/// Two equal servers, each loaded once: their sizes differ, and their repetitions are no sample of that.
#[test]
fn sizes_of_equal_servers_are_not_claimed_to_differ() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (first, second) = (
        own(Topology::Standalone, &[]),
        own(Topology::Standalone, &[]),
    );
    let mut command = bench.seekscope(&["bench", "ycsb", first.uri(), "--vs", second.uri()]);
    command.args(["--workload", "c", "--records", "20000", "--for", "2s"]);
    command.args(["--pairs", "3"]);
    let document = json(&mut command);
    let compared = document["summary"]["variants"]["compared"].as_array();
    let sizes = compared.unwrap().iter().filter(|compared| {
        let measure = compared["measure"].as_str().unwrap();
        measure.starts_with("disk_bytes") && compared["work"] == "ycsb-c"
    });
    let sizes: Vec<&Value> = sizes.collect();
    assert_eq!(sizes.len(), 2, "{document:#}");
    for size in sizes {
        let against = &size["against_first"][0];
        assert!(against["ratio"].as_f64().unwrap() > 0.5, "{size:#}");
        assert!(against["comparison"].is_null(), "{size:#}");
    }
}

/// A server that was killed was said to lack a right.
#[test]
fn a_server_that_is_gone_lacks_no_right() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let mut command = bench.seekscope(&["bench", "ycsb", server.uri(), "--workload", "c"]);
    command.args(["--records", "1000", "--for", "15s", "--timeout", "1s"]);
    command.args(["--out", "run"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    until(|| queries(&server) > 2_000);
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    let (_, document) = RunDirectory::open(&bench.path("run")).unwrap();
    let unknown = document.limitations.iter();
    let unknown =
        unknown.filter(|told| told.why.contains("no checkpoint was taken after the work"));
    let unknown: Vec<_> = unknown.collect();
    assert!(!unknown.is_empty(), "{:?}", document.limitations);
    for told in unknown {
        assert!(!told.remedy.contains("hostManager"), "{told:?}");
    }
}

/// What was counted was the process of a secondary, and a load through one alone dropped the earlier data and then failed.
#[test]
fn the_primary_of_a_set_is_measured_whichever_member_is_named() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (primary, secondary, _) = Mongod::set_of_two(&bench);
    until(|| {
        let hello = primary.command("admin", doc! { "isMaster": 1 });
        hello.get_bool("ismaster").unwrap()
    });
    let status = primary.command("admin", doc! { "serverStatus": 1 });
    let pid = status.get_i64("pid").unwrap();
    let (first, other) = (secondary.address(), primary.address());
    for uri in [
        format!("mongodb://{first}/"),
        format!("mongodb://{first},{other}/"),
        format!("mongodb://{first},{other}/?replicaSet=rs"),
    ] {
        let mut load = bench.seekscope(&["bench", "ycsb", &uri, "--phase", "load"]);
        let document = json(load.args(["--records", "500"]));
        assert_eq!(document["target"]["pid"], pid, "{uri}");
        let count = primary.command("seekscope_bench", doc! { "count": "usertable" });
        assert_eq!(count.get_i32("n").unwrap(), 500);
    }
}

/// Deployments of different kinds get the same work, each as its connection string says.
#[test]
fn a_server_a_set_and_a_cluster_are_compared() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let alone = shared(Topology::Standalone);
    let set = shared(Topology::ReplicaSet { members: 3 });
    let cluster = shared(Topology::Sharded { shards: 2 });
    let majority = format!("{}&w=majority", set.uri());
    let mut command = bench.seekscope(&["bench", "ycsb", alone.uri(), "--workload", "a"]);
    command.args(["--vs", &majority, "--vs", cluster.uri(), "--pairs", "2"]);
    command.args([
        "--records",
        "400",
        "--operations",
        "600",
        "--database",
        "kinds",
    ]);
    let document = json(command.args(["--drop", "--out", "kinds"]));
    assert_valid("bench", &document);
    let steps = document["summary"]["steps"].as_array().unwrap();
    let runs = steps.iter().filter(|step| step["kind"] == "run");
    let mut variants: Vec<&str> = runs.map(|step| step["variant"].as_str().unwrap()).collect();
    // First, second, third, and back.
    let back: Vec<&str> = variants.iter().rev().copied().collect();
    assert_eq!(variants, back, "{document:#}");
    variants.sort_unstable();
    variants.dedup();
    assert_eq!(variants.len(), 3, "{variants:?}");
    assert_eq!(document["outcome"], "ok", "{document:#}");
    for running in [&alone, &set, &cluster] {
        let left = running.command("kinds", doc! { "listCollections": 1 });
        let batch = left.get_document("cursor").unwrap();
        assert!(batch.get_array("firstBatch").unwrap().is_empty(), "{left}");
    }
}
