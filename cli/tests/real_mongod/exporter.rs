//! `exporter` beside a mongod: its counts against a trace's, restarts, sets.

use std::panic::AssertUnwindSafe;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_server::SlowDiskSpec;

use crate::aged::{self, cold_scan, limited};
use crate::exporter_process::{Exporter, Metrics};
use crate::mongod::Mongod;
use crate::running::{beforehand, own, shared};
use crate::support::{Bench, json, load_documents, shared_machine, until, wait};

const FILE: [&str; 2] = ["role=\"collection\"", "collection=\"exporter.orders\""];

/// Calls, bytes, and reads that the page cache had or had not.
fn reads(metrics: &Metrics) -> Option<[f64; 4]> {
    let [role, collection] = FILE;
    let read = [role, collection, "op=\"read\""];
    Some([
        metrics.of("seekscope_file_latency_seconds_count", &read)?,
        metrics.of("seekscope_file_bytes_total", &read)?,
        metrics.of("seekscope_file_cache_hits_total", &FILE)?,
        metrics.of("seekscope_file_cache_misses_total", &FILE)?,
    ])
}

#[test]
fn counts_are_those_of_a_trace() {
    let bench = Bench::new();
    // What the exporter costs everybody cannot be measured while others trace as well.
    let (_machine, running) = beforehand(|| {
        let running = own(Topology::Standalone, &[]);
        running.load("exporter.orders", 20_000);
        running
    });
    running.reset_page_cache();
    let exporter = Exporter::start(&bench, &[running.uri(), "--every", "1s"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    // What it costs everybody is told, and is not the zero of what was not measured.
    let delay_s = exporter
        .metrics()
        .of("seekscope_exporter_call_delay_seconds", &[]);
    assert!(delay_s.is_some_and(|s| s > 0.0), "{delay_s:?}");
    let scan = || {
        // What the server has in its own cache is not read from the file.
        let validate = doc! { "validate": "orders", "full": true };
        running.command("exporter", validate);
    };
    scan();
    // It came in with this, and begins at 0.
    let before = exporter.until(|m| reads(m).is_some());
    let before = reads(&before).unwrap();
    let settled = || {
        let first = reads(&exporter.metrics());
        std::thread::sleep(Duration::from_millis(2_500));
        first == reads(&exporter.metrics())
    };
    until(settled);
    let before = reads(&exporter.metrics()).unwrap_or(before);
    let pid = running.pid().to_string();
    let mut trace = bench.seekscope(&["trace", "-p", &pid, "--for", "12s", "--out", "run"]);
    let mut trace = trace
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until(|| bench.path("run").join("io.spool").exists());
    running.reset_page_cache();
    scan();
    assert!(wait(&mut trace, Duration::from_secs(60)).success());
    until(settled);
    let after = reads(&exporter.metrics()).unwrap();
    let report = json(&mut bench.seekscope(&["report", "run"]));
    let files = report["summary"]["files"].as_array().unwrap();
    // The trace was told of a process alone, so its files have no collections' names.
    let rise: Vec<f64> = after
        .iter()
        .zip(before)
        .map(|(now, then)| now - then)
        .collect();
    let same = files.iter().find(|file| {
        file["reads"].as_f64() == Some(rise[0]) && file["read_bytes"].as_f64() == Some(rise[1])
    });
    assert!(rise[0] > 0.0 && same.is_some(), "{rise:?}\n{report:#}");
    assert!(rise[3] > 0.0, "cold reads miss: {rise:?}");
    exporter.end();
}

#[test]
fn a_collection_that_is_created_meanwhile_gets_its_name_soon() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    let exporter = Exporter::start(&bench, &[running.uri(), "--every", "1s", "--no-layout"]);
    exporter.until(|m| m.of("seekscope_exporter_tracing", &[]) == Some(1.0));
    running.load("exporter.newcomer", 100);
    running.command("admin", doc! { "fsync": 1 });
    exporter.until(|metrics| {
        // What it did before it was asked about was counted without a name.
        let insert = doc! { "insert": "newcomer", "documents": [{ "text": "x".repeat(1000) }] };
        running.command("exporter", insert);
        running.command("admin", doc! { "fsync": 1 });
        let labels = [
            "role=\"collection\"",
            "collection=\"exporter.newcomer\"",
            "op=\"write\"",
        ];
        metrics.of("seekscope_file_latency_seconds_count", &labels) > Some(0.0)
    });
    exporter.end();
}

#[test]
fn a_restart_is_a_gap_and_no_step_back() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut mongod = Mongod::start(&bench, "data", &[]);
    let uri = mongod.uri();
    let exporter = Exporter::start(&bench, &[&uri, "--every", "1s", "--no-layout"]);
    let is_counted = |m: &Metrics| m.of("seekscope_exporter_tracing", &[]) == Some(1.0);
    exporter.until(is_counted);
    let inserts = |m: &Metrics| m.of("seekscope_mongodb_operations_total", &["insert"]);
    load_documents(&uri, &"exporter.restarted".parse().unwrap(), 2_000);
    let before = exporter.until(|m| inserts(m).is_some_and(|n| n > 0.0));
    mongod.end(libc::SIGTERM);
    let away = exporter.until(|m| m.of("seekscope_up", &[]) == Some(0.0));
    assert_eq!(away.of("seekscope_exporter_tracing", &[]), Some(0.0));
    assert_eq!(
        away.of("seekscope_mongodb_connections", &[]),
        None,
        "unknown is not zero"
    );
    mongod.start_again();
    let back = exporter.until(is_counted);
    load_documents(&uri, &"exporter.restarted".parse().unwrap(), 100);
    let more = exporter.until(|m| inserts(m) > inserts(&back));
    for (earlier, later) in [(&before, &away), (&away, &back), (&back, &more)] {
        let counters = later.0.iter().filter(|(series, _)| {
            let name = series.split('{').next().unwrap();
            ["_total", "_count", "_sum", "_bucket"]
                .iter()
                .any(|e| name.ends_with(e))
        });
        for (series, value) in counters {
            let then = earlier.0.get(series).copied().unwrap_or(0.0);
            assert!(*value >= then, "{series} went from {then} to {value}");
        }
    }
    exporter.end();
}

