//! `seekscope prefetch` around index builds of a real server.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_run::DeviceFacts;
use seekscope_server::{CgroupTree, Namespace, ProcFs, Server, SlowDisk, SlowDiskSpec, page_cache};
use seekscope_workload::{Sdu, SduOptions, UpdateOptions, update};
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, json, load_documents, machine, shared_machine, stderr,
};

const DOCUMENTS: u64 = 24_000;
/// The most bytes read of some 42 MB of leaves; the files are longer, and read-ahead reads their holes, too.
const MOST_BYTES: u64 = 34 << 20;
const NAMESPACE: &str = "shop.orders";

/// A server whose collection was shuffled by updates, all in its files.
struct Aged {
    bench: Bench,
    server: ForeignServer,
}

impl Aged {
    /// One for a test that is alone from then on.
    fn prepared() -> Self {
        let _machine = shared_machine();
        Self::new()
    }

    fn new() -> Self {
        Self::of(DOCUMENTS)
    }

    fn of(documents: u64) -> Self {
        let bench = Bench::new();
        let data = bench.path("data");
        let loading = ForeignServer::start_with_checkpoints(&data, "64MB", 1);
        load_documents(&loading.uri, &namespace(), documents);
        runtime().block_on(async {
            let server = Server::connect(&loading.uri).await.unwrap();
            let sdu = Sdu::new(SduOptions::default());
            let options = UpdateOptions::new(documents, 0.1, 1);
            let report = update(&server, &namespace(), &sdu, &options, &|_| {}).await;
            assert_eq!(report.unwrap().errors, 0);
        });
        loading.stop();
        // Started anew, its own cache is empty.
        let server = ForeignServer::start(&data, "16MB");
        let aged = Self { bench, server };
        aged.make_cold();
        aged
    }

    fn data(&self) -> PathBuf {
        self.bench.path("data")
    }

    fn make_cold(&self) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let left = page_cache::evict(&self.data()).unwrap();
            if left.resident_bytes < 1 << 20 {
                return;
            }
            assert!(Instant::now() < end, "{left:?}");
        }
    }

    /// Reads all documents; what the server itself had fetched from the disk meanwhile, bytes.
    fn scan(&self) -> u64 {
        let before = ProcFs::host().io(self.server.pid()).unwrap();
        scan(&self.server.uri);
        let after = ProcFs::host().io(self.server.pid()).unwrap();
        after.device_read_bytes - before.device_read_bytes
    }
}

fn namespace() -> Namespace {
    NAMESPACE.parse().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().unwrap()
}

/// A query that no index answers.
fn scan(uri: &str) {
    runtime().block_on(async {
        let server = Server::connect(uri).await.unwrap();
        let count = doc! {
            "aggregate": "orders",
            "pipeline": [{ "$match": { "nowhere": { "$gt": 1 } } }, { "$count": "n" }],
            "cursor": {},
        };
        server.command("shop", count).await.unwrap();
    });
}

