//! `seekscope reorder` on a server that is running: plans, refusals, and the doing.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use seekscope_bench::replica_server::{ReplicaServer, ReplicaServerOptions};
use seekscope_server::{Namespace, Server, ServerBinary};
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, json, load_documents, machine, run_document, runtime,
    server_binary, shared_machine, stderr,
};

const DOCUMENTS: u64 = 6000;
/// All of them are in more leaves than this.
const LEAVES_MIN: u64 = 150;
const COLLECTION: &str = "shop.orders";

struct Aged {
    bench: Bench,
    server: ForeignServer,
}

/// One command, on connections of its own.
fn run_command(uri: &str, database: &str, command: Document) -> Document {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::connect(uri).await.unwrap();
        server.command(database, command).await.unwrap()
    })
}

/// What the first batch of a cursor holds.
fn listed(uri: &str, command: Document) -> Vec<Document> {
    let reply = run_command(uri, "shop", command);
    let batch = reply
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch")
        .unwrap();
    let documents = batch.iter().map(|entry| entry.as_document().unwrap());
    documents.cloned().collect()
}

/// Updates every tenth document, in no order, with a checkpoint after each hundred, so that their
/// leaves find places of their own.
fn age(uri: &str, data: &Path) {
    let all = doc! { "find": "orders", "projection": { "_id": 1 }, "batchSize": 100_000 };
    let mut ids: Vec<Document> = listed(uri, all).into_iter().step_by(10).collect();
    ids.sort_by_key(|id| id.to_string().bytes().rev().collect::<Vec<_>>());
    for hundred in ids.chunks(100) {
        let update = |id: &Document| doc! { "q": id.clone(), "u": { "$set": { "again": 7 } } };
        let updates: Vec<Document> = hundred.iter().map(update).collect();
        run_command(uri, "shop", doc! { "update": "orders", "updates": updates });
        checkpointed(data);
    }
}

/// Returns when the server, which takes a checkpoint every second, has taken one.
fn checkpointed(data: &Path) {
    let written = || {
        data.join("WiredTiger.turtle")
            .metadata()
            .unwrap()
            .modified()
            .unwrap()
    };
    let (before, end) = (written(), Instant::now() + Duration::from_secs(60));
    while written() == before {
        assert!(Instant::now() < end, "no checkpoint");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A standalone server with some 18 MB of documents, in its files, in order.
fn loaded() -> Aged {
    let bench = Bench::new();
    let data = bench.path("data");
    let server =
        ForeignServer::start_with(&data, "64MB", ",checkpoint=(wait=1)", &["--standalone"]);
    let namespace: Namespace = COLLECTION.parse().unwrap();
    load_documents(&server.uri, &namespace, DOCUMENTS);
    // The first may have begun before the last document came.
    checkpointed(&data);
    std::thread::sleep(Duration::from_secs(2));
    Aged { bench, server }
}

/// The same, aged, with an index.
fn aged() -> Aged {
    let loaded = loaded();
    let index = doc! { "key": { "again": 1 }, "name": "again_1" };
    run_command(
        &loaded.server.uri,
        "shop",
        doc! { "createIndexes": "orders", "indexes": [index] },
    );
    age(&loaded.server.uri, &loaded.bench.path("data"));
    loaded
}

impl Aged {
    fn reorder(&self, more: &[&str]) -> Command {
        let mut command = self.bench.seekscope(&["reorder", &self.server.uri]);
        command.args(more);
        command
    }

    /// Everything that a reordering could change: collections with their identities, indexes, counts.
    fn state(&self) -> (Vec<Document>, Vec<Document>, i64) {
        let uri = &self.server.uri;
        let mut collections = listed(uri, doc! { "listCollections": 1 });
        collections.sort_by_key(|c| c.get_str("name").unwrap().to_string());
        let indexes = listed(uri, doc! { "listIndexes": "orders" });
        let counted = run_command(uri, "shop", doc! { "count": "orders" });
        let count = counted.get("n").unwrap();
        let count = count
            .as_i64()
            .or_else(|| count.as_i32().map(i64::from))
            .unwrap();
        (collections, indexes, count)
    }
}

fn share(layout: &Value) -> f64 {
    layout["files"][0]["sequential_share"]
        .as_f64()
        .unwrap_or_else(|| panic!("{layout:#}"))
}

#[test]
fn a_plan_changes_nothing_and_says_what_would_be_gained() {
    let _machine = shared_machine();
    let aged = aged();
    let before = aged.state();
    let uri = aged.server.uri.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    // Somebody writes while the command watches.
    let writer = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let update = doc! { "q": { "again": 7 }, "u": { "$inc": { "touched": 1 } } };
            run_command(
                &uri,
                "shop",
                doc! { "update": "orders", "updates": [update] },
            );
        }
    });
    let document = json(&mut aged.reorder(&[COLLECTION, "--watch", "2s", "--out", "run"]));
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(aged.state(), before, "a plan changed something");

    assert_valid("reorder", &document);
    let summary = &document["summary"];
    assert_eq!(summary["task"], "plan");
    assert_eq!(summary["after"], Value::Null);
    let plan = &summary["plan"];
    assert_eq!(plan["documents"], DOCUMENTS);
    assert_eq!(plan["indexes"], 2);
    assert!(plan["sequential_share"].as_f64().unwrap() < 0.6, "{plan:#}");
    let leaves = summary["before"]["files"][0]["leaf_pages"]
        .as_u64()
        .unwrap();
    assert!(leaves >= LEAVES_MIN, "{leaves}");
    assert!(plan["gain_s"]["index_build"].as_f64().unwrap() > 0.0);
    assert!(plan["writes"]["updates"].as_u64().unwrap() > 0);
    assert!(
        plan["lasts"]["hours_to_0_5"].as_f64().unwrap()
            > plan["lasts"]["hours_to_0_9"].as_f64().unwrap()
    );
    assert!(plan["space"]["free_bytes"].as_u64().unwrap() > 0);
    assert_eq!(plan["blocking"]["replica_set"], false);

    let shown = aged.bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    for words in [
        "cold scan",
        "compact instead",
        "--apply",
        "--quiesced",
        "startAfter",
        "Nothing was changed",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    assert_valid(
        "reorder",
        &json(&mut aged.bench.seekscope(&["report", "run"])),
    );
}

