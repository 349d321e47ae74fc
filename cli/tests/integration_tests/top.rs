//! `seekscope top` on a real server under load.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mongodb::bson::doc;
use seekscope_server::{Namespace, Server, page_cache};
use serde_json::Value;

use crate::pseudo_terminal::{GIVEN_BACK, OnTerminal, TAKEN};
use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, as_nobody, assert_fails, install, load_documents, machine, send,
    shared_machine, stderr, until, wait,
};

const NAMESPACE: &str = "shop.orders";

/// A server whose cache is much smaller than the collection that somebody reads and changes.
pub struct Busy {
    pub bench: Bench,
    pub server: ForeignServer,
    stop: Arc<AtomicBool>,
    client: Option<JoinHandle<()>>,
}

impl Busy {
    pub fn new() -> Self {
        let bench = Bench::new();
        let server = ForeignServer::start_with_checkpoints(&bench.path("data"), "16MB", 1);
        let namespace: Namespace = NAMESPACE.parse().unwrap();
        load_documents(&server.uri, &namespace, 20_000);
        let stop = Arc::new(AtomicBool::new(false));
        let (uri, stopped) = (server.uri.clone(), Arc::clone(&stop));
        let client = std::thread::spawn(move || use_it(&uri, &stopped));
        Self {
            bench,
            server,
            stop,
            client: Some(client),
        }
    }

    /// The file with the collection's documents: by far the largest.
    pub fn collection_file(&self) -> PathBuf {
        let files = page_cache::files_below(&self.bench.path("data")).unwrap();
        let tables = files
            .into_iter()
            .filter(|file| file.extension().is_some_and(|e| e == "wt"));
        tables
            .max_by_key(|file| file.metadata().map_or(0, |m| m.len()))
            .unwrap()
    }

    /// The lines that `top URI --json ARGUMENTS` prints.
    fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let mut top = self.bench.seekscope(&["top", &self.server.uri, "--json"]);
        let output = top.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.inspect(|line| assert_valid("top", line)).collect()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(client) = self.client.take() {
            let _ = client.join();
        }
    }
}

/// Reads documents here and there, and changes some, until it is stopped or the server goes.
fn use_it(uri: &str, stop: &AtomicBool) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::connect(uri).await.unwrap();
        let mut at = 1_i64;
        while !stop.load(Ordering::Relaxed) {
            at = (at * 7_919 + 13) % 20_000;
            let find = doc! { "find": "orders", "filter": { "_id": at }, "limit": 1 };
            let change = doc! { "q": { "_id": at }, "u": { "$inc": { "i": 1 } } };
            let update = doc! { "update": "orders", "updates": [change] };
            let commands = [find.clone(), find, update];
            for command in commands {
                if server.command("shop", command).await.is_err() {
                    return;
                }
            }
        }
    });
}

#[test]
fn programs_get_files_operations_and_the_disk_and_nothing_stays() {
    // Nothing may be lost, and seekscope may take no more than half a CPU.
    let _machine = machine();
    let busy = Busy::new();
    let frames = busy.json_lines(&["--count", "3", "--sort", "bytes"]);
    assert_eq!(frames.len(), 3);
    let last = frames.last().unwrap();
    let file = &last["files"][0];
    assert!(
        file["namespace"].as_str().unwrap().contains(NAMESPACE),
        "{file}"
    );
    assert_eq!(file["role"], "collection");
    // Point reads; what eviction and checkpoints write meanwhile may make it less clear.
    let pattern = file["pattern"].as_str().unwrap();
    assert!(["random", "mixed"].contains(&pattern), "{file}");
    assert!(file["reads_per_s"].as_f64() > Some(10.0), "{file}");
    assert!(file["p99_ns"].as_u64() >= file["p50_ns"].as_u64(), "{file}");
    assert!(
        last["operations"]["per_s"]["query"].as_f64() > Some(10.0),
        "{last}"
    );
    assert!(
        last["operations"]["per_s"]["update"].as_f64() > Some(10.0),
        "{last}"
    );
    assert!(last["operations"]["read_ms"].as_f64() > Some(0.0));
    let share = last["cache"]["used_share"].as_f64().unwrap();
    assert!((0.01..1.5).contains(&share), "{share}");
    assert!(last["checkpoint"]["last_s"].as_f64() > Some(0.0), "{last}");
    assert!(last["disk"]["writes_per_s"].is_number(), "{last}");
    assert_eq!(last["trace"]["lost"], 0);
    assert!(last["self"]["cpus"].as_f64() < Some(0.5), "{last}");
    assert_eq!(last["limitations"].as_array().unwrap().len(), 0, "{last}");
    let rising = |name: &str| {
        frames
            .windows(2)
            .all(|p| p[0][name].as_f64() < p[1][name].as_f64())
    };
    assert!(rising("elapsed_s") && rising("unix_ms"));

    let left = busy.bench.loaded_programs();
    assert_eq!(left, 0, "nothing stays in the kernel");
    let names = busy.bench.leftovers(&["data"]);
    // The server's own command line names the folder.
    assert!(
        names.iter().all(|name| name.contains("secantusd")),
        "{names:?}"
    );
}

