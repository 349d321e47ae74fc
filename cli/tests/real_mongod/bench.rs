//! `bench` on MongoDB's own servers: what it leaves of a cluster, and whether its figures are the server's.

use std::process::Stdio;
use std::time::Duration;

use mongodb::bson::raw::cstr;
use mongodb::bson::{Decimal128, Document, Regex, Timestamp, doc};
use seekscope_bench::deployment::Topology;
use seekscope_run::{COUNTERS_OF_MEMBER, RunDirectory};
use serde_json::Value;

use crate::running::{Running, own, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, machine, shared_machine, stderr, stdout, until};

const RECORDS: i64 = 4_000;

/// What a mongos says of a collection.
fn stats(cluster: &Running, collection: &str) -> Document {
    cluster.command("bench_sharded", doc! { "collStats": collection })
}

fn limitations(document: &Value) -> Vec<String> {
    let limitations = document["limitations"].as_array().unwrap().iter();
    limitations.map(Value::to_string).collect()
}

#[test]
fn a_sharded_collection_is_loaded_as_it_is_and_stays_sharded() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let cluster = shared(Topology::Sharded { shards: 2 });
    cluster.command("admin", doc! { "enableSharding": "bench_sharded" });
    let key = doc! { "_id": "hashed" };
    let shard = doc! { "shardCollection": "bench_sharded.usertable", "key": key };
    cluster.command("admin", shard);
    let records = RECORDS.to_string();
    let run = |out: &str, more: &[&str]| {
        let mut command = bench.seekscope(&["bench", "ycsb", cluster.uri(), "--workload", "a"]);
        command.args(["--database", "bench_sharded", "--records", &records]);
        command.args(["--operations", "2000", "--out", out]);
        let document = json(command.args(more));
        assert_valid("bench", &document);
        document
    };
    // Loading again used to drop the collection, and the next load made one that is not sharded.
    for out in ["first", "second"] {
        let document = run(out, &[]);
        let stats = stats(&cluster, "usertable");
        assert!(stats.get_bool("sharded").unwrap(), "{stats}");
        let shards = stats.get_document("shards").unwrap();
        let counts = shards.values().map(|shard| shard.as_document().unwrap());
        let counts: Vec<i32> = counts.map(|s| s.get_i32("count").unwrap()).collect();
        assert_eq!(counts.iter().map(|n| i64::from(*n)).sum::<i64>(), RECORDS);
        assert!(counts.len() == 2 && !counts.contains(&0), "{counts:?}");
        the_router_is_not_the_server(&cluster, &document);
        the_shards_counters_are_recorded(&cluster, &bench, out);
    }
    run("third", &["--drop"]);
    let stats = stats(&cluster, "usertable");
    assert!(stats.get_bool("sharded").unwrap(), "{stats}");
    assert_eq!(stats.get_i32("count").unwrap(), 0);
}

fn the_router_is_not_the_server(cluster: &Running, document: &Value) {
    let target = &document["target"];
    assert_eq!(target["product"], "mongos");
    let shards = target["shards"].to_string();
    let limitations = limitations(document).join(" ");
    for shard in ["shard-0", "shard-1"] {
        let address = cluster.member(shard).port().to_string();
        assert!(
            shards.contains(shard) && shards.contains(&address),
            "{shards}"
        );
        assert!(limitations.contains(shard), "{limitations}");
    }
    let summary = &document["summary"];
    for figure in ["server_cpu_us_per_op", "write_amplification"] {
        assert!(summary[figure].is_null(), "{figure}: {}", summary[figure]);
    }
    for step in summary["steps"].as_array().unwrap() {
        for figure in ["server_cpu_us_per_op", "server_write_bytes_per_op"] {
            assert!(step[figure].is_null(), "{figure}: {step:#}");
        }
        assert_eq!(step["storage_after"]["documents"], RECORDS, "{step:#}");
    }
}

