//! `advise` on collections whose best way of storing is known, compared with what that way costs when the whole
//! collection is stored so.

use std::path::Path;
use std::time::Duration;

use mongodb::bson::{DateTime, Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_server::{LocalServerOptions, PrivateServer, Server, Workspace};
use seekscope_stats::SplitMix64;
use seekscope_workload::WorkloadError;
use serde_json::Value;

use crate::running::{programs, shared};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, machine, runtime, send, until};

const DATABASE: &str = "advise";
const CACHE_BYTES: u64 = 256 << 20;
const MINUTE_MS: i64 = 60_000;
const DEVICES: i64 = 100;
/// Minutes that a query asks for.
const STRETCH: i64 = 120;
/// One device of so many is left where the samples of others are deleted.
const LEFT: i64 = 4;

/// A mongod of a test's own, which can be started again on its data with an empty cache.
struct Prepared {
    // Dropped in this order.
    private: PrivateServer,
    runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
}

impl Prepared {
    fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let leases: &Path = &folder.path().join("leases");
        let workspace = Workspace::create(folder.path(), leases).unwrap();
        let data = workspace.data_directory();
        let options = LocalServerOptions::new(programs().mongod, data, CACHE_BYTES);
        let mut prepared = Self {
            private: PrivateServer::new(workspace, options, None),
            runtime: runtime(),
            _folder: folder,
        };
        prepared.restart();
        prepared
    }

    fn restart(&mut self) {
        self.runtime.block_on(async {
            self.private.stop().await.unwrap();
            self.private.start::<WorkloadError>().await.unwrap();
        });
    }

    fn uri(&self) -> String {
        self.private.running().unwrap().uri()
    }

    fn command(&self, database: &str, command: Document) -> Document {
        self.runtime.block_on(async {
            let server = Server::connect(&self.uri()).await.unwrap();
            server.command(database, command).await.unwrap()
        })
    }
}

/// Inserts documents made from their number, in its order.
fn insert(running: &Prepared, collection: &str, count: i64, document: impl Fn(i64) -> Document) {
    for batch in (0..count).collect::<Vec<i64>>().chunks(1_000) {
        let documents: Vec<Document> = batch.iter().map(|n| document(*n)).collect();
        running.command(
            DATABASE,
            doc! { "insert": collection, "documents": documents },
        );
    }
}

fn index(running: &Prepared, collection: &str, keys: Document) {
    let index = doc! { "key": keys, "name": "made" };
    running.command(
        DATABASE,
        doc! { "createIndexes": collection, "indexes": [index] },
    );
}

/// Has the server read a collection from the disk, as one in use has: after inserts everything may still be in its cache,
/// and then it cannot say how full pages are.
fn read_anew(running: &mut Prepared, collection: &str) {
    running.restart();
    let scan = doc! { "find": collection, "filter": { "none": 1 }, "hint": { "$natural": 1 } };
    running.command(DATABASE, scan);
}

/// Text of so many characters that hardly compresses, the same for a number.
fn text(number: i64, length: usize) -> String {
    let mut random = SplitMix64::new(number.unsigned_abs());
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&format!("{:016x}", random.next_u64()));
    }
    text.truncate(length);
    text
}

/// A sample of each device a minute, in no order within the minute.
fn sample(number: i64) -> Document {
    let (minute, place) = (number / DEVICES, number % DEVICES);
    let device = (place * 37 + minute * 11) % DEVICES;
    let at = DateTime::from_millis(1_700_000_000_000 + minute * MINUTE_MS);
    doc! { "device": format!("device {device}"), "ts": at, "value": text(number, 40) }
}

fn document(
    bench: &Bench,
    running: &Prepared,
    collection: &str,
    query: &str,
    more: &[&str],
) -> Value {
    let mongod = programs().mongod.path.display().to_string();
    let namespace = format!("{DATABASE}.{collection}");
    let uri = running.uri();
    let mut arguments = vec!["advise", &uri, &namespace, "--query", query];
    arguments.extend(["--server-binary", &mongod]);
    arguments.extend(more);
    let document = json(&mut bench.seekscope(&arguments));
    assert_valid("advise", &document);
    document
}

