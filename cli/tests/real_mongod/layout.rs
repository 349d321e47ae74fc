//! `layout` on a running mongod.

use std::process::Stdio;
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_layout::scan_prediction::engine_ns_per_byte;
use seekscope_wiredtiger::Compressor;
use serde_json::Value;

use crate::mongod::Mongod;
use crate::running::{own, shared};
use crate::schemas::assert_valid;
use crate::support::{
    Bench, assert_fails, json, load_documents, run_document, shared_machine, stderr, until,
};

#[test]
fn a_collection_of_a_running_server_is_found_by_name() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = shared(Topology::Standalone);
    running.load("layout.orders", 2_000);
    running.reset_page_cache();
    let arguments = ["layout", running.uri(), "layout.orders", "--out", "run"];
    let document = json(&mut bench.seekscope(&arguments));
    assert_valid("layout", &document);
    let files = document["summary"]["files"].as_array().unwrap();
    let names = files.iter().map(|file| &file["namespace"]);
    assert!(
        names.clone().any(|name| name == "layout.orders"),
        "{files:#?}"
    );
}

/// The files of a layout document that belong to a collection, by its name.
fn of<'a>(document: &'a Value, namespace: &str) -> Vec<&'a Value> {
    let files = document["summary"]["files"].as_array().unwrap();
    files
        .iter()
        .filter(|file| file["namespace"] == namespace)
        .collect()
}

/// Needs a server of its own: what other tests drop meanwhile would be reported missing.
#[test]
fn the_catalogue_names_every_file_and_nothing_is_reported_missing() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    running.load("layout_names.orders", 200);
    running.reset_page_cache();
    let document = json(&mut bench.seekscope(&["layout", running.uri(), "--out", "run"]));
    assert_eq!(document["limitations"], serde_json::json!([]));
    let files = document["summary"]["files"].as_array().unwrap();
    for file in files {
        assert!(file["namespace"].is_string(), "{file:#}");
    }
    assert_eq!(of(&document, "layout_names.orders").len(), 2);
}

/// The catalogue and the metadata are as of the last checkpoint, so a collection made since is in neither.
#[test]
fn a_collection_made_since_the_last_checkpoint_is_said_to_be_there() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &["--syncdelay", "3600"]);
    running.command("admin", doc! { "fsync": 1 });
    running.load("layout_new.orders", 200);
    let why = |document: &Value| -> Vec<String> {
        let files = document["summary"]["files"].as_array().unwrap();
        let whys = files
            .iter()
            .filter_map(|file| file["not_measured"].as_str());
        let late = whys.filter(|why| why.starts_with("created since the last checkpoint"));
        late.map(String::from).collect()
    };
    let path = running.data_directory().to_str().unwrap().to_owned();
    let by_path = json(&mut bench.seekscope(&["layout", &path, "--out", "by-path"]));
    // The collection and its index.
    let said = why(&by_path);
    assert_eq!(said.len(), 2, "{by_path:#}");
    assert!(said[0].contains("{fsync: 1}"), "{said:?}");
    assert_valid("layout", &by_path);
    // From the directory alone its name is not known, but that there are such files.
    let by_name = ["layout", path.as_str(), "layout_new.orders"];
    let output = bench.seekscope(&by_name).output().unwrap();
    assert_fails(
        &output,
        2,
        &["2 files were created since the last checkpoint"],
    );
    // The server knows it by name.
    let arguments = [
        "layout",
        running.uri(),
        "layout_new.orders",
        "--out",
        "by-name",
    ];
    let by_name = json(&mut bench.seekscope(&arguments));
    assert_eq!(why(&by_name).len(), 1, "{by_name:#}");
    assert_eq!(of(&by_name, "layout_new.orders").len(), 1, "{by_name:#}");

    running.command("admin", doc! { "fsync": 1 });
    let after = json(&mut bench.seekscope(&["layout", &path, "--out", "after"]));
    assert_eq!(why(&after), Vec::<String>::new());
    assert_eq!(of(&after, "layout_new.orders").len(), 2);
}

/// The catalogue names what was dropped until the next checkpoint, and the files are gone.
#[test]
fn what_was_dropped_since_the_last_checkpoint_is_left_out() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut running = Mongod::start(&bench, "data", &["--syncdelay", "3600"]);
    for collection in ["kept", "dropped", "again"] {
        load_documents(
            &running.uri(),
            &format!("shop.{collection}").parse().unwrap(),
            200,
        );
        let by_n = doc! { "key": { "n": 1 }, "name": "by_n" };
        running.command(
            "shop",
            doc! { "createIndexes": collection, "indexes": [by_n] },
        );
    }
    running.command("admin", doc! { "fsync": 1 });
    running.command("shop", doc! { "drop": "dropped" });
    running.command("shop", doc! { "dropIndexes": "kept", "index": "by_n" });
    // The server has a collection of that name, and not in that file.
    running.command("shop", doc! { "drop": "again" });
    running.command("shop", doc! { "create": "again" });
    let lacking = ["shop.dropped", "shop.kept/by_n", "shop.again/by_n"];
    let data = running.data().to_owned();
    // The files go a little later.
    until(|| {
        let mut layout = bench.seekscope(&["layout", &data, "shop.kept/by_n"]);
        !layout.output().unwrap().status.success()
    });
    for place in [running.uri(), data.clone()] {
        let document = json(&mut bench.seekscope(&["layout", &place]));
        assert_eq!(document["outcome"], "ok", "{document:#}");
        let limitations = document["limitations"].as_array().unwrap();
        let [limitation] = limitations.as_slice() else {
            panic!("{limitations:#?}")
        };
        let what = limitation["what"].as_str().unwrap();
        assert!(lacking.iter().all(|name| what.contains(name)), "{what}");
        assert_eq!(of(&document, "shop.dropped").len(), 0);
        assert_eq!(of(&document, "shop.kept").len(), 2, "itself and _id_");
    }
    running.end(libc::SIGKILL);
    let output = bench.seekscope(&["layout", &data]).output().unwrap();
    assert_fails(&output, 1, &["is gone"]);
}