fn the_shards_counters_are_recorded(cluster: &Running, bench: &Bench, out: &str) {
    let directory = RunDirectory::open(&bench.path(out)).unwrap().0;
    let counters = directory.counters().unwrap();
    for shard in ["shard-0", "shard-1"] {
        let port = cluster.member(shard).port().to_string();
        let of_shard = counters.iter().filter(|counter| {
            let name = counter.source.strip_prefix(COUNTERS_OF_MEMBER);
            name.is_some_and(|name| name.ends_with(&port))
        });
        let mut names = of_shard.map(|counter| counter.name.as_str());
        assert!(names.any(|name| name == "opcounters.insert"), "{shard}");
    }
    let of_router = |source: &str| ["process", "serverStatus"].contains(&source);
    assert!(!counters.iter().any(|counter| of_router(&counter.source)));
}

/// The most by which the server's sizes of equal files differ.
const BLOCKS_BYTES: i64 = 128 << 10;

/// A mongod leaves most of a load in its cache for a minute: by its statistics a collection of 20 MB took 4 KiB,
/// and a document two bytes.
#[test]
fn sizes_and_written_bytes_are_those_after_a_checkpoint() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &["--syncdelay", "600"]);
    let mut command = bench.seekscope(&["bench", "ycsb", server.uri(), "--phase", "load"]);
    command.args(["--database", "bench_sizes", "--records", "20000"]);
    let document = json(&mut command);
    server.command("admin", doc! { "fsync": 1 });
    let stats = server.command("bench_sizes", doc! { "collStats": "usertable" });
    let step = &document["summary"]["steps"][0];
    let storage = &step["storage_after"];
    for (figure, theirs) in [
        ("storage_bytes", "storageSize"),
        ("index_bytes", "totalIndexSize"),
        ("data_bytes", "size"),
    ] {
        let theirs = stats.get(theirs).unwrap();
        let theirs = theirs.as_i64().or(theirs.as_i32().map(i64::from)).unwrap();
        let ours = storage[figure].as_i64().unwrap();
        // Another checkpoint moves some blocks, gives others back, and files grow by some at a time.
        let tolerance = (theirs / 50).max(BLOCKS_BYTES);
        assert!(
            (ours - theirs).abs() <= tolerance,
            "{figure}: {storage} {stats}"
        );
    }
    assert!(
        storage["storage_bytes"].as_u64() > Some(10_000_000),
        "{storage}"
    );
    // The journal has all of it once, and the files about as much again.
    let amplification = document["summary"]["write_amplification"].as_f64().unwrap();
    assert!((1.0..5.0).contains(&amplification), "{amplification}");
}

#[test]
fn what_no_checkpoint_has_settled_is_not_known() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = shared(Topology::StandaloneWithPassword);
    let roles = [doc! { "role": "readWrite", "db": "bench_unsettled" }];
    let user = doc! { "createUser": "loader", "pwd": "p", "roles": roles };
    server.command("admin", user);
    let port = server.member("standalone").port();
    let uri = format!("mongodb://loader:p@127.0.0.1:{port}/?authSource=admin");
    let mut command = bench.seekscope(&["bench", "ycsb", &uri, "--phase", "load"]);
    command.args(["--database", "bench_unsettled", "--records", "1000"]);
    let document = json(&mut command);
    assert_valid("bench", &document);
    let summary = &document["summary"];
    for figure in ["storage", "bytes_per_document", "write_amplification"] {
        assert!(summary[figure].is_null(), "{figure}: {summary:#}");
    }
    assert!(summary["steps"][0]["server_write_bytes_per_op"].is_null());
    let limitations = limitations(&document).join(" ");
    assert!(limitations.contains("hostManager"), "{limitations}");
}