fn advice(
    bench: &Bench,
    running: &Prepared,
    collection: &str,
    query: &str,
    more: &[&str],
) -> Value {
    document(bench, running, collection, query, more)["summary"].clone()
}

/// Blocks that the server reads for a query with everything but the upper pages of the files out of its cache: queries
/// of a fresh server.
fn blocks(running: &Prepared, collection: &str, keys: &Document, queries: &[Document]) -> f64 {
    let read = || {
        let stats = running.command(DATABASE, doc! { "collStats": collection });
        let pages = |file: &Document| {
            let cache = file.get_document("cache").unwrap();
            f64::from(cache.get_i32("pages read into cache").unwrap())
        };
        let indexes = stats.get_document("indexDetails").unwrap().iter();
        let indexes = indexes.map(|(_, index)| pages(index.as_document().unwrap()));
        pages(stats.get_document("wiredTiger").unwrap()) + indexes.sum::<f64>()
    };
    let nothing: Document = keys
        .keys()
        .map(|key| (key.clone(), "nothing".into()))
        .collect();
    running.command(
        DATABASE,
        doc! { "find": collection, "filter": nothing, "hint": keys },
    );
    running.command(DATABASE, doc! { "find": collection, "limit": 1 });
    let before = read();
    for query in queries {
        let find =
            doc! { "find": collection, "filter": query.clone(), "hint": keys, "batchSize": 10_000 };
        running.command(DATABASE, find);
    }
    (read() - before) / queries.len() as f64
}

/// The same of a server that was restarted with the collection's files, which closes every page of the cache.
fn cold_blocks(
    running: &mut Prepared,
    collection: &str,
    keys: &Document,
    queries: &[Document],
) -> f64 {
    running.restart();
    blocks(running, collection, keys, queries)
}

fn way<'a>(summary: &'a Value, kind: &str) -> &'a Value {
    let ways = summary["ways"].as_array().unwrap();
    let found = ways.iter().find(|way| way["kind"] == kind);
    found.unwrap_or_else(|| panic!("no way of kind {kind}: {summary:#}"))
}

fn advised(summary: &Value) -> &Value {
    let number = summary["verdict"]["way"].as_u64().unwrap();
    &summary["ways"][usize::try_from(number).unwrap()]
}

/// The predicted reduction is within a quarter of the measured one.
fn assert_reduction(summary: &Value, kind: &str, measured: (f64, f64)) {
    let blocks = |kind: &str| way(summary, kind)["blocks_per_query"].as_f64().unwrap();
    let predicted = blocks("present") - blocks(kind);
    let true_one = measured.0 - measured.1;
    assert!(
        (predicted / true_one - 1.0).abs() <= 0.25,
        "predicted {predicted}, measured {measured:?}: {summary:#}"
    );
}

/// Queries for the samples of some device in each of the stretches of time that make up so many minutes. Pages at one
/// place of a file hold up to three times as much as at another, so that a few stretches say nothing of the whole.
fn stretches(minutes: i64, span_ms: i64) -> Vec<Document> {
    let one = |n: i64| {
        let from = 1_700_000_000_000 + n * STRETCH * MINUTE_MS;
        let until = DateTime::from_millis(from + STRETCH * MINUTE_MS);
        let from = DateTime::from_millis(from - from.rem_euclid(span_ms));
        let device = format!("device {}", n * LEFT % DEVICES);
        doc! { "device": device, "ts": { "$gte": from, "$lt": until } }
    };
    (0..minutes / STRETCH).map(one).collect()
}

