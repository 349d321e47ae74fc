//! Signals at any moment: an answer, a partial run, and a directory as it was.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::directory_snapshot::unchanged_by;
use crate::support::{Bench, json, run_document, send, shared_machine, stderr};

/// Starts it, waits until `ready`, sends the signal, and waits for the end.
fn interrupted(command: &mut Command, ready: impl Fn() -> bool, signal: i32) -> Output {
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    while !ready() {
        assert!(Instant::now() < end, "never ready");
        std::thread::sleep(Duration::from_millis(5));
    }
    send(&child, signal);
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(
        sent.elapsed() < Duration::from_secs(10),
        "{:?}",
        sent.elapsed()
    );
    output
}

/// Steps that the run has recorded.
fn steps(run: &Path) -> Option<usize> {
    let text = std::fs::read(run.join("run.json")).ok()?;
    let document: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(document["disk"]["steps"].as_array().map_or(0, Vec::len))
}

/// Whether the run has recorded its first second.
fn has_a_second(run: &Path) -> bool {
    let spool = run.join("intervals.spool");
    spool.metadata().is_ok_and(|spool| spool.len() > 0)
}

/// Returns whether `ms` have passed since `since`.
fn passed(since: Instant, ms: u64) -> bool {
    since.elapsed() >= Duration::from_millis(ms)
}

/// `run` ended as it should; tells whether it had measured anything.
fn assert_partial(bench: &Bench, output: &Output) -> bool {
    let out = "run";
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(130), "{out}: {said}");
    assert!(said.contains("interrupted by SIG"), "{said}");
    let document = run_document(&bench.path(out));
    assert_eq!(document["outcome"], "partial", "{out}");
    let measured = steps(&bench.path(out)) > Some(0);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown.contains("Partial run"), measured, "{shown}");
    let later = bench.seekscope(&["report", out]).output().unwrap();
    if measured {
        assert!(later.status.success(), "{}", stderr(&later));
        assert!(String::from_utf8_lossy(&later.stdout).contains("Partial run"));
    } else {
        assert_eq!(later.status.code(), Some(2), "{}", stderr(&later));
        assert!(
            stderr(&later).contains("measured nothing"),
            "{}",
            stderr(&later)
        );
    }
    let left = bench.leftovers(&["target", out]);
    assert_eq!(left, Vec::<String>::new());
    std::fs::remove_dir_all(bench.path(out)).unwrap();
    measured
}

/// The signal's number and a moment while the file is being filled: 4 GiB take seconds.
#[test]
fn a_signal_while_filling_leaves_nothing_in_the_directory() {
    let _machine = shared_machine();
    let bench = Bench::new();
    for (verb, signal, ms) in [
        (&["disk"][..], libc::SIGINT, 0),
        (&["disk", "run"], libc::SIGTERM, 30),
        (&["disk"], libc::SIGHUP, 150),
        (&["disk", "run"], libc::SIGINT, 300),
    ] {
        let mut command = bench.seekscope(verb);
        command.args(["target", "--size", "4G", "--out", "run"]);
        bench.target();
        // The run exists once the signal has somebody who listens.
        let begun = std::cell::Cell::new(None);
        let ready = || {
            if begun.get().is_none() && steps(&bench.path("run")).is_some() {
                begun.set(Some(Instant::now()));
            }
            begun.get().is_some_and(|since| passed(since, ms))
        };
        let run = || interrupted(&mut command, ready, signal);
        let output = unchanged_by(&bench.target(), run);
        assert!(!assert_partial(&bench, &output));
    }
}

#[test]
fn a_signal_in_the_middle_keeps_what_was_measured() {
    let _machine = shared_machine();
    let bench = Bench::new();
    for (steps_before, signal) in [(0, libc::SIGHUP), (1, libc::SIGTERM), (5, libc::SIGINT)] {
        let mut command = bench.seekscope(&["disk", "target", "--out", "run"]);
        command.args(["--size", "64M", "--budget", "30s"]);
        let began = bench.path("run/latency.hlog");
        let ready = || match steps(&bench.path("run")) {
            Some(steps) if steps_before > 0 => steps >= steps_before,
            _ => began.exists(),
        };
        let run = || interrupted(&mut command, ready, signal);
        let output = unchanged_by(&bench.target(), run);
        // The first step may not have had its first second.
        assert!(assert_partial(&bench, &output) || steps_before == 0);
    }
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let mut command = bench.disk_job(&["--size", "64M", "--runtime", "60s", "--out", "run"]);
        let ready = || has_a_second(&bench.path("run"));
        let run = || interrupted(&mut command, ready, signal);
        let output = unchanged_by(&bench.target(), run);
        assert!(assert_partial(&bench, &output));
    }
}

/// While the program starts there is a moment when it has not made anything yet, and after that none
/// when it could leave what it made.
#[test]
fn a_signal_in_the_first_milliseconds_leaves_nothing_running_or_throttled() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for ms in [2, 6, 10, 14, 18, 22, 26, 30, 40, 60] {
        let mut command = bench.disk_job(&["--size", "8M", "--runtime", "30s", "--out", "run"]);
        command.args(["--emulate-disk", "hdd", "--quiet"]);
        let started = Instant::now();
        let run = || interrupted(&mut command, || passed(started, ms), libc::SIGTERM);
        let output = unchanged_by(&bench.target(), run);
        let begun = bench.path("run").exists();
        if begun && output.status.code() != Some(130) {
            wrong.push(format!("{:?}", output.status));
        }
        wrong.extend(bench.leftovers(&["target", "run"]));
        let _ = std::fs::remove_dir_all(bench.path("run"));
        if !wrong.is_empty() {
            wrong.push(format!("after {ms} ms"));
            break;
        }
    }
    // Of a test that fails nothing should stay either.
    let cleaned = bench.seekscope(&["clean", "--yes"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", stderr(&cleaned));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The throttle goes, too.
#[test]
fn a_signal_on_the_slow_disk_takes_the_throttle_away() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut command = bench.disk_job(&["--size", "64M", "--runtime", "60s", "--out", "run"]);
    command.args(["--emulate-disk", "hdd", "--depth", "128"]);
    let ready = || has_a_second(&bench.path("run"));
    let run = || interrupted(&mut command, ready, libc::SIGINT);
    let output = unchanged_by(&bench.target(), run);
    assert!(assert_partial(&bench, &output));
}

#[test]
fn even_a_kill_leaves_nothing_but_the_run() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let killed = |more: &[&str], ready: &dyn Fn() -> bool| {
        let mut command = bench.seekscope(&["disk", "target", "--out", "run"]);
        command.args(more);
        let run = || interrupted(&mut command, ready, libc::SIGKILL);
        let output = unchanged_by(&bench.target(), run);
        assert_eq!(output.status.code(), None, "{:?}", output.status);
        assert_eq!(bench.leftovers(&["target", "run"]), Vec::<String>::new());
    };
    let started = Instant::now();
    killed(&["--size", "4G"], &|| {
        passed(started, 400) && steps(&bench.path("run")).is_some()
    });
    let nothing = bench.seekscope(&["report", "run"]).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        stderr(&nothing).contains("measured nothing"),
        "{}",
        stderr(&nothing)
    );
    std::fs::remove_dir_all(bench.path("run")).unwrap();

    let three = || steps(&bench.path("run")) >= Some(3);
    killed(&["--size", "64M", "--budget", "30s"], &three);
    let document = json(&mut bench.seekscope(&["report", "run"]));
    assert_eq!(document["outcome"], "partial");
    assert!(document["summary"]["steps"].as_array().unwrap().len() >= 3);
}
