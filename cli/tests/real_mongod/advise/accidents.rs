//! What cannot be advised on, and what an interrupted `advise` leaves.

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_server::Server;
use serde_json::Value;

use super::{DATABASE, Prepared, advice, insert, sample, text};
use crate::running::{beforehand, programs, shared};
use crate::support::{Bench, assert_fails, json, runtime, send, shared_machine, until};

/// Where a query reads three blocks, the time that it takes in the trial decides, and that is longer on a busy machine.
#[test]
fn what_is_stored_well_is_left_as_it_is_and_nothing_is_written() {
    let (_machine, running) = beforehand(|| {
        let running = Prepared::start();
        let well = |n: i64| doc! { "_id": n, "text": text(n, 300) };
        insert(&running, "well", 20_000, well);
        running
    });
    let bench = Bench::new();
    let writes = || {
        let status = running.command("admin", doc! { "serverStatus": 1 });
        let documents = status
            .get_document("metrics")
            .unwrap()
            .get_document("document")
            .unwrap();
        let databases = running.command("admin", doc! { "listDatabases": 1, "nameOnly": true });
        (
            documents.get_i64("inserted").ok(),
            databases.get_array("databases").unwrap().len(),
        )
    };
    let before = writes();
    let summary = advice(&bench, &running, "well", r#"{"_id": "?"}"#, &[]);
    assert_eq!(summary["verdict"]["way"], 0, "{summary:#}");
    assert_eq!(writes(), before);
    let left = std::fs::read_dir(bench.path("seekscope-runs")).unwrap();
    let left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 1, "only the run itself: {left:?}");
}

#[test]
fn what_cannot_be_tried_is_said_before_anything_is_begun() {
    let running = shared(Topology::Standalone);
    running.command(DATABASE, doc! { "create": "nothing" });
    running.command(
        DATABASE,
        doc! { "create": "view", "viewOn": "nothing", "pipeline": [] },
    );
    for (collection, code, words) in [
        ("nothing", 3, "it holds no documents"),
        ("view", 3, "it is a view"),
        ("missing", 2, "there is no collection of that name"),
    ] {
        let bench = Bench::new();
        let namespace = format!("{DATABASE}.{collection}");
        let arguments = [
            "advise",
            running.uri(),
            &namespace,
            "--query",
            r#"{"a": 1}"#,
        ];
        let output = bench.seekscope(&arguments).output().unwrap();
        assert_fails(&output, code, &["there is no advice on", words]);
        assert!(!bench.path("seekscope-runs").exists());
    }
    running.command(DATABASE, doc! { "dropDatabase": 1 });
}

#[test]
fn what_a_trial_lacks_is_said_before_the_queries_are_watched() {
    let _machine = shared_machine();
    let running = Prepared::start();
    insert(&running, "series", 1_000, sample);
    let bench = Bench::new();
    let namespace = format!("{DATABASE}.series");
    for (option, words) in [
        (["--server-binary", "/no/mongod"], "/no/mongod"),
        (["--data-dir", "/no/folder"], "--data-dir /no/folder"),
    ] {
        let uri = running.uri();
        let mut advise = bench.seekscope(&["advise", &uri, &namespace, "--for", "1h"]);
        assert_fails(&advise.args(option).output().unwrap(), 2, &[words]);
        assert!(!bench.path("seekscope-runs").exists());
    }
    // Where none is named, the trial is on the server's own program, which need not be on PATH.
    let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    let uri = running.uri();
    let mut advise = bench.seekscope(&["advise", &uri, &namespace, "--query", query]);
    advise.args(["--budget", "1ms"]).env("PATH", "/nowhere");
    let words = "the time for the trials ran out";
    assert_fails(&advise.output().unwrap(), 3, &[words, "--budget"]);
}

#[test]
fn interrupted_it_leaves_no_server_and_no_data() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    insert(&running, "series", 20_000, sample);
    let mongod = programs().mongod.path.display().to_string();
    let namespace = format!("{DATABASE}.series");
    let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    let uri = running.uri();
    let arguments = [
        "advise",
        &uri,
        &namespace,
        "--query",
        query,
        "--server-binary",
        &mongod,
    ];
    let mut child = bench
        .seekscope(&arguments)
        .arg("--out")
        .arg("run")
        .spawn()
        .unwrap();
    let record = || std::fs::read_to_string(bench.path("run/run.json")).unwrap_or_default();
    let has_measured = |record: &str| {
        let run: Value = serde_json::from_str(record).unwrap_or_default();
        run["advice"]["ways"][0]["load_documents_per_s"].is_number()
    };
    until(|| has_measured(&record()));
    send(&child, libc::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = std::fs::read_dir(bench.path("")).unwrap().flatten();
    let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["run", "state"], "the data of the trial are gone");
    let again = json(&mut bench.seekscope(&["report", "run"]));
    assert_eq!(again["outcome"], "partial");
    // The server that was asked goes on.
    runtime().block_on(async { Server::connect(&uri).await.unwrap() });
}