#[test]
fn series_are_to_be_joined_and_the_prediction_comes_true() {
    let _machine = machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let minutes = 4_000;
    insert(&running, "series", DEVICES * minutes, sample);
    let keys = doc! { "device": 1, "ts": 1 };
    index(&running, "series", keys.clone());
    read_anew(&mut running, "series");
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?", "$lt": "?"}}, "per_s": 10, "returns": 120}"#;
    let summary = advice(&bench, &running, "series", query, &["--sample", "20000"]);
    assert_eq!(summary["sample"]["documents"], 20_000);
    let joined = advised(&summary);
    assert_eq!(joined["kind"], "buckets", "{summary:#}");
    let span_ms = joined["bucket_ms"].as_i64().unwrap();
    // Everything was read once since the start, which says nothing of what the cache will do.
    assert!(summary["collection"]["missed_share"].is_null());
    assert!(joined["s_per_hour"].is_null());

    // For real: the whole collection in the same buckets.
    let ms = doc! { "$toLong": "$ts" };
    let start = doc! { "$subtract": [ms.clone(), { "$mod": [ms, span_ms] }] };
    let pipeline = vec![
        doc! { "$group": { "_id": { "d": "$device", "s": start }, "samples": { "$push": { "ts": "$ts", "value": "$value" } } } },
        doc! { "$sort": { "_id.s": 1 } },
        doc! { "$project": { "_id": 0, "device": "$_id.d", "ts": { "$toDate": "$_id.s" }, "samples": 1 } },
        doc! { "$out": "joined" },
    ];
    running.command(
        DATABASE,
        doc! { "aggregate": "series", "pipeline": pipeline, "cursor": {}, "allowDiskUse": true },
    );
    index(&running, "joined", keys.clone());
    let present = cold_blocks(&mut running, "series", &keys, &stretches(minutes, 1));
    let after = cold_blocks(&mut running, "joined", &keys, &stretches(minutes, span_ms));
    assert_reduction(&summary, "buckets", (present, after));
}

#[test]
fn pages_that_deletes_left_nearly_empty_are_predicted_as_they_are() {
    let _machine = machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let minutes = 2_400;
    insert(&running, "emptied", DEVICES * minutes, sample);
    let gone = (0..DEVICES).filter(|device| device % LEFT != 0);
    let gone: Vec<String> = gone.map(|device| format!("device {device}")).collect();
    let delete = doc! { "q": { "device": { "$in": gone } }, "limit": 0 };
    // Pages that were written before are not joined when documents of theirs are deleted.
    running.restart();
    running.command(DATABASE, doc! { "delete": "emptied", "deletes": [delete] });
    let keys = doc! { "device": 1, "ts": 1 };
    index(&running, "emptied", keys.clone());
    running.restart();
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?", "$lt": "?"}}, "returns": 120}"#;
    let asked = |running: &Prepared| {
        let more = ["--sample", "10000"];
        let document = document(&bench, running, "emptied", query, &more);
        let limitations = document["limitations"].to_string();
        let is_said = limitations.contains("how full the collection's pages are is not known");
        (document["summary"].clone(), is_said)
    };
    let (unknown, is_said) = asked(&running);
    assert!(is_said);
    assert_eq!(unknown["collection"]["page_bytes"], Value::Null);
    read_anew(&mut running, "emptied");
    let (known, is_said) = asked(&running);
    assert!(!is_said);
    assert!(known["collection"]["page_bytes"].as_f64().unwrap() < 30_000.0);

    let present = cold_blocks(&mut running, "emptied", &keys, &stretches(minutes, 1));
    let predicted = |summary: &Value| {
        way(summary, "present")["blocks_per_query"]
            .as_f64()
            .unwrap()
    };
    assert!(predicted(&unknown) < 0.5 * present, "{unknown:#}");
    assert!(
        (predicted(&known) / present - 1.0).abs() <= 0.25,
        "measured {present}: {known:#}"
    );
}