#[test]
fn an_aged_collection_is_replaced_by_an_ordered_copy() {
    let aged = {
        let _machine = shared_machine();
        aged()
    };
    // Where the copy's pages come to lie depends on how many checkpoints there are while it is made.
    let _machine = machine();
    let (_, indexes, count) = aged.state();
    let apply = [
        COLLECTION,
        "--apply",
        "--quiesced",
        "--force",
        "--watch",
        "0s",
        "--out",
        "run",
    ];
    let document = json(&mut aged.reorder(&apply));
    assert_valid("reorder", &document);
    assert_eq!(document["outcome"], "ok");
    let summary = &document["summary"];
    assert!(share(&summary["before"]) < 0.6, "{summary:#}");
    assert_eq!(summary["done"]["documents"], DOCUMENTS);
    assert_eq!(summary["checkpoint_forced"], true);
    let (collections, indexes_after, count_after) = aged.state();
    assert_eq!((indexes_after, count_after), (indexes, count));
    let names: Vec<&str> = collections
        .iter()
        .map(|c| c.get_str("name").unwrap())
        .collect();
    assert_eq!(names, ["orders"], "nothing stays behind");
    // This server's rename copies the rows once more, into a table that has the holes of the old ones: in a
    // file of its own the share is 0.95 and more, here it is what that leaves.
    let (before, after) = (share(&summary["before"]), share(&summary["after"]));
    assert!(after > before + 0.1, "{before} {after}");

    let shown = aged.bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    for words in ["predicted", "found", "sequential steps"] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
}

#[test]
fn the_command_that_a_plan_names_is_taken() {
    let _machine = shared_machine();
    let aged = aged();
    let output = aged
        .reorder(&[COLLECTION, "--watch", "0s", "--out", "plan"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // Paragraphs are broken into lines.
    let mut paragraphs = text.split("\n\n");
    let last = paragraphs.find(|p| p.contains("To do it")).unwrap();
    let last = last.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, named) = last.split_once("seekscope reorder ").unwrap();
    let words: Vec<&str> = named.split_whitespace().collect();
    assert!(words.contains(&"--quiesced"), "{named}");
    let mut typed = aged.bench.seekscope(&["reorder"]);
    let done = typed.args(words).output().unwrap();
    assert!(done.status.success(), "{named}: {}", stderr(&done));
    assert!(String::from_utf8_lossy(&done.stdout).contains("DONE"));
}

/// The command that pauses the writers is where seekscope is killed.
#[test]
fn a_kill_between_pause_and_swap_leaves_word_of_the_paused_writers() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ReplicaServer::start(ReplicaServerOptions {
        binary: ServerBinary::find(Some(&server_binary()), None, &[]).unwrap(),
        data_directory: bench.path("data"),
        cache_bytes: 64 << 20,
        engine: "",
    });
    let runtime = runtime();
    let server = runtime.block_on(server).unwrap();
    let uri = server.uri();
    load_documents(&uri, &COLLECTION.parse().unwrap(), 500);
    let went_on = bench.path("went-on");
    let go_on = format!("touch {}", went_on.display());
    let reorder = |more: &[&str]| {
        let mut command = bench.seekscope(&["reorder", &uri, COLLECTION]);
        command.args(more).output().unwrap()
    };
    for let_go_on in [false, true] {
        let kill = [
            "--pause-writers",
            "kill -9 $PPID",
            "--continue-writers",
            &go_on,
        ];
        let killed = reorder(&[&["--apply", "--force", "--watch", "0s"], &kill[..]].concat());
        assert!(!killed.status.success() && !went_on.exists());
        let (more, words): (&[&str], _) = match let_go_on {
            false => (&["--rollback"], "Let them continue yourself"),
            true => (
                &["--rollback", "--continue-writers", &go_on],
                "lets them continue",
            ),
        };
        let output = reorder(more);
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(words), "{said}");
        assert_eq!(went_on.exists(), let_go_on);
    }
}

