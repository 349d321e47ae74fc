//! What `doctor` concludes of a server under a load whose truth is known.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use seekscope_bench::deployment::Topology;
use seekscope_bench::gains::memory_group::MemoryGroup;
use seekscope_run::DeviceFacts;
use seekscope_server::slow_disk::{CgroupTree, SlowDisk, SlowDiskSpec};
use serde_json::Value;

use crate::running::{Running, beforehand, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, json, runtime, shared_machine};

pub const DATABASE: &str = "findings";

/// The command of a load, by a number that rises.
pub type Load<'a> = &'a (dyn Fn(u64) -> Document + Sync);

/// Sends each load's commands one after another, all loads at once, while `examine` runs.
pub fn meanwhile<R>(running: &Running, loads: &[Load<'_>], examine: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for (thread, load) in (0..).zip(loads) {
            let is_over = &is_over;
            scope.spawn(move || {
                runtime().block_on(async {
                    // Not by seekscope's own name, whose commands the doctor leaves out.
                    let client = mongodb::Client::with_uri_str(running.uri()).await.unwrap();
                    let database = client.database(DATABASE);
                    let mut number = thread * 7_919;
                    while !is_over.load(Ordering::Relaxed) {
                        database.run_command(load(number)).await.unwrap();
                        number += 1;
                    }
                });
            });
        }
        // Also when it panics: else the threads would not end.
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(examine));
        is_over.store(true, Ordering::Relaxed);
        found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Documents with `_id` from 0 on that do not compress.
pub fn insert(running: &Running, collection: &str, documents: u64, bytes: usize) {
    let mut random = seekscope_stats::SplitMix64::new(1);
    let count = usize::try_from(documents).unwrap();
    // A command holds 16 MB at most.
    let at_once = (8_000_000 / bytes).clamp(1, 1_000);
    let ids: Vec<i64> = (0..i64::try_from(count).unwrap()).collect();
    let inserts = ids.chunks(at_once).map(|batch| {
        let documents: Vec<Document> = batch
            .iter()
            .map(|id| {
                let words = (0..bytes / 8).flat_map(|_| random.below(u64::MAX).to_le_bytes());
                let bytes = Binary {
                    subtype: BinarySubtype::Generic,
                    bytes: words.collect(),
                };
                doc! { "_id": id, "status": id % 3, "bytes": bytes }
            })
            .collect();
        doc! { "insert": collection, "documents": documents }
    });
    running.commands(DATABASE, inserts);
}

/// One of this many, in no order.
pub fn id(number: u64, documents: u64) -> i64 {
    i64::try_from(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % documents).unwrap()
}

pub fn examined(bench: &Bench, running: &Running, length: &str, more: &[&str]) -> Value {
    let mut arguments = vec!["doctor", running.uri(), "--for", length];
    arguments.extend(more);
    let document = json(&mut bench.seekscope(&arguments));
    assert_valid("doctor", &document);
    document
}

pub fn finding<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    let mut findings = document["findings"].as_array().unwrap().iter();
    findings.find(|finding| finding["id"] == id)
}

pub fn evidence(finding: &Value, at: usize) -> &str {
    finding["evidence"][at].as_str().unwrap()
}

