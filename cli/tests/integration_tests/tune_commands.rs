//! What a person may get wrong with `seekscope tune`, and what a command may do wrong.

use seekscope_run::tune::TrialStatus;

use crate::support::{assert_fails, run_document};
use crate::tune::{scripted, session, trials};

const KNOB: &str = r#"
[[knob]]
name = "x"
type = "integer"
low = 1
high = 9
default = 3
set = { environment = "X" }
"#;
/// Read by the server at its start.
const RESTARTED: &str = r#"
[[knob]]
name = "y"
type = "integer"
low = 1
high = 9
default = 3
change = "S"
set = { option = "storage.y" }
"#;
/// A start option of a private server.
const LOCAL: &str = r#"
[[knob]]
name = "z"
type = "integer"
low = 1
high = 9
default = 3
set = { local = "write_tickets" }
"#;
const FINE: &str = r#"echo "{\"rate\": $X}""#;

#[test]
fn senseless_requests_end_with_2_and_say_why() {
    let bench = scripted(KNOB, FINE);
    std::fs::write(bench.path("restarted.toml"), RESTARTED).unwrap();
    std::fs::write(bench.path("local.toml"), LOCAL).unwrap();
    std::fs::write(bench.path("broken.toml"), "[[knob]]\nname = 3\n").unwrap();
    for (more, words) in [
        (
            &["--also", "nonsense=3"][..],
            &["nonsense", "these are: x"][..],
        ),
        (&["--also", "x=99"], &["x", "99"]),
        (&["--also", "x=many"], &["x", "many"]),
        (&["--also", "expert"], &["no such preset"]),
        (
            &["--knobs", "restarted.toml"],
            &["y", "--config-file", "--restart-command"],
        ),
        (&["--knobs", "local.toml"], &["z", "server of our own"]),
        (&["--knobs", "broken.toml"], &["broken.toml", "name"]),
        (
            &["--knobs", "write_tickets"],
            &["--knobs", "without a server"],
        ),
        (&["--pairs", "5"], &["one of"]),
        (&["--constraint", "p99 < 3ms"], &["--constraint"]),
        (&["--trials", "0"], &["--trials"]),
        (&["--workload", "ycsb:a"], &["--workload", "--command"]),
        (&["--resume", "nowhere"], &["nowhere"]),
        (&["--begin-with", "nowhere"], &["nowhere"]),
    ] {
        let mut arguments = vec!["tune", "--command", "sh load.sh", "--maximize"];
        arguments.extend(["--metric", "json:/rate"]);
        if !more.contains(&"--knobs") && !more.contains(&"--resume") {
            arguments.extend(["--knobs", "knobs.toml"]);
        }
        arguments.extend(more);
        let output = bench.seekscope(&arguments).output().unwrap();
        assert_fails(&output, 2, words);
    }
    // An operation that the workload does not have is found out before anything is started.
    for more in [
        ["--metric", "throughput:foo"],
        ["--constraint", "throughput:foo >= 1/s"],
    ] {
        let mut arguments = vec!["tune", "local", "--workload", "ycsb:a"];
        arguments.extend(more);
        let output = bench.seekscope(&arguments).output().unwrap();
        assert_fails(&output, 2, &["no operation foo", "READ, UPDATE"]);
    }
    // A figure of a command's own says nothing of which way is better.
    let undirected = ["tune", "--command", "true", "--knobs", "knobs.toml"];
    let output = bench.seekscope(&undirected).output().unwrap();
    assert_fails(&output, 2, &["--maximize or --minimize"]);
}

#[test]
fn a_command_that_gives_no_figure_ends_the_session_after_two_runs() {
    for (script, words) in [
        ("echo '{}'", &["nothing there"][..]),
        ("echo fast", &["no JSON"]),
        ("echo '{\"rate\": \"fast\"}'", &["not a number", "fast"]),
        ("echo '{\"rate\": 0}'", &["not a positive number"]),
        ("echo '{\"rate\": -3}'", &["not a positive number"]),
        ("echo disk is full >&2; exit 7", &["disk is full", "7"]),
        ("kill -9 $$", &["137"]),
        ("sleep 100 & wait", &["1 s", "--command-limit"]),
        // Nobody reads so much; what came last counts, and that is no figure.
        ("head -c 20000000 /dev/zero; echo", &["no JSON"]),
    ] {
        let bench = scripted(KNOB, script);
        let limit = if script.starts_with("sleep") {
            "1s"
        } else {
            "30s"
        };
        let output = session(&bench, "run", &["--command-limit", limit])
            .output()
            .unwrap();
        assert_fails(&output, 1, words);
        assert_fails(&output, 1, &["failed twice in a row"]);
        let trials = trials(&bench.path("run"));
        assert_eq!(trials.len(), 2, "{script}");
        for trial in &trials {
            assert_eq!(trial.status, TrialStatus::Failed);
            assert!(
                words.iter().all(|word| trial.reason.contains(word)),
                "{trial:?}"
            );
            assert!(trial.reason.len() < 2000, "{}", trial.reason.len());
        }
        assert_eq!(run_document(&bench.path("run"))["outcome"], "failed");
        assert!(bench.path("run/report.html").is_file());
    }
}

#[test]
fn a_session_that_stopped_goes_on_once_that_is_put_right() {
    let bench = scripted(KNOB, "exit 1");
    let few = ["--trials", "4", "--baseline-pairs", "1", "--pairs", "4"];
    let output = session(&bench, "run", &few).output().unwrap();
    assert_fails(&output, 1, &["put that right and resume"]);
    std::fs::write(bench.path("load.sh"), FINE).unwrap();
    let resume = ["tune", "--resume", "run", "--out", "again"];
    let output = bench.seekscope(&resume).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        crate::support::stderr(&output)
    );
    let all = trials(&bench.path("again"));
    let failed = all.iter().filter(|t| t.status == TrialStatus::Failed);
    assert_eq!(failed.count(), 2, "what failed is kept too");
}

#[test]
fn passwords_are_in_no_file_of_the_run() {
    let bench = scripted(
        KNOB,
        "echo login as $1 failed >&2; test $X = 3 && echo \"{\\\"rate\\\": $X}\"",
    );
    let uri = "mongodb://anna:pa55word@db1/";
    let command = format!("sh load.sh {uri} --password geheim");
    let mut session = bench.seekscope(&["tune", "--command", &command, "--out", "run"]);
    session.args(["--prepare", "true --password=verborgen"]);
    session.args([
        "--metric",
        "json:/rate",
        "--maximize",
        "--knobs",
        "knobs.toml",
    ]);
    session.args(["--trials", "4", "--baseline-pairs", "1", "--pairs", "4"]);
    let output = session.output().unwrap();
    assert_fails(
        &output,
        1,
        &["every setting that was tried failed", "login as"],
    );
    let mut texts = vec![output.stdout, output.stderr];
    for file in std::fs::read_dir(bench.path("run")).unwrap().flatten() {
        texts.push(std::fs::read(file.path()).unwrap());
    }
    assert!(texts.len() > 5);
    for text in texts {
        let text = String::from_utf8_lossy(&text).into_owned();
        for secret in ["pa55word", "geheim", "verborgen"] {
            assert!(!text.contains(secret), "{secret} in: {text}");
        }
    }
    assert!(
        trials(&bench.path("run"))
            .iter()
            .any(|t| t.reason.contains("login as"))
    );
    // What was not kept is asked for again.
    let output = bench
        .seekscope(&["tune", "--resume", "run"])
        .output()
        .unwrap();
    assert_fails(&output, 2, &["--command", "again"]);
}
