//! `trace` on a running mongod.

use std::process::Stdio;
use std::time::Duration;

use seekscope_bench::deployment::Topology;

use crate::mongod::Mongod;
use crate::running::shared;
use crate::support::{Bench, assert_fails, machine, run_document, shared_machine, stderr, until};

/// Interrupts that meet the programs of another tracer are lost.
#[test]
fn what_a_load_writes_is_traced_without_loss() {
    let _machine = machine();
    let bench = Bench::new();
    let running = shared(Topology::Standalone);
    let pid = running.pid().to_string();
    let mut trace = bench.seekscope(&["trace", "-p", &pid, "--for", "6s", "--out", "run"]);
    trace.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = trace.spawn().unwrap();
    until(|| bench.path("run").join("io.spool").exists());
    running.load("trace.orders", 2_000);
    running.reset_page_cache();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let run = run_document(&bench.path("run"));
    let trace = &run["phases"][0]["trace"];
    assert_eq!(trace["seen"], trace["written"], "{trace:#}");
    assert!(trace["seen"].as_u64().unwrap() > 0, "{trace:#}");
}

#[test]
fn a_server_that_ends_before_the_time_ends_the_trace_early() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut running = Mongod::start(&bench, "data", &[]);
    for (out, how) in [("events", None), ("totals", Some("--aggregate"))] {
        let uri = running.uri();
        let mut trace = bench.seekscope(&["trace", "--target", &uri, "--for", "60s", "--out", out]);
        let trace = trace
            .args(how)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = trace.spawn().unwrap();
        until(|| bench.path(out).join("io.spool").exists());
        std::thread::sleep(Duration::from_secs(4));
        running.end(libc::SIGKILL);
        let output = child.wait_with_output().unwrap();
        assert_fails(
            &output,
            1,
            &["the server ended after", "of the 60.0 s requested"],
        );
        let run = run_document(&bench.path(out));
        assert_eq!(run["outcome"], "partial", "{run:#}");
        let shown = String::from_utf8_lossy(&output.stdout);
        // What was watched, though next to nothing happened: sometimes one event, sometimes none.
        let (_, seen) = shown.split_once(" seen in ").unwrap();
        let seconds = seen.split(' ').next().unwrap().parse::<f64>().unwrap();
        assert!(seen.contains(" s, ") && seconds >= 3.0, "{shown}");
        running.start_again();
    }
}