/// Each checkpoint that ended is as long as the server's own counters have it, on a disk that writes 20 MB/s.
#[test]
fn checkpoints_take_as_long_as_the_server_says() {
    const ORDERS: u64 = 10_000;
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &["--syncdelay", "4"]);
    insert(&running, "orders", ORDERS, 4_000);
    let _slow = writes_limited(&running, 20_000_000);
    let totals_ms: Mutex<Vec<i64>> = Mutex::new(Vec::new());
    let poll = || {
        let status = running.command("admin", doc! { "serverStatus": 1 });
        let total = total_ms(&status);
        let mut totals_ms = totals_ms.lock().unwrap();
        if totals_ms.last() != Some(&total) {
            totals_ms.push(total);
        }
    };
    let change = |number| {
        let one = doc! { "q": { "_id": id(number, ORDERS) }, "u": { "$inc": { "status": 1 } } };
        doc! { "update": "orders", "updates": [one] }
    };
    let document = meanwhile(&running, &[&change, &change], || {
        thread::scope(|scope| {
            let examining = scope.spawn(|| examined(&bench, &running, "20s", &[]));
            while !examining.is_finished() {
                poll();
                thread::sleep(Duration::from_millis(50));
            }
            examining.join().unwrap()
        })
    });
    let answer = &document["summary"]["answers"]["checkpoints"];
    assert_eq!(answer["source"], "serverStatus", "{answer:#}");
    let totals_ms = totals_ms.into_inner().unwrap();
    let said: Vec<f64> = totals_ms
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64 / 1e3)
        .collect();
    let checkpoints = answer["checkpoints"].as_array().unwrap().iter();
    let mut took: Vec<f64> = checkpoints
        .map(|c| (c["ended_ns"].as_f64().unwrap() - c["started_ns"].as_f64().unwrap()) / 1e9)
        .collect();
    if answer["last_is_under_way"] == true {
        took.pop();
    }
    println!("took {took:?} s, the server says {said:?} s");
    assert!(!took.is_empty(), "{answer:#}");
    for seconds in &took {
        let is_it = |said: &f64| (seconds - said).abs() <= 0.05 * said + 0.002;
        assert!(said.iter().any(is_it), "{seconds} s is none of {said:?}");
    }
}

/// Returns the total time of all checkpoints since the server started, from the counter that its release has, ms.
fn total_ms(status: &Document) -> i64 {
    let engine = status.get_document("wiredTiger").unwrap();
    let of = |section: &str, name: &str| engine.get_document(section).ok()?.get(name);
    let total = of("transaction", "transaction checkpoint total time (msecs)")
        .or_else(|| of("checkpoint", "total time (msecs)"))
        .unwrap();
    total.as_i64().or(total.as_i32().map(i64::from)).unwrap()
}

fn group_name(running: &Running) -> String {
    format!("seekscope-test-{}", running.pid())
}

