//! `bench … --shard`: collections of its own, sharded and spread before the load, on a cluster of two shards.

use std::process::{Command, Stdio};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::running::{Running, own, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, machine, send, shared_machine, until};

const RECORDS: u64 = 8_000;
const OPERATIONS: u64 = 4_000;
const CHUNKS: u64 = 8;

fn cluster() -> std::sync::Arc<Running> {
    shared(Topology::Sharded { shards: 2 })
}

fn first_batch(reply: &Document) -> Vec<Document> {
    let batch = reply
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch");
    let batch = batch.unwrap().iter();
    batch
        .map(|entry| entry.as_document().unwrap().clone())
        .collect()
}

/// The cluster's entries of sharded collections in a database. Before MongoDB 5.0 those of dropped ones stay, marked.
fn sharded_in(cluster: &Running, database: &str) -> Vec<Document> {
    let names = doc! { "$regex": format!("^{database}\\.") };
    let filter = doc! { "_id": names, "dropped": { "$ne": true } };
    first_batch(&cluster.command("config", doc! { "find": "collections", "filter": filter }))
}

fn assert_nothing_left(cluster: &Running, database: &str) {
    assert_eq!(sharded_in(cluster, database), []);
    let listed = first_batch(&cluster.command(database, doc! { "listCollections": 1 }));
    assert_eq!(listed, []);
    // A shard could not be removed as long as it is the primary shard of such a database.
    let entry = doc! { "find": "databases", "filter": { "_id": database } };
    assert_eq!(first_batch(&cluster.command("config", entry)), []);
}

fn ycsb(bench: &Bench, uri: &str, database: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["bench", "ycsb", uri, "--database", database]);
    command.args(["--records", &RECORDS.to_string()]);
    command.args(["--operations", &OPERATIONS.to_string(), "--warm-up", "none"]);
    command.args(more);
    command
}

fn array<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document[name]
        .as_array()
        .unwrap_or_else(|| panic!("{name}: {document:#}"))
}

fn sum(all: &[Value], name: &str) -> u64 {
    all.iter().map(|one| one[name].as_u64().unwrap()).sum()
}

/// Documents by shard: the sum exactly, each share within this much of a half.
fn assert_spread(collection: &Value, documents: u64, tolerance: f64) {
    for name in ["expected", "documents"] {
        assert_eq!(collection[name], documents, "{collection:#}");
    }
    assert_eq!(collection["orphans"], 0, "{collection:#}");
    let shards = array(collection, "shards");
    assert_eq!(shards.len(), 2, "{collection:#}");
    assert_eq!(sum(shards, "documents"), documents);
    for shard in shards {
        let share = shard["share"].as_f64().unwrap();
        assert!((share - 0.5).abs() < tolerance, "{collection:#}");
    }
}

#[test]
fn documents_and_work_are_spread_over_the_shards() {
    // Times are compared, and on a busy host the cluster's own operations are more.
    let _machine = machine();
    let bench = Bench::new();
    // Everything that its shards do is counted.
    let cluster = own(Topology::Sharded { shards: 2 }, &[]);
    let database = "sharding_kinds";
    // One after the other in the same database: each load drops what the one before has left.
    for (kind, tolerance) in [("hashed", 0.06), ("ranged", 0.03)] {
        let chunks = CHUNKS.to_string();
        let options = ["--shard", kind, "--pre-split", &chunks, "--out", kind];
        let document = json(&mut ycsb(&bench, cluster.uri(), database, &options));
        assert_valid("bench", &document);
        let sharding = &document["summary"]["sharding"];
        assert_eq!(
            (&sharding["kind"], &sharding["key"]),
            (&kind.into(), &"_id".into())
        );
        assert_eq!(sharding["pre_split"], CHUNKS);
        let [collection] = array(sharding, "collections").as_slice() else {
            panic!("{sharding:#}");
        };
        assert_eq!(
            (&collection["name"], &collection["after"]),
            (&"usertable".into(), &"load".into())
        );
        assert_spread(collection, RECORDS, tolerance);
        for shard in array(collection, "shards") {
            assert_eq!(shard["chunks"], CHUNKS / 2, "{collection:#}");
        }
        let key = sharded_in(&cluster, database)[0]
            .get_document("key")
            .unwrap()
            .clone();
        assert_eq!(key.get_str("_id").is_ok(), kind == "hashed", "{key}");
        the_shards_did_the_work(&cluster, &document);
        the_router_adds_something(sharding);
        it_is_shown(&bench, kind);
    }
    // What was loaded sharded is found so, and dropped although it is sharded.
    let found = json(&mut ycsb(
        &bench,
        cluster.uri(),
        database,
        &["--phase", "run", "--shard", "ranged"],
    ));
    let collection = &found["summary"]["sharding"]["collections"][0];
    assert_eq!(
        (&collection["after"], &collection["documents"]),
        (&"".into(), &RECORDS.into())
    );
    let other = ["--phase", "run", "--shard", "hashed"];
    let other = ycsb(&bench, cluster.uri(), database, &other)
        .output()
        .unwrap();
    assert_fails(&other, 2, &["not sharded by", "hashed", "--phase load"]);
    json(&mut ycsb(
        &bench,
        cluster.uri(),
        database,
        &["--phase", "run", "--drop"],
    ));
    assert_nothing_left(&cluster, database);
}