/// A regression: writes that the server did and could not confirm as asked were said to be lost.
#[test]
fn a_write_concern_that_is_not_met_loses_nothing() {
    let bench = Bench::new();
    let set = shared(Topology::ReplicaSet { members: 1 });
    let uri = format!("{}&w=3", set.uri());
    let mut command = bench.seekscope(&["bench", "ycsb", &uri, "--database", "bench_concern"]);
    command.args(["--records", "50", "--operations", "50", "--in-flight", "3"]);
    let output = command
        .args(["--timeout", "3s", "--out", "run"])
        .output()
        .unwrap();
    assert_fails(&output, 1, &["UnsatisfiableWriteConcern"]);
    let said = stdout(&output) + &stderr(&output);
    assert!(!said.contains("acknowledged writes are missing"), "{said}");
    assert!(said.contains("may be there or not"), "{said}");
}

/// The good seconds before an outage were taken for a warm-up, and nothing was left. The outage ends in the first half of
/// the run: later seconds are never taken for the end of a warm-up.
#[test]
fn the_seconds_before_an_outage_count() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let pid = rustix::process::Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    let signal = |signal| rustix::process::kill_process(pid, signal).unwrap();
    let mut command = bench.seekscope(&["bench", "ycsb", server.uri(), "--workload", "c"]);
    command.args(["--records", "1000", "--for", "40s", "--timeout", "1s"]);
    command.args(["--allow-errors", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null());
    let child = child.spawn().unwrap();
    // From when there is load: loading takes its time.
    until(|| {
        let status = server.command("admin", doc! { "serverStatus": 1 });
        let queries = status.get_document("opcounters").unwrap().get("query");
        queries.and_then(|n| n.as_i64().or(n.as_i32().map(i64::from))) > Some(2_000)
    });
    std::thread::sleep(Duration::from_secs(5));
    signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_secs(12));
    signal(rustix::process::Signal::CONT);
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = document["summary"]["steps"].as_array().unwrap();
    let run = steps.iter().find(|step| step["kind"] == "run").unwrap();
    assert!(run["warm_up_s"].is_null(), "{run:#}");
    let read = document["summary"]["operations"].as_array().unwrap();
    let read = read.iter().find(|operation| operation["name"] == "READ");
    let read = read.unwrap();
    assert!(read["count"].as_u64() > Some(1_000), "{read:#}");
    assert!(read["errors"].as_u64() > Some(0), "{read:#}");
}

/// The second load dropped what the first had written, and both sides were the same server.
#[test]
fn one_server_under_two_names_is_refused() {
    let bench = Bench::new();
    for topology in [
        Topology::Standalone,
        Topology::ReplicaSet { members: 1 },
        Topology::Sharded { shards: 2 },
    ] {
        let server = shared(topology);
        let (first, last) = (server.uri(), server.members().pop().unwrap());
        let second = format!("mongodb://localhost:{}/", server.member(last).port());
        let mut command = bench.seekscope(&["bench", "ycsb", first, "--vs", &second]);
        command.args(["--database", "bench_vs", "--records", "10", "--pairs", "1"]);
        let output = command.output().unwrap();
        assert_fails(&output, 2, &["--vs", "under another name"]);
        let listed = server.command("bench_vs", doc! { "listCollections": 1 });
        let found = listed.get_document("cursor").unwrap();
        assert_eq!(found.get_array("firstBatch").unwrap().len(), 0, "{listed}");
    }
}

