//! The local server's own files: a MongoDB-compatible server on WiredTiger, whose collections are
//! loaded, updated at random and scanned.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use seekscope_layout::order::scan_order;
use seekscope_run::layout::NameSource;
use seekscope_wiredtiger::Leaf;

use crate::cold_scan::{assert_predicted, reads_in};
use crate::engines::{Engine, folder, from_environment, maker, python, run};
use crate::walking::{open, walk};

/// The number of documents, about 2.8 KB each.
const DOCUMENTS: u64 = 16_000;
/// A fifth of the documents.
const CACHE: &str = "10M";
const WINDOW_BYTES: u64 = 128 << 10;
const PATIENCE: Duration = Duration::from_secs(60);

struct LocalServer {
    child: Child,
    address: String,
    /// Kept open: whoever writes to a closed pipe ends.
    _output: BufReader<ChildStdout>,
}

impl LocalServer {
    fn start(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        let binary = from_environment("SEEKSCOPE_TEST_SERVER", "tools/bin/secantusd-rs");
        let mut command = Command::new(binary);
        command.args([
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--cache-size",
            CACHE,
            "--storage-path",
        ]);
        // Without these it never ends an index build in a small cache.
        let limits = "eviction_dirty_trigger=90,eviction_updates_trigger=90";
        command
            .env("SECANTUS_WT_CONFIG_EXTRA", limits)
            .env("SECANTUS_DISABLE_OPLOG", "1");
        let mut child = command
            .arg(directory)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = format!("mongodb://{}/", line.trim().rsplit(' ').next().unwrap());
        Self {
            child,
            address,
            _output: output,
        }
    }

    fn orders(&self, arguments: &[&str]) {
        run(Command::new(python())
            .arg(maker("orders.py"))
            .arg(&self.address)
            .args(arguments));
    }

    fn stop(mut self) {
        run(Command::new("kill").arg(self.child.id().to_string()));
        let end = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "the server does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whoever traces must not wait for the traced one's end.
struct Strace(Child);

impl Drop for Strace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// After loading and after random updates of 0.4 % and 4 % of the documents, every table's leaves are
/// those that the engine's verify lists, and an index build reads them in the predicted order.
#[test]
fn collections_of_the_local_server() {
    let folder = folder();
    let directory = folder.path().join("data");
    let documents = DOCUMENTS.to_string();
    let server = LocalServer::start(&directory);
    server.orders(&["load", &documents]);
    server.stop();
    let mut shares = vec![check(&directory, "loaded")];
    for (changed, state) in [
        (DOCUMENTS / 250, "0.4 % updated"),
        (DOCUMENTS / 25, "4 % updated"),
    ] {
        let server = LocalServer::start(&directory);
        let changed = changed.to_string();
        server.orders(&["update", &documents, &changed, &changed]);
        server.stop();
        shares.push(check(&directory, state));
    }
    assert!(
        shares.is_sorted_by(|before, after| before > after),
        "updates cost order: {shares:?}"
    );
    index_build(&directory, &folder.path().join("trace"));
}

/// Compares every table; returns the share of sequential steps in the largest, the documents.
fn check(directory: &Path, state: &str) -> f64 {
    let found = open(directory);
    assert_eq!(found.names, NameSource::TableNames);
    let truth = Engine::V11_2.verify(directory);
    let (mut leaves, mut sequential, mut largest) = (0, 0.0, 0);
    for table in found.tables() {
        let walked = walk(&found, &table.file);
        let theirs = truth.get(&table.file).map_or(&[][..], |file| &file.leaves);
        let ours = walked
            .tree
            .leaves
            .iter()
            .map(|leaf| (leaf.offset, leaf.length));
        assert!(
            ours.eq(theirs.iter().map(|leaf| (leaf.offset, leaf.length))),
            "{}",
            table.file
        );
        leaves += theirs.len();
        let Some(order) = scan_order(&walked.tree.leaves, WINDOW_BYTES) else {
            continue;
        };
        if walked.file_bytes < 1_000_000 {
            continue;
        }
        println!(
            "{state}: {} {} bytes, {} leaves, contiguous {:.3}, sequential {:.3}, {} seeks (best {}), \
             {:.0} KB per seek, score {:.3}, tau {:.3}, {} bytes read",
            table.file,
            walked.file_bytes,
            walked.tree.leaves.len(),
            order.contiguous_share,
            order.sequential_share,
            order.seeks,
            order.seeks_best,
            order.bytes_per_seek / 1e3,
            order.score,
            order.kendall_tau,
            walked.bytes_read,
        );
        if walked.file_bytes > largest {
            (largest, sequential) = (walked.file_bytes, order.sequential_share);
        }
    }
    println!(
        "{state}: {leaves} leaves in {} files agree",
        found.tables().len()
    );
    assert!(leaves > 500, "{leaves}");
    sequential
}

fn largest(directory: &Path) -> PathBuf {
    let entries = std::fs::read_dir(directory).unwrap();
    let files = entries.map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|e| e == "wt"));
    files
        .max_by_key(|file| file.metadata().unwrap().len())
        .unwrap()
}

/// The server reads all documents to build an index, and nothing of them before.
fn index_build(directory: &Path, trace: &Path) {
    let documents = largest(directory);
    let name = documents.file_name().unwrap().to_str().unwrap().to_owned();
    let walked = walk(&open(directory), &name);
    let server = LocalServer::start(directory);
    let strace = strace(server.child.id(), trace);
    server.orders(&["index"]);
    drop(strace);
    let in_order = reads_in(&std::fs::read_to_string(trace).unwrap(), &documents);
    server.stop();
    // What is in the server's cache before strace is attached is not read again (some percent).
    let mut rest = walked.clone();
    let read: HashSet<_> = in_order.iter().copied().collect();
    let was_read = |leaf: &Leaf| read.contains(&(leaf.offset, u64::from(leaf.length)));
    rest.tree.leaves.retain(was_read);
    let (left, all) = (rest.tree.leaves.len(), walked.tree.leaves.len());
    assert!(left * 100 >= all * 80, "{left} of {all} leaves were read");
    assert_predicted(&name, &rest, &in_order, Engine::V11_2, false);
    println!("index build: {left} of {all} leaves read, as predicted");
}

/// Attached when it says so.
fn strace(pid: u32, trace: &Path) -> Strace {
    let said = trace.with_extension("said");
    let mut command = Command::new("strace");
    command
        .args(["-f", "-y", "-s", "0", "-e", "trace=pread64", "-o"])
        .arg(trace);
    command
        .args(["-p", &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(File::create(&said).unwrap());
    let strace = Strace(command.spawn().unwrap());
    let end = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&said).unwrap().contains("attached") {
        assert!(Instant::now() < end, "strace does not attach");
        std::thread::sleep(Duration::from_millis(20));
    }
    strace
}