/// Checks the shards' own counters, which the cluster itself hardly touches.
fn the_shards_did_the_work(cluster: &Running, document: &Value) {
    let few = 50;
    for step in array(&document["summary"], "steps") {
        let observed = &step["shards"];
        assert!(observed["balancer_on"].is_boolean(), "{observed:#}");
        assert_eq!(observed["moved_chunks"], 0, "{observed:#}");
        let shards = array(observed, "shards");
        assert_eq!(shards.len(), 2);
        let work = match step["kind"].as_str() {
            Some("load") => (sum(shards, "inserts"), RECORDS),
            _ => (sum(shards, "queries") + sum(shards, "updates"), OPERATIONS),
        };
        assert!(
            (work.1..work.1 + few).contains(&work.0),
            "{work:?} {observed:#}"
        );
        for shard in shards {
            let port = cluster.member(shard["shard"].as_str().unwrap()).port();
            let primary = shard["primary"].as_str().unwrap();
            assert!(primary.ends_with(&format!(":{port}")), "{shard:#}");
            assert!(shard["operations_per_s"].as_f64() > Some(1.0), "{shard:#}");
            // The server's own time for a write is between a microsecond and a second.
            let write_ns = shard["write_latency_ns"].as_f64().unwrap();
            assert!((1e3..1e9).contains(&write_ns), "{shard:#}");
        }
    }
}

/// Another hop cannot take less time, nor very much more.
fn the_router_adds_something(sharding: &Value) {
    let costs = array(sharding, "router");
    assert_eq!(costs.len(), 2, "{sharding:#}");
    for cost in costs {
        assert_eq!(cost["pairs"], 400, "{cost:#}");
        let figure = |name: &str| cost[name].as_f64().unwrap();
        // A busy machine delays single reads by far more than the router does: the interval must allow for a hop.
        let (low_ns, high_ns) = (figure("added_low_ns"), figure("added_high_ns"));
        assert!(low_ns < 1e8 && 1e3 < high_ns, "{cost:#}");
        assert!(
            low_ns < figure("added_ns") && figure("added_ns") < high_ns,
            "{cost:#}"
        );
    }
}

