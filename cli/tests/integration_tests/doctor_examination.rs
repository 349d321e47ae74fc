//! `doctor URI`: a server watched at its own work.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use seekscope_server::{Namespace, page_cache};
use serde_json::Value;

use crate::existing_server::scan;
use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, as_nobody, assert_fails, assert_nothing_lost, install, json,
    load_documents, machine, run_document, send, shared_machine, stderr, until, until_caught, wait,
};

pub const NAMESPACE: &str = "shop.orders";
const DOCUMENTS: u64 = 20_000;

/// A server with some 60 MB of documents in its files, and a small, cold cache.
pub fn loaded(bench: &Bench) -> ForeignServer {
    let data = bench.path("data");
    let server = ForeignServer::start(&data, "1G");
    let namespace: Namespace = NAMESPACE.parse().unwrap();
    load_documents(&server.uri, &namespace, DOCUMENTS);
    server.stop();
    page_cache::evict(&data).unwrap();
    ForeignServer::start_with_checkpoints(&data, "32M", 2)
}

/// `doctor` on it while the collection is scanned; the document that it prints.
pub fn examined(bench: &Bench, server: &ForeignServer, out: &str) -> Value {
    let mut doctor = bench.seekscope(&["doctor", &server.uri, "--for", "6s", "--out", out]);
    doctor.args(["--json", "--collection", NAMESPACE]);
    doctor.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = doctor.spawn().unwrap();
    until(|| bench.path(out).join("io.spool").exists());
    scan(&server.uri, &NAMESPACE.parse().unwrap());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    for word in ["Reads:", "Never:", "Cost:", "Time:", "Rights:", "Stop:"] {
        assert!(said.contains(word), "the contract lacks {word}: {said}");
    }
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn everything_is_gathered_on_one_clock_and_concluded_again_from_the_run() {
    let bench = Bench::new();
    let server = {
        let _machine = shared_machine();
        loaded(&bench)
    };
    let alone = machine();
    let started = Instant::now();
    let document = examined(&bench, &server, "run");
    assert!(started.elapsed() < Duration::from_secs(26), "6 s and 20 s");
    drop(alone);
    assert_valid("doctor", &document);
    assert_eq!(document["outcome"], "ok", "{:#}", document["limitations"]);

    let run = run_document(&bench.path("run"));
    let (phase, trace) = (&run["phases"][0], &run["phases"][0]["trace"]);
    assert_nothing_lost(trace);
    let observed = phase["started_ns"].as_u64()..=phase["ended_ns"].as_u64();
    let (directory, _) = seekscope_run::RunDirectory::open(&bench.path("run")).unwrap();
    for source in ["serverStatus", "process", "client"] {
        let counters = directory.counters().unwrap();
        let mut times = counters.iter().filter(|c| c.source == source);
        assert!(
            times.any(|c| observed.contains(&Some(c.t_ns))),
            "no counters of {source} while it was watched"
        );
    }
    drop(directory);
    let member = &run["examination"]["members"][0];
    let collections = member["collections"].as_array().unwrap();
    assert!(
        collections.iter().any(|c| c["namespace"] == NAMESPACE),
        "{member:#}"
    );
    let files = run["layout"]["files"].as_array().unwrap();
    assert!(
        files.iter().any(|f| f["leaf_pages"].as_u64() > Some(100)),
        "{files:#?}"
    );
    let users = document["summary"]["answers"]["device_users"]
        .as_array()
        .unwrap();
    assert!(!users.is_empty(), "the scan used the device: {document:#}");
    assert!(document["examination"]["cost"]["client_peak_rss_bytes"].as_u64() < Some(200 << 20));

    drop(server);
    concluded_again(&bench, &document);
}

/// `doctor RUN` and `report RUN` say the same from the directory alone.
fn concluded_again(bench: &Bench, document: &Value) {
    for command in ["doctor", "report"] {
        let again = json(&mut bench.seekscope(&[command, "run"]));
        for (key, value) in document.as_object().unwrap() {
            assert_eq!(
                again[key].to_string(),
                value.to_string(),
                "{command}: {key}"
            );
        }
    }
    let output = bench.seekscope(&["doctor", "run"]).output().unwrap();
    let screen = String::from_utf8(output.stdout).unwrap();
    let verdict = document["summary"]["verdict"].as_str().unwrap();
    let first_words: Vec<&str> = verdict.split(' ').take(3).collect();
    assert!(screen.contains(&first_words.join(" ")), "{screen}");
    let findings = document["findings"].as_array().unwrap();
    assert!(
        !findings.is_empty(),
        "a disk that is well is a finding, too"
    );

    // Against itself nothing changed.
    let since = json(&mut bench.seekscope(&["doctor", "run", "--since", "run"]));
    assert_valid("doctor", &since);
    let changes = since["examination"]["since"]["changes"].as_array().unwrap();
    assert!(
        changes.iter().all(|c| c["change"] == "same"),
        "{changes:#?}"
    );

    let judged = |limit: &str| {
        let mut doctor = bench.seekscope(&["doctor", "run", "--fail-on", limit]);
        doctor.output().unwrap()
    };
    assert_fails(&judged("no.such-finding"), 2, &["--fail-on"]);
    let ill = findings.iter().find(|f| f["id"] != "disk.not-the-problem");
    match ill {
        Some(finding) => assert_fails(&judged(finding["id"].as_str().unwrap()), 6, &[]),
        None => assert_eq!(judged("any").status.code(), Some(0)),
    }
    assert_eq!(judged("saves>999h").status.code(), Some(0));
}

/// No system call of ours writes below the data directory, and no command of ours to the server.
#[test]
fn the_server_and_its_files_are_only_read() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = loaded(&bench);
    let data = bench.path("data");
    let log = bench.path("strace.log");
    let command = bench.seekscope(&[]);
    let output = Command::new("strace")
        .args(["-f", "-y", "-s", "4096", "-o"])
        .arg(&log)
        .args(["-e", "trace=%file,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,ftruncate,fallocate,copy_file_range,fchmod,fchown,fsync,fdatasync,flock,fcntl,fadvise64,readahead"])
        .arg(command.get_program())
        .args(["doctor", &server.uri, "--for", "4s", "--out", "run", "--quiet"])
        .current_dir(bench.path(""))
        .output()
        .expect("strace; `./x test` installs it");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&log).unwrap();
    let data = data.to_str().unwrap();
    let touching: Vec<&str> = text.lines().filter(|line| line.contains(data)).collect();
    assert!(
        touching
            .iter()
            .any(|line| line.contains(" open") && line.contains(".wt")),
        "the data files were not looked at: that proves nothing"
    );
    for line in touching {
        assert!(only_reads(line, data), "{line}");
    }
    let sent = text
        .lines()
        .filter(|line| line.contains("sendto(") || line.contains("write"));
    for line in sent {
        for word in WRITE_COMMANDS {
            // An OP_MSG body begins with the command: its type, its name and a NUL. Then a name or a
            // number follows.
            for kind in ["\\2", "\\20"] {
                assert!(!line.contains(&format!("{kind}{word}\\0")), "{line}");
            }
        }
    }
}