/// Five minutes pass until members are looked for that were not there before.
#[test]
fn a_member_that_was_killed_is_up_again_soon_after_its_start() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let (_primary, mut secondary, uri) = Mongod::set_of_two(&bench);
    let exporter = Exporter::start(&bench, &[&uri, "--every", "1s", "--no-layout"]);
    let label = format!("server=\"{}\"", secondary.address());
    let up = |m: &Metrics| m.of("seekscope_up", &[&label]);
    exporter.until(|m| up(m) == Some(1.0));
    secondary.end(libc::SIGKILL);
    exporter.until(|m| up(m) == Some(0.0));
    // At least one search finds the set without it.
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(up(&exporter.metrics()), Some(0.0), "it is still shown");
    secondary.start_again();
    exporter.until(|m| up(m) == Some(1.0));
    exporter.end();
}

#[test]
fn members_of_a_set_on_this_host_are_exported_each() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = shared(Topology::ReplicaSet { members: 3 });
    let exporter = Exporter::start(&bench, &[running.uri(), "--every", "1s", "--no-layout"]);
    let metrics = exporter.until(|m| {
        let of = |metric: &str| {
            m.0.iter()
                .filter(move |(s, _)| s.starts_with(metric))
                .count()
        };
        let tracing =
            m.0.iter()
                .filter(|(s, v)| s.starts_with("seekscope_exporter_tracing") && **v == 1.0);
        tracing.count() == 3 && of("seekscope_mongodb_replication_lag_seconds") == 2
    });
    let up = metrics
        .0
        .iter()
        .filter(|(s, _)| s.starts_with("seekscope_up{"));
    assert_eq!(up.map(|(_, value)| *value).sum::<f64>(), 3.0);
    exporter.end();
}

