//! `trace` on a running mongod.

use std::process::Stdio;

use seekscope_bench::deployment::Topology;

use crate::running::shared;
use crate::support::{Bench, machine, run_document, stderr, until};

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