/// The study of acknowledgements: one set, of which only the write concern differs.
#[test]
fn one_set_is_compared_with_itself_by_write_concern() {
    let _machine = machine();
    let bench = Bench::new();
    let set = shared(Topology::ReplicaSet { members: 3 });
    let of = |concern: &str| format!("{}&w={concern}", set.uri());
    let (first, second) = (of("1"), of("majority"));
    let mut command = bench.seekscope(&["bench", "ycsb", &first, "--vs", &second]);
    command.args(["--database", "bench_vs_concern", "--workload", "d"]);
    command.args(["--records", "1000", "--for", "3s", "--pairs", "2", "--drop"]);
    let document = json(&mut command);
    assert_valid("bench", &document);
    let steps = document["summary"]["steps"].as_array().unwrap();
    let of_kind = |kind: &str| -> Vec<&str> {
        let steps = steps.iter().filter(|step| step["kind"] == kind);
        steps
            .map(|step| step["variant"].as_str().unwrap())
            .collect()
    };
    assert_eq!(of_kind("load"), ["w=1"]);
    assert_eq!(of_kind("run"), ["w=1", "w=majority", "w=majority", "w=1"]);
    for step in steps {
        let verified = &step["verification"];
        assert_eq!(verified["expected"], verified["counted"], "{step:#}");
        let is_first = step["variant"] == "w=1";
        assert_eq!(step["storage_after"].is_object(), is_first, "{step:#}");
    }
    // An acknowledgement by two takes longer than by one.
    let latency = |variant: &str| {
        let operations = document["summary"]["operations"].as_array().unwrap();
        let mut of_variant = operations.iter().filter(|o| o["variant"] == variant);
        let of_variant = of_variant.find(|o| o["name"] == "INSERT" && o["step"] != "load w=1");
        of_variant.unwrap()["response_us"]["p50"].as_f64().unwrap()
    };
    assert!(latency("w=majority") > latency("w=1"), "{document:#}");
    let listed = set.command("bench_vs_concern", doc! { "listCollections": 1 });
    let found = listed.get_document("cursor").unwrap();
    assert_eq!(found.get_array("firstBatch").unwrap().len(), 0, "{listed}");
}

#[test]
fn the_database_of_mongodb_url_is_not_ignored_unsaid() {
    let bench = Bench::new();
    let server = shared(Topology::Standalone);
    let port = server.member("standalone").port();
    let url = format!("mongodb.url=mongodb://127.0.0.1:{port}/ycsb?w=1");
    let mut command = bench.seekscope(&["bench", "ycsb", "-p", &url, "--workload", "c"]);
    command.args([
        "--database",
        "bench_url",
        "--records",
        "100",
        "--operations",
        "10",
    ]);
    let limitations = limitations(&json(&mut command)).join(" ");
    assert!(
        limitations.contains("database ycsb of mongodb.url"),
        "{limitations}"
    );
    assert!(limitations.contains("bench_url"), "{limitations}");
}

#[test]
fn a_sample_names_what_it_changed_and_has_the_indexes() {
    let bench = Bench::new();
    let server = shared(Topology::Standalone);
    let price: Decimal128 = "1.50".parse().unwrap();
    let pattern = Regex {
        pattern: cstr!("^a+$").to_owned(),
        options: cstr!("i").to_owned(),
    };
    let documents: Vec<Document> = (0..200)
        .map(|n| {
            let at = Timestamp {
                time: n,
                increment: 1,
            };
            doc! { "price": price, "pattern": pattern.clone(), "at": at, "customer": n }
        })
        .collect();
    let insert = doc! { "insert": "priced", "documents": documents };
    server.command("bench_sample", insert);
    let indexes = [
        doc! { "key": { "customer": 1, "price": -1 }, "name": "by_customer", "sparse": true },
        doc! { "key": { "pattern": "text" }, "name": "words" },
    ];
    let create = doc! { "createIndexes": "priced", "indexes": indexes.to_vec() };
    server.command("bench_sample", create);
    let sample = ["bench", "sample", "bench_sample.priced", server.uri()];
    let output = bench.seekscope(&sample).output().unwrap();
    let said = stderr(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    for kind in [
        "Decimal128 (200 values)",
        "Regular Expression (200",
        "Timestamp (200",
    ] {
        assert!(text.contains(kind) && said.contains(kind), "{text}\n{said}");
    }
    assert!(
        text.contains("{ keys = { customer = 1, price = -1 } }"),
        "{text}"
    );
    let simplified = r#""by_customer" without "sparse""#;
    assert!(
        text.contains(simplified) && said.contains(simplified),
        "{text}\n{said}"
    );
    assert!(said.contains("left out: \"words\""), "{said}");
    // It can be run, with these indexes.
    std::fs::write(bench.path("priced.toml"), text.replace("30s", "1s")).unwrap();
    let file = bench.path("priced.toml");
    let run = [
        "bench",
        "run",
        file.to_str().unwrap(),
        server.uri(),
        "--scale",
        "0.001",
    ];
    json(
        bench
            .seekscope(&run)
            .args(["--database", "bench_sample_run"]),
    );
    let listed = server.command("bench_sample_run", doc! { "listIndexes": "priced" });
    assert!(
        listed.to_string().contains("customer_1_price_-1"),
        "{listed}"
    );
}

#[test]
fn a_load_that_is_refused_has_lost_nothing() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    let some = doc! { "_id": Regex { pattern: cstr!("[0-8]$").into(), options: cstr!("").into() } };
    let run = |out: &str, more: &[&str]| {
        let uri = server.uri();
        let mut command = bench.seekscope(&["bench", "ycsb", uri, "--database", "refused"]);
        command.args(["--records", "20000", "--operations", "100", "--out", out]);
        command.args(more).output().unwrap()
    };
    server.command("refused", doc! { "create": "usertable", "validator": some });
    let output = run("kept", &[]);
    assert_fails(&output, 1, &["the load is not complete"]);
    let document = bench.path("kept");
    let document = RunDirectory::read_document(&document).unwrap();
    let found = document.bench.unwrap().steps[0].verification.clone();
    let found = found.unwrap();
    let (expected, counted) = (found.expected.unwrap(), found.counted.unwrap());
    assert!(
        found.holds() && expected < 20_000 && found.sampled > 0,
        "{found:?}"
    );
    let count = |name: &str| {
        let reply = server.command("refused", doc! { "count": name });
        u64::try_from(reply.get_i32("n").unwrap()).unwrap()
    };
    assert_eq!((counted, count("usertable")), (expected, expected));

    // What was asked to be dropped at the end is, also after a failure.
    assert_fails(
        &run("dropped", &["--drop"]),
        1,
        &["the load is not complete"],
    );
    assert_eq!((count("usertable"), count("seekscope_owner")), (0, 0));
}

