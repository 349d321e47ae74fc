//! `seekscope tune` with loads that cost nothing: scripts that compute their figure from the knobs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use seekscope_run::RunDirectory;
use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, send, stderr, wait};

/// Two knobs in the environment of the command.
const KNOBS: &str = r#"
[[knob]]
name = "threads"
type = "integer"
low = 1
high = 64
scale = "log"
default = 2
set = { environment = "THREADS" }

[[knob]]
name = "mode"
type = "categorical"
choices = ["slow", "fast"]
default = "slow"
set = { environment = "MODE" }
"#;
/// Best at 16 threads and fast, by a factor of 2.9 over the baseline; noise of some per cent.
const PEAK: &str = r#"
awk -v t="$THREADS" -v m="$MODE" -v s="$SEEKSCOPE_SEED" 'BEGIN {
    srand(s % 65536 + t); rand(); d = log(t / 16); v = 1000 * exp(-0.15 * d * d)
    if (m == "fast") v *= 1.5
    printf "{\"rate\": %.6f}\n", v * (1 + 0.04 * (rand() - 0.5))
}'
"#;
/// The same whatever is set, with the same noise.
const FLAT: &str = r#"
awk -v t="$THREADS" -v s="$SEEKSCOPE_SEED" 'BEGIN {
    srand(s % 65536 + t); rand(); printf "{\"rate\": %.6f}\n", 1000 * (1 + 0.04 * (rand() - 0.5))
}'
"#;

/// A folder with a knob file and a script to be measured.
pub fn scripted(knobs: &str, script: &str) -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.path("knobs.toml"), knobs).unwrap();
    std::fs::write(bench.path("load.sh"), script).unwrap();
    bench
}

/// A session with the script, without a server.
pub fn session(bench: &Bench, out: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["tune", "--command", "sh load.sh", "--out", out]);
    command.args(["--metric", "json:/rate", "--maximize"]);
    command.args(["--knobs", "knobs.toml"]).args(more);
    command
}

/// The trials of a run, also of one under way.
pub fn trials(run: &Path) -> Vec<TuneTrial> {
    if let Ok(Some(trials)) = RunDirectory::journalled_trials(run) {
        return trials;
    }
    match RunDirectory::open(run) {
        Ok((directory, _)) => directory.read_trials().unwrap(),
        Err(_) => Vec::new(),
    }
}

