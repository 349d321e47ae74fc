//! `seekscope bench` on real servers: what it measures, and what it leaves behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, json, run_document, server_binary, shared_machine, stderr,
};

/// `seekscope bench ycsb` on a private local server, with its run in `out`.
pub fn local(bench: &Bench, out: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["bench", "ycsb", "--out", out, "--cache", "64M"]);
    command
        .arg("--server-binary")
        .arg(server_binary())
        .args(more);
    command
}

/// The same on somebody's server.
pub fn on(bench: &Bench, server: &ForeignServer, out: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["bench", "ycsb", &server.uri, "--out", out]);
    command.args(more);
    command
}

fn operations<'a>(document: &'a Value, step: &str) -> Vec<&'a Value> {
    let all = document["summary"]["operations"].as_array().unwrap().iter();
    all.filter(|o| o["step"] == step).collect()
}

fn total(operations: &[&Value], field: &str) -> u64 {
    operations.iter().map(|o| o[field].as_u64().unwrap()).sum()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_load_and_a_run_say_what_they_did() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let document = json(&mut local(
        &bench,
        "run",
        &[
            "--workload",
            "a",
            "--records",
            "2000",
            "--operations",
            "4000",
        ],
    ));
    assert_valid("bench", &document);
    assert_eq!(document["outcome"], "ok");
    let summary = &document["summary"];
    assert_eq!(
        (&summary["edition"], &summary["client"]),
        (&"ycsb".into(), &"raw".into())
    );
    assert_eq!(total(&operations(&document, "load"), "count"), 2000);
    assert_eq!(total(&operations(&document, "a"), "count"), 4000);
    assert_eq!(total(&operations(&document, "a"), "errors"), 0);
    assert!(summary["client_cpu_us_per_op"].as_f64().unwrap() > 0.0);
    assert!(summary["server_cpu_us_per_op"].as_f64().unwrap() > 0.0);
    assert_eq!(summary["storage"]["documents"], 2000);
    for step in summary["steps"].as_array().unwrap() {
        assert_eq!(step["verified"], true, "{step}");
        assert_eq!(step["verification"]["counted"], 2000);
    }
    // What the records say agrees with what was counted.
    let shown = json(&mut bench.seekscope(&["report", "run"]));
    assert_eq!(shown["summary"], document["summary"]);
    assert!(bench.path("run/report.html").exists() && bench.path("run/server.parquet").exists());
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
}

#[test]
fn all_six_workloads_run_in_ycsbs_order() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "--workload",
        "all",
        "--records",
        "1000",
        "--operations",
        "1000",
    ];
    let document = json(&mut local(&bench, "run", &arguments));
    assert_valid("bench", &document);
    let steps = document["summary"]["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["load", "a", "b", "c", "f", "d", "reload", "e"]);
    for step in steps {
        assert!(step["failures"].as_array().unwrap().is_empty(), "{step}");
        assert_eq!(step["verified"], true, "{step}");
    }
    let scans = operations(&document, "e");
    assert!(
        scans
            .iter()
            .any(|o| o["name"] == "SCAN" && o["documents"].as_u64() > Some(1000))
    );
}

#[test]
fn a_second_d_on_the_same_data_is_noticed() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let d = [
        "--workload",
        "d",
        "--records",
        "1000",
        "--operations",
        "2000",
    ];
    json(&mut on(&bench, &server, "first", &d));
    let again = json(on(&bench, &server, "second", &d).args(["--phase", "run"]));
    let limitations = again["limitations"].to_string();
    assert!(
        limitations.contains("did not begin on fresh data"),
        "{limitations}"
    );
    assert!(
        again["summary"]["steps"][0]["failures"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(again["summary"]["steps"][0]["verified"], true);
}

#[test]
fn foreign_data_are_refused_and_untouched() {
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let count = |expected: u64| {
        let script = "import sys, pymongo; print(pymongo.MongoClient(sys.argv[1]).shop.orders.count_documents({}))";
        let found = crate::support::python(script, &[std::path::Path::new(&server.uri)]);
        assert_eq!(found.trim(), expected.to_string());
    };
    let insert =
        "import sys, pymongo; pymongo.MongoClient(sys.argv[1]).shop.orders.insert_one({'n': 1})";
    crate::support::python(insert, &[std::path::Path::new(&server.uri)]);
    let output = on(&bench, &server, "run", &["--database", "shop"])
        .output()
        .unwrap();
    assert_fails(&output, 3, &["shop", "orders", "nothing was changed"]);
    count(1);
    let without_data = on(&bench, &server, "none", &["--phase", "run"])
        .output()
        .unwrap();
    assert_fails(&without_data, 2, &["load it first"]);
}

#[test]
fn ycsbs_lines_are_those_that_scripts_read() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "-p",
        "recordcount=500",
        "-p",
        "operationcount=1000",
        "--workload",
        "f",
        "--ycsb-output",
    ];
    let output = local(&bench, "run", &arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for start in [
        "[OVERALL], RunTime(ms), ",
        "[OVERALL], Throughput(ops/sec), ",
        "[INSERT], Return=OK, 500",
        "[READ], Operations, 1000",
        "[READ], 95thPercentileLatency(us), ",
        "[READ-MODIFY-WRITE], AverageLatency(us), ",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(start)),
            "{start} is not in\n{text}"
        );
    }
    let document = run_document(&bench.path("run"));
    assert_eq!(document["bench"]["settings"]["recordcount"], "500");
}

