//! `doctor TARGET` on a server that is not seekscope's.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_run::RunDirectory;
use seekscope_server::{Namespace, Server, page_cache};
use serde_json::Value;

use crate::support::{
    Bench, ForeignServer, json, load_documents, machine, run_document, runtime, send,
    shared_machine, until, until_caught, wait,
};

const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&</script>";

fn index_names(uri: &str, namespace: &Namespace) -> Vec<String> {
    runtime().block_on(async {
        let server = Server::connect(uri).await.unwrap();
        let command = doc! { "listIndexes": namespace.collection() };
        let reply = server.command(namespace.database(), command).await.unwrap();
        let indexes = reply
            .get_document("cursor")
            .unwrap()
            .get_array("firstBatch")
            .unwrap()
            .clone();
        indexes
            .iter()
            .map(|i| {
                i.as_document()
                    .unwrap()
                    .get_str("name")
                    .unwrap()
                    .to_string()
            })
            .collect()
    })
}

/// strace attached to a process, with wall-clock times and paths.
struct Strace {
    child: Child,
    log: std::path::PathBuf,
}

impl Strace {
    fn attach(pid: u32, log: &Path) -> Self {
        let child = Command::new("strace")
            .args([
                "-f",
                "-y",
                "-ttt",
                "-e",
                "trace=read,pread64,readv,preadv,preadv2",
                "-o",
            ])
            .arg(log)
            .args(["-p", &pid.to_string()])
            .stderr(Stdio::null())
            .spawn()
            .expect("strace; `./x test` installs it");
        let threads = || {
            std::fs::read_dir(format!("/proc/{pid}/task"))
                .unwrap()
                .flatten()
        };
        let traced = |task: std::fs::DirEntry| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            !status.contains("TracerPid:\t0\n")
        };
        while !threads().all(traced) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            child,
            log: log.to_path_buf(),
        }
    }

    /// Reads of `.wt` files within a span of wall-clock seconds: calls and bytes.
    fn finish(mut self, from_s: f64, to_s: f64) -> (u64, u64) {
        send(&self.child, libc::SIGINT);
        wait(&mut self.child, Duration::from_secs(30));
        let text = std::fs::read_to_string(&self.log).unwrap();
        let mut unfinished: std::collections::HashMap<&str, bool> =
            std::collections::HashMap::new();
        let (mut calls, mut bytes) = (0, 0);
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (thread, time) = (words.next().unwrap(), words.next().unwrap());
            let counts = if line.contains("resumed>") {
                unfinished.remove(thread).unwrap_or(false)
            } else {
                let time: f64 = time.parse().unwrap();
                let counts = line.contains(".wt>") && (from_s..to_s).contains(&time);
                if line.contains("<unfinished ...>") {
                    unfinished.insert(thread, counts);
                    continue;
                }
                counts
            };
            let result = line
                .rsplit_once(" = ")
                .and_then(|(_, r)| r.split(' ').next()?.parse::<u64>().ok());
            if let (true, Some(result)) = (counts, result) {
                calls += 1;
                bytes += result;
            }
        }
        (calls, bytes)
    }
}

/// A permitted index build: the recorded reads are the reads that strace counts, and nothing stays.
#[test]
fn recorded_reads_are_those_that_strace_counts() {
    let bench = Bench::new();
    let data = bench.path("data");
    let namespace = Namespace::new("shop", "orders").unwrap();
    {
        let _machine = shared_machine();
        let server = ForeignServer::start(&data, "1G");
        load_documents(&server.uri, &namespace, 25_000);
        server.stop();
        page_cache::evict(&data).unwrap();
    }

    // Not one read may be lost.
    let _machine = machine();
    let server = ForeignServer::start(&data, "32M");
    let strace = Strace::attach(server.pid(), &bench.path("strace.log"));
    let document = json(&mut bench.seekscope(&[
        "doctor",
        &server.uri,
        "--collection",
        "shop.orders",
        "--index",
        r#"{"i": 1}"#,
        "--allow-index-build",
        "--out",
        "run",
    ]));
    let (run, stored) = RunDirectory::open(&bench.path("run")).unwrap();
    // Of the build alone, at whose edges the server reads nothing else.
    let phase = &stored.phases[1];
    let realtime_s = |ns: u64| {
        let started = stored.started;
        (started.realtime_ns as f64 + (ns as f64 - started.monotonic_ns as f64)) / 1e9
    };
    let counted = strace.finish(realtime_s(phase.started_ns), realtime_s(phase.ended_ns));

    let files = run.files().unwrap();
    let tables: Vec<u32> = files
        .iter()
        .filter(|f| f.path.ends_with(".wt"))
        .map(|f| f.file_id)
        .collect();
    let mut recorded = (0, 0);
    run.for_each_event(|e| {
        let meanwhile = (phase.started_ns..phase.ended_ns).contains(&e.t_ns);
        if meanwhile && e.op.is_read() && tables.contains(&e.file_id) {
            recorded.0 += 1;
            recorded.1 += e.bytes();
        }
    })
    .unwrap();
    let trace = stored.phases[0].trace.as_ref().unwrap();
    assert!(trace.adds_up() && !trace.loss_matters(), "{trace:?}");
    assert!(recorded.0 > 200, "too few reads to be a test: {recorded:?}");
    assert_eq!(recorded, counted, "recorded against strace");
    let builds = &document["summary"]["answers"]["index_builds"];
    assert_eq!(builds[0]["namespace"], "shop.orders", "{builds:#}");
    assert_eq!(builds[0]["build_s"].as_array().unwrap().len(), 1);
    assert_eq!(
        index_names(&server.uri, &namespace),
        ["_id_"],
        "the index is dropped again"
    );
}

