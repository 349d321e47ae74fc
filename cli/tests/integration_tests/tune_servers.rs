//! `seekscope tune` on real servers: one that is not seekscope's, with a knob that a script sets, and private
//! ones.

use std::process::Stdio;
use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus};

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, json, run_document, send, server_binary, shared_machine,
    stderr, wait,
};
use crate::tune::{count, trials, wait_for_trials};

/// A server, and a file that a script of the user sets: best at 16, and 2 at the start.
pub struct Scripted {
    // Ends before its folder goes: WiredTiger panics over files that vanish.
    pub server: ForeignServer,
    pub bench: Bench,
}

pub const ORIGINAL: &str = "2\n";

impl Scripted {
    /// `before`: what the load does before it computes its figure.
    pub fn start(before: &str) -> Self {
        let bench = Bench::new();
        let value = bench.path("value");
        std::fs::write(&value, ORIGINAL).unwrap();
        let value = value.display();
        let knobs = format!(
            r#"
[[knob]]
name = "depth"
type = "integer"
low = 1
high = 64
scale = "log"
default = 8
set = {{ command = "echo {{value}} > {value}", read = "cat {value}" }}
"#
        );
        std::fs::write(bench.path("knobs.toml"), knobs).unwrap();
        let script = format!(
            r#"
test -n "$SEEKSCOPE_URI" || exit 1
{before}
awk -v t="$(cat {value})" -v s="$SEEKSCOPE_SEED" 'BEGIN {{
    srand(s % 65536 + t); rand(); d = log(t / 16)
    print 1000 * exp(-0.15 * d * d) * (1 + 0.04 * (rand() - 0.5))
}}'
"#
        );
        std::fs::write(bench.path("load.sh"), script).unwrap();
        let server = ForeignServer::start(&bench.path("data"), "64M");
        Self { server, bench }
    }

    pub fn session(&self, out: &str, more: &[&str]) -> std::process::Command {
        let mut command = self
            .bench
            .seekscope(&["tune", &self.server.uri, "--out", out]);
        command.args(["--command", "sh load.sh", "--maximize"]);
        command.args(["--knobs", "knobs.toml", "--trials", "8"]);
        command
            .args(["--baseline-pairs", "2", "--pairs", "4"])
            .args(more);
        command
    }

    /// What the script has set.
    pub fn value(&self) -> String {
        std::fs::read_to_string(self.bench.path("value")).unwrap()
    }
}

