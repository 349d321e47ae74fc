//! What `doctor` concludes of queries that an index would serve, and of those that sort.

use std::thread;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use serde_json::Value;

use crate::findings::{DATABASE, evidence, examined, finding, id, insert, meanwhile};
use crate::running::{beforehand, own};
use crate::support::{Bench, shared_machine};

#[test]
fn sorts_that_go_through_files_are_named() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let little = "internalQueryMaxBlockingSortMemoryUsageBytes=1048576";
    let running = own(Topology::Standalone, &["--setParameter", little]);
    insert(&running, "orders", 20_000, 800);
    let sort = |_| {
        let pipeline = [doc! { "$sort": { "bytes": 1 } }, doc! { "$skip": 19_999 }];
        doc! { "aggregate": "orders", "pipeline": pipeline.to_vec(), "allowDiskUse": true, "cursor": {} }
    };
    let document = meanwhile(&running, &[&sort], || {
        examined(&bench, &running, "10s", &[])
    });
    let found = finding(&document, "query.spills").unwrap_or_else(|| panic!("{document:#}"));
    assert!(evidence(found, 0).contains("_tmp/extsort"), "{found:#}");
    assert!(found["saves_s_per_hour"].as_f64().unwrap() > 0.0);
}

/// A scan of 10 ms each half second is hardly ever seen running: the log has them all, with their time.
#[test]
fn scans_that_are_short_and_frequent_are_named_by_the_log() {
    const DOCUMENTS: u64 = 30_000;
    let (_machine, running) = beforehand(|| {
        // To a set, a driver sends more with each command than to a server that is alone.
        let topology = Topology::ReplicaSet { members: 1 };
        let running = own(topology, &["--slowms", "1"]);
        insert(&running, "events", DOCUMENTS, 100);
        running
    });
    let bench = Bench::new();
    let select = |number: u64| {
        thread::sleep(Duration::from_millis(500));
        let id = id(number, DOCUMENTS);
        doc! { "find": "events", "filter": { "nowhere": id }, "comment": "seldom" }
    };
    let reading_us = || {
        let status = running.command("admin", doc! { "serverStatus": 1 });
        let reads = status.get_document("opLatencies").unwrap();
        let reads = reads.get_document("reads").unwrap();
        reads.get_i64("latency").unwrap()
    };
    let (document, spent_s_per_hour) = meanwhile(&running, &[&select], || {
        let (before_us, begun) = (reading_us(), std::time::Instant::now());
        let document = examined(&bench, &running, "12s", &[]);
        let spent_s = (reading_us() - before_us) as f64 / 1e6;
        (document, spent_s / begun.elapsed().as_secs_f64() * 3600.0)
    });
    let found = finding(&document, "query.collection-scan").unwrap();
    assert_eq!(found["subject"], "findings.events", "{found:#}");
    let said = found["evidence"].to_string();
    assert!(said.contains("by the server's log"), "{said}");
    assert!(
        said.contains("selects by nowhere, and nearly all"),
        "{said}"
    );
    let saves = found["saves_s_per_hour"].as_f64().unwrap();
    assert!(
        (0.6..1.4).contains(&(saves / spent_s_per_hour)),
        "{saves} of {spent_s_per_hour}: {found:#}"
    );
    let member = &document["examination"]["members"][0];
    assert!(member["slow_log_s"].as_f64().unwrap() > 11.0, "{member:#}");
    assert!(!member["operations"].to_string().contains("seldom"));
}

/// An index for one kind of operations lets its clients ask far more often, which says nothing of the others.
#[test]
fn an_index_is_credited_with_what_it_serves_alone() {
    const DOCUMENTS: u64 = 60_000;
    let (_machine, running) = beforehand(|| {
        let running = own(Topology::Standalone, &["--slowms", "2"]);
        insert(&running, "events", DOCUMENTS, 100);
        running
    });
    let bench = Bench::new();
    let select = |number| {
        let status = id(number, DOCUMENTS) + 10;
        doc! { "find": "events", "filter": { "status": status } }
    };
    let group = |_| {
        let by_status = doc! { "$group": { "_id": "$status", "count": { "$sum": 1 } } };
        doc! { "aggregate": "events", "pipeline": [by_status], "cursor": {} }
    };
    let out = bench.path("before");
    let out = out.to_str().unwrap();
    let before = meanwhile(&running, &[&select, &group], || {
        examined(&bench, &running, "10s", &["--out", out])
    });
    let found = finding(&before, "query.collection-scan").unwrap();
    let promised = found["alone_s_per_hour"]
        .as_f64()
        .or(found["saves_s_per_hour"].as_f64())
        .unwrap();
    let index = doc! { "key": { "status": 1 }, "name": "status" };
    running.command(
        DATABASE,
        doc! { "createIndexes": "events", "indexes": [index] },
    );
    let after = meanwhile(&running, &[&select, &group], || {
        examined(&bench, &running, "10s", &["--since", out])
    });
    let changes = &after["examination"]["since"]["changes"];
    let changes = changes.as_array().unwrap().iter();
    let of_scans = changes.filter(|change| change["id"] == "query.collection-scan");
    let of_scans: Vec<&Value> = of_scans.collect();
    let mended = of_scans
        .iter()
        .find(|change| change["change"] == "gone" || change["change"] == "better")
        .unwrap_or_else(|| panic!("{of_scans:#?}"));
    let figure = |name: &str| mended[name].as_f64().unwrap();
    let saved = figure("before") - figure("after");
    assert!(
        (0.5..1.5).contains(&(saved / promised)),
        "{saved} of {promised}: {of_scans:#?}"
    );
    // What groups still reads all, and is not said to be mended as well.
    for other in of_scans.iter().filter(|other| **other != *mended) {
        assert!(
            other["change"] == "new" || other["change"] == "same",
            "{of_scans:#?}"
        );
    }
}
