//! What goes wrong during a benchmark must be in its figures, its first line and its exit code.

use std::process::Stdio;
use std::time::Duration;

use crate::bench::{local, on};
use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, json, processes_naming, run_document, send, server_binary,
    shared_machine, stderr, wait,
};

fn signal(pid: u32, signal: i32) {
    // SAFETY: plain kill(2) on a server that this test started and has not waited for.
    let result = unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
    assert_eq!(result, 0);
}

#[test]
fn a_frozen_server_shows_in_the_response_time() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let records = ["--workload", "c", "--records", "1000"];
    json(on(&bench, &server, "load", &records).args(["--phase", "load"]));
    let mut run = on(&bench, &server, "run", &records);
    run.args([
        "--phase",
        "run",
        "--rate",
        "200/s",
        "--for",
        "14s",
        "--warm-up",
        "none",
        "--quiet",
    ]);
    let mut child = run.stdout(Stdio::null()).spawn().unwrap();
    await_seconds(&bench, "run", "c", 3);
    signal(server.pid(), libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(4));
    signal(server.pid(), libc::SIGCONT);
    wait(&mut child, Duration::from_secs(60));
    let document = run_document(&bench.path("run"));
    let read = &document["bench"]["steps"][0]["operations"][0];
    let p99 = |which: &str| read[which]["p99_ns"].as_u64().unwrap();
    // Of 2800 operations 800 were due while it stood still; a closed loop would have sent 8 of them.
    assert!(p99("response") > 3_000_000_000, "{read}");
    assert!(
        read["response"]["p90_ns"].as_u64().unwrap() > 1_500_000_000,
        "{read}"
    );
    assert!(p99("service") < p99("response"), "{read}");
}

#[test]
fn a_server_that_dies_is_a_failure_with_what_was_measured() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let mut run = on(
        &bench,
        &server,
        "run",
        &["--workload", "c", "--records", "1000", "--for", "12s"],
    );
    let mut child = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_seconds(&bench, "run", "c", 2);
    signal(server.pid(), libc::SIGKILL);
    let status = wait(&mut child, Duration::from_secs(60));
    assert!(matches!(status.code(), Some(1 | 3)), "{status:?}");
    let document = run_document(&bench.path("run"));
    assert_eq!(document["outcome"], "failed");
    let step = &document["bench"]["steps"][1];
    assert!(
        step["operations"][0]["count"].as_u64().unwrap() > 0,
        "{step}"
    );
    assert!(!step["failures"].as_array().unwrap().is_empty(), "{step}");
}

/// Waits until this many seconds of the step are recorded.
fn await_seconds(bench: &Bench, out: &str, step: &str, count: usize) {
    let end = std::time::Instant::now() + Duration::from_secs(90);
    let wanted = format!("\"step\":\"{step}\"");
    loop {
        let spool = bench.path(out).join("intervals.spool");
        let text = std::fs::read_to_string(spool).unwrap_or_default();
        if text.lines().filter(|line| line.contains(&wanted)).count() >= count {
            return;
        }
        assert!(
            std::time::Instant::now() < end,
            "no second of {step} after 90 s"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_stops_the_server() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = ["--workload", "a", "--records", "1000", "--for", "60s"];
    let mut run = local(&bench, "run", &arguments);
    let mut child = run
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    await_seconds(&bench, "run", "a", 2);
    send(&child, libc::SIGINT);
    let status = wait(&mut child, Duration::from_secs(60));
    assert_eq!(status.code(), Some(130), "{status:?}");
    let document = run_document(&bench.path("run"));
    assert_eq!(document["outcome"], "partial");
    let done = document["bench"]["steps"][1]["operations"][0]["count"].as_u64();
    assert!(done > Some(0), "{document:#}");
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
    assert!(processes_naming(&bench.path("").display().to_string()).is_empty());
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
}

#[test]
fn a_rate_beyond_the_servers_ability_is_invalid() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "--workload",
        "c",
        "--records",
        "1000",
        "--rate",
        "10M/s",
        "--for",
        "3s",
    ];
    let output = local(&bench, "run", &arguments).output().unwrap();
    assert_fails(&output, 5, &["of the target was reached"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("INVALID"), "{text}");
    assert_eq!(run_document(&bench.path("run"))["outcome"], "invalid");
}

#[test]
fn a_missed_objective_is_exit_code_6() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "--workload",
        "c",
        "--records",
        "500",
        "--operations",
        "500",
        "--slo",
        "p50=1us",
    ];
    let output = local(&bench, "run", &arguments).output().unwrap();
    assert_fails(&output, 6, &["objective", "p50"]);
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.starts_with("MISSED: the objective"), "{shown}");
    let report = bench.seekscope(&["report", "run"]).output().unwrap();
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.starts_with("MISSED: the objective"), "{report}");
}

#[test]
fn the_highest_rate_is_searched_and_the_curve_kept() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let arguments = [
        "--workload",
        "c",
        "--records",
        "500",
        "--find-max",
        "--slo",
        "p99=2s",
        "--for",
        "3s",
        "--json",
    ];
    let output = local(&bench, "run", &arguments).output().unwrap();
    // On a busy machine the answer may not hold; the curve must be there all the same.
    assert!(
        matches!(output.status.code(), Some(0 | 6)),
        "{}",
        stderr(&output)
    );
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("bench", &document);
    let saturation = &document["summary"]["saturation"];
    let points = saturation["points"].as_array().unwrap();
    assert!(points.len() >= 2, "{saturation:#}");
    assert!(
        points
            .iter()
            .any(|p| !p["missed"].as_array().unwrap().is_empty())
    );
}

#[test]
fn a_wrong_password_is_exit_code_3() {
    let bench = Bench::new();
    let folder = bench.path("data");
    std::fs::create_dir_all(&folder).unwrap();
    let server = ForeignServer::start_with_arguments(&folder, "64M", &["--auth"]);
    let uri = server.uri.replace("mongodb://", "mongodb://anna:wrong@");
    let output = bench
        .seekscope(&["bench", "ycsb", &uri, "--out", "run", "--records", "10"])
        .output()
        .unwrap();
    assert_fails(&output, 3, &["login"]);
    assert!(!stderr(&output).contains("wrong@"));
}

#[test]
fn senseless_arguments_end_with_2() {
    let bench = Bench::new();
    let binary = server_binary();
    let binary = binary.to_str().unwrap();
    for arguments in [
        &["--find-max"][..],
        &["--arrivals", "poisson"],
        &["--workload", "all,a"],
        &["-p", "readproportion=x"],
        &["--clients", "3/2"],
        &["--vs", "mongodb://h/"],
        &["--server-binary", binary, "--server-setting", "nonsense=1"],
    ] {
        let mut command = bench.seekscope(&["bench", "ycsb"]);
        let output = command.args(arguments).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}