fn text_of(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_setting_is_found_put_back_applied_and_undone() {
    let scripted = Scripted::start("");
    let document = json(&mut scripted.session("run", &["--also", "depth=64"]));
    assert_valid("tune", &document);
    let summary = &document["summary"];
    assert_eq!(summary["verdict"], "better", "{summary:#}");
    assert_eq!(
        summary["baseline"]["depth"], 2,
        "what `read` prints, not the file's default"
    );
    assert_eq!(summary["restored"], true);
    assert_eq!(scripted.value(), ORIGINAL);
    let fought = trials(&scripted.bench.path("run"));
    assert!(
        fought
            .iter()
            .any(|t| t.purpose == TrialPurpose::Duel && t.arm == "depth=64")
    );

    let best = summary["recommended"]["depth"].as_u64().unwrap();
    assert!((8..=32).contains(&best), "{best}");
    let best = format!("{best}\n");
    let seekscope = |arguments: &[&str]| scripted.bench.seekscope(arguments);
    let undo = text_of(&mut seekscope(&["tune", "show", "run", "--as", "undo"]));
    assert!(undo.contains("echo 2 >"), "{undo}");
    let shell = text_of(&mut seekscope(&["tune", "show", "run", "--as", "shell"]));
    assert!(
        shell.contains(&format!("echo {} >", best.trim())),
        "{shell}"
    );

    let apply = ["tune", "apply", "run", scripted.server.uri.as_str()];
    let said = text_of(&mut seekscope(&apply));
    assert!(said.contains("Nothing was changed"), "{said}");
    let line = format!("depth = {}, {} so far", best.trim(), ORIGINAL.trim());
    assert!(said.contains(&line), "{said}");
    let document = json(&mut seekscope(&apply));
    assert_valid("tune-apply", &document);
    assert_eq!(
        (&document["done"], &document["settings"][0]["before"]),
        (&false.into(), &ORIGINAL.trim().into())
    );
    assert_eq!(scripted.value(), ORIGINAL);
    // Nothing was applied that could be undone.
    let undone = seekscope(&apply)
        .args(["--undo", "--yes"])
        .output()
        .unwrap();
    assert_fails(&undone, 2, &["was not applied by this command"]);
    text_of(seekscope(&apply).arg("--yes"));
    assert_eq!(scripted.value(), best);
    let twice = seekscope(&apply).arg("--yes").output().unwrap();
    assert_fails(&twice, 2, &["applied already", "--undo"]);
    text_of(seekscope(&apply).args(["--undo", "--yes"]));
    assert_eq!(scripted.value(), ORIGINAL);
    let again = seekscope(&apply)
        .args(["--undo", "--yes"])
        .output()
        .unwrap();
    assert_fails(&again, 2, &["taken back already", "nothing to undo"]);
    // It can be done again, and half a change is none.
    text_of(seekscope(&apply).arg("--yes"));
    assert_eq!(scripted.value(), best);
    text_of(seekscope(&apply).args(["--undo", "--yes"]));
    assert_eq!(scripted.value(), ORIGINAL);
    // A server that has something else than the one that was tuned had gets that back.
    std::fs::write(scripted.bench.path("value"), "5\n").unwrap();
    text_of(seekscope(&apply).arg("--yes"));
    assert_eq!(scripted.value(), best);
    let shown = text_of(seekscope(&apply).arg("--undo"));
    assert!(shown.contains("depth = 5 ("), "{shown}");
    text_of(seekscope(&apply).args(["--undo", "--yes"]));
    assert_eq!(scripted.value(), "5\n");
    // What somebody else has set since is theirs, and the change counts as undone.
    text_of(seekscope(&apply).arg("--yes"));
    std::fs::write(scripted.bench.path("value"), "7\n").unwrap();
    let best = best.trim();
    let left = format!("depth stays 7: somebody else has set it since seekscope set {best}");
    let shown = text_of(seekscope(&apply).arg("--undo"));
    assert!(shown.contains(&left), "{shown}");
    assert!(shown.contains("Nothing would be put back"), "{shown}");
    let undone = text_of(seekscope(&apply).args(["--undo", "--yes"]));
    assert!(undone.contains(&left), "{undone}");
    assert_eq!(scripted.value(), "7\n");
    text_of(seekscope(&apply).arg("--yes"));
    assert_eq!(scripted.value().trim(), best);
}

#[test]
fn a_setting_that_does_not_take_is_a_failed_trial() {
    let scripted = Scripted::start("");
    let path = scripted.bench.path("knobs.toml");
    let knobs = std::fs::read_to_string(&path).unwrap();
    // Whatever is above 12 becomes 12, silently.
    let capped = knobs.replace(
        "echo {value} >",
        "v={value}; test $v -le 12 || v=12; echo $v >",
    );
    assert_ne!(capped, knobs);
    std::fs::write(&path, capped).unwrap();
    let document = json(&mut scripted.session("run", &[]));
    let best = document["summary"]["best"]["depth"].as_u64();
    assert!(best <= Some(12), "{best:?}");
    let trials = trials(&scripted.bench.path("run"));
    let failed: Vec<_> = trials
        .iter()
        .filter(|t| t.status == TrialStatus::Failed)
        .collect();
    assert!(!failed.is_empty());
    for trial in failed {
        assert!(trial.reason.contains("but is 12"), "{trial:?}");
    }
    assert_eq!(scripted.value(), ORIGINAL);
}

#[test]
fn a_knob_file_is_written_for_a_server_and_taken_again() {
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "64M");
    let written = text_of(&mut bench.seekscope(&["tune", "init", &server.uri]));
    assert!(
        written.contains("journalCompressor") && written.contains("# not here:"),
        "{written}"
    );
    let binary = server_binary();
    let mut init = bench.seekscope(&["tune", "init", "local", "--out", "local.toml"]);
    init.arg("--server-binary").arg(&binary);
    assert!(init.output().unwrap().status.success());
    assert_fails(&init.output().unwrap(), 1, &["local.toml", "exists"]);
    let local = std::fs::read_to_string(bench.path("local.toml")).unwrap();
    assert!(local.contains("name = \"write_tickets\""), "{local}");

    let _machine = shared_machine();
    let mut tune = private(&bench, "run", "local.toml");
    tune.args(["--allow-durability", "--reload", "--trials", "2"]);
    let document = json(&mut tune);
    let tuned = document["summary"]["baseline"].as_object().unwrap();
    assert!(tuned.contains_key("sync_on_commit") && tuned.contains_key("block_compressor"));
}

