//! What is seen of the queries, and whether advice has come true.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::doc;
use serde_json::Value;

use super::{DATABASE, Prepared, advised, asking, index, insert, read_anew, text, way};
use crate::running::beforehand;
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, runtime, shared_machine, until};

/// 20,000 documents of 500 customers.
fn insert_of_customers(running: &Prepared, collection: &str) {
    insert(
        running,
        collection,
        20_000,
        |n| doc! { "_id": n, "customer": n % 500, "text": text(n, 200) },
    );
}

/// What `made` makes while some twenty customers a second are asked for.
fn beside_finds<T>(running: &Prepared, collection: &str, made: impl FnOnce() -> T) -> T {
    /// Set when it is dropped, which a failed assertion does as well.
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let uri = running.uri();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            runtime().block_on(async {
                let client = mongodb::Client::with_uri_str(&uri).await.unwrap();
                let mut customer = 0_i64;
                while !ended.load(Ordering::Relaxed) {
                    let find = doc! { "find": collection, "filter": { "customer": customer }, "batchSize": 1_000 };
                    client.database(DATABASE).run_command(find).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    customer += 1;
                }
            });
        });
        let until = Ended(&ended);
        let made = made();
        drop(until);
        asking.join().unwrap();
        made
    })
}

/// What is advised meanwhile, after this long.
fn advice_beside_finds(
    bench: &Bench,
    running: &Prepared,
    collection: &str,
    more: &[&str],
) -> Value {
    let mut asking = asking(bench, running, collection, more);
    beside_finds(running, collection, || {
        let document = json(&mut asking);
        assert_valid("advise", &document);
        document
    })
}