fn it_is_shown(bench: &Bench, run: &str) {
    let shown = bench.seekscope(&["report", run]).output().unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).replace('\n', " ");
    for words in [
        "by _id, after load",
        "shard-0",
        "shard-1",
        "share",
        "client, all",
        "The balancer was",
        // Or, on a busy machine, that it is too little to tell.
        "the mongos adds",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = std::fs::read_to_string(bench.path(run).join("report.html")).unwrap();
    for words in ["Documents by shard", "What each shard did", "shard-1"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn own_workloads_and_sysbench_are_sharded_too() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = cluster();
    let uri = cluster.uri();
    let text = r#"
        name = "orders"
        [collections.orders]
        records = 3000
        [collections.orders.fields]
        customer = { int32 = { uniform = [0, 1000000] } }
        [[phases]]
        name = "load"
        [[phases.roles]]
        name = "load"
        [[phases.roles.operations]]
        load = { collection = "orders" }
    "#;
    std::fs::write(bench.path("orders.toml"), text).unwrap();
    let file = bench.path("orders.toml");
    let run = [
        "bench",
        "run",
        file.to_str().unwrap(),
        uri,
        "--database",
        "sharding_own",
    ];
    let mut run = bench.seekscope(&run);
    let document = json(run.args(["--shard", "ranged", "--shard-key", "customer", "--drop"]));
    let collections = array(&document["summary"]["sharding"], "collections");
    assert_spread(&collections[0], 3000, 0.05);
    assert_nothing_left(&cluster, "sharding_own");

    let sysbench = ["bench", "sysbench", uri, "--database", "sharding_sysbench"];
    let mut sysbench = bench.seekscope(&sysbench);
    sysbench.args([
        "--collections",
        "2",
        "--documents",
        "2000",
        "--transactions",
        "50",
    ]);
    let document = json(sysbench.args(["--shard", "ranged", "--drop"]));
    let collections = array(&document["summary"]["sharding"], "collections");
    assert_eq!(collections.len(), 2);
    collections
        .iter()
        .for_each(|one| assert_spread(one, 2000, 0.01));
    assert_nothing_left(&cluster, "sharding_sysbench");
}

/// The experiment of the study: the same documents on one server and on two shards.
#[test]
fn index_builds_on_a_standalone_and_on_shards_are_compared() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (cluster, alone) = (cluster(), shared(Topology::Standalone));
    let database = "sharding_index";
    let mut index = bench.seekscope(&["bench", "index", alone.uri(), "--vs", cluster.uri()]);
    index.args(["--database", database, "--kinds", "int,hashed"]);
    index.args(["--docs", "4000", "--data", "sdu", "--repeats", "2"]);
    let document = json(index.args(["--shard", "hashed", "--drop", "--out", "index"]));
    assert_valid("bench", &document);
    let summary = &document["summary"];
    let [collection] = array(&summary["sharding"], "collections").as_slice() else {
        panic!("{summary:#}");
    };
    assert_spread(collection, 4000, 0.1);
    let members_of = |all: &[Value]| -> Vec<String> {
        let names = all.iter().map(|one| one["member"].as_str().unwrap().into());
        names.collect()
    };
    let files = array(summary, "indexed_files");
    let alone_name = files[0]["member"].as_str().unwrap().to_string();
    assert_eq!(members_of(files), [&alone_name, "shard-0", "shard-1"]);
    for file in files {
        assert!(file["order"]["sequential_share"].is_number(), "{file:#}");
        // About 3 KiB each, of which the standalone has all and a shard half.
        assert!(file["file_bytes"].as_u64() > Some(1 << 20), "{file:#}");
    }
    let builds = array(summary, "index_builds");
    assert_eq!(builds.len(), 8);
    for build in builds {
        assert_eq!(build["verified"], true, "{build:#}");
        let reads = members_of(array(build, "reads"));
        match build["shards"].is_null() {
            true => assert_eq!(reads, [alone_name.as_str()], "{build:#}"),
            false => assert_eq!(reads, ["shard-0", "shard-1"], "{build:#}"),
        }
    }
    let order: Vec<bool> = builds
        .iter()
        .map(|build| build["shards"].is_null())
        .collect();
    assert_eq!(order[..2], [true, false]);
    assert_eq!(order[4..6], [false, true]);
    let compared = array(summary, "index_comparisons");
    assert_eq!(compared.len(), 2);
    for one in compared {
        assert_eq!(one["pairs"], 2, "{one:#}");
        let ratio = one["second_s"].as_f64().unwrap() / one["first_s"].as_f64().unwrap();
        assert!(
            ratio > 0.0 && one["comparison"]["low"].is_number(),
            "{one:#}"
        );
    }
    let page = std::fs::read_to_string(bench.path("index").join("report.html")).unwrap();
    for words in [
        "times as long (2 pairs",
        "in order",
        "read while building",
        "during the builds",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_nothing_left(&cluster, database);
    assert_eq!(
        first_batch(&alone.command(database, doc! { "listCollections": 1 })),
        []
    );
}

#[test]
fn what_is_no_mongos_is_named() {
    let bench = Bench::new();
    for (topology, what) in [
        (Topology::Standalone, "a mongod on its own"),
        (
            Topology::ReplicaSet { members: 1 },
            "a member of the replica set",
        ),
    ] {
        let server = shared(topology);
        let mut command = ycsb(
            &bench,
            server.uri(),
            "sharding_none",
            &["--shard", "hashed"],
        );
        let output = command.output().unwrap();
        assert_fails(&output, 2, &["--shard works through a mongos only", what]);
        let listed = server.command("sharding_none", doc! { "listCollections": 1 });
        assert_eq!(first_batch(&listed), []);
    }
    let shard = cluster().member("shard-0").uri();
    let output = ycsb(&bench, &shard, "sharding_none", &["--shard", "hashed"]).output();
    let words = ["is a shard of a cluster", "name a mongos"];
    assert_fails(&output.unwrap(), 3, &words);
    let output = bench
        .seekscope(&["bench", "ycsb", "--shard", "ranged"])
        .output();
    assert_fails(&output.unwrap(), 2, &["without a connection string"]);
    let cluster = cluster();
    let schema = ["bench", "schema", cluster.uri(), "--shard", "hashed"];
    assert_fails(&bench.seekscope(&schema).output().unwrap(), 2, &["--shard"]);
    assert!(!bench.path("seekscope-runs").exists());
}

#[test]
fn what_cannot_be_sharded_so_is_refused_before_anything_is_changed() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = cluster();
    let refused = |database: &str, options: &[&str], words: &[&str]| {
        let output = ycsb(&bench, cluster.uri(), database, options)
            .output()
            .unwrap();
        assert_fails(&output, 2, words);
    };
    let nothing = "sharding_refused";
    for (options, words) in [
        (
            &[
                "--workload",
                "c",
                "--shard",
                "hashed",
                "--shard-key",
                "field77",
            ][..],
            &["no document of usertable has the field field77"][..],
        ),
        (
            &[
                "--workload",
                "a",
                "--shard",
                "hashed",
                "--shard-key",
                "field1",
            ],
            &["workload a updates this field"],
        ),
        (
            &["--shard", "ranged", "--pre-split", "1"],
            &["too few for 2 shards"],
        ),
        (
            &["--shard", "ranged", "--shard-key", "$x"],
            &["the name of a field"],
        ),
        (&["--shard-key", "_id"], &["--shard"]),
        (
            &["--shard", "hashed", "--clients", "1/2"],
            &["several clients cannot shard a collection together"],
        ),
    ] {
        refused(nothing, options, words);
    }
    assert_nothing_left(&cluster, nothing);
    // Somebody's empty collections: not sharded, by another key, and by the same one.
    let prepared = "sharding_prepared";
    cluster.command(prepared, doc! { "create": "usertable" });
    refused(
        prepared,
        &["--shard", "hashed"],
        &["usertable is not sharded", "drop the collection"],
    );
    cluster.command(prepared, doc! { "drop": "usertable" });
    cluster.command("admin", doc! { "enableSharding": prepared });
    let namespace = format!("{prepared}.usertable");
    let shard = doc! { "shardCollection": &namespace, "key": { "_id": 1.0 } };
    cluster.command("admin", shard);
    refused(
        prepared,
        &["--shard", "hashed"],
        &["usertable is sharded by", "drop the collection"],
    );
    let listed = first_batch(&cluster.command(prepared, doc! { "listCollections": 1 }));
    assert_eq!(listed.len(), 1, "{listed:?}");
    json(&mut ycsb(
        &bench,
        cluster.uri(),
        prepared,
        &["--shard", "ranged", "--drop"],
    ));
    // It was there before, so it stays.
    assert_eq!(sharded_in(&cluster, prepared).len(), 1);
    cluster.command(prepared, doc! { "drop": "usertable" });
}

