//! How benchmarks of a replica set end whose primary is killed meanwhile: the figures are of two members, and none of them
//! is a result.

use std::fs::File;
use std::time::Duration;

use crate::support::{assert_fails, run_document, shared_machine, until};
use crate::tune_rolling::Restartable;

/// Runs a benchmark, and kills the primary a little after this is told to have begun. Its end names both members.
fn killed_during(set: &Restartable, arguments: &[&str], told: &str) {
    let uri = set.uri();
    let was = set.primary();
    let (said, kept) = (set.bench.path("said"), set.bench.path("kept"));
    let mut run = set
        .bench
        .seekscope(&[&arguments[..2], &[&uri], &arguments[2..]].concat());
    run.stderr(File::create(&said).unwrap());
    let mut run = run.stdout(File::create(&kept).unwrap()).spawn().unwrap();
    let is_told = || {
        let said = std::fs::read_to_string(&said).unwrap();
        said.lines().any(|line| line.trim() == told)
    };
    until(is_told);
    std::thread::sleep(Duration::from_secs(2));
    assert!(set.shell(&format!("kill -9 $(cat data-{was}/mongod.lock)")));
    let status = run.wait().unwrap();
    let output = std::process::Output {
        status,
        stdout: std::fs::read(&kept).unwrap(),
        stderr: std::fs::read(&said).unwrap(),
    };
    let was = format!("127.0.0.1:{was}");
    let now = format!("127.0.0.1:{}", set.primary());
    let words = ["the benchmark ended early", &was, &now, "run it again"];
    assert_fails(&output, 3, &words);
    let document = run_document(&set.bench.path("run"));
    assert_eq!(document["outcome"], "partial", "{document:#}");
}

#[test]
fn a_workload_whose_primary_was_killed_is_no_result() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let load = ["--for", "20s", "-p", "recordcount=500", "--out", "run"];
    killed_during(&set, &[&["bench", "ycsb"], &load[..]].concat(), "a");
}

/// A regression: the driver tried again until another member was elected, nothing failed, and the run ended with success.
#[test]
fn an_index_build_beside_a_load_whose_primary_was_killed_is_no_result() {
    let _machine = shared_machine();
    let set = Restartable::start();
    let builds = [
        "--docs",
        "2000",
        "--kinds",
        "int",
        "--repeats",
        "1",
        "--out",
        "run",
    ];
    let beside = ["bench", "index", "--foreground", "50/s", "--margin", "14s"];
    killed_during(&set, &[&beside[..], &builds].concat(), "beside int 1");
}
