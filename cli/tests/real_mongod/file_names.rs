//! Files go by their collections' names on every release: before 6.0 there is no `$listCatalog`. On servers of their own:
//! of collections that other tests drop meanwhile the names are not known.

use std::process::Stdio;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_server::{FileMap, Namespace, Server, Unnamed};
use serde_json::Value;

use crate::running::{Running, own};
use crate::support::{Bench, json, run_document, runtime, shared_machine, stderr, until};

const DOCUMENTS: u64 = 500;

/// The collection's own file, as the server's statistics name it.
fn file_of(running: &Running, namespace: &str) -> String {
    let namespace: Namespace = namespace.parse().unwrap();
    let command = doc! { "collStats": namespace.collection() };
    let stats = running.command(namespace.database(), command);
    let uri = stats.get_document("wiredTiger").unwrap();
    let uri = uri.get_str("uri").unwrap();
    format!("{}.wt", uri.strip_prefix("statistics:table:").unwrap())
}

fn unnamed_limitations(document: &Value) -> Vec<&Value> {
    let all = document["limitations"].as_array().unwrap().iter();
    all.filter(|l| {
        let what = l["what"].as_str().unwrap();
        what.contains("without their collections") || what.contains("which file holds")
    })
    .collect()
}

#[test]
fn the_server_is_asked_about_what_its_directory_does_not_tell() {
    let _machine = shared_machine();
    let running = own(Topology::Standalone, &[]);
    running.load("file_names.asked", DOCUMENTS);
    let index =
        doc! { "createIndexes": "asked", "indexes": [{ "key": { "n": 1 }, "name": "by_n" }] };
    running.command("file_names", index);
    let file = file_of(&running, "file_names.asked");
    let namespace: Namespace = "file_names.asked".parse().unwrap();
    let (map, unnamed) = runtime().block_on(async {
        let server = Server::connect(running.uri()).await.unwrap();
        let mut map = FileMap::default();
        let unnamed = map.ask_about_the_rest(&server, &[]).await;
        (map, unnamed)
    });
    assert_eq!(unnamed, Unnamed::default());
    assert_eq!(map.collection_file(&namespace), Some(file));
    assert_eq!(map.index_files(&namespace).len(), 2);
    // The server's own are named as well.
    let own: Namespace = "local.startup_log".parse().unwrap();
    assert!(map.collection_file(&own).is_some());
}

#[test]
fn a_trace_of_a_server_names_collections_and_indexes() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    let insert = |id: i32| {
        let insert = doc! { "insert": "traced", "documents": [{ "_id": id }] };
        running.command("file_names", insert);
    };
    insert(1);
    let arguments = [
        "trace",
        "--target",
        running.uri(),
        "--for",
        "10s",
        "--out",
        "run",
    ];
    let mut trace = bench.seekscope(&arguments);
    trace.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = trace.spawn().unwrap();
    until(|| bench.path("run").join("io.spool").exists());
    insert(2);
    // Not there when the trace began.
    running.load("file_names.traced_later", DOCUMENTS);
    running.reset_page_cache();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = run_document(&bench.path("run"));
    let none: [&Value; 0] = [];
    assert_eq!(unnamed_limitations(&run), none);
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for name in ["file_names.traced", "file_names.traced_later"] {
        let file = file_of(&running, name);
        assert!(shown.contains(&format!("{name} ({file})")), "{shown}");
        assert!(shown.contains(&format!("{name}/_id_")), "{shown}");
    }
}

#[test]
fn no_alarm_heads_layout_where_every_file_has_its_name() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    running.load("file_names.laid_out", DOCUMENTS);
    running.reset_page_cache();
    let document = json(&mut bench.seekscope(&[
        "layout",
        running.uri(),
        "file_names.laid_out",
        "--out",
        "run",
    ]));
    let none: [&Value; 0] = [];
    assert_eq!(unnamed_limitations(&document), none);
    let files = document["summary"]["files"].as_array().unwrap();
    let file = file_of(&running, "file_names.laid_out");
    let found = files.iter().find(|f| f["file"] == file.as_str());
    let found = found.unwrap_or_else(|| panic!("{file}: {files:#?}"));
    assert_eq!(found["namespace"], "file_names.laid_out");
}

#[test]
fn doctor_and_top_name_them_too() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    running.load("file_names.examined", DOCUMENTS);
    let arguments = ["doctor", running.uri(), "--for", "3s", "--out", "run"];
    let document = json(&mut bench.seekscope(&arguments));
    let none: [&Value; 0] = [];
    assert_eq!(unnamed_limitations(&document), none);
    let top = bench
        .seekscope(&["top", running.uri(), "--once", "--json"])
        .output();
    let top = String::from_utf8(top.unwrap().stdout).unwrap();
    assert!(!top.contains("without their collections"), "{top}");
}
