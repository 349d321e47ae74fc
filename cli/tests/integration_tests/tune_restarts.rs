//! `seekscope tune` with a configuration file and a command that restarts a real server, which reads it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus};

use crate::support::{Bench, assert_fails, json, send, server_binary, stderr, stdout, wait};
use crate::tune::{count, trials, wait_for_trials};

/// A configuration with a comment and an order of its own, which stay.
const CONFIG: &str = "# by hand\nnet:\n  port: 1   # elsewhere\nstorage:\n  cacheMegabytes: 32\n";
const KNOB: &str = r#"
[[knob]]
name = "cache"
type = "integer"
low = 16
high = 256
scale = "log"
default = 32
change = "S"
set = { option = "storage.cacheMegabytes" }
"#;

/// Returns a port below those that the kernel hands out, so that nobody takes it while the server is away.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() * 16;
    loop {
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(20_000 + (first + nth) % 10_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

struct Restartable {
    bench: Bench,
    uri: String,
    config: PathBuf,
}

impl Restartable {
    /// `guard` runs before the server is started, with the size in `$cache`.
    fn start(guard: &str) -> Self {
        let bench = Bench::new();
        let port = free_port();
        let config = bench.path("mongod.conf");
        std::fs::write(&config, CONFIG).unwrap();
        std::fs::write(bench.path("knobs.toml"), KNOB).unwrap();
        let script = format!(
            r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
if test -e pid; then
    kill -9 "$(cat pid)" 2> /dev/null
    while kill -0 "$(cat pid)" 2> /dev/null; do sleep 0.02; done
fi
cache=$(sed -n 's/^ *cacheMegabytes: *//p' mongod.conf)
{guard}
setsid {server} --port {port} --host 127.0.0.1 --cache-size "${{cache}}M" --log-file-max 16M --storage-path data > server.log 2>&1 < /dev/null &
echo $! > pid
echo "$cache" >> started.log
until grep -q listening server.log; do
    kill -0 "$(cat pid)" || exit 8
    sleep 0.02
done
"#,
            server = server_binary().display()
        );
        std::fs::write(bench.path("restart.sh"), script).unwrap();
        // What runs says what it was given, whatever the file says.
        let load = r#"
size=$(tr '\0' '\n' < /proc/$(cat pid)/cmdline | sed -n 's/^\([0-9]*\)M$/\1/p' | head -1)
sleep "${SLOWER:-0}"
awk -v t="$size" 'BEGIN { d = log(t / 100); print 1000 * exp(-0.2 * d * d) }'
"#;
        std::fs::write(bench.path("load.sh"), load).unwrap();
        let restartable = Self {
            uri: format!("mongodb://127.0.0.1:{port}/"),
            config,
            bench,
        };
        let started = restartable.restart().status().unwrap();
        assert!(started.success());
        restartable
    }

    fn restart(&self) -> Command {
        let mut command = Command::new("sh");
        command.arg(self.bench.path("restart.sh"));
        command
    }

    fn session(&self, out: &str) -> Command {
        let mut command = self.bench.seekscope(&["tune", &self.uri, "--out", out]);
        command.args(["--command", "sh load.sh", "--maximize"]);
        command.args(["--knobs", "knobs.toml", "--trials", "8"]);
        command.args(["--baseline-pairs", "1", "--pairs", "4"]);
        command.args(["--config-file", "mongod.conf"]);
        command.args(["--restart-command", "sh ./restart.sh"]);
        command
    }

    /// The file is as it was, and the server runs with it.
    fn assert_as_it_was(&self) {
        assert_eq!(std::fs::read_to_string(&self.config).unwrap(), CONFIG);
        let pid = std::fs::read_to_string(self.bench.path("pid")).unwrap();
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", pid.trim()));
        let line = line.expect("the server runs");
        assert!(line.contains("\x0032M\0"), "{line:?}");
    }
}

impl Drop for Restartable {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.bench.path("pid")).unwrap_or_default();
        let _ = Command::new("kill").args(["-9", pid.trim()]).status();
    }
}