const WRITE_COMMANDS: [&str; 10] = [
    "insert",
    "update",
    "delete",
    "findAndModify",
    "create",
    "drop",
    "setParameter",
    "createIndexes",
    "compact",
    "fsync",
];

/// A line of strace that names the data directory: a call that changes nothing there, or one that only
/// mentions it in what is written elsewhere, as in run.json.
fn only_reads(line: &str, data: &str) -> bool {
    const LOOKS: &str = "stat statx newfstatat lstat statfs readlink readlinkat access faccessat2 \
                         getcwd execve chdir";
    let call = line.split_once(' ').unwrap().1.trim_start();
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let descriptor = arguments.split(['"', ',']).next().unwrap_or_default();
    let mentions = (name.contains("write") || name.contains("send")) && !descriptor.contains(data);
    let questions = ["F_GETLK", "F_DUPFD", "F_GETFL", "F_GETFD"];
    mentions
        || line.contains("resumed>")
        || LOOKS.split_whitespace().any(|look| look == name)
        || name.starts_with("open") && line.contains("O_RDONLY")
        || name == "fcntl" && questions.iter().any(|question| line.contains(question))
        || name == "fadvise64" && line.contains("POSIX_FADV_RANDOM")
}

fn watching(bench: &Bench, server: &ForeignServer, out: &str) -> Child {
    let mut doctor = bench.seekscope(&["doctor", &server.uri, "--for", "60s", "--out", out]);
    doctor.stdout(Stdio::null()).stderr(Stdio::null());
    doctor.spawn().unwrap()
}