/// The count of a shard that gave a chunk away includes its copies for a quarter of an hour.
#[test]
fn chunks_that_move_meanwhile_are_said() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Its collections are no longer balanced below.
    let cluster = own(Topology::Sharded { shards: 2 }, &[]);
    let database = "sharding_moved";
    let namespace = format!("{database}.usertable");
    let mut command = bench.seekscope(&["bench", "ycsb", cluster.uri(), "--database", database]);
    command.args([
        "--records",
        "2000",
        "--workload",
        "c",
        "--for",
        "15s",
        "--shard",
        "hashed",
    ]);
    let child = command
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let child = child.spawn().unwrap();
    // From when the run has begun: some seconds after the load.
    until(|| {
        let loaded = doc! { "find": "seekscope_owner", "filter": { "loaded": true } };
        !first_batch(&cluster.command(database, loaded)).is_empty()
    });
    std::thread::sleep(Duration::from_secs(4));
    // The balancer would want to move the chunk back, and wait a quarter of an hour for its copies to go. It also moves
    // chunks of the sessions, and a shard gives away one chunk at a time.
    let all = doc! { "q": {}, "u": { "$set": { "noBalance": true } }, "multi": true };
    cluster.command("config", doc! { "update": "collections", "updates": [all] });
    until(|| {
        let under_way = cluster.command("config", doc! { "count": "migrations" });
        under_way.get_i32("n").unwrap() == 0
    });
    let any = doc! { "find": "usertable", "limit": 1 };
    let any = first_batch(&cluster.command(database, any))[0].clone();
    let find = doc! { "_id": any.get("_id").unwrap() };
    let moves = || {
        let query = doc! { "what": "moveChunk.commit", "ns": &namespace };
        let counted = cluster.command("config", doc! { "count": "changelog", "query": query });
        counted.get_i32("n").unwrap()
    };
    // To the shard where it is already, it does not move; back again it would have to wait for its copies to go.
    for to in ["shard-0", "shard-1"] {
        if moves() == 0 {
            let moving = doc! { "moveChunk": &namespace, "find": find.clone(), "to": to };
            cluster.command("admin", moving);
        }
    }
    assert_eq!(moves(), 1);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = &array(&document["summary"], "steps")[1];
    assert_eq!(run["shards"]["moved_chunks"], 1, "{run:#}");
    let limitations = document["limitations"].to_string();
    assert!(
        limitations.contains("moved between shards"),
        "{limitations}"
    );
    let options = ["--phase", "run", "--shard", "hashed", "--drop"];
    let mut again = bench.seekscope(&["bench", "ycsb", cluster.uri(), "--database", database]);
    again.args([
        "--records",
        "2000",
        "--workload",
        "c",
        "--operations",
        "100",
    ]);
    let document = json(again.args(options));
    let collection = &document["summary"]["sharding"]["collections"][0];
    let (documents, orphans) = (&collection["documents"], &collection["orphans"]);
    let real = documents.as_u64().unwrap() - orphans.as_u64().unwrap();
    assert_eq!(real, 2000, "{collection:#}");
    assert!(orphans.as_u64() > Some(0), "{collection:#}");
    assert!(
        document["limitations"].to_string().contains("not in it"),
        "{document:#}"
    );
    assert_nothing_left(&cluster, database);
}