/// A session of short runs on a private server.
fn private(bench: &Bench, out: &str, knobs: &str) -> std::process::Command {
    let mut command = bench.seekscope(&["tune", "local", "--out", out, "--knobs", knobs]);
    command.args(["--workload", "ycsb:a", "--trial-for", "500ms"]);
    command.args(["--workload-options", "--records 2000 --in-flight 2"]);
    command.args(["--baseline-pairs", "1", "--pairs", "4", "--cache", "64M"]);
    command.arg("--server-binary").arg(server_binary());
    command
}

#[test]
fn a_private_server_is_tuned_and_nothing_of_it_stays() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Bigger files of the log than the engine takes: the server does not start.
    let knobs = r#"
[[knob]]
name = "write_tickets"
type = "integer"
low = 1
high = 64
scale = "log"
default = 8
change = "S"
set = { local = "write_tickets" }

[[knob]]
name = "log_file_max"
type = "ordinal"
values = [64, 128, 9000]
default = 128
change = "S"
set = { local = "log_file_max", suffix = "M" }

[[knob]]
name = "block_compressor"
type = "categorical"
choices = ["lz4", "none"]
default = "lz4"
change = "L"
set = { local = "block_compressor" }
"#;
    std::fs::write(bench.path("knobs.toml"), knobs).unwrap();
    let mut tune = private(&bench, "run", "knobs.toml");
    tune.args(["--trials", "4", "--reload", "--also", "log_file_max=9000"]);
    let document = json(&mut tune);
    assert_valid("tune", &document);
    let trials = trials(&bench.path("run"));
    let is_too_big =
        |t: &&seekscope_run::tune::TuneTrial| t.values["log_file_max"].number() == Some(9000.0);
    let failed: Vec<_> = trials.iter().filter(is_too_big).collect();
    assert!(!failed.is_empty());
    for trial in failed {
        assert_eq!(trial.status, TrialStatus::Failed);
        assert!(trial.reason.contains("did not start"), "{trial:?}");
    }
    assert!(count(&trials, TrialPurpose::Search) == 4);
    let measured = trials.iter().filter(|t| t.status == TrialStatus::Measured);
    for trial in measured {
        assert!(trial.value > Some(10.0), "{trial:?}");
        assert!(trial.figures.contains_key("server_rss_bytes"));
    }
    assert_eq!(
        bench.leftovers(&["run", "knobs.toml"]),
        Vec::<String>::new()
    );

    // To be set on a running server there is nothing.
    if document["summary"]["recommended"] != serde_json::json!({}) {
        let apply = ["tune", "apply", "run", "mongodb://127.0.0.1:1/"];
        let output = bench.seekscope(&apply).output().unwrap();
        assert_fails(&output, 2, &["start options of a private server"]);
    }
}

#[test]
fn an_interrupted_session_leaves_nothing_of_its_private_server() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let mut tune = private(&bench, "run", "write_tickets");
    let mut child = tune.stdout(Stdio::null()).spawn().unwrap();
    wait_for_trials(&bench.path("run"), |trials| trials.len() >= 2);
    send(&child, libc::SIGINT);
    let status = wait(&mut child, Duration::from_secs(60));
    assert_eq!(status.code(), Some(130));
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
    assert_eq!(run_document(&bench.path("run"))["outcome"], "partial");
}

#[test]
fn knobs_that_a_private_server_would_never_be_given_are_refused() {
    let bench = Bench::new();
    for (set, why) in [
        ("{ environment = \"X\" }", "variable for --command"),
        (
            "{ command = \"true {value}\", read = \"echo 3\" }",
            "start options only",
        ),
    ] {
        let knob = format!(
            "[[knob]]\nname = \"x\"\ntype = \"integer\"\nlow = 1\nhigh = 9\ndefault = 3\nset = {set}\n"
        );
        std::fs::write(bench.path("knobs.toml"), knob).unwrap();
        let output = private(&bench, "run", "knobs.toml").output().unwrap();
        assert_fails(&output, 2, &["no knob that may be tuned: x", why]);
        assert!(!bench.path("run").exists());
        assert_eq!(bench.leftovers(&["knobs.toml"]), Vec::<String>::new());
    }
    let output = private(&bench, "run", "nonesuch").output().unwrap();
    assert_fails(&output, 2, &["nonesuch"]);
    assert!(!bench.path("run").exists());
}