#[test]
fn a_signal_keeps_the_partial_run_and_leaves_nothing() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = loaded(&bench);
    // At the start, while the guard takes its measure, and while the server is traced.
    for (i, moment_ms) in [0, 1_500, 1_000].into_iter().enumerate() {
        let out = format!("run{i}");
        let mut child = watching(&bench, &server, &out);
        until_caught(&child, libc::SIGINT);
        if i == 2 {
            until(|| bench.path(&out).join("io.spool").exists());
            assert!(bench.loaded_programs() > 0);
        }
        std::thread::sleep(Duration::from_millis(moment_ms));
        send(&child, libc::SIGINT);
        let status = wait(&mut child, Duration::from_secs(20));
        assert_eq!(status.code(), Some(130), "{out}");
        assert_eq!(bench.loaded_programs(), 0, "{out}");
        let document = run_document(&bench.path(&out));
        assert_eq!(document["outcome"], "partial", "{out}");
    }
    let document = run_document(&bench.path("run2"));
    let phase = &document["phases"][0];
    assert!(phase["ended_ns"].as_u64() > phase["started_ns"].as_u64());
    assert_valid("doctor", &json(&mut bench.seekscope(&["doctor", "run2"])));
}

#[test]
fn a_server_that_ends_meanwhile_is_said_to_have_ended() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = loaded(&bench);
    let mut child = watching(&bench, &server, "run");
    until(|| bench.path("run/io.spool").exists());
    // It writes its last checkpoint first, which takes a while on a busy disk.
    server.stop();
    let ended = Instant::now();
    let status = wait(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(1));
    assert!(
        ended.elapsed() < Duration::from_secs(20),
        "nobody waits for the rest of the time"
    );
    assert_eq!(bench.loaded_programs(), 0);
    let document = json(&mut bench.seekscope(&["doctor", "run"]));
    assert_valid("doctor", &document);
    assert_eq!(document["outcome"], "partial");
    let reason = document["outcome_reason"].as_str().unwrap();
    assert!(
        reason.contains("the server ended while it was watched"),
        "{reason}"
    );
}

/// Runs as a user without any privilege, who cannot enter the data directory either.
#[test]
fn each_missing_right_turns_off_one_section() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("data"), "32M");
    let folder = tempfile::tempdir().unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let binary = folder.path().join("seekscope");
    install(bench.seekscope(&[]).get_program(), &binary);
    let output = as_nobody(&binary)
        .args([
            "doctor",
            &server.uri,
            "--for",
            "3s",
            "--out",
            "run",
            "--json",
        ])
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("doctor", &document);
    assert!(
        document["summary"]["trace"].is_null(),
        "unknown is not zero"
    );
    let limitations = document["limitations"].as_array().unwrap();
    for what in ["not traced", "process"] {
        let found = limitations
            .iter()
            .find(|l| l["what"].as_str().unwrap().contains(what));
        let found = found.unwrap_or_else(|| panic!("{what}: {limitations:#?}"));
        assert!(!found["remedy"].as_str().unwrap().is_empty(), "{found}");
    }
    assert!(document["examination"]["members"][0]["target"]["version"].is_string());
}

#[test]
fn the_role_is_printed_for_mongosh() {
    let bench = Bench::new();
    let output = bench
        .seekscope(&["doctor", "--print-role"])
        .output()
        .unwrap();
    assert!(output.status.success());
    let script = String::from_utf8(output.stdout).unwrap();
    for word in ["createRole", "serverStatus", "inprog", "cap_bpf"] {
        assert!(script.contains(word), "{word}: {script}");
    }
    assert!(
        !Path::new(&bench.path("seekscope-runs")).exists(),
        "nothing is run"
    );
}