/// Waits until the run's trials are as wanted.
pub fn wait_for_trials(run: &Path, wanted: impl Fn(&[TuneTrial]) -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !wanted(&trials(run)) {
        assert!(Instant::now() < end, "{:?}", trials(run));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many of a purpose.
pub fn count(trials: &[TuneTrial], purpose: TrialPurpose) -> usize {
    trials.iter().filter(|t| t.purpose == purpose).count()
}

fn peak_session(bench: &Bench, out: &str, seed: &str) -> Value {
    let budget = ["--trials", "20", "--baseline-pairs", "2", "--seed", seed];
    json(&mut session(bench, out, &budget))
}

#[test]
fn a_clear_optimum_is_found_and_proven_whatever_the_seed() {
    let bench = scripted(KNOBS, PEAK);
    for (out, seed) in [("one", "1"), ("two", "2")] {
        let document = peak_session(&bench, out, seed);
        assert_valid("tune", &document);
        let summary = &document["summary"];
        assert_eq!(summary["verdict"], "better", "{summary:#}");
        for setting in ["best", "recommended"] {
            let setting = &summary[setting];
            let threads = setting["threads"].as_u64().unwrap();
            assert!(
                setting["mode"] == "fast" && (8..=32).contains(&threads),
                "{setting}"
            );
        }
        let duel = &summary["duel"];
        let (low, high) = (
            duel["low"].as_f64().unwrap(),
            duel["high"].as_f64().unwrap(),
        );
        assert!(low > 2.3 && high < 3.2, "{duel}");
        let files = ["trials.parquet", "tune.json", "report.html", "run.json"];
        for file in files {
            assert!(bench.path(out).join(file).is_file(), "{file}");
        }
        let kept = trials(&bench.path(out));
        assert_eq!(count(&kept, TrialPurpose::Baseline), 4);
        assert_eq!(count(&kept, TrialPurpose::Search), 20);
        assert!(count(&kept, TrialPurpose::Sentinel) > 0);
    }
    let shown = json(&mut bench.seekscope(&["tune", "show", "one"]));
    assert_valid("tune", &shown);
    assert_eq!(shown["summary"]["verdict"], "better");
}

#[test]
fn no_gain_is_found_where_there_is_none() {
    let bench = scripted(KNOBS, FLAT);
    for (out, seed) in [("one", "1"), ("two", "2")] {
        let document = peak_session(&bench, out, seed);
        assert_valid("tune", &document);
        let summary = &document["summary"];
        assert_ne!(summary["verdict"], "better", "{summary:#}");
        assert_eq!(summary["recommended"], serde_json::json!({}), "{summary:#}");
    }
    for form in ["mongod-conf", "set-parameter", "shell", "undo"] {
        let show = ["tune", "show", "one", "--as", form];
        let output = bench.seekscope(&show).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty());
        assert!(stderr(&output).contains("No gain was proven"), "{form}");
    }
    let apply = ["tune", "apply", "one", "mongodb://127.0.0.1:1/", "--yes"];
    let output = bench.seekscope(&apply).output().unwrap();
    assert_fails(&output, 2, &["recommends no change"]);
}

#[test]
fn away_from_a_terminal_a_trial_is_a_line() {
    let bench = scripted(KNOBS, PEAK);
    let more = ["--trials", "4", "--baseline-pairs", "1", "--pairs", "4"];
    let output = session(&bench, "run", &more).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    // Those of the search have a second line with what differs from the baseline.
    let lines = said.lines().filter(|line| !line.starts_with("      "));
    let trials = trials(&bench.path("run")).len();
    assert!(
        (trials..=trials + 3).contains(&lines.count()),
        "{trials} trials: {said}"
    );
    let output = session(&bench, "quiet", &more).arg("-q").output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}

/// What was run and measured, without times.
fn settings(trials: &[TuneTrial]) -> Vec<String> {
    let setting =
        |t: &TuneTrial| format!("{:?} {} {:?} {:?}", t.purpose, t.seed, t.values, t.value);
    trials.iter().map(setting).collect()
}

#[test]
fn a_killed_session_goes_on_where_it_was() {
    let slow = format!("sleep 0.1; echo run >> runs.log; {PEAK}");
    let bench = scripted(KNOBS, &slow);
    let more = ["--trials", "12", "--baseline-pairs", "2", "--pairs", "4"];
    json(&mut session(&bench, "whole", &more));
    let whole = trials(&bench.path("whole"));
    std::fs::remove_file(bench.path("runs.log")).unwrap();

    let mut child = session(&bench, "killed", &more).spawn().unwrap();
    let run = bench.path("killed");
    wait_for_trials(&run, |trials| count(trials, TrialPurpose::Search) >= 5);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = trials(&run);
    assert!(before.len() < whole.len(), "it was over");
    let shown = bench
        .seekscope(&["tune", "show", "killed"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.status.success() && text.contains("json:/rate"),
        "{text}"
    );

    let resume = ["tune", "--resume", "killed", "--out", "resumed"];
    let document = json(&mut bench.seekscope(&resume));
    assert_eq!(document["summary"]["verdict"], "better");
    let resumed = trials(&bench.path("resumed"));
    assert_eq!(settings(&resumed), settings(&whole));
    assert_eq!(
        settings(&resumed[..before.len()]),
        settings(&before),
        "what was measured is kept"
    );
    // At most the one that was under way was run twice.
    let log = std::fs::read_to_string(bench.path("runs.log")).unwrap();
    let ran = log.lines().count();
    assert!((whole.len()..=whole.len() + 1).contains(&ran), "{ran}");

    let again = ["tune", "--resume", "resumed", "--out", "again"];
    let output = bench.seekscope(&again).output().unwrap();
    assert_fails(&output, 2, &["is over"]);
}

#[test]
fn ctrl_c_without_a_server_keeps_what_was_measured() {
    let bench = scripted(KNOBS, &format!("sleep 0.2; {PEAK}"));
    let mut child = session(&bench, "run", &["--baseline-pairs", "1"])
        .spawn()
        .unwrap();
    let run = bench.path("run");
    wait_for_trials(&run, |trials| count(trials, TrialPurpose::Search) >= 2);
    send(&child, libc::SIGINT);
    let status = wait(&mut child, Duration::from_secs(60));
    assert_eq!(status.code(), Some(130));
    let document = json(&mut bench.seekscope(&["tune", "show", "run"]));
    assert_eq!(document["outcome"], "partial");
    assert!(document["summary"]["trials"].as_u64() >= Some(4));
}

#[test]
fn settings_that_fail_are_remembered_and_not_recommended() {
    let fails =
        format!("test \"$THREADS\" -le 12 || {{ echo 'too many threads' >&2; exit 3; }}; {PEAK}");
    let bench = scripted(KNOBS, &fails);
    let document = peak_session(&bench, "run", "1");
    let summary = &document["summary"];
    assert_eq!(summary["verdict"], "better", "{summary:#}");
    assert!(summary["recommended"]["threads"].as_u64() <= Some(12));
    let trials = trials(&bench.path("run"));
    let failed: Vec<&TuneTrial> = trials
        .iter()
        .filter(|t| t.status == TrialStatus::Failed)
        .collect();
    assert_eq!(summary["failed"].as_u64(), Some(failed.len() as u64));
    assert!(!failed.is_empty());
    for trial in failed {
        assert!(trial.reason.contains("too many threads"), "{trial:?}");
    }
}

#[test]
fn constraints_rule_settings_out() {
    // The faster, the more memory: what is allowed ends below the optimum.
    let script = PEAK.replace(
        r#"printf "{\"rate\": %.6f}\n", v"#,
        r#"printf "{\"memory\": %d, \"rate\": %.6f}\n", t * 100, v"#,
    );
    assert_ne!(script, PEAK);
    let bench = scripted(KNOBS, &script);
    let more = ["--constraint", "json:/memory <= 800", "--trials", "16"];
    let document = json(&mut session(&bench, "run", &more));
    let summary = &document["summary"];
    assert_eq!(summary["verdict"], "better", "{summary:#}");
    assert!(summary["recommended"]["threads"].as_u64() <= Some(8));
    let missed = |t: &TuneTrial| t.status == TrialStatus::ConstraintMissed;
    assert!(trials(&bench.path("run")).iter().any(missed));
}

#[test]
fn a_session_in_which_every_setting_fails_has_failed() {
    let script = r#"[ "$THREADS$MODE" = 2slow ] && echo '{"rate": 7}'"#;
    let bench = scripted(KNOBS, script);
    let output = session(&bench, "run", &["--trials", "2", "--baseline-pairs", "1"])
        .output()
        .unwrap();
    assert_fails(&output, 1, &["every setting that was tried failed"]);
}

#[test]
fn a_budget_is_kept_and_one_too_small_is_refused() {
    let bench = scripted(KNOBS, &format!("sleep 0.3; {PEAK}"));
    let more = ["--budget", "15s", "--trials", "500"];
    let document = json(&mut session(&bench, "run", &more));
    let trials = trials(&bench.path("run"));
    let searched = count(&trials, TrialPurpose::Search);
    assert!(
        (1..40).contains(&searched),
        "{searched} in 15 s of 0.3 s each"
    );
    assert!(count(&trials, TrialPurpose::Duel) >= 8, "no duel");
    // The last block is fought to its end; a busy machine makes runs longer, and fewer.
    let blocks = 4.0 * 3.0 * trials.iter().map(|t| t.measure_s).fold(0.3, f64::max);
    let total_s = document["summary"]["ledger"]["total_s"].as_f64().unwrap();
    assert!(total_s < 15.0 + blocks, "{total_s}");

    let output = session(&bench, "small", &["--budget", "2s"])
        .output()
        .unwrap();
    assert_fails(&output, 2, &["too small", "take"]);

    // Where it is known how long a run takes, nothing is run; a server that does not answer is no mongos.
    let nowhere = bench
        .seekscope(&["tune", "mongodb://127.0.0.1:1/", "--workload", "ycsb:a"])
        .args(["--budget", "3s", "--trial-for", "15s", "--out", "none"])
        .output()
        .unwrap();
    assert_fails(&nowhere, 2, &["too small", "a run takes 15 s"]);
    assert!(!bench.path("none").exists());
}