#[test]
fn a_signal_leaves_nothing_that_was_to_be_dropped() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = cluster();
    let database = "sharding_interrupted";
    let options = [
        "--workload",
        "c",
        "--shard",
        "hashed",
        "--drop",
        "--for",
        "60s",
    ];
    let mut command = bench.seekscope(&["bench", "ycsb", cluster.uri(), "--database", database]);
    command.args(["--records", "2000"]).args(options);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    until(|| {
        let loaded = doc! { "find": "seekscope_owner", "filter": { "loaded": true } };
        !first_batch(&cluster.command(database, loaded)).is_empty()
    });
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_nothing_left(&cluster, database);
}

#[test]
fn a_shard_is_refused_before_anything_is_dropped() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (cluster, database) = (cluster(), "shard_refused");
    let uri = cluster.uri();
    json(&mut ycsb(
        &bench,
        uri,
        database,
        &["--shard", "hashed", "--phase", "load"],
    ));
    let shard = cluster
        .members()
        .into_iter()
        .find(|name| name.contains("shard"));
    let shard = cluster.member(shard.unwrap()).uri();
    let words = ["is a shard of a cluster", "name a mongos"];
    assert_fails(
        &ycsb(&bench, &shard, database, &[]).output().unwrap(),
        3,
        &words,
    );
    let versus = ycsb(&bench, uri, database, &["--vs", &shard])
        .output()
        .unwrap();
    assert_fails(&versus, 3, &words);
    assert_eq!(sharded_in(&cluster, database).len(), 1);
    let counted = cluster.command(database, doc! { "count": "usertable" });
    assert_eq!(counted.get_i32("n").unwrap(), 8_000);
    json(&mut ycsb(
        &bench,
        uri,
        database,
        &["--phase", "run", "--drop"],
    ));
}