#[test]
fn without_a_terminal_it_prints_text_until_it_is_stopped() {
    // Nothing may be lost.
    let _machine = machine();
    let busy = Busy::new();
    let uri = &busy.server.uri;
    let once = busy
        .bench
        .seekscope(&["top", uri, "--once", "--files", "2"])
        .output()
        .unwrap();
    assert!(once.status.success(), "{}", stderr(&once));
    let text = String::from_utf8(once.stdout).unwrap();
    for part in ["ops ", "cache ", "disk ", "server ", NAMESPACE, "none lost"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    // In capitals while one runs.
    assert!(text.to_lowercase().contains("checkpoint"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");

    let pid = busy.server.pid().to_string();
    let mut endless = busy
        .bench
        .seekscope(&["top", "--pid", &pid, "--every", "500ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(endless.stdout.take().unwrap()).lines();
    // Two frames, divided by an empty line.
    assert!(lines.by_ref().any(|line| line.unwrap().is_empty()));
    assert!(lines.next().unwrap().unwrap().starts_with("seekscope top"));
    send(&endless, libc::SIGINT);
    assert!(wait(&mut endless, Duration::from_secs(20)).success());

    // A reader that has had enough, as head has.
    let mut unread = busy.bench.seekscope(&["top", uri, "--every", "500ms"]);
    let mut unread = unread.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(unread.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    drop(lines);
    assert!(wait(&mut unread, Duration::from_secs(20)).success());
}

#[test]
fn counters_alone_and_a_server_that_goes() {
    let _machine = shared_machine();
    let busy = Busy::new();
    let frames = busy.json_lines(&["--no-trace", "--count", "1"]);
    assert!(frames[0]["files"].is_null() && frames[0]["trace"].is_null());
    assert!(frames[0]["operations"]["per_s"]["query"].as_f64() > Some(10.0));
    assert!(
        frames[0]["process"]["cpus"].as_f64() > Some(0.0),
        "{}",
        frames[0]
    );

    let pid = busy.server.pid().to_string();
    let mut left = busy
        .bench
        .seekscope(&["top", "--pid", &pid, "--count", "60", "--every", "500ms"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(left.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    send_to(busy.server.pid());
    std::io::copy(&mut out, &mut std::io::sink()).unwrap();
    let output = left.wait_with_output().unwrap();
    assert_fails(&output, 3, &[&pid, "has ended"]);

    let missing = busy
        .bench
        .seekscope(&["top", "--pid", "4194304"])
        .output()
        .unwrap();
    assert_fails(&missing, 2, &["no process 4194304"]);
    let nobody = busy.bench.seekscope(&["top"]).output().unwrap();
    assert_eq!(nobody.status.code(), Some(2));
}

fn send_to(pid: u32) {
    // SAFETY: plain kill(2) on a server that this test has started and not waited for.
    let result = unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) };
    assert_eq!(result, 0);
}

#[test]
fn a_user_without_rights_sees_the_counters_and_what_is_missing() {
    let _machine = shared_machine();
    let busy = Busy::new();
    // In /tmp, because a normal user cannot enter root's folders.
    let folder = tempfile::tempdir().unwrap();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let copy = folder.path().join("seekscope");
    install(busy.bench.seekscope(&[]).get_program(), &copy);
    let output = as_nobody(&copy)
        .args(["top", &busy.server.uri, "--once"])
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "ops ",
        "cache ",
        "! files, patterns and latencies are not shown",
        "root",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing but the program itself: {left:?}");
}

#[test]
fn on_a_terminal_keys_are_obeyed_and_the_terminal_is_given_back() {
    let _machine = shared_machine();
    let busy = Busy::new();
    let mut top = busy.bench.seekscope(&["top", &busy.server.uri]);
    let mut top = OnTerminal::start(top.env("LC_ALL", "C"));
    top.wait_for(TAKEN);
    top.wait_to_see("misses");
    top.wait_to_see(NAMESPACE);
    top.wait_to_see("by time waited");
    assert!(
        !top.shown().contains('↑'),
        "the locale has no such character"
    );
    top.press("b");
    top.wait_to_see("by bytes");
    top.press("h");
    top.wait_to_see("one thread waiting all the time");
    top.press("h");
    top.wait_to_see("wait ms/s");
    top.press("p");
    top.wait_to_see("[paused]");
    top.press("q");
    let status = top.wait();
    assert!(status.success(), "{status:?}");
    until(|| top.shown().ends_with("\u{1b}[?25h"));
    assert!(top.shown().contains(GIVEN_BACK));
    let names = busy.bench.leftovers(&["data"]);
    assert!(
        names.iter().all(|name| name.contains("secantusd")),
        "{names:?}"
    );
}

#[test]
fn a_live_trace_names_collections_and_gives_the_terminal_back() {
    let _machine = shared_machine();
    let busy = Busy::new();
    let uri = &busy.server.uri;
    let mut trace = busy
        .bench
        .seekscope(&["trace", "--target", uri, "--live", "--out", "run"]);
    let mut trace = OnTerminal::start(trace.env("LC_ALL", "C.UTF-8"));
    trace.wait_for(TAKEN);
    trace.wait_to_see(NAMESPACE);
    trace.press("\t");
    trace.press("q");
    let status = trace.wait();
    assert!(status.success(), "{status:?}");
    assert!(trace.shown().contains(GIVEN_BACK));
    assert!(busy.bench.path("run/report.html").is_file());
}