#[test]
fn the_order_of_files_is_exported_under_the_same_names() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let running = own(Topology::Standalone, &[]);
    running.load("exporter.ordered", 5_000);
    running.reset_page_cache();
    // The disk, for which scans are predicted, is known after as long.
    let arguments = [running.uri(), "--every", "1s", "--findings-over", "10s"];
    let exporter = Exporter::start(&bench, &arguments);
    let labels = ["role=\"collection\"", "collection=\"exporter.ordered\""];
    let metrics = exporter.until(|m| m.of("seekscope_layout_order_score", &labels).is_some());
    let score = metrics.of("seekscope_layout_order_score", &labels).unwrap();
    assert!(
        (0.8..=1.0).contains(&score),
        "just loaded in order: {score}"
    );
    let bytes = metrics.of("seekscope_layout_file_bytes", &labels).unwrap();
    let layout = json(&mut bench.seekscope(&["layout", running.uri(), "exporter.ordered"]));
    let files = layout["summary"]["files"].as_array().unwrap();
    let same = files
        .iter()
        .any(|file| file["file_bytes"].as_f64() == Some(bytes));
    assert!(same, "{bytes} {layout:#}");
    // Both trace the server's calls now.
    let doctor = ["doctor", running.uri(), "--for", "1s", "--out", "run"];
    let limitations = json(&mut bench.seekscope(&doctor))["limitations"].to_string();
    assert!(
        limitations.contains("seekscope exporter (process "),
        "{limitations}"
    );
    exporter.end();
}

/// Seconds per hour of findings, by their ids.
fn seconds_found(metrics: &Metrics) -> Vec<(String, f64)> {
    let found = metrics.0.iter().filter_map(|(series, seconds)| {
        let labels = series.strip_prefix("seekscope_finding_seconds_per_hour{")?;
        let id = labels.split_once("id=\"")?.1.split_once('"')?.0;
        Some((id.to_owned(), *seconds))
    });
    found.collect()
}

#[test]
fn findings_come_with_their_seconds_and_go() {
    let (_machine, server) = beforehand(|| {
        let server = own(Topology::Standalone, &[]);
        aged::prepare(&server, 15_000);
        server
    });
    let bench = Bench::new();
    let slow = limited(&server, &SlowDiskSpec::hdd());
    let scan_s = cold_scan(&server, "aged");
    let exporter = Exporter::start(
        &bench,
        &[server.uri(), "--every", "1s", "--findings-over", "12s"],
    );
    let cause = |m: &Metrics| {
        let found = seconds_found(m);
        let names = ["disk.limited", "layout.key-order-lost"];
        // One thread reads.
        let told = |(id, seconds): &(String, f64)| {
            names.contains(&id.as_str()) && (360.0..=3_700.0).contains(seconds)
        };
        found.iter().any(told)
    };
    let over = AtomicBool::new(false);
    let busy = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // The disk rests between two of them.
                std::thread::sleep(Duration::from_millis(1_500));
                cold_scan(&server, "aged");
            }
        });
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| exporter.until(cause)));
        over.store(true, Ordering::Relaxed);
        found
    });
    let busy = busy.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let claimed: f64 = seconds_found(&busy)
        .iter()
        .map(|(_, seconds)| seconds)
        .sum();
    assert!(claimed <= 3_700.0, "more than was waited: {busy:?}");
    // Nobody waits any more, and the order is still lost.
    let labels = ["collection=\"opinion.aged\"", "order=\"now\""];
    let lost = ["id=\"layout.key-order-lost\"", "subject=\"opinion.aged\""];
    let quiet = exporter
        .until(|m| seconds_found(m).is_empty() && m.of("seekscope_finding", &lost) == Some(1.0));
    let predicted_s = quiet.of("seekscope_layout_scan_seconds", &labels).unwrap();
    // With the limit of the control group; what disks such as this one do would be a tenth of it.
    assert!(
        (predicted_s / scan_s - 1.0).abs() < 0.35,
        "predicted {predicted_s} s, measured {scan_s} s"
    );
    drop(slow);
    exporter.end();
}

/// What the server would not tell of itself was found out and then shown nowhere.
#[test]
fn what_its_user_may_not_ask_is_shown() {
    let bench = Bench::new();
    let running = shared(Topology::StandaloneWithPassword);
    let user = doc! { "createUser": "exporter_blind", "pwd": "x", "roles": [] };
    running.command("admin", user);
    let uri = running.member("standalone").uri();
    let uri = uri.replace("mongodb://", "mongodb://exporter_blind:x@");
    let mut exporter = Exporter::start(&bench, &[&uri, "--every", "1s", "--no-trace"]);
    let what = "the server's own status (cache size, process ID) is not known";
    let said = exporter.until_said(what);
    assert!(said.contains("may not run serverStatus"), "{said}");
    let labels = [format!("what=\"{what}\"")];
    let labels = [labels[0].as_str()];
    exporter.until(|m| m.of("seekscope_exporter_limitation", &labels) == Some(1.0));
    exporter.end();
}