#[test]
fn secrets_in_properties_are_not_shown() {
    let bench = Bench::new();
    let uri = "mongodb.url=mongodb://anna:pa55word@127.0.0.1:1/?serverSelectionTimeoutMS=300";
    let output = bench
        .seekscope(&["bench", "ycsb", "--out", "run", "-p", uri])
        .output()
        .unwrap();
    assert_fails(&output, 3, &["127.0.0.1:1"]);
    assert!(!stderr(&output).contains("pa55word"));
    // A run that found nothing out leaves no folder; what others store of such a property is tested beside
    // `stored_arguments`.
    assert!(!bench.path("run").exists());
}

#[test]
fn sysbench_counts_transactions_and_their_steps() {
    let _machine = shared_machine();
    // A single user is never in another's way, so that everything is known beforehand.
    let alone = sysbench(&["--in-flight", "1"]);
    let run = operations(&alone, "run");
    let counts: BTreeMap<&str, u64> = run
        .iter()
        .map(|o| (o["name"].as_str().unwrap(), o["count"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("delete", 60),
        ("distinct range", 60),
        ("index update", 60),
        ("insert", 60),
        ("non-index update", 60),
        ("order range", 60),
        ("point select", 600),
        ("simple range", 60),
        ("sum range", 60),
        ("transaction", 60),
    ];
    assert_eq!(counts, BTreeMap::from(expected));
    assert_eq!(
        run.iter().filter(|o| o["is_transaction"] == true).count(),
        1
    );
    assert_eq!(alone["summary"]["steps"][2]["requests"], 60 * 18);
    assert_eq!(total(&operations(&alone, "load"), "documents"), 3000);

    // Of several users, two may replace the same document: the insert of the second is refused, and its
    // transaction, whose last command that is, counts as failed.
    let together = sysbench(&[]);
    let step = &together["summary"]["steps"][2];
    assert_eq!(step["requests"], 60 * 18);
    let failures = step["failures"].as_array().unwrap();
    assert!(
        failures.iter().all(|f| f["name"] == "DuplicateKey"),
        "{failures:?}"
    );
    for operation in operations(&together, "run") {
        let failed = failures
            .iter()
            .find(|f| f["operation"] == operation["name"])
            .map_or(0, |f| f["count"].as_u64().unwrap());
        assert_eq!(operation["errors"], failed, "{operation}");
        let expected = counts[operation["name"].as_str().unwrap()];
        assert_eq!(operation["count"], expected - failed, "{operation}");
    }
    assert_eq!(step["verified"], true, "{step}");
}

/// Loads two collections of 1,500 documents into a local server and runs 60 transactions.
fn sysbench(more: &[&str]) -> Value {
    let bench = Bench::new();
    let mut command = bench.seekscope(&["bench", "sysbench", "--out", "run", "--cache", "64M"]);
    command.arg("--server-binary").arg(server_binary());
    command.args(["--documents", "1500", "--collections", "2"]);
    let document = json(command.args(["--transactions", "60"]).args(more));
    assert_valid("bench", &document);
    document
}

#[test]
fn settings_are_compared_in_turn() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "--workload",
        "c",
        "--records",
        "3000",
        "--operations",
        "1000",
        "--pairs",
        "2",
        "--vs-config",
        "block_compressor=none,zlib",
    ];
    let document = json(&mut local(&bench, "run", &arguments));
    assert_valid("bench", &document);
    let steps = document["summary"]["steps"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "load none",
            "load zlib",
            "c none 1",
            "c zlib 1",
            "c zlib 2",
            "c none 2"
        ]
    );
    assert!(
        steps
            .iter()
            .all(|s| s["storage_after"]["directory_bytes"].as_u64() > Some(0))
    );
    let on_disk = |name: &str| {
        let step = steps.iter().find(|s| s["name"] == name).unwrap();
        step["storage_after"]["directory_bytes"].as_u64().unwrap()
    };
    assert!(on_disk("load zlib") < on_disk("load none"), "{steps:#?}");
    let variants = &document["summary"]["variants"];
    assert_eq!(variants["labels"], serde_json::json!(["none", "zlib"]));
    let compared = variants["compared"].as_array().unwrap();
    let reads = compared
        .iter()
        .find(|c| c["operation"] == "READ" && c["measure"] == "per_second");
    assert!(
        reads.unwrap()["against_first"][0]["ratio"].as_f64() > Some(0.0),
        "{compared:#?}"
    );
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
}