/// The profiler is off. What the log calls slow is not all that was asked, so the rate is not known.
#[test]
fn slow_queries_are_seen_in_the_log() {
    let _machine = shared_machine();
    let running = Prepared::start();
    let bench = Bench::new();
    insert_of_customers(&running, "slow");
    running.command(DATABASE, doc! { "profile": 0, "slowms": 0 });
    let document = advice_beside_finds(&bench, &running, "slow", &["--for", "5s"]);
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
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    insert_of_customers(&running, "seen");
    // All of it is in the cache, though each page that was asked for so far had to be read.
    read_anew(&mut running, "seen");
    insert(&running, "people", 1, |n| doc! { "_id": n });
    running.command(DATABASE, doc! { "profile": 2 });
    let join = doc! { "$lookup": { "from": "seen", "localField": "_id", "foreignField": "_id", "as": "orders" } };
    let join = doc! { "aggregate": "people", "pipeline": [join], "cursor": {} };
    let ended = AtomicBool::new(false);
    let document = std::thread::scope(|scope| {
        scope.spawn(|| {
            runtime().block_on(async {
                let client = mongodb::Client::with_uri_str(&running.uri()).await.unwrap();
                while !ended.load(Ordering::Relaxed) {
                    let database = client.database(DATABASE);
                    database.run_command(join.clone()).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
            });
        });
        let document = advice_beside_finds(&bench, &running, "seen", &["--for", "5s"]);
        ended.store(true, Ordering::Relaxed);
        document
    });
    let said = document.to_string();
    assert!(said.contains("what $lookup read of it for"), "{document:#}");
    let summary = &document["summary"];
    let shape = &summary["shapes"][0];
    assert_eq!(shape["source"], "profile", "{document:#}");
    assert_eq!(shape["equality"], serde_json::json!(["customer"]));
    assert_eq!(shape["returned"], 40.0);
    assert!(
        (2.0..=24.0).contains(&shape["per_s"].as_f64().unwrap()),
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

/// 60,000 documents of as many customers, in some thousand blocks.
fn insert_of_one_each(running: &Prepared, collection: &str) {
    insert(
        running,
        collection,
        60_000,
        |n| doc! { "_id": n, "customer": n, "text": text(n, 2_000) },
    );
}

/// A machine with other work would not make the reads that a comparison needs.
#[test]
fn advice_that_was_followed_has_come_true() {
    let (_machine, mut running) = beforehand(|| {
        let running = Prepared::start();
        insert_of_one_each(&running, "followed");
        insert_of_customers(&running, "other");
        running
    });
    let bench = Bench::new();
    running.restart();
    running.command(DATABASE, doc! { "profile": 2 });
    // Without the index a slow machine makes eight reads in a second, and fifty are needed for a comparison.
    let before = advice_beside_finds(
        &bench,
        &running,
        "followed",
        &["--for", "12s", "--out", "before"],
    );
    let summary = &before["summary"];
    assert_eq!(
        advised(summary)["keys"],
        r#"{ "customer": 1 }"#,
        "{summary:#}"
    );
    let used = &summary["collection"]["used"];
    assert!(used["pages_read"].as_u64().unwrap() > 500, "{used}");

    // That the index is not there is said however few queries are seen.
    let since = ["--for", "3s", "--since", "before"];
    let early = advice_beside_finds(&bench, &running, "followed", &since);
    let early = &early["summary"]["since"];
    let why = early["cannot_tell"].as_str().unwrap();
    assert!(why.contains("there is no index"), "{early:#}");

    index(&running, "followed", doc! { "customer": 1 });
    running.restart();
    running.command(DATABASE, doc! { "profile": 2 });
    let after = ["--for", "6s", "--since", "before", "--out", "after"];
    let after = advice_beside_finds(&bench, &running, "followed", &after);
    let since = &after["summary"]["since"];
    let predicted = since["predicted_saved"].as_f64().unwrap();
    let measured = since["measured_saved"].as_f64();
    let measured = measured.unwrap_or_else(|| panic!("{since:#}"));
    assert!(measured >= 0.75 * predicted, "{since:#}");
    assert_eq!(since["run"], "before");
    let shown = bench.seekscope(&["report", "after"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("As predicted: a read of advise.followed"),
        "{shown}"
    );

    // Of another collection nothing can be said by it.
    let uri = running.uri();
    let arguments = ["advise", &uri, "advise.other", "--since", "before"];
    let other = bench.seekscope(&arguments).output().unwrap();
    assert_fails(&other, 2, &["is about advise.followed"]);
    let arguments = ["advise", &uri, "advise.other", "--since", "after"];
    let nothing = bench.seekscope(&arguments).output().unwrap();
    assert_fails(&nothing, 2, &["advised no other way of storing"]);
}

#[test]
fn a_trace_tells_what_the_queries_make_the_server_wait_for() {
    let _machine = shared_machine();
    let mut running = Prepared::start();
    let bench = Bench::new();
    insert_of_one_each(&running, "traced");
    running.restart();
    let uri = running.uri();
    let mut trace = bench.seekscope(&["trace", "--target", &uri, "--for", "6s", "--out", "trace"]);
    let mut trace = trace
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| bench.path("trace/io.spool").exists());
    for customer in 0..20 {
        let find = doc! { "find": "traced", "filter": { "customer": customer } };
        running.command(DATABASE, find);
    }
    assert!(trace.wait().unwrap().success());
    let query = r#"{"customer": "?"}"#;
    let more = ["--trace", "trace", "--query", query];
    let asked = |collection: &str| asking(&bench, &running, collection, &more);
    let document = json(&mut asked("traced"));
    assert_valid("advise", &document);
    let (summary, traced) = (&document["summary"], &document["summary"]["traced"]);
    assert!(traced["blocks"].as_u64().unwrap() > 500, "{traced}");
    let hourly =
        traced["reads_s"].as_f64().unwrap() * 3_600.0 / traced["elapsed_s"].as_f64().unwrap();
    let present = way(summary, "present")["s_per_hour"].as_f64().unwrap();
    assert!((present / hourly - 1.0).abs() < 1e-6, "{present} {hourly}");
    assert!(
        advised(summary)["s_per_hour"].as_f64().unwrap() < 0.1 * present,
        "{summary:#}"
    );

    insert_of_customers(&running, "untraced");
    let refused = asked("untraced").output().unwrap();
    assert_fails(&refused, 2, &["saw no file of advise.untraced"]);
}