fn slow_disk(running: &Running, spec: &SlowDiskSpec) -> SlowDisk {
    let device = DeviceFacts::of_path(Path::new("/"), running.data_directory()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    SlowDisk::create(&tree, spec, &device, &group_name(running)).unwrap()
}

fn writes_limited(running: &Running, bytes_per_s: u64) -> SlowDisk {
    let device = DeviceFacts::of_path(Path::new("/"), running.data_directory()).unwrap();
    let reads_unlimited = SlowDiskSpec {
        name: "slow writes".into(),
        read_iops: 1_000_000,
        read_bytes_per_s: 1 << 40,
    };
    let mut slow = slow_disk(running, &reads_unlimited);
    let limit = format!("{} {bytes_per_s}", device.counted_device());
    std::fs::write(slow.group().join("blkio.throttle.write_bps_device"), limit).unwrap();
    slow.add_process(running.pid()).unwrap();
    slow
}

#[test]
fn updates_by_id_are_no_collection_scan() {
    const ORDERS: u64 = 5_000;
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    insert(&running, "orders", ORDERS, 200);
    let change = |number| {
        let some = (0..50).map(|one| {
            let id = id(number * 50 + one, ORDERS);
            doc! { "q": { "_id": id }, "u": { "$inc": { "status": 1 } } }
        });
        doc! { "update": "orders", "updates": some.collect::<Vec<Document>>() }
    };
    let document = meanwhile(&running, &[&change, &change], || {
        examined(&bench, &running, "8s", &[])
    });
    let updates = document["summary"]["answers"]["work"]["writes_per_s"].as_f64();
    // Fewer would be no load that is judged at all.
    assert!(updates.unwrap() > 1_000.0, "{updates:?}");
    assert_eq!(finding(&document, "query.collection-scan"), None);
}

/// They have no filter, and with the index the same load goes on in a hundredth of the time.
fn the_first_of_an_order_want_an_index(bench: &Bench, running: &Running) {
    let first = |_| doc! { "find": "totals", "sort": { "bytes": -1 }, "limit": 5 };
    let distinct = |_| doc! { "distinct": "orders", "key": "status" };
    let document = meanwhile(running, &[&first, &first, &distinct, &distinct], || {
        examined(bench, running, "10s", &["--out", "sorting"])
    });
    let findings = document["findings"].as_array().unwrap().iter();
    let scans = findings.filter(|finding| finding["id"] == "query.collection-scan");
    let scans: Vec<&Value> = scans.collect();
    for (subject, words) in [
        (
            "findings.totals",
            "index on {\"bytes\": -1} lets it read those alone",
        ),
        (
            "findings.orders",
            "index on {\"status\": 1} lets it read one key for each value",
        ),
    ] {
        let scan = scans.iter().find(|scan| scan["subject"] == subject);
        let scan = scan.unwrap_or_else(|| panic!("{document:#}"));
        assert!(evidence(scan, 1).contains(words), "{scan:#}");
        assert!(scan["saves_s_per_hour"].as_f64().unwrap() > 0.0, "{scan:#}");
        assert!(scan["command"].as_str().unwrap().contains("createIndex"));
    }
}

/// Each of them reads all documents, whatever ordinary index there is: mongod 4.4.6 takes as long with one, or longer.
fn what_an_index_cannot_serve_gets_no_promise(bench: &Bench, running: &Running) {
    let english = || doc! { "locale": "en", "strength": 2 };
    let size = |_| doc! { "find": "orders", "filter": { "bytes": { "$size": 7 } } };
    let collated =
        |_| doc! { "find": "totals", "sort": { "status": 1 }, "limit": 5, "collation": english() };
    // An index that compares bytes is there, and is not used.
    let index = doc! { "key": { "status": 1 }, "name": "status_1" };
    running.command(
        DATABASE,
        doc! { "createIndexes": "totals", "indexes": [index] },
    );
    let document = meanwhile(running, &[&size, &collated], || {
        examined(bench, running, "10s", &["--out", "beyond"])
    });
    running.command(
        DATABASE,
        doc! { "dropIndexes": "totals", "index": "status_1" },
    );
    let of = |subject: &str| {
        let mut findings = document["findings"].as_array().unwrap().iter();
        let found =
            findings.find(|f| f["id"] == "query.collection-scan" && f["subject"] == subject);
        found.unwrap_or_else(|| panic!("{document:#}"))
    };
    let sized = of("findings.orders");
    assert_eq!(sized["saves_s_per_hour"], Value::Null, "{sized:#}");
    assert!(evidence(sized, 1).contains("with $size"), "{sized:#}");
    let collated = of("findings.totals");
    let command = collated["command"].as_str().unwrap();
    let expected = r#"createIndex({"status": 1}, {collation: {"locale":"en","strength":2}})"#;
    assert!(command.contains(expected), "{command}");
    assert!(
        evidence(collated, 2).contains("status_1 has these keys"),
        "{collated:#}"
    );
}

/// Its own collection has an index for all that the server shows of its plan.
fn a_join_wants_an_index_on_the_other_collection(bench: &Bench, running: &Running) {
    let join = |number: u64| {
        let lookup = doc! { "from": "totals", "localField": "status", "foreignField": "nowhere", "as": "found" };
        let number = id(number, 40_000);
        let pipeline = [
            doc! { "$match": { "_id": number } },
            doc! { "$lookup": lookup },
        ];
        doc! { "aggregate": "orders", "pipeline": pipeline.to_vec(), "cursor": {} }
    };
    let document = meanwhile(running, &[&join, &join], || {
        examined(bench, running, "10s", &["--out", "joining"])
    });
    let found = finding(&document, "query.collection-scan");
    let found = found.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(found["subject"], "findings.totals", "{found:#}");
    assert!(found["saves_s_per_hour"].as_f64().unwrap() > 0.0);
    let command = found["command"].as_str().unwrap();
    assert!(
        command.contains("createIndex({\"nowhere\": 1})"),
        "{command}"
    );
}

/// An index is promised to a filter that takes few documents and none to what wants them all; and that the
/// load is gone afterwards proves nothing. With other work on the machine these queries would be in the log, which changes
/// what is said of them.
#[test]
fn collection_scans_and_an_idle_server_afterwards() {
    let (_machine, running) = beforehand(|| {
        let running = own(Topology::Standalone, &[]);
        insert(&running, "orders", 40_000, 200);
        insert(&running, "totals", 40_000, 200);
        running
    });
    let bench = Bench::new();
    let select = |number: u64| {
        let number = i64::try_from(number).unwrap();
        doc! { "find": "orders", "filter": { "nowhere": number } }
    };
    let document = meanwhile(&running, &[&select, &select, &select, &select], || {
        examined(&bench, &running, "10s", &["--out", "selecting"])
    });
    let found = finding(&document, "query.collection-scan").unwrap();
    assert_eq!(found["subject"], "findings.orders", "{found:#}");
    assert!(
        evidence(found, 1).contains("selects by nowhere, and nearly all"),
        "{found:#}"
    );

    let idle = examined(
        &bench,
        &running,
        "4s",
        &["--out", "idle", "--since", "selecting"],
    );
    let changes = idle["examination"]["since"]["changes"].as_array().unwrap();
    let scan = changes.iter().find(|c| c["id"] == "query.collection-scan");
    let scan = scan.unwrap();
    assert_eq!(scan["change"], "unknown", "{scan:#}");
    let verdict = scan["verdict"].as_str().unwrap();
    assert!(
        verdict.starts_with("cannot be told: the server had less to do"),
        "{verdict}"
    );
    let mut shown = bench.seekscope(&["doctor", "idle", "--since", "selecting"]);
    let screen = String::from_utf8(shown.output().unwrap().stdout).unwrap();
    assert!(
        screen.contains("Since the earlier run selecting:"),
        "{screen}"
    );
    assert!(screen.contains("cannot be told"), "{screen}");

    the_first_of_an_order_want_an_index(&bench, &running);
    what_an_index_cannot_serve_gets_no_promise(&bench, &running);
    a_join_wants_an_index_on_the_other_collection(&bench, &running);

    let group = |_| {
        let group = doc! { "_id": "$status", "n": { "$sum": 1 }, "last": { "$max": "$bytes" } };
        doc! { "aggregate": "totals", "pipeline": [{ "$group": group }], "cursor": {} }
    };
    let document = meanwhile(&running, &[&group, &group, &group, &group], || {
        examined(&bench, &running, "10s", &[])
    });
    let found = finding(&document, "query.collection-scan").unwrap();
    assert_eq!(found["subject"], "findings.totals");
    assert_eq!(found["saves_s_per_hour"], Value::Null, "{found:#}");
    assert!(
        evidence(found, 1).contains("no index spares that"),
        "{found:#}"
    );
}

/// Causes in how the server is asked and in its data model, of which the disk shows consequences at most.
#[test]
fn queries_connections_and_documents_that_cost_more_than_they_give() {
    // More than may be dirty in its cache, which is small: they are written before long.
    const CARTS: u64 = 20;
    let (_machine, running) = beforehand(|| {
        let running = own(Topology::Standalone, &[]);
        insert(&running, "orders", 20_000, 200);
        insert(&running, "carts", CARTS, 4_000_000);
        let names =
            (0..20_000_i64).map(|n| doc! { "_id": n, "name": format!("{:x}", n * 0x9E37_79B9) });
        for batch in names.collect::<Vec<Document>>().chunks(5_000) {
            running.command(
                DATABASE,
                doc! { "insert": "people", "documents": batch.to_vec() },
            );
        }
        let index = doc! { "key": { "name": 1 }, "name": "name_1" };
        running.command(
            DATABASE,
            doc! { "createIndexes": "people", "indexes": [index] },
        );
        running
    });
    let bench = Bench::new();

    let latest = |number: u64| {
        let filter = doc! { "status": i64::try_from(number % 3).unwrap() };
        doc! { "find": "orders", "filter": filter, "sort": { "bytes": -1 }, "limit": 10 }
    };
    let connecting = AtomicBool::new(true);
    let document = thread::scope(|scope| {
        scope.spawn(|| {
            runtime().block_on(async {
                while connecting.load(Ordering::Relaxed) {
                    let client = mongodb::Client::with_uri_str(running.uri()).await.unwrap();
                    let database = client.database(DATABASE);
                    database.run_command(doc! { "ping": 1 }).await.unwrap();
                }
            });
        });
        let found = meanwhile(&running, &[&latest], || {
            examined(&bench, &running, "10s", &["--out", "connecting"])
        });
        connecting.store(false, Ordering::Relaxed);
        found
    });
    let scan = finding(&document, "query.collection-scan").unwrap();
    assert!(
        evidence(scan, 1).contains("followed by {\"bytes\": -1}"),
        "{scan:#}"
    );
    assert!(
        scan["saves_s_per_hour"].as_f64().unwrap() > 100.0,
        "{scan:#}"
    );
    assert!(
        finding(&document, "connections.short-lived").is_some(),
        "{document:#}"
    );

    let search = |number: u64| {
        let filter = doc! { "name": { "$regex": format!("{:x}$", number % 4_096) } };
        doc! { "find": "people", "filter": filter, "limit": 1_000, "batchSize": 1_000 }
    };
    let change = |number: u64| {
        // What comes back takes its time: many changes in a row are written once.
        let filter = doc! { "_id": id(number, CARTS) };
        doc! { "findAndModify": "carts", "query": filter, "update": { "$inc": { "status": 1 } }, "new": true }
    };
    let document = meanwhile(&running, &[&search, &search, &change], || {
        examined(&bench, &running, "10s", &["--out", "searching"])
    });
    let search = finding(&document, "query.index-scan");
    let search = search.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(search["subject"], "findings.people", "{search:#}");
    assert!(
        evidence(search, 1).contains("may begin anywhere in name"),
        "{search:#}"
    );
    let large = finding(&document, "schema.large-documents");
    let large = large.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(large["subject"], "findings.carts", "{large:#}");
    assert!(
        finding(&document, "connections.short-lived").is_none(),
        "{document:#}"
    );
}

/// More data than a control group holds: its memory comes first, and no more cache is advised than it bears.
#[test]
fn the_memory_of_a_control_group_comes_before_the_disk() {
    const ORDERS: u64 = 12_000;
    // Of the server's own memory only what it takes after it joined the group is charged: most of this is
    // for page cache, and with its small cache the server stays far below it.
    const LIMIT_BYTES: u64 = 256 << 20;
    let (_machine, running) = beforehand(|| {
        let small_cache = ["--wiredTigerEngineConfigString", "cache_size=64M"];
        let running = own(Topology::Standalone, &small_cache);
        insert(&running, "orders", ORDERS, 40_000);
        running
    });
    let bench = Bench::new();
    running.reset_page_cache();
    let group = MemoryGroup::create(&group_name(&running), LIMIT_BYTES).unwrap();
    group.add(running.pid()).unwrap();
    let mut slow = slow_disk(&running, &SlowDiskSpec::hdd());
    let read = |number| {
        let filter = doc! { "_id": id(number, ORDERS) };
        doc! { "find": "orders", "filter": filter, "projection": { "status": 1 } }
    };
    let readers: [Load<'_>; 6] = [&read; 6];
    let document = meanwhile(&running, &readers, || {
        // All of it was in memory once before the disk becomes slow.
        thread::sleep(Duration::from_secs(15));
        slow.add_process(running.pid()).unwrap();
        examined(&bench, &running, "12s", &[])
    });
    let first = &document["findings"][0];
    assert_eq!(first["id"], "memory.short", "{:#}", document["findings"]);
    let command = first["command"].as_str().unwrap();
    assert!(command.ends_with("/memory.limit_in_bytes"), "{command}");
    if let Some(cache) = finding(&document, "cache.too-small") {
        let risk = cache["risk"].as_str().unwrap();
        assert!(!risk.contains("The host has"), "{risk}");
    }
}

/// Nothing but the thread itself tells of it: no counter of operations, no latency, and the counter of documents only when
/// a pass has ended.
#[test]
fn what_expires_is_seen_to_be_deleted() {
    const DOCUMENTS: u64 = 150_000;
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(
        Topology::Standalone,
        &["--setParameter", "ttlMonitorSleepSecs=1"],
    );
    insert(&running, "sessions", DOCUMENTS, 200);
    insert(&running, "orders", 20_000, 100);
    let at = doc! { "$set": { "at": mongodb::bson::DateTime::from_millis(1_000) } };
    let all = doc! { "q": {}, "u": [at], "multi": true };
    running.command(DATABASE, doc! { "update": "sessions", "updates": [all] });
    let keys = doc! { "key": { "bytes": 1 }, "name": "bytes" };
    running.command(
        DATABASE,
        doc! { "createIndexes": "sessions", "indexes": [keys] },
    );
    let select = |number| {
        let id = id(number, DOCUMENTS);
        doc! { "find": "orders", "filter": { "nowhere": id } }
    };
    let document = meanwhile(&running, &[&select], || {
        let expiring = doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 1 };
        running.command(
            DATABASE,
            doc! { "createIndexes": "sessions", "indexes": [expiring] },
        );
        examined(&bench, &running, "10s", &[])
    });
    let found = finding(&document, "ttl.deleting").unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(found["subject"], "findings.sessions", "{found:#}");
    assert!(evidence(found, 0).contains("(TTLMonitor)"), "{found:#}");
    let quiet = meanwhile(&running, &[&select], || {
        // Until all are gone, and a second more.
        let first = doc! { "find": "sessions", "limit": 1 };
        let is_left = || {
            let reply = running.command(DATABASE, first.clone());
            let cursor = reply.get_document("cursor").unwrap();
            !cursor.get_array("firstBatch").unwrap().is_empty()
        };
        while is_left() {
            thread::sleep(Duration::from_millis(500));
        }
        examined(&bench, &running, "5s", &[])
    });
    assert!(finding(&quiet, "ttl.deleting").is_none(), "{quiet:#}");
}

/// Locks a server's writes out as long as it lives.
struct WritesLocked<'a>(&'a Running);