/// Nothing is built without permission, and names that look like markup stay names.
#[test]
fn it_observes_without_writing_and_shows_hostile_names_as_text() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let data = bench.path("data");
    let namespace = Namespace::new("shop", HOSTILE).unwrap();
    let server = ForeignServer::start(&data, "1G");
    load_documents(&server.uri, &namespace, 25_000);
    server.stop();
    page_cache::evict(&data).unwrap();

    let server = ForeignServer::start(&data, "32M");
    let full_name = namespace.to_string();
    let mut doctor = bench.seekscope(&[
        "doctor",
        &server.uri,
        "--collection",
        &full_name,
        "--index",
        r#"{"i": 1}"#,
        "--for",
        "4s",
        "--out",
        "run",
    ]);
    doctor.arg("--json").stdout(Stdio::piped());
    let child = doctor.spawn().unwrap();
    // After the guard's baseline, a quarter of the time, tracing begins.
    until(|| bench.path("run/io.spool").exists());
    std::thread::sleep(Duration::from_millis(500));
    scan(&server.uri, &namespace);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();

    let phase = &run_document(&bench.path("run"))["phases"][0];
    assert_eq!(
        (&phase["name"], &phase["index_build"]),
        (&"observed".into(), &Value::Null)
    );
    let trace = &document["summary"]["trace"];
    let files = trace["files"].as_array().unwrap();
    let file = files.iter().find(|f| f["namespace"] == full_name.as_str());
    assert!(
        file.is_some_and(|f| f["reads"].as_u64() > Some(100)),
        "{trace:#}"
    );
    assert_eq!(index_names(&server.uri, &namespace), ["_id_"]);
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && !page.contains("<img src=x"));
}

pub fn scan(uri: &str, namespace: &Namespace) {
    runtime().block_on(async {
        let server = Server::connect(uri).await.unwrap();
        // A filter on a field without an index reads every document.
        let command = doc! { "count": namespace.collection(), "query": { "s1": "no such text" } };
        server.command(namespace.database(), command).await.unwrap();
    });
}

/// A signal during the build: the index must not stay on somebody else's server.
#[test]
fn an_interrupted_build_removes_its_index() {
    let bench = Bench::new();
    let namespace = Namespace::new("shop", "orders").unwrap();
    let server = {
        let _machine = shared_machine();
        let server = ForeignServer::start(&bench.path("data"), "64M");
        load_documents(&server.uri, &namespace, 30_000);
        server
    };
    // The server cannot break a build off, and seekscope does not wait for its end for ever.
    let _machine = machine();
    for (i, moment_ms) in [50, 300, 900, 1_200, 1_500].into_iter().enumerate() {
        let out = format!("run{i}");
        let mut child = bench
            .seekscope(&[
                "doctor",
                &server.uri,
                "--collection",
                "shop.orders",
                "--index",
                r#"{"s2": 1}"#,
                "--allow-index-build",
                "--out",
                &out,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until_caught(&child, libc::SIGINT);
        // While the guard takes its measure, while the server is asked, and while the index is built.
        if i > 0 {
            until(|| bench.path(&format!("{out}/io.spool")).exists());
        }
        std::thread::sleep(Duration::from_millis(moment_ms));
        send(&child, libc::SIGINT);
        let status = wait(&mut child, Duration::from_secs(60));
        assert!(matches!(status.code(), Some(130 | 0)), "{status:?}");
        assert_eq!(
            index_names(&server.uri, &namespace),
            ["_id_"],
            "after {moment_ms} ms"
        );
    }
}