#[test]
fn an_order_by_an_index_is_planned() {
    let _machine = shared_machine();
    let aged = loaded();
    let index = doc! { "key": { "spread": 1 }, "name": "spread_1" };
    let uri = &aged.server.uri;
    run_command(
        uri,
        "shop",
        doc! { "createIndexes": "orders", "indexes": [index] },
    );
    // The order of hashes has nothing to do with that of record ids.
    let ids = listed(
        uri,
        doc! { "find": "orders", "projection": { "_id": 1 }, "batchSize": 100_000 },
    );
    let updates: Vec<Document> = (0i64..)
        .zip(ids)
        .map(|(n, d)| doc! { "q": { "_id": d.get("_id").unwrap() }, "u": { "$set": { "spread": n * 7919 % 6007 } } })
        .collect();
    run_command(uri, "shop", doc! { "update": "orders", "updates": updates });
    checkpointed(&aged.bench.path("data"));
    let by = r#"{"spread": 1}"#;
    let document = json(&mut aged.reorder(&[COLLECTION, "--by", by, "--watch", "0s"]));
    assert_valid("reorder", &document);
    // This server numbers the documents of an answer and calls that record ids.
    let plan = &document["summary"]["plan"];
    assert_eq!(plan["clustering"], Value::Null);
    let limitations = document["limitations"].to_string();
    assert!(
        limitations.contains("neighbours of the index"),
        "{limitations}"
    );
    assert!(plan["sequential_share"].is_number(), "{plan}");
}

#[test]
fn what_cannot_be_reordered_is_refused_with_the_reason() {
    let _machine = shared_machine();
    let aged = loaded();
    let uri = &aged.server.uri;
    run_command(
        uri,
        "shop",
        doc! { "create": "open", "viewOn": "orders", "pipeline": [] },
    );
    let refused = |more: &[&str], code: i32, words: &[&str]| {
        let output = aged.reorder(more).output().unwrap();
        assert_fails(&output, code, words);
    };
    refused(&["shop.open"], 3, &["view"]);
    refused(&["admin.things"], 2, &["admin"]);
    refused(&["shop.nothing"], 2, &["nothing"]);
    refused(&[COLLECTION, "--by", r#"{"nowhere": 1}"#], 3, &["index"]);
    refused(&[COLLECTION, "--by", "sideways"], 2, &["--by"]);
    refused(&["noname"], 2, &["DATABASE.COLLECTION"]);
    assert!(
        !aged.bench.path("seekscope-runs").exists(),
        "refused before a run began"
    );

    // In order as it was loaded, and in the page cache.
    let calm = [COLLECTION, "--watch", "0s", "--apply", "--quiesced"];
    refused(&calm, 3, &["--force"]);
    let unsettled = [COLLECTION, "--watch", "0s", "--apply", "--force"];
    refused(&unsettled, 2, &["--quiesced"]);
}

#[test]
fn time_series_are_refused_where_the_server_has_them() {
    let _machine = shared_machine();
    let aged = loaded();
    let create = doc! { "create": "metrics", "timeseries": { "timeField": "t" } };
    run_command(&aged.server.uri, "shop", create);
    let output = aged.reorder(&["shop.metrics"]).output().unwrap();
    assert_fails(&output, 3, &["time-series"]);
}

#[test]
fn nothing_pending_is_said_and_is_no_failure() {
    let _machine = shared_machine();
    let aged = loaded();
    let before = aged.state();
    for task in ["resume", "rollback"] {
        let option = format!("--{task}");
        for collection in [Some(COLLECTION), None] {
            let more: Vec<&str> = collection.into_iter().chain([option.as_str()]).collect();
            let document = json(&mut aged.reorder(&more));
            assert_valid("reorder", &document);
            assert_eq!(document["summary"]["task"], task);
            assert_eq!(document["summary"]["recovered"], Value::Array(Vec::new()));
        }
        let output = aged.reorder(&[COLLECTION, &option]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains("No reordering is pending"),
            "{text}{}",
            stderr(&output)
        );
    }
    assert_eq!(aged.state(), before);
}

#[test]
fn passwords_are_neither_recorded_nor_shown() {
    let _machine = shared_machine();
    let aged = loaded();
    let away = "mongodb://anna:pa55word@127.0.0.1:1/?serverSelectionTimeoutMS=500";
    let output = aged
        .bench
        .seekscope(&["reorder", away, COLLECTION])
        .output()
        .unwrap();
    assert_fails(&output, 3, &["cannot connect to"]);
    assert!(!stderr(&output).contains("pa55word"));

    let pause = [
        "--pause-writers",
        "echo -p geheim1",
        "--continue-writers=echo geheim2",
    ];
    let mut planned = aged.reorder(&[COLLECTION, "--watch", "0s", "--out", "run"]);
    let output = planned.args(pause).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let record = run_document(&aged.bench.path("run")).to_string();
    assert!(record.contains("--pause-writers"), "{record}");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert!(!record.contains("geheim") && !shown.contains("geheim"));
}
