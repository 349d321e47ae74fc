use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{
    Bench, json, loaded_programs, machine, run_document, send, stderr, until_caught, wait,
};

/// Moments in ms after signals are caught: spread over start-up, loading, restarts and traced builds.
const MOMENTS_MS: [u64; 7] = [0, 400, 1_300, 2_900, 5_500, 9_000, 14_000];

#[test]
fn a_signal_at_any_moment_leaves_only_the_partial_run() {
    let _machine = machine();
    let bench = Bench::new();
    let programs = loaded_programs();
    let mut partial = Vec::new();
    for (i, moment) in MOMENTS_MS.into_iter().enumerate() {
        let out = format!("run{i}");
        let signal = [libc::SIGINT, libc::SIGTERM][i % 2];
        let mut child = bench
            .demo(&out, 8_000, &["--emulate-disk", "hdd", "--repeats", "3"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until_caught(&child, signal);
        std::thread::sleep(Duration::from_millis(moment));
        send(&child, signal);
        let status = wait(&mut child, Duration::from_secs(60));
        assert_eq!(status.code(), Some(130), "after {moment} ms: {status:?}");
        let document = run_document(&bench.path(&out));
        assert_eq!(document["outcome"], "partial", "after {moment} ms");
        assert!(
            document["ended_ns"].is_u64(),
            "after {moment} ms: the end is recorded"
        );
        partial.push(document["phases"].as_array().unwrap().len());
        let expected: Vec<String> = (0..=i).map(|i| format!("run{i}")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        assert_eq!(
            bench.leftovers(&expected),
            Vec::<String>::new(),
            "after {moment} ms"
        );
        assert_eq!(loaded_programs(), programs, "after {moment} ms");
    }
    // The late ones had measured something, and it can be shown.
    assert!(
        partial.last() > Some(&0),
        "phases measured before each signal: {partial:?}"
    );
    let shown = bench
        .seekscope(&["report", &format!("run{}", MOMENTS_MS.len() - 1)])
        .output()
        .unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("Partial run"));
}

#[test]
fn what_a_killed_run_leaves_is_offered_and_removed() {
    let _machine = machine();
    let bench = Bench::new();
    let mut child = bench
        .demo("run", 20_000, &["--emulate-disk", "hdd"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Killed in the middle of the slow build on `aged`, some seconds after tracing begins.
    let phases = || {
        let text = std::fs::read(bench.path("run/run.json")).unwrap_or_default();
        let document: Value = serde_json::from_slice(&text).unwrap_or_default();
        document["phases"].as_array().map_or(0, Vec::len)
    };
    let end = Instant::now() + Duration::from_secs(60);
    while phases() < 1 {
        assert!(Instant::now() < end, "nothing was traced after a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(4_000));
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let left = bench.leftovers(&["run"]);
    assert!(!left.is_empty(), "a killed run cannot clean up");
    assert!(
        left.iter().all(|l| !l.contains("--storage-path")),
        "its server must die with it: {left:?}"
    );

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
