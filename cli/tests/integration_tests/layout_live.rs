//! `seekscope layout` on a server that is running.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use seekscope_server::{Namespace, Server};
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, as_nobody, assert_fails, install, json, load_documents, run_document,
    send, shared_machine, wait,
};

const DOCUMENTS: u64 = 4000;
/// All of them are in more leaves than this.
const LEAVES_MIN: usize = 100;

struct Loaded {
    bench: Bench,
    server: ForeignServer,
    namespace: Namespace,
}

/// A server with some 12 MB of documents, in its files.
fn loaded() -> Loaded {
    let bench = Bench::new();
    let server = ForeignServer::start_with_checkpoints(&bench.path("data"), "64MB", 1);
    let namespace: Namespace = "shop.orders".parse().unwrap();
    load_documents(&server.uri, &namespace, DOCUMENTS);
    let loaded = Loaded {
        bench,
        server,
        namespace,
    };
    let end = Instant::now() + Duration::from_secs(120);
    while loaded.leaves() < LEAVES_MIN {
        assert!(Instant::now() < end, "no checkpoint has the documents");
        std::thread::sleep(Duration::from_millis(300));
    }
    loaded
}

fn run_command(uri: &str, database: &str, command: mongodb::bson::Document) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::connect(uri).await.unwrap();
        server.command(database, command).await.unwrap();
    });
}

impl Loaded {
    fn layout(&self, more: &[&str]) -> Command {
        let mut command = self.bench.seekscope(&["layout", &self.server.uri]);
        command.args(more);
        command
    }