/// `bench run` refused fields without a name.
#[test]
fn a_sample_of_any_documents_can_be_run() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = shared(Topology::Standalone);
    let nested = doc! { "": "some text of the document" };
    let documents: Vec<Document> = (0..200)
        .map(|n| doc! { "": n, "nested": nested.clone() })
        .collect();
    let insert = doc! { "insert": "nameless", "documents": documents };
    server.command("bench_sampled", insert);
    let mut sample = bench.seekscope(&["bench", "sample", "bench_sampled.nameless", server.uri()]);
    let output = sample.args(["--records", "500"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    std::fs::write(bench.path("made.toml"), text.replace("\"30s\"", "\"1s\"")).unwrap();
    let mut run = bench.seekscope(&["bench", "run", "made.toml", server.uri(), "--keep"]);
    let document = json(run.args(["--database", "bench_sampled_run"]));
    assert_valid("bench", &document);
    let both = doc! { "": { "$exists": true }, "nested": { "$type": "object" } };
    let count = doc! { "count": "nameless", "query": both };
    let counted = server.command("bench_sampled_run", count);
    assert_eq!(counted.get_i32("n").unwrap(), 500, "{counted}");
}

/// It used to be taken for a prepared collection, and kept only the last documents of a load.
#[test]
fn a_capped_collection_is_refused() {
    let bench = Bench::new();
    let server = shared(Topology::Standalone);
    let create = doc! { "create": "usertable", "capped": true, "size": 100_000 };
    server.command("bench_capped", create);
    let mut load = bench.seekscope(&["bench", "ycsb", server.uri(), "--phase", "load"]);
    load.args(["--database", "bench_capped", "--records", "1000"]);
    let words = [
        "bench_capped.usertable cannot be used",
        "it is capped",
        "nothing was changed",
        "name another database",
    ];
    assert_fails(&load.output().unwrap(), 3, &words);
    let listed = server.command(
        "bench_capped",
        doc! { "listCollections": 1, "nameOnly": true },
    );
    let names = listed.to_string();
    assert!(
        names.contains("usertable") && !names.contains("seekscope_owner"),
        "{names}"
    );
}