/// Waits until the file is in the state that prefetch wants to be started in: has it begun to read?
fn wait_until_read(data: &Path, bytes: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    let files = page_cache::files_below(data).unwrap();
    while page_cache::resident_bytes(&files).unwrap().resident_bytes < bytes {
        assert!(Instant::now() < end, "nothing was read ahead");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_server_finds_its_pages_in_memory() {
    let aged = Aged::prepared();
    let _machine = machine();
    let without = aged.scan();
    assert!(without > 8 << 20, "the scan was not cold: {without}");

    // A new start empties the server's own cache.
    let Aged { bench, server } = aged;
    server.stop();
    let server = ForeignServer::start(&bench.path("data"), "16MB");
    let aged = Aged { bench, server };
    aged.make_cold();
    let mut prefetch = aged
        .bench
        .seekscope(&["prefetch", &aged.server.uri, NAMESPACE]);
    prefetch.args(["--out", "run", "--idle", "60s", "--no-gain", "--json"]);
    let mut child = prefetch
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // It reads before it can see the server's reads, and this scan is over in a moment: it says when the
    // kernel has taken the tracer's programs.
    let mut said = std::io::BufReader::new(child.stderr.as_mut().unwrap()).lines();
    assert!(
        said.any(|line| line
            .unwrap()
            .contains("the scan is followed by the server's reads")),
        "it ended before it was ready"
    );
    wait_until_read(&aged.data(), MOST_BYTES);
    let calls_before = ProcFs::host().io(aged.server.pid()).unwrap().read_calls;
    let with = aged.scan();
    let calls = ProcFs::host().io(aged.server.pid()).unwrap().read_calls - calls_before;
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    assert!(
        with < without / 4,
        "{with} of {without} bytes were still read by the server"
    );
    let summary = &document["summary"];
    assert_eq!(summary["pace"], "traced");
    assert_eq!(summary["fits"], true);
    let number = |name: &str| summary[name].as_u64().unwrap();
    // The server may have the last few leaves in its own memory, so that nobody sees it read them.
    let (reads, leaves) = (number("server_reads"), number("leaf_pages"));
    assert!(number("position") + 32 >= leaves, "{summary}");
    assert!(reads.abs_diff(calls) <= 8, "{calls} calls: {summary}");
    assert!(
        number("elapsed_ns") < 30_000_000_000,
        "it waited on: {summary}"
    );
    assert!(
        number("server_misses") < number("server_reads") / 4,
        "{summary}"
    );
    let shown = json(&mut aged.bench.seekscope(&["report", "run"]));
    assert_eq!(shown["summary"], document["summary"]);
}

/// There is memory for a part of the file only, and both share a slow disk.
#[test]
fn a_scan_is_followed_in_a_small_window() {
    let aged = Aged::prepared();
    let _machine = machine();
    let device = DeviceFacts::of_path(Path::new("/"), &aged.data()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    let name = format!("test-of-prefetch-{}", std::process::id());
    let mut slow = SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, &name).unwrap();
    slow.add_process(aged.server.pid()).unwrap();
    let mut prefetch = aged
        .bench
        .seekscope(&["prefetch", &aged.server.uri, NAMESPACE]);
    prefetch.args([
        "--out", "run", "--idle", "60s", "--window", "6MiB", "--json",
    ]);
    let child = prefetch
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    slow.add_process(child.id()).unwrap();
    wait_until_read(&aged.data(), 4 << 20);
    let by_server = aged.scan();
    let output = child.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    let summary = &document["summary"];
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(summary["fits"], false);
    // Alone, it reads the whole file: a leaf that is missed brings its neighbours by the kernel's read-ahead. A
    // tenth of the leaves is missed, and depending on how long a gap the disk seems to be worth, these bring up to
    // half as many bytes as all leaves have.
    assert!(
        by_server < number("leaf_bytes") * 2 / 3,
        "{by_server}: {summary}"
    );
    assert!(
        number("released_bytes") > 0 && number("bridged_bytes") > 0,
        "{summary}"
    );
    assert!(
        number("server_misses") < number("server_reads") / 2,
        "{summary}"
    );
}

#[test]
fn a_command_is_run_and_its_exit_code_kept() {
    let _machine = shared_machine();
    let aged = Aged::new();
    let done = aged.bench.path("done");
    let command = format!("touch {}; exit 7", done.display());
    let mut prefetch = aged
        .bench
        .seekscope(&["prefetch", "--no-trace", "--out", "run"]);
    prefetch.args([&aged.server.uri, NAMESPACE, "--command", &command]);
    let output = prefetch.output().unwrap();
    assert_fails(&output, 7, &["the command ended with"]);
    assert!(done.exists());
    let shown = json(&mut aged.bench.seekscope(&["report", "run"]));
    assert_eq!(shown["summary"]["pace"], "counted", "{shown}");
}

/// Where requests take long, single reads in between would cost more than the scan gains by them.
#[test]
fn on_a_slow_disk_a_command_begins_when_its_pages_are_there() {
    let aged = Aged::prepared();
    let _machine = machine();
    let device = DeviceFacts::of_path(Path::new("/"), &aged.data()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    let name = format!("test-of-prefetch-command-{}", std::process::id());
    let mut slow = SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, &name).unwrap();
    let mut prefetch = aged
        .bench
        .seekscope(&["prefetch", &aged.server.uri, NAMESPACE]);
    prefetch.args(["--command", "true", "--out", "run", "--json"]);
    let child = prefetch
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    slow.add_process(child.id()).unwrap();
    let output = child.wait_with_output().unwrap();
    slow.remove().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("prefetch", &document);
    let summary = &document["summary"];
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert!(number("scan_waited_ns") > 0, "{summary}");
    let there = number("leaves_read") * 10 >= number("leaf_pages") * 9;
    assert!(there, "the command did not wait: {summary}");
}

#[test]
fn what_is_cached_needs_no_help() {
    let _machine = shared_machine();
    let aged = Aged::new();
    for file in page_cache::files_below(&aged.data()).unwrap() {
        std::fs::read(file).unwrap();
    }
    let mut prefetch = aged
        .bench
        .seekscope(&["prefetch", &aged.server.uri, NAMESPACE]);
    let document = json(prefetch.args(["--out", "run", "--idle", "300ms"]));
    let why = document["summary"]["cannot_help"][0].as_str().unwrap();
    assert!(why.contains("in memory already"), "{why}");
    assert_eq!(document["summary"]["bytes_read"], 0);
}

#[test]
fn a_collection_that_is_not_there_is_a_usage_error() {
    let _machine = shared_machine();
    let aged = Aged::of(100);
    let mut prefetch = aged.bench.seekscope(&["prefetch"]);
    let output = prefetch
        .arg(aged.data())
        .arg("shop.nothing")
        .output()
        .unwrap();
    assert_fails(&output, 2, &["shop.nothing"]);
    assert!(!aged.bench.path("seekscope-runs").exists());
}
