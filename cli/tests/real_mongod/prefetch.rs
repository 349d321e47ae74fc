//! What `prefetch` does for a cold scan on limited disks.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use mongodb::bson::doc;
use seekscope_bench::deployment::Topology;
use seekscope_server::{SlowDiskSpec, page_cache};
use serde_json::Value;

use crate::aged::{self, forget, limited, scan};
use crate::running::{Running, beforehand, own};
use crate::schemas::assert_valid;
use crate::support::{Bench, shared_machine, stderr, until};

const DOCUMENTS: u64 = 15_000;
/// A quarter of the leaves.
const QUARTER: &str = "15MiB";

/// A server with the aged collection.
fn aged_server() -> Running {
    let server = own(Topology::Standalone, &[]);
    aged::prepare(&server, DOCUMENTS);
    server
}

/// What prefetch says of itself after a cold scan on a limited disk. Whether it is ahead of the scan depends on what else
/// the machine does.
fn scanned(server: &Running, bench: &Bench, disk: &SlowDiskSpec) -> Value {
    let mut slow = limited(server, disk);
    forget(server);
    let in_memory = resident_bytes(server.data_directory());
    let mut prefetch = bench.seekscope(&["prefetch", server.uri(), "opinion.aged", "--json"]);
    prefetch.args(["--window", QUARTER, "--idle", "4s", "--out", &disk.name]);
    prefetch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = prefetch.spawn().unwrap();
    slow.add_process(child.id()).unwrap();
    let has_begun = || resident_bytes(server.data_directory()) > in_memory + (4 << 20);
    until(has_begun);
    scan(server, "aged");
    let output = child.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    document["summary"].clone()
}

fn resident_bytes(data: &Path) -> u64 {
    let files = page_cache::files_below(data).unwrap();
    page_cache::resident_bytes(&files).unwrap().resident_bytes
}

/// How much faster that is, `./x bench prefetch` shows.
#[test]
fn a_scan_finds_its_pages_in_memory_and_none_is_read_that_it_does_not_need() {
    let (_machine, server) = beforehand(aged_server);
    let bench = Bench::new();
    let number = |summary: &Value, name: &str| summary[name].as_f64().unwrap();

    // Where requests are few, gaps are read through.
    let summary = scanned(&server, &bench, &SlowDiskSpec::hdd());
    assert_eq!(summary["fits"], false, "{summary}");
    let (reads, misses) = (
        number(&summary, "server_reads"),
        number(&summary, "server_misses"),
    );
    // What is read before the tracer is attached is not counted.
    let most = 0.8 * number(&summary, "leaf_pages");
    assert!(reads > most && misses < reads / 2.0, "{summary}");
    assert!(number(&summary, "released_bytes") > 0.0, "{summary}");

    // Where bytes are, they are not: that would take longer than the scan alone.
    let few_bytes = SlowDiskSpec {
        name: "bytes".into(),
        read_iops: 1_000_000,
        read_bytes_per_s: 15_000_000,
    };
    let summary = scanned(&server, &bench, &few_bytes);
    let read = number(&summary, "bytes_read");
    assert!(read < 1.25 * number(&summary, "leaf_bytes"), "{summary}");
}

/// Reads this many documents and no more, as a scan that is cancelled.
fn scan_first(server: &Running, documents: u64) {
    let first = i64::try_from(documents).unwrap();
    let pipeline = vec![
        doc! { "$limit": first },
        doc! { "$match": { "absent": { "$exists": true } } },
    ];
    let read = doc! { "aggregate": "aged", "pipeline": pipeline, "cursor": {} };
    server.command(aged::DATABASE, read);
}

/// The second is followed from its own beginning, not looked for where the first was left.
#[test]
fn a_scan_that_is_cancelled_and_begun_again_is_followed_again() {
    let (_machine, server) = beforehand(aged_server);
    let bench = Bench::new();
    let mut slow = limited(&server, &SlowDiskSpec::hdd());
    forget(&server);
    let mut prefetch = bench.seekscope(&["prefetch", server.uri(), "opinion.aged", "--json"]);
    prefetch.args(["--window", QUARTER, "--idle", "8s", "--out", "again"]);
    prefetch.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = prefetch.spawn().unwrap();
    slow.add_process(child.id()).unwrap();
    let mut said = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let is_traced = |line: String| line.contains("the scan is followed by the server's reads");
    assert!(said.any(|line| is_traced(line.unwrap())), "not traced");
    scan_first(&server, DOCUMENTS / 10 * 7);
    forget(&server);
    scan_first(&server, DOCUMENTS / 10 * 4);
    let output = child.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    let summary = &document["summary"];
    let number = |name: &str| summary[name].as_f64().unwrap();
    let share = number("position") / number("leaf_pages");
    assert!((0.3..0.5).contains(&share), "{share}: {summary}");
}

#[test]
fn a_collection_in_order_needs_no_help() {
    let _machine = shared_machine();
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
