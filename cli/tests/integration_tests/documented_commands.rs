//! Every command that README.md and the pages in `docs/` show, typed as it stands there, with the
//! server, folders, runs and lengths of time of this test in place of the reader's.
//!
//! A test beside the definition of the arguments checks that each can be parsed.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use crate::documented::{DocumentedCommand, documented_commands};
use crate::mounts;
use crate::support::{Bench, machine, shared_machine, stderr};
use crate::top::Busy;

/// Lines that hold the first text are not run here, for the reason beside it.
const NOT_RUN: [(&str, &str); 27] = [
    (
        "--allow-stepdown",
        "restarts the members of a set: tune_rolling.rs of real_mongod has one",
    ),
    (
        "--for-sync",
        "needs a member that copies: initial_sync.rs of real_mongod has one",
    ),
    (
        "--copy-of",
        "refuses files of a running database: replay.rs has others",
    ),
    (
        "--file /data",
        "refuses files of a running database: replay.rs has others",
    ),
    (
        "mongodb://mongos1/",
        "needs a sharded cluster: members.rs and whole.rs of real_mongod have one",
    ),
    ("--live", "draws on a terminal: top.rs runs it on one"),
    ("--unit mongod", "needs a service of systemd"),
    ("./load.sh", "runs a script of the reader's"),
    ("mongodump", "needs MongoDB's tools"),
    (
        "replicaSet=rs0",
        "needs a replica set: real_mongod/whole.rs has one",
    ),
    (
        "RUN_OF_A",
        "needs runs of several members: real_mongod/whole.rs has them",
    ),
    (
        "--ring",
        "goes on until a slow call: trace_record.rs runs it",
    ),
    (
        "--apply",
        "swaps a collection under the other commands: reorder.rs runs it",
    ),
    ("--resume", "needs a crash: reorder_kills.rs makes them"),
    (
        "--by",
        "needs documents with those fields: reorder.rs has them",
    ),
    (
        "tune mongodb",
        "takes minutes of runs: tune_servers.rs runs it",
    ),
    ("tune local", "takes minutes of runs: tune.rs runs it"),
    (
        "tune --knobs",
        "takes minutes of runs: tune_commands.rs runs it",
    ),
    (
        "TUNE_RUN",
        "needs a session of tune: tune.rs and tune_restarts.rs have them",
    ),
    (
        "bench ycsb",
        "takes minutes, or two servers: bench.rs and bench_compare.rs run it",
    ),
    ("bench sysbench", "takes minutes: bench_compare.rs runs it"),
    ("bench run", "takes minutes: bench_own.rs runs it"),
    (
        "advise",
        "needs a mongod, which counts blocks for each file: real_mongod/advise.rs runs it",
    ),
    (
        "bench schema",
        "takes many minutes: bench_labs.rs runs a small one",
    ),
    (
        "bench index",
        "takes minutes: bench_labs.rs runs a small one",
    ),
    (
        "merge client1",
        "needs four clients: bench_compare.rs has them",
    ),
    (
        "trace import",
        "needs a trace of another tool: trace_files.rs has them",
    ),
];

/// Such commands go on until Ctrl-C, which they get after some seconds.
const ENDLESS: [&str; 6] = [
    "seekscope exporter",
    "seekscope prefetch",
    "seekscope top ",
    "--watch",
    "seekscope mongoperf",
    "--min-latency",
];
/// What ends an endless one by itself.
const ENDS: [&str; 2] = ["--once", "--count"];
/// These measure the disk with all that it has, which disturbs whatever else runs on this machine. They want no server.
const MEASURING: [&str; 3] = [
    "seekscope disk /",
    "seekscope disk run",
    "seekscope mongoperf",
];
/// One at a time of these, which listen on the same port or write the same file.
const IN_TURN: &str = "exporter";
/// Commands at once, since most of the time they wait.
const AT_ONCE: usize = 5;
/// The runs of the reader. Each command has copies, for a run is locked while it is read.
const RUNS: [&str; 5] = [
    "run-disk",
    "run-trace",
    "run-layout",
    "run-later",
    "run-doctor",
];
/// Thresholds of the reader may be missed.
const THRESHOLD_MISSED: i32 = 6;