/// A file that is gone and that the server has is lost.
#[test]
fn what_a_running_server_lost_is_an_error() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = Mongod::start(&bench, "data", &["--syncdelay", "3600"]);
    load_documents(&running.uri(), &"shop.lost".parse().unwrap(), 200);
    running.command("admin", doc! { "fsync": 1 });
    let stats = running.command("shop", doc! { "collStats": "lost" });
    let table = stats.get_document("wiredTiger").unwrap();
    let table = table.get_str("uri").unwrap().rsplit(':').next().unwrap();
    std::fs::remove_file(format!("{}/{table}.wt", running.data())).unwrap();
    let output = bench.seekscope(&["layout", &running.uri()]).output();
    assert_fails(&output.unwrap(), 1, &["is gone"]);
}

#[test]
fn a_watch_ends_with_its_server() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut running = Mongod::start(&bench, "data", &[]);
    let uri = running.uri();
    let mut watch = bench.seekscope(&[
        "layout", &uri, "--watch", "--every", "1s", "--for", "60s", "--out", "run",
    ]);
    let watch = watch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = watch.spawn().unwrap();
    let began = Instant::now();
    until(|| bench.path("run").join("run.json").exists());
    std::thread::sleep(Duration::from_secs(3));
    // One that is restarted is followed further.
    running.end(libc::SIGTERM);
    running.start_again();
    std::thread::sleep(Duration::from_secs(8));
    running.end(libc::SIGKILL);
    let output = child.wait_with_output().unwrap();
    assert!(began.elapsed() < Duration::from_secs(40), "{began:?}");
    assert_fails(
        &output,
        1,
        &["the server ended after 1", "of the 60.0 s requested"],
    );
    assert_eq!(run_document(&bench.path("run"))["outcome"], "partial");
}

#[test]
fn a_view_is_said_to_be_one() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = shared(Topology::Standalone);
    running.load("layout_view.orders", 200);
    let view = doc! { "create": "cheap", "viewOn": "orders", "pipeline": [] };
    running.command("layout_view", view);
    running.reset_page_cache();
    let path = running.data_directory().to_str().unwrap().to_owned();
    for place in [running.uri(), path.as_str()] {
        let arguments = ["layout", place, "layout_view.cheap"];
        let output = bench.seekscope(&arguments).output().unwrap();
        let says = "layout_view.cheap is a view on layout_view.orders";
        assert_fails(&output, 2, &[says]);
        assert!(!stderr(&output).contains("there is no"));
    }
}

/// Whatever the file looks like, and on every kind of disk.
#[test]
fn a_scan_in_order_is_never_predicted_to_be_slower() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Files that other tests drop while they are read have no prediction.
    let running = own(Topology::Standalone, &[]);
    for collection in ["orders", "lines", "items"] {
        running.load(&format!("layout_order.{collection}"), 4_000);
    }
    running.reset_page_cache();
    for disk in ["hdd", "cloud", "ssd", "nvme"] {
        let arguments = ["layout", running.uri(), "--typical", disk, "--out", disk];
        let document = json(&mut bench.seekscope(&arguments));
        let files = document["summary"]["files"].as_array().unwrap();
        let scans = files.iter().map(|file| &file["predicted_scan_s"]);
        let scans: Vec<&Value> = scans.filter(|scan| scan.is_object()).collect();
        assert!(scans.len() > 2, "{files:#?}");
        for scan in scans {
            let s = |name: &str| scan[name].as_f64().unwrap();
            assert!(s("ordered") <= s("now"), "{disk}: {scan}");
            assert!(
                s("now_low") <= s("now") && s("now") <= s("now_high"),
                "{scan}"
            );
        }
    }
}

/// For files that compress well, decompression and cursor steps used to be estimated for half as much data.
#[test]
fn a_scans_time_is_that_of_its_documents() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = shared(Topology::Standalone);
    let text = "seven times itself, or nearly so. ".repeat(300);
    let documents: Vec<_> = (0..2_000)
        .map(|n| doc! { "_id": n, "text": &text })
        .collect();
    let document_bytes: usize = documents
        .iter()
        .map(|document| document.to_vec().unwrap().len())
        .sum();
    for batch in documents.chunks(500) {
        running.command(
            "layout_engine",
            doc! { "insert": "orders", "documents": batch },
        );
    }
    running.reset_page_cache();
    let arguments = [
        "layout",
        running.uri(),
        "layout_engine.orders",
        "--typical",
        "nvme",
    ];
    let document = json(&mut bench.seekscope(&arguments));
    let file = of(&document, "layout_engine.orders")[0];
    assert_eq!(file["document_bytes"], document_bytes, "{file:#}");
    let leaf_bytes = file["leaf_bytes"].as_u64().unwrap();
    let compressor = Compressor::Snappy;
    let engine = |document_bytes| engine_ns_per_byte(compressor, document_bytes, leaf_bytes);
    let engine_s = engine(Some(document_bytes as u64)) * leaf_bytes as f64 / 1e9;
    assert!(engine(Some(document_bytes as u64)) > 3.0 * engine(None));
    let scan = &file["predicted_scan_s"];
    assert!(
        scan["ordered"].as_f64().unwrap() > engine_s,
        "{engine_s} {scan}"
    );
}