#[test]
fn two_clients_add_up() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let client = |number: u32| {
        let of = format!("{number}/2");
        on(
            &bench,
            &server,
            &format!("client{number}"),
            &[
                "--workload",
                "a",
                "--records",
                "2001",
                "--operations",
                "3001",
                "--clients",
                &of,
                "--start-at",
                "+6s",
                "--quiet",
            ],
        )
        .spawn()
        .unwrap()
    };
    let children = [client(1), client(2)];
    for mut child in children {
        let status = crate::support::wait(&mut child, std::time::Duration::from_secs(120));
        assert!(status.success(), "{status:?}");
    }
    let merged = json(&mut bench.seekscope(&["merge", "client1", "client2", "--out", "all"]));
    assert_valid("merge", &merged);
    assert_eq!(total(&operations(&merged, "load"), "count"), 2001);
    assert_eq!(total(&operations(&merged, "a"), "count"), 3001);
    let single: u64 = ["client1", "client2"]
        .iter()
        .map(|run| total(&operations(&run_document(&bench.path(run)), "a"), "count"))
        .sum();
    assert_eq!(single, 3001);
    let shown = bench.seekscope(&["report", "all"]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    // What no client counted was said to be none.
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("documents were not counted"), "{text}");
    assert!(!text.contains("0 documents expected"), "{text}");
    let limitations = merged["limitations"].to_string();
    assert!(
        limitations.contains("documents of all clients together were not counted"),
        "{limitations}"
    );
    // A checkpoint for one of them would be in what the other measures.
    assert!(limitations.contains("several clients"), "{limitations}");
    for step in merged["summary"]["steps"].as_array().unwrap() {
        assert_eq!(step["verified"], true, "samples were read back: {step}");
        for figure in ["storage_after", "server_write_bytes_per_op"] {
            assert!(step[figure].is_null(), "{figure}: {step}");
        }
    }
    let twice = bench
        .seekscope(&["merge", "client1", "client1", "--out", "twice"])
        .output()
        .unwrap();
    assert!(!twice.status.success());
    assert_lost_and_apart_are_refused(&bench);
}

/// Compares two clients' runs, of which the second was changed afterwards.
fn assert_lost_and_apart_are_refused(bench: &Bench) {
    let changed = |name: &str, change: &dyn Fn(&Path)| {
        let copy = bench.path(name);
        std::fs::create_dir(&copy).unwrap();
        for entry in std::fs::read_dir(bench.path("client2")).unwrap() {
            let file = entry.unwrap();
            std::fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
        change(&copy);
        let out = format!("of-{name}");
        let output = bench
            .seekscope(&["merge", "client1", name, "--out", &out])
            .output();
        let output = output.unwrap();
        let text = [output.stdout.as_slice(), &output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let edited = |from: String, to: String| {
        move |copy: &Path| {
            let run = copy.join("run.json");
            let text = std::fs::read_to_string(&run).unwrap();
            assert!(text.contains(&from), "{from}");
            std::fs::write(run, text.replace(&from, &to)).unwrap();
        }
    };
    let (code, text) = changed("lossy", &|copy| {
        std::fs::remove_file(copy.join("latency.hlog")).unwrap();
    });
    assert!(code == Some(2) && text.contains("holds 0 of the"), "{text}");
    let more = edited("\"in_flight\": 8".into(), "\"in_flight\": 32".into());
    let (code, text) = changed("wider", &more);
    assert!(
        code == Some(2) && text.contains("8 operations in flight"),
        "{text}"
    );
    let started = run_document(&bench.path("client2"))["started"]["realtime_ns"].clone();
    let began_ns = started.as_u64().unwrap();
    let later = edited(
        began_ns.to_string(),
        (began_ns + 600_000_000_000).to_string(),
    );
    let (code, text) = changed("later", &later);
    assert!(
        code != Some(0) && text.contains("one after the other"),
        "{text}"
    );
}