/// What stands in the documentation for the reader's own, and what this test has instead.
struct Substitutes(Vec<(&'static str, String)>);

impl Substitutes {
    /// Returns the substitutes for a command that is typed in `place`.
    fn new(bench: &Bench, busy: Option<&Busy>, place: &Path) -> Self {
        let path = |name: &str| bench.path(name).display().to_string();
        let run = |name: &str| place.join(name).display().to_string();
        let mut substitutes = vec![
            // A watch takes a minute unless it is told otherwise, a survey 90 s, and a job makes a file of 4 GiB.
            (
                "localhost:27017/ --since",
                "localhost:27017/ --for 3s --since".into(),
            ),
            (
                "localhost:27017/ --fail-on",
                "localhost:27017/ --for 3s --fail-on".into(),
            ),
            ("disk /path/", "disk --budget 10s --size 256M /path/".into()),
            ("disk /mnt/", "disk --budget 10s --size 256M /mnt/".into()),
            ("disk run ", "disk run --size 256M ".into()),
            ("--poisson", "--poisson --runtime 2s".into()),
        ];
        substitutes.extend(busy.into_iter().flat_map(Self::of_server));
        substitutes.extend([
            ("/path/on/that/disk", path("target")),
            ("/mnt/new-disk", path("target")),
            ("/etc/seekscope/exporter.uris", path("exporter.uris")),
            ("/var/lib/prometheus/node-exporter", path("textfile")),
            ("DISK_RUN", run("run-disk")),
            ("TRACE_RUN", run("run-trace")),
            ("RUN_A", run("run-layout")),
            ("RUN_B", run("run-later")),
            (" RUN", format!(" {}", run("run-doctor"))),
            ("--for 60s", "--for 3s".into()),
            ("--for 3m", "--for 3s".into()),
            ("--for 5m", "--for 3s".into()),
            ("--runtime 30s", "--runtime 2s".into()),
            ("--count 60", "--count 2".into()),
            ("--region 10G", "--region 64M".into()),
            ("fileSizeMB:1000", "fileSizeMB:16".into()),
        ]);
        Self(substitutes)
    }

    fn of_server(busy: &Busy) -> [(&'static str, String); 9] {
        let pid = busy.server.pid().to_string();
        let file = busy.collection_file().display().to_string();
        let uri = busy.server.uri.clone();
        let data = busy.bench.path("data").display().to_string();
        [
            ("mongodb://localhost:27017/", uri.clone()),
            ("mongodb://test1/", uri.clone()),
            ("mongodb://db1/", uri.clone()),
            // A mongod's directory names its collections; that of the server here does not.
            ("/var/lib/mongodb shop", format!("{uri} shop")),
            ("/var/lib/mongodb", data),
            ("/data/collection-7--42.wt", file.clone()),
            ("collection-7--42.wt", file),
            ("$(pgrep -x mongod)", pid.clone()),
            ("-p PID", format!("-p {pid}")),
        ]
    }

    fn apply(&self, line: &str) -> String {
        let substitutes = self.0.iter();
        substitutes.fold(line.to_string(), |line, (theirs, ours)| {
            line.replace(theirs, ours)
        })
    }
}

/// What the shell is given.
fn script(line: &str, substitutes: &Substitutes, program: &Path) -> String {
    let is_endless = ENDLESS.iter().any(|text| line.contains(text))
        && !ENDS.iter().any(|text| line.contains(text));
    let program = program.display();
    let called = if is_endless {
        format!("timeout --preserve-status -s INT 6 {program} ")
    } else {
        format!("timeout 300 {program} ")
    };
    let line = substitutes.apply(line).replacen("seekscope ", &called, 1);
    format!("set -o pipefail; {line}")
}

/// Why a command of the documentation failed; `None` if it did not.
fn failure(
    bench: &Bench,
    busy: Option<&Busy>,
    n: usize,
    command: &DocumentedCommand,
) -> Option<String> {
    let place = bench.path(&format!("place-{n}"));
    std::fs::create_dir(&place).unwrap();
    let program = bench.seekscope(&[]).get_program().to_os_string();
    let substitutes = Substitutes::new(bench, busy, &place);
    let script = script(&command.line, &substitutes, program.as_ref());
    for run in RUNS {
        let copy = place.join(run).display().to_string();
        if script.contains(&copy) {
            mounts::run("cp", &["-r", bench.path(run).to_str().unwrap(), &copy]);
        }
    }
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(place)
        .env("XDG_STATE_HOME", bench.path("state"))
        .output()
        .unwrap();
    let said = stderr(&output);
    let code = output.status.code();
    let may_miss = command.line.contains("--fail-on") && code == Some(THRESHOLD_MISSED);
    let is_interrupted = code == Some(130) && script.contains("-s INT");
    if (output.status.success() || may_miss || is_interrupted) && !said.contains("panicked") {
        return None;
    }
    Some(format!(
        "{}: {}\n  typed as {script}\n  {:?}: {said}",
        command.page, command.line, output.status
    ))
}

/// Commands, each with the number of its place.
type Numbered<'a> = Vec<(usize, &'a DocumentedCommand)>;

#[test]
fn every_command_of_the_documentation_works() {
    let mut commands = documented_commands();
    let mut seen = std::collections::HashSet::new();
    commands.retain(|command| {
        let skipped = NOT_RUN.iter().any(|(text, _)| command.line.contains(text));
        let typed = command
            .line
            .split(" #")
            .next()
            .unwrap_or_default()
            .trim()
            .to_string();
        !skipped && seen.insert(typed)
    });
    assert!(commands.len() > 35, "only {} are run", commands.len());
    let numbered = commands.iter().enumerate();
    let measures = |command: &DocumentedCommand| {
        let mut texts = MEASURING.iter();
        texts.any(|text| command.line.contains(text))
    };
    let (measuring, others): (Numbered, Numbered) =
        numbered.partition(|(_, command)| measures(command));
    assert!(measuring.len() >= MEASURING.len());

    let bench = Bench::new();
    bench.target();
    let alone = machine();
    let mut failures = failures_of(&bench, None, measuring);
    drop(alone);

    // The server has a client until the end, so that no other test may be alone meanwhile.
    let _machine = shared_machine();
    let busy = Busy::new();
    make_runs(&busy);
    failures.extend(failures_of(&busy.bench, Some(&busy), others));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Makes the reader's runs and files.
fn make_runs(busy: &Busy) {
    let (bench, uri) = (&busy.bench, &busy.server.uri);
    let data = bench.path("data").display().to_string();
    bench.target();
    std::fs::write(bench.path("exporter.uris"), format!("{uri}\n")).unwrap();
    std::fs::create_dir(bench.path("textfile")).unwrap();
    // One that takes no measuring.
    let disk = bench.path("run-disk").display().to_string();
    mounts::run("cp", &["-r", "tests/recorded/disk", &disk]);
    std::thread::scope(|scope| {
        for (run, command) in [
            ("run-trace", format!("trace --target {uri} --for 3s")),
            ("run-layout", format!("layout {data}")),
            ("run-later", format!("layout {data}")),
            ("run-doctor", format!("doctor {uri} --for 3s")),
        ] {
            scope.spawn(move || {
                let mut words: Vec<&str> = command.split(' ').collect();
                words.extend(["--out", run]);
                let output = bench.seekscope(&words).output().unwrap();
                assert!(output.status.success(), "{command}: {}", stderr(&output));
            });
        }
    });
}

/// Runs the commands, several at once, and returns why those failed that did.
fn failures_of(bench: &Bench, busy: Option<&Busy>, commands: Numbered) -> Vec<String> {
    let (in_turn, others): (Numbered, Numbered) = commands
        .into_iter()
        .partition(|(_, command)| verb(command) == IN_TURN);
    let mut queues: Vec<Numbered> = others.into_iter().map(|one| vec![one]).collect();
    // Taken first, as it is the longest.
    queues.push(in_turn);
    let queues = Mutex::new(queues);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = queues.lock().unwrap().pop();
                    let Some(commands) = next else { return };
                    let failed = commands
                        .into_iter()
                        .filter_map(|(n, command)| failure(bench, busy, n, command));
                    let failed: Vec<String> = failed.collect();
                    failures.lock().unwrap().extend(failed);
                }
            });
        }
    });
    failures.into_inner().unwrap()
}

/// The first word after the program's name.
fn verb(command: &DocumentedCommand) -> &str {
    let mut words = command.line.split_whitespace();
    words.find(|word| *word == "seekscope");
    words.next().unwrap_or_default()
}

/// A reason for a command that is no longer shown hides nothing, and goes.
#[test]
fn each_reason_not_to_run_a_command_is_needed() {
    let commands = documented_commands();
    for (text, reason) in NOT_RUN {
        let is_shown = commands.iter().any(|command| command.line.contains(text));
        assert!(is_shown, "no command holds {text:?} any more ({reason})");
    }
}