    /// Returns the number of leaves in the newest checkpoint; 0 before there is one.
    fn leaves(&self) -> usize {
        let name = self.namespace.to_string();
        let output = self.layout(&[&name, "--leaves"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    }

    /// The file with the documents. It may hold other collections too.
    fn documents(&self, document: &Value) -> Value {
        let wanted = self.namespace.to_string();
        let files = document["summary"]["files"].as_array().unwrap();
        let mut holding = files.iter().filter(|file| {
            let names = file["namespace"].as_str().unwrap_or_default();
            names.split(", ").any(|name| name == wanted)
        });
        holding
            .next()
            .unwrap_or_else(|| panic!("{document}"))
            .clone()
    }
}

#[test]
fn a_running_server_is_found_and_left_alone() {
    let _machine = shared_machine();
    let loaded = loaded();
    let document = json(&mut loaded.layout(&["--out", "run"]));
    assert_valid("layout", &document);
    assert_eq!(document["summary"]["state"], "live");
    assert_eq!(document["summary"]["names"], "table_names");
    assert_eq!(document["target"]["pid"], loaded.server.pid());
    let documents = loaded.documents(&document);
    let leaf_pages = documents["leaf_pages"].as_u64().unwrap();
    assert!(leaf_pages >= LEAVES_MIN as u64, "{documents}");
    let home = PathBuf::from(document["summary"]["path"].as_str().unwrap());
    assert!(home.starts_with(loaded.bench.path("data").canonicalize().unwrap()));

    let named = json(&mut loaded.layout(&["shop.orders", "--out", "named"]));
    assert_eq!(named["summary"]["files"].as_array().unwrap().len(), 1);
    assert_eq!(named["summary"]["files"][0]["file"], documents["file"]);
    let leaves = loaded
        .layout(&["shop.orders", "--leaves"])
        .output()
        .unwrap();
    let lines = String::from_utf8(leaves.stdout).unwrap().lines().count();
    assert_eq!(
        lines as u64,
        named["summary"]["files"][0]["leaf_pages"].as_u64().unwrap()
    );

    let text = loaded
        .bench
        .seekscope(&["layout", "--out", "text"])
        .arg(&home)
        .output();
    let text = String::from_utf8(text.unwrap().stdout).unwrap();
    assert!(text.contains("a server has this directory open"), "{text}");
    assert!(
        text.contains("not the data directory of a mongod"),
        "{text}"
    );

    let Loaded { bench, server, .. } = loaded;
    server.stop();
    let stopped = json(bench.seekscope(&["layout", "--out", "stopped"]).arg(&home));
    assert_eq!(stopped["summary"]["state"], "stopped");
}

#[test]
fn a_server_that_is_not_there_ends_with_its_exit_code() {
    let bench = Bench::new();
    let output = bench
        .seekscope(&["layout", "mongodb://127.0.0.1:1/"])
        .output()
        .unwrap();
    assert_fails(&output, 3, &["cannot connect to"]);
    assert!(!bench.path("seekscope-runs").exists());
}

#[test]
fn checkpoints_are_followed_as_they_come() {
    let _machine = shared_machine();
    let loaded = loaded();
    let mut watch = loaded
        .layout(&["shop.orders", "--watch", "--every", "100ms", "--out", "run"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_history(&loaded, |history| !history.is_empty());
    // Every document, so every leaf.
    let update = doc! {
        "update": loaded.namespace.collection(),
        "updates": [{ "q": {}, "u": { "$set": { "again": 1 } }, "multi": true }],
    };
    run_command(&loaded.server.uri, loaded.namespace.database(), update);
    wait_for_history(&loaded, |history| moved(history) > LEAVES_MIN as u64 / 2);
    send(&watch, libc::SIGINT);
    let status = wait(&mut watch, Duration::from_secs(30));
    assert_eq!(status.code(), Some(0), "a signal is how a watch is ended");

    let document = json(&mut loaded.bench.seekscope(&["report", "run"]));
    assert_valid("layout", &document);
    assert_eq!(document["outcome"], "ok");
    let history = document["summary"]["history"].as_array().unwrap();
    assert!(history.len() >= 2);
    assert!(moved(history) > LEAVES_MIN as u64 / 2, "{history:#?}");
    let file = loaded.documents(&document);
    assert!(
        file["decay"]["moved_share_per_hour"].as_f64().unwrap() > 0.0,
        "{file}"
    );
    let page = std::fs::read_to_string(loaded.bench.path("run/report.html")).unwrap();
    assert!(page.contains("How the order changed"));
}

fn moved(history: &[Value]) -> u64 {
    let moved = history.iter().map(|m| m["moved_leaf_pages"].as_u64());
    moved.map(Option::unwrap).sum()
}

/// Waits until the run's document has such a history.
fn wait_for_history(loaded: &Loaded, wanted: impl Fn(&[Value]) -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        if loaded.bench.path("run/run.json").exists() {
            let document = run_document(&loaded.bench.path("run"));
            let history = document["layout"]["history"].as_array();
            if history.is_some_and(|history| wanted(history)) {
                return;
            }
        }
        assert!(Instant::now() < end, "no such checkpoints were seen");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_interrupted_measurement_keeps_what_it_has() {
    let _machine = shared_machine();
    let loaded = loaded();
    // Slow enough to be interrupted.
    let mut slow = loaded
        .layout(&["--max-reads-per-s", "1", "--out", "run"])
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while !loaded.bench.path("run/run.json").exists() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(20));
    }
    send(&slow, libc::SIGINT);
    let status = wait(&mut slow, Duration::from_secs(10));
    assert_eq!(status.code(), Some(130));
    let document = run_document(&loaded.bench.path("run"));
    assert_eq!(document["outcome"], "partial");
    assert!(
        document["outcome_reason"]
            .as_str()
            .unwrap()
            .contains("interrupted")
    );
}

/// Runs as a user without any privilege, who may not look into the server's process or its files.
#[test]
fn what_is_not_permitted_ends_with_its_exit_code() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64MB");
    // In /tmp, because a normal user cannot enter root's folders; the binary is copied there too.
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let binary = folder.path().join("seekscope");
    install(bench.seekscope(&[]).get_program(), &binary);
    for (path, mode) in [(folder.path(), 0o755), (&data, 0o700)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let run_as_nobody = |place: &str| {
        as_nobody(&binary)
            .args(["layout", place])
            .current_dir("/")
            .output()
            .unwrap()
    };
    let refused = run_as_nobody(data.to_str().unwrap());
    assert_fails(&refused, 4, &["permission denied", "CAP_DAC_READ_SEARCH"]);
    assert_fails(
        &run_as_nobody(&server.uri),
        4,
        &["permission denied", "cap_sys_ptrace"],
    );
}
