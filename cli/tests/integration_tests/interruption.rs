use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    Bench, json, run_document, send, shared_machine, stderr, until, until_caught, wait,
};

/// Moments in ms after signals are caught: spread over start-up, loading and restarts.
const MOMENTS_MS: [u64; 6] = [0, 400, 1_300, 2_900, 5_500, 9_000];
/// How long after tracing begins the traced builds are interrupted, ms.
const IN_BUILDS_MS: u64 = 4_000;

/// Waits until a run of the demonstration has begun to trace, and for some seconds more.
fn until_in_builds(run: &Path) {
    let phases = || {
        let text = std::fs::read(run.join("run.json")).unwrap_or_default();
        let document: Value = serde_json::from_slice(&text).unwrap_or_default();
        document["phases"].as_array().map_or(0, Vec::len)
    };
    let end = Instant::now() + Duration::from_secs(60);
    while phases() < 1 {
        assert!(Instant::now() < end, "nothing was traced after a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(IN_BUILDS_MS));
}

#[test]
fn a_signal_at_any_moment_leaves_only_the_partial_run() {
    let bench = Bench::new();
    let mut partial = Vec::new();
    let moments = MOMENTS_MS.into_iter().map(Some).chain([None]);
    for (i, moment) in moments.enumerate() {
        // Each time anew, so that no test that must be alone waits for all of them.
        let _machine = shared_machine();
        let out = format!("run{i}");
        let signal = [libc::SIGINT, libc::SIGTERM][i % 2];
        let mut child = bench
            .demo(&out, 8_000, &["--emulate-disk", "hdd", "--repeats", "3"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until_caught(&child, signal);
        match moment {
            Some(ms) => std::thread::sleep(Duration::from_millis(ms)),
            None => until_in_builds(&bench.path(&out)),
        }
        send(&child, signal);
        let status = wait(&mut child, Duration::from_secs(60));
        assert_eq!(status.code(), Some(130), "{out}: {status:?}");
        let document = run_document(&bench.path(&out));
        assert_eq!(document["outcome"], "partial", "{out}");
        assert!(document["ended_ns"].is_u64(), "{out}: no end is recorded");
        partial.push(document["phases"].as_array().unwrap().len());
        let expected: Vec<String> = (0..=i).map(|i| format!("run{i}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(bench.leftovers(&expected), Vec::<String>::new(), "{out}");
        assert_eq!(bench.loaded_programs(), 0, "{out}");
    }
    // The last one had measured something, and it can be shown.
    assert!(
        partial.last() > Some(&0),
        "phases measured before each signal: {partial:?}"
    );
    let shown = bench
        .seekscope(&["report", &format!("run{}", MOMENTS_MS.len())])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Partial run"));
}

#[test]
fn what_a_killed_run_leaves_is_offered_and_removed() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut child = bench
        .demo("run", 20_000, &["--emulate-disk", "hdd"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Killed in the middle of the slow build on `aged`.
    until_in_builds(&bench.path("run"));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = || bench.leftovers(&["run"]);
    // Its server dies with it.
    until(|| left().iter().all(|l| !l.contains("--storage-path")));
    assert!(!left().is_empty(), "a killed run cannot clean up");

    let next = bench
        .seekscope(&["doctor", "mongodb://127.0.0.1:1/", "--out", "next"])
        .output()
        .unwrap();
    assert!(
        stderr(&next).contains("seekscope clean"),
        "{}",
        stderr(&next)
    );
    let cleaned = bench.seekscope(&["clean", "--yes"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", stderr(&cleaned));
    assert_eq!(bench.leftovers(&["run", "next"]), Vec::<String>::new());
    // What the killed run had recorded is there, marked partial.
    let document = json(&mut bench.seekscope(&["report", "run"]));
    assert_eq!(document["outcome"], "partial");
    let killed = &document["summary"]["trace"];
    assert!(killed["reads"].as_u64() > Some(20), "{killed:#}");
    assert!(document["limitations"].to_string().contains("no trailer"));
}