impl<'a> WritesLocked<'a> {
    fn lock(running: &'a Running) -> Self {
        running.command("admin", doc! { "fsync": 1, "lock": true });
        Self(running)
    }
}

impl Drop for WritesLocked<'_> {
    fn drop(&mut self) {
        self.0.command("admin", doc! { "fsyncUnlock": 1 });
    }
}

/// A regression: that nothing is wrong with the disk came first, and nothing said why no write went through.
#[test]
fn a_server_whose_writes_are_locked_out_is_told_so_first() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    insert(&running, "orders", 10, 100);
    let locked = WritesLocked::lock(&running);
    let write = |_| doc! { "insert": "orders", "documents": [{ "status": 1 }] };
    let document = meanwhile(&running, &[&write, &write, &write], || {
        let document = examined(&bench, &running, "6s", &[]);
        drop(locked);
        document
    });
    let first = &document["findings"][0];
    assert_eq!(first["id"], "locks.fsync", "{document:#}");
    assert_eq!(
        first["title"],
        "fsyncLock is on: no write is possible until db.fsyncUnlock()"
    );
    let saves = first["saves_s_per_hour"].as_f64().unwrap();
    assert!((7_200.0..=10_800.0).contains(&saves), "{first:#}");
    let verdict = document["summary"]["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("fsyncLock is on"), "{verdict}");
}