#[test]
fn an_index_that_begins_with_the_date_is_to_be_turned_round() {
    let _machine = machine();
    let running = Prepared::start();
    let bench = Bench::new();
    // Each device's samples came in one go.
    let per_device = 200;
    let document = |n: i64| {
        let (device, minute) = (n / per_device, n % per_device);
        let at = DateTime::from_millis(1_700_000_000_000 + minute * MINUTE_MS);
        doc! { "device": device * 7_919 % 100_003, "ts": at, "text": text(n, 200) }
    };
    insert(&running, "dated", 1_000 * per_device, document);
    index(&running, "dated", doc! { "ts": 1, "device": 1 });
    let query = r#"{"filter": {"device": "?", "ts": {"$gte": "?"}}, "returns": 50}"#;
    let summary = advice(&bench, &running, "dated", query, &["--sample", "10000"]);
    let turned = advised(&summary);
    assert_eq!(turned["kind"], "index", "{summary:#}");
    assert_eq!(turned["keys"], r#"{ "device": 1, "ts": 1 }"#);
    assert_eq!(turned["replaces"], r#"{ "ts": 1, "device": 1 }"#);
}

#[test]
fn ranges_of_a_scattered_field_want_their_order_and_the_prediction_comes_true() {
    let _machine = machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    let count = 200_000;
    let document = |n: i64| {
        let price = SplitMix64::new(n.unsigned_abs()).next_u64() % 1_000_000_000;
        doc! { "price": i64::try_from(price).unwrap(), "text": text(n, 300) }
    };
    insert(&running, "items", count, document);
    let keys = doc! { "price": 1 };
    index(&running, "items", keys.clone());
    let query = r#"{"filter": {"price": {"$gte": "?", "$lt": "?"}}, "returns": 200}"#;
    let summary = advice(&bench, &running, "items", query, &["--sample", "10000"]);
    let ordered = advised(&summary);
    assert_eq!(
        (&ordered["kind"], &ordered["keys"]),
        (&"order".into(), &r#"{ "price": 1 }"#.into())
    );

    let pipeline = vec![doc! { "$sort": keys.clone() }, doc! { "$out": "ordered" }];
    running.command(
        DATABASE,
        doc! { "aggregate": "items", "pipeline": pipeline, "cursor": {}, "allowDiskUse": true },
    );
    index(&running, "ordered", keys.clone());
    let one =
        |n: i64| doc! { "price": { "$gte": n * 166_666_666, "$lt": n * 166_666_666 + 1_000_000 } };
    let queries: Vec<Document> = (1..=5).map(one).collect();
    let present = cold_blocks(&mut running, "items", &keys, &queries);
    let after = cold_blocks(&mut running, "ordered", &keys, &queries);
    assert_reduction(&summary, "order", (present, after));
}

#[test]
fn what_is_stored_well_is_left_as_it_is_and_nothing_is_written() {
    let _machine = machine();
    let running = Prepared::start();
    let bench = Bench::new();
    insert(
        &running,
        "well",
        20_000,
        |n| doc! { "_id": n, "text": text(n, 300) },
    );
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

/// 20,000 documents of 500 customers.
fn insert_of_customers(running: &Prepared, collection: &str) {
    insert(
        running,
        collection,
        20_000,
        |n| doc! { "_id": n, "customer": n % 500, "text": text(n, 200) },
    );
}

/// What is advised while ten customers a second are asked for.
fn advice_beside_finds(bench: &Bench, running: &Prepared, collection: &str) -> Value {
    let mongod = programs().mongod.path.display().to_string();
    let namespace = format!("{DATABASE}.{collection}");
    let uri = running.uri();
    let arguments = [
        "advise",
        &uri,
        &namespace,
        "--for",
        "5s",
        "--server-binary",
        &mongod,
    ];
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            runtime().block_on(async {
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                for n in 0..60_i64 {
                    let find =
                        doc! { "find": collection, "filter": { "customer": n }, "batchSize": 1_000 };
                    client.database(DATABASE).run_command(find).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            });
        });
        let document = json(&mut bench.seekscope(&arguments));
        asking.join().unwrap();
        document
    })
}

/// The profiler is off. What the log calls slow is not all that was asked, so the rate is not known.
#[test]
fn slow_queries_are_seen_in_the_log() {
    let _machine = machine();
    let running = Prepared::start();
    let bench = Bench::new();
    insert_of_customers(&running, "slow");
    running.command(DATABASE, doc! { "profile": 0, "slowms": 0 });
    let document = advice_beside_finds(&bench, &running, "slow");
    let summary = &document["summary"];
    let shape = &summary["shapes"][0];
    assert_eq!(shape["source"], "log", "{document:#}");
    assert_eq!(shape["equality"], serde_json::json!(["customer"]));
    assert_eq!(
        (&shape["returned"], &shape["per_s"]),
        (&40.0.into(), &Value::Null)
    );
    assert_eq!(
        advised(summary)["keys"],
        r#"{ "customer": 1 }"#,
        "{summary:#}"
    );
    assert!(!document.to_string().contains(&text(7, 200)));
}

#[test]
fn queries_are_seen_in_the_profile_with_their_rates() {
    let _machine = machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    insert_of_customers(&running, "seen");
    // All of it is in the cache, though each page that was asked for so far had to be read.
    read_anew(&mut running, "seen");
    running.command(DATABASE, doc! { "profile": 2 });
    let document = advice_beside_finds(&bench, &running, "seen");
    let summary = &document["summary"];
    let shape = &summary["shapes"][0];
    assert_eq!(shape["source"], "profile", "{document:#}");
    assert_eq!(shape["equality"], serde_json::json!(["customer"]));
    assert_eq!(shape["returned"], 40.0);
    assert!(
        (1.0..=12.0).contains(&shape["per_s"].as_f64().unwrap()),
        "{shape}"
    );
    assert!(
        way(summary, "present")["costs"][0]["collection_scan"]
            .as_bool()
            .unwrap()
    );
    let missed = summary["collection"]["missed_share"].as_f64().unwrap();
    assert!(missed < 0.01, "{missed}");
    assert!(way(summary, "present")["s_per_hour"].as_f64().unwrap() > 0.0);
    // In the order of the index, too, or not.
    assert_eq!(
        advised(summary)["keys"],
        r#"{ "customer": 1 }"#,
        "{summary:#}"
    );
    // Of queries the names of fields are kept.
    assert!(!document.to_string().contains(&text(7, 200)));
}

#[test]
fn what_cannot_be_tried_is_said_before_anything_is_begun() {
    let running = shared(Topology::Standalone);
    running.command(DATABASE, doc! { "create": "nothing" });
    running.command(
        DATABASE,
        doc! { "create": "view", "viewOn": "nothing", "pipeline": [] },
    );
    for (collection, words) in [
        ("nothing", "it holds no documents"),
        ("view", "it is a view"),
        ("missing", "there is no collection of that name"),
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
        assert_fails(&output, 3, &["there is no advice on", words]);
        assert!(!bench.path("seekscope-runs").exists());
    }
    running.command(DATABASE, doc! { "dropDatabase": 1 });
}

#[test]
fn what_a_trial_lacks_is_said_before_the_queries_are_watched() {
    let _machine = machine();
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
    let mongod = programs().mongod.path.display().to_string();
    let query = r#"{"device": "?", "ts": {"$gte": "?"}}"#;
    let uri = running.uri();
    let mut advise = bench.seekscope(&["advise", &uri, &namespace, "--query", query]);
    advise.args(["--server-binary", &mongod, "--budget", "1ms"]);
    let words = "the time for trying was over";
    assert_fails(&advise.output().unwrap(), 3, &[words, "--budget"]);
}

#[test]
fn interrupted_it_leaves_no_server_and_no_data() {
    let _machine = machine();
    let running = Prepared::start();
    let bench = Bench::new();
    insert(&running, "series", 50_000, sample);
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