#[test]
fn trial_values_arrive_by_the_file_and_it_is_put_back_byte_for_byte() {
    // Beyond 150 the server is not to be had.
    let guarded =
        Restartable::start("test \"$cache\" -le 150 || { echo 'no memory for that' >&2; exit 9; }");
    let mut session = guarded.session("run");
    session.args(["--also", "cache=200"]);
    let document = json(&mut session);
    let summary = &document["summary"];
    assert_eq!(summary["verdict"], "better", "{summary:#}");
    let best = summary["recommended"]["cache"].as_u64().unwrap();
    assert!((50..=150).contains(&best), "{best}");
    assert_eq!(summary["restored"], true);
    guarded.assert_as_it_was();

    let trials = trials(&guarded.bench.path("run"));
    for trial in &trials {
        let size = trial.values["cache"].number().unwrap();
        match trial.status {
            TrialStatus::Failed => {
                assert!(size > 150.0, "{trial:?}");
                let reason = &trial.reason;
                assert!(
                    reason.contains("did not come back") && reason.contains("no memory"),
                    "{reason}"
                );
                assert!(reason.contains("runs again"), "{reason}");
            }
            _ => {
                let expected = 1000.0 * (-0.2 * (size / 100.0).ln().powi(2)).exp();
                assert!((trial.value.unwrap() - expected).abs() < 0.1, "{trial:?}");
            }
        }
    }
    let failed = trials.iter().filter(|t| t.status == TrialStatus::Failed);
    assert!(failed.count() >= 1);
    assert!(!guarded.bench.path("run/originals.mongod.conf").exists());
    let conf = ["tune", "show", "run", "--as", "mongod-conf"];
    let output = guarded.bench.seekscope(&conf).output().unwrap();
    let conf = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(conf.contains(&format!("cacheMegabytes: {best}")), "{conf}");
}

#[test]
fn interrupted_or_killed_it_leaves_the_server_with_its_own_file() {
    let slow = Restartable::start("");
    let mut interrupted = slow.session("interrupted");
    let mut child = interrupted
        .env("SLOWER", "0.3")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let run = slow.bench.path("interrupted");
    wait_for_trials(&run, |trials| count(trials, TrialPurpose::Search) >= 2);
    send(&child, libc::SIGINT);
    assert_eq!(wait(&mut child, Duration::from_secs(60)).code(), Some(130));
    slow.assert_as_it_was();

    let mut killed = slow.session("killed");
    let mut child = killed
        .env("SLOWER", "0.3")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let run = slow.bench.path("killed");
    wait_for_trials(&run, |trials| count(trials, TrialPurpose::Search) >= 2);
    child.kill().unwrap();
    child.wait().unwrap();
    // As if the kill had come when the file was back and the restart was not done.
    let whole = slow.bench.path("mongod.conf.new");
    std::fs::write(&whole, CONFIG).unwrap();
    std::fs::rename(&whole, &slow.config).unwrap();
    // And the server is gone.
    let pid = std::fs::read_to_string(slow.bench.path("pid")).unwrap();
    let _ = Command::new("kill").args(["-9", pid.trim()]).status();
    let shown = |args: &[&str]| {
        let mut show = slow
            .bench
            .seekscope(&[&["tune", "show", "killed"], args].concat());
        let output = show.output().unwrap();
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    // What it left changed is the first to be taken back.
    let (code, said) = shown(&["--as", "undo"]);
    assert_ne!(code, Some(0), "{said}");
    assert!(
        said.contains("tune --restore") && !said.contains("nothing to take back"),
        "{said}"
    );
    assert!(shown(&[]).1.contains("settings may differ"));
    let restore = ["tune", "--restore", "killed"];
    for _ in 0..2 {
        let output = slow.bench.seekscope(&restore).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        slow.assert_as_it_was();
    }
    let (code, said) = shown(&["--as", "undo"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!shown(&[]).1.contains("settings may differ"));
}

#[test]
fn a_server_that_does_not_come_back_at_all_is_said() {
    // It starts by hand and when the command is tried, and never again.
    let dead = Restartable::start(
        "test \"$(cat started.log 2> /dev/null | wc -l)\" -lt 2 || { echo broken >&2; exit 9; }",
    );
    let output = dead.session("run").output().unwrap();
    assert_fails(
        &output,
        3,
        &[
            "did not come back",
            "broken",
            "original configuration file is in place",
        ],
    );
    assert_eq!(std::fs::read_to_string(&dead.config).unwrap(), CONFIG);
    // Once the server can be started again, so can the rest be put right.
    std::fs::remove_file(dead.bench.path("started.log")).unwrap();
    assert!(dead.restart().status().unwrap().success());
    std::fs::remove_file(dead.bench.path("started.log")).unwrap();
    let restore = ["tune", "--restore", "run"];
    let output = dead.bench.seekscope(&restore).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    dead.assert_as_it_was();
}

#[test]
fn a_command_that_restarts_nothing_is_found_out_before_anything_is_measured() {
    let server = Restartable::start("");
    let mut session = server
        .bench
        .seekscope(&["tune", &server.uri, "--out", "run"]);
    session.args([
        "--command",
        "sh load.sh",
        "--maximize",
        "--knobs",
        "knobs.toml",
    ]);
    session.args(["--config-file", "mongod.conf", "--restart-command", "true"]);
    let output = session.output().unwrap();
    assert_fails(&output, 3, &["does not restart the server", "from before"]);
    assert!(trials(&server.bench.path("run")).is_empty());
    server.assert_as_it_was();
}
