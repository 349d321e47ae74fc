//! `advise`: what it says of collections whose best way of storing is known (`ways`), what it sees of the queries and
//! whether its advice has come true (`watching`), what it says to servers that take no writes (`members`), and what
//! goes wrong (`accidents`).

mod accidents;
mod members;
mod watching;
mod ways;

use std::path::Path;
use std::process::Command;

use mongodb::bson::{DateTime, Document, doc};
use seekscope_server::{LocalServerOptions, PrivateServer, Server, Workspace};
use seekscope_stats::SplitMix64;
use seekscope_workload::WorkloadError;
use serde_json::Value;

use crate::running::programs;
use crate::schemas::assert_valid;
use crate::support::{Bench, json, runtime};

const DATABASE: &str = "advise";
const CACHE_BYTES: u64 = 256 << 20;
const MINUTE_MS: i64 = 60_000;
const DEVICES: i64 = 100;

/// A mongod of a test's own, which can be started again on its data with an empty cache.
struct Prepared {
    // Dropped in this order.
    private: PrivateServer,
    runtime: tokio::runtime::Runtime,
    _folder: tempfile::TempDir,
}

impl Prepared {
    fn start() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let leases: &Path = &folder.path().join("leases");
        let workspace = Workspace::create(folder.path(), leases).unwrap();
        let data = workspace.data_directory();
        let options = LocalServerOptions::new(programs().mongod, data, CACHE_BYTES);
        let mut prepared = Self {
            private: PrivateServer::new(workspace, options, None),
            runtime: runtime(),
            _folder: folder,
        };
        prepared.restart();
        prepared
    }

    fn restart(&mut self) {
        self.runtime.block_on(async {
            self.private.stop().await.unwrap();
            self.private.start::<WorkloadError>().await.unwrap();
        });
    }

    fn uri(&self) -> String {
        self.private.running().unwrap().uri()
    }

    fn command(&self, database: &str, command: Document) -> Document {
        self.runtime.block_on(async {
            let server = Server::connect(&self.uri()).await.unwrap();
            server.command(database, command).await.unwrap()
        })
    }
}

/// Inserts documents made from their number, in its order.
fn insert(running: &Prepared, collection: &str, count: i64, document: impl Fn(i64) -> Document) {
    running.runtime.block_on(async {
        let server = Server::connect(&running.uri()).await.unwrap();
        for batch in (0..count).collect::<Vec<i64>>().chunks(1_000) {
            let documents: Vec<Document> = batch.iter().map(|n| document(*n)).collect();
            let insert = doc! { "insert": collection, "documents": documents };
            server.command(DATABASE, insert).await.unwrap();
        }
    });
}

fn index(running: &Prepared, collection: &str, keys: Document) {
    let index = doc! { "key": keys, "name": "made" };
    running.command(
        DATABASE,
        doc! { "createIndexes": collection, "indexes": [index] },
    );
}

/// Makes the server read a collection from the disk, as one in use has: after inserts everything may still be in its
/// cache, and then it cannot say how full pages are.
fn read_anew(running: &mut Prepared, collection: &str) {
    running.restart();
    let scan = doc! { "find": collection, "filter": { "none": 1 }, "hint": { "$natural": 1 } };
    running.command(DATABASE, scan);
}

/// Text of this many characters that hardly compresses, the same for a number.
fn text(number: i64, length: usize) -> String {
    let mut random = SplitMix64::new(number.unsigned_abs());
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&format!("{:016x}", random.next_u64()));
    }
    text.truncate(length);
    text
}

/// A sample of each device a minute, in no order within the minute.
fn sample(number: i64) -> Document {
    let (minute, place) = (number / DEVICES, number % DEVICES);
    let device = (place * 37 + minute * 11) % DEVICES;
    let at = DateTime::from_millis(1_700_000_000_000 + minute * MINUTE_MS);
    doc! { "device": format!("device {device}"), "ts": at, "value": text(number, 40) }
}

/// `advise` for a collection, with the mongod of the tests to try on.
fn asking(bench: &Bench, running: &Prepared, collection: &str, more: &[&str]) -> Command {
    let namespace = format!("{DATABASE}.{collection}");
    let mut asking = bench.seekscope(&["advise", &running.uri(), &namespace]);
    asking.arg("--server-binary").arg(&programs().mongod.path);
    asking.args(more);
    asking
}

fn document(
    bench: &Bench,
    running: &Prepared,
    collection: &str,
    query: &str,
    more: &[&str],
) -> Value {
    let mut asking = asking(bench, running, collection, more);
    let document = json(asking.args(["--query", query]));
    assert_valid("advise", &document);
    document
}

fn advice(
    bench: &Bench,
    running: &Prepared,
    collection: &str,
    query: &str,
    more: &[&str],
) -> Value {
    document(bench, running, collection, query, more)["summary"].clone()
}

fn way<'a>(summary: &'a Value, kind: &str) -> &'a Value {
    let ways = summary["ways"].as_array().unwrap();
    let found = ways.iter().find(|way| way["kind"] == kind);
    found.unwrap_or_else(|| panic!("no way of kind {kind}: {summary:#}"))
}

fn advised(summary: &Value) -> &Value {
    let number = summary["verdict"]["way"].as_u64().unwrap();
    &summary["ways"][usize::try_from(number).unwrap()]
}
