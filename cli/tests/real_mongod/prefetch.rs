//! What a cold scan gains by `prefetch` on limited disks, and that it loses nothing.

use std::process::Stdio;
use std::time::Duration;

use seekscope_bench::deployment::Topology;
use seekscope_server::SlowDiskSpec;
use serde_json::Value;

use crate::aged::{self, forget, limited, scan};
use crate::running::{Running, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, machine, stderr};

const DOCUMENTS: u64 = 15_000;
/// A quarter of the leaves.
const QUARTER: &str = "15MiB";
/// How much slower a scan may be, and what a busy machine adds, s.
const SLOWER_MAX: f64 = 1.05;
const BESIDE_S: f64 = 0.7;

/// Seconds of a cold scan alone and with prefetch, which is there before it, and what prefetch says.
fn both(server: &Running, bench: &Bench, disk: &SlowDiskSpec, window: &str) -> (f64, f64, Value) {
    let mut slow = limited(server, disk);
    forget(server);
    let without_s = scan(server, "aged");
    forget(server);
    let run = bench.path(&format!("run-{}-{window}", disk.name));
    let mut prefetch = bench.seekscope(&["prefetch", server.uri(), "opinion.aged", "--json"]);
    prefetch.args(["--window", window, "--idle", "4s", "--out"]);
    prefetch
        .arg(&run)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = prefetch.spawn().unwrap();
    slow.add_process(child.id()).unwrap();
    // It finds its place in the tree and tries the disk.
    std::thread::sleep(Duration::from_secs(2));
    let with_s = scan(server, "aged");
    let output = child.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    (without_s, with_s, document["summary"].clone())
}

#[test]
fn a_scan_is_faster_with_it_where_requests_are_few_and_no_slower_where_bytes_are() {
    let _machine = machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    aged::prepare(&server, DOCUMENTS);

    let (without_s, with_s, summary) = both(&server, &bench, &SlowDiskSpec::hdd(), QUARTER);
    assert!(without_s > 3.0, "the collection did not age: {without_s} s");
    assert_eq!(summary["fits"], false);
    assert!(
        with_s < without_s / 1.4 + BESIDE_S,
        "{without_s} s without, {with_s} s with: {summary}"
    );
    // What it says of itself is of the same kind as what was measured, if it says anything.
    if let Some(said) = summary["gain"]["ratio"].as_f64() {
        let measured = without_s / with_s;
        assert!(
            (measured / 2.0..measured * 2.0).contains(&said),
            "{measured}: {summary}"
        );
    }

    let few_bytes = SlowDiskSpec {
        name: "bytes".into(),
        read_iops: 1_000_000,
        read_bytes_per_s: 15_000_000,
    };
    let (without_s, with_s, summary) = both(&server, &bench, &few_bytes, QUARTER);
    assert!(
        with_s < without_s * SLOWER_MAX + BESIDE_S,
        "{without_s} s without, {with_s} s with: {summary}"
    );
}

#[test]
fn a_collection_in_order_needs_no_help() {
    let _machine = machine();
    let bench = Bench::new();
    let server = own(Topology::Standalone, &[]);
    server.load("opinion.ordered", 4_000);
    server.reset_page_cache();
    let mut prefetch = bench.seekscope(&["prefetch", server.uri(), "opinion.ordered", "--json"]);
    let output = prefetch
        .args(["--idle", "300ms", "--out", "run"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = document["summary"]["cannot_help"][0].as_str().unwrap();
    assert!(why.contains("in the order of the scan"), "{why}");
    assert_eq!(document["summary"]["bytes_read"], 0);
}
