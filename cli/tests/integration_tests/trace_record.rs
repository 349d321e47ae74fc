//! `seekscope trace`: real processes, traced by the real program.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use seekscope_run::{IoKind, IoLayer, IoOp, RunDirectory};
use seekscope_server::Namespace;
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{
    Bench, ForeignServer, assert_fails, assert_nothing_lost, json, load_documents, machine,
    run_document, send, shared_machine, stderr, until, wait,
};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 500;

/// A file whose blocks are read by `dd`, one `read` each; cold if the page cache lets it go.
fn data_file(bench: &Bench) -> String {
    let path = bench.path("data.bin");
    fs::write(&path, vec![7; usize::try_from(BLOCK * BLOCKS).unwrap()]).unwrap();
    let synced = Command::new("sync").arg(&path).status().unwrap();
    assert!(synced.success());
    path.to_str().unwrap().to_string()
}

fn dd(path: &str) -> String {
    format!("dd if={path} of=/dev/null bs={BLOCK} status=none")
}

fn file<'a>(document: &'a Value, path: &str) -> &'a Value {
    let files = document["summary"]["files"].as_array().unwrap();
    let found = files.iter().find(|file| file["path"] == path);
    found.unwrap_or_else(|| panic!("{path} is not in {files:#?}"))
}

/// A shell that reads the file over and over, slowly.
struct Reader(Child);

impl Reader {
    fn start(path: &str) -> Self {
        let script = format!("while :; do {}; sleep 0.05; done", dd(path));
        let child = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

/// Two ids make it a set, whose children count.
fn two_readers(path: &str) -> [Reader; 2] {
    [Reader::start(path), Reader::start(path)]
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_is_traced_from_its_first_call_to_its_last() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let document = json(&mut bench.seekscope(&[
        "trace",
        "--command",
        &format!("{}; exit 0", dd(&path)),
        "--out",
        "run",
    ]));
    assert_valid("trace", &document);
    assert_eq!(document["outcome"], "ok");
    assert_nothing_lost(&run_document(&bench.path("run"))["phases"][0]["trace"]);
    let read = file(&document, &path);
    // One more read finds the end.
    assert_eq!(
        (read["reads"].as_u64(), read["read_bytes"].as_u64()),
        (Some(BLOCKS + 1), Some(BLOCKS * BLOCK))
    );
    assert_eq!(read["pattern"], "sequential");
    assert_eq!(bench.loaded_programs(), 0, "nothing stays in the kernel");
    let (directory, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let names: Vec<String> = directory
        .threads()
        .unwrap()
        .into_iter()
        .map(|t| t.name)
        .collect();
    assert!(names.contains(&"dd".to_string()), "{names:?}");
    let report = fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(report.contains("data.bin"));
}

#[test]
fn the_terminal_says_what_is_done_and_what_was_found() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let output = bench
        .seekscope(&["trace", "--command", &dd(&path), "--out", "run"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("tracing mechanism: tp_btf"), "{said}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(
        shown.contains("data.bin") && shown.contains("sequential"),
        "{shown}"
    );
    let again = bench.seekscope(&["report", "run"]).output().unwrap();
    assert_eq!(
        String::from_utf8(again.stdout).unwrap(),
        shown,
        "the same again"
    );
}

/// A command may hold a password in any form.
#[test]
fn of_a_command_only_its_program_is_kept() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let read = format!("dd if={} of=/dev/null bs=64k && : hush", data_file(&bench));
    for (out, command, named) in [
        ("run", read.as_str(), "the command `dd …` and its children"),
        (
            "assigned",
            "MDBPW=hush true",
            "the command and its children",
        ),
    ] {
        bench
            .seekscope(&["trace", "--command", command, "--out", out])
            .output()
            .unwrap();
        let document = run_document(&bench.path(out)).to_string();
        assert!(document.contains(named), "{document}");
        let page = fs::read_to_string(bench.path(out).join("report.html")).unwrap_or_default();
        assert!(
            !document.contains("hush") && !page.contains("hush"),
            "{document}"
        );
    }
}

#[test]
fn a_process_is_traced_for_a_while_and_stays_as_it_was() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let mut readers = two_readers(&path);
    let [one, other] = [readers[0].pid(), readers[1].pid()];
    let document = json(&mut bench.seekscope(&[
        "trace", "-p", &one, "-p", &other, "--file", &path, "--for", "1500ms", "--out", "run",
    ]));
    let summary = &document["summary"];
    let files = summary["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{files:#?}");
    let read = file(&document, &path);
    assert!(read["reads"].as_u64().unwrap() >= 2 * BLOCKS, "{read:#}");
    for reader in &mut readers {
        assert!(reader.0.try_wait().unwrap().is_none(), "still running");
    }
}

#[test]
fn ctrl_c_is_the_end_of_a_trace_without_one_and_cuts_short_a_trace_with_one() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let reader = Reader::start(&path);
    for (more, code, outcome) in [(&[][..], 0, "ok"), (&["--for", "60s"][..], 130, "partial")] {
        let out = format!("run{code}");
        let mut child = bench
            .seekscope(&["trace", "-p", &reader.pid(), "--out", &out])
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until(|| bench.loaded_programs() > 0);
        std::thread::sleep(Duration::from_millis(300));
        send(&child, libc::SIGINT);
        let status = wait(&mut child, Duration::from_secs(60));
        assert_eq!(status.code(), Some(code));
        let document = run_document(&bench.path(&out));
        assert_eq!(document["outcome"], outcome);
        assert!(document["phases"][0]["trace"]["seen"].is_u64());
        assert_eq!(bench.loaded_programs(), 0);
    }
}

#[test]
fn a_killed_trace_can_be_shown_and_leaves_no_program() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let [one, other] = two_readers(&path);
    let mut child = bench
        .seekscope(&[
            "trace",
            "-p",
            &one.pid(),
            "-p",
            &other.pid(),
            "--out",
            "run",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let spool = bench.path("run/io.spool");
    until(|| fs::metadata(&spool).is_ok_and(|spool| spool.len() > 100_000));
    assert!(bench.loaded_programs() > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| bench.loaded_programs() == 0);
    let output = bench
        .seekscope(&["report", "run", "--json"])
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(document["summary"]["written"].as_u64().unwrap() > 1000);
    assert!(document["summary"]["lost"].is_null(), "unknown, not zero");
}

#[test]
fn counting_agrees_with_recording() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let script = format!(
        "{}; dd if=/dev/zero of={path}.copy bs={BLOCK} count=20 conv=fdatasync status=none",
        dd(&path)
    );
    let trace = |more: &[&str]| {
        let mut command = bench.seekscope(&["trace", "--command", &script]);
        json(command.args(more))
    };
    let recorded = trace(&["--out", "recorded", "--op", "read,write,sync"]);
    let counted = trace(&["--out", "counted", "--aggregate", "--interval", "100ms"]);
    assert_valid("trace", &counted);
    assert_eq!(counted["summary"]["seen"], counted["summary"]["written"]);
    let copy = format!("{path}.copy");
    for (path, names) in [
        (&path, &["reads", "read_bytes"][..]),
        (&copy, &["writes", "write_bytes", "syncs"][..]),
    ] {
        for name in names {
            let (a, b) = (&file(&recorded, path)[name], &file(&counted, path)[name]);
            assert!(a.as_u64().unwrap() > 0, "{name}");
            assert_eq!(a, b, "{name} of {path}");
        }
    }
    let run = bench.path("counted");
    assert!(run.join("totals.parquet").exists() && run.join("totals_latency.parquet").exists());
}

#[test]
fn a_flight_recorder_writes_down_the_last_moments_when_told() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let [one, other] = two_readers(&path);
    let mut child = bench
        .seekscope(&[
            "trace",
            "-p",
            &one.pid(),
            "-p",
            &other.pid(),
            "--ring",
            "400ms",
            "--out",
            "run",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Programs are loaded once to see whether they load; a phase has begun when they run.
    let run = bench.path("run");
    until(|| run.join("run.json").exists() && run_document(&run)["phases"][0].is_object());
    let spool = bench.path("run/io.spool");
    let spooled = || fs::metadata(&spool).map_or(0, |spool| spool.len());
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(spooled(), 0, "held in memory");
    send(&child, libc::SIGUSR1);
    until(|| spooled() > 0);
    send(&child, libc::SIGINT);
    assert_eq!(wait(&mut child, Duration::from_secs(60)).code(), Some(0));
    let trailer = run_document(&bench.path("run"))["phases"][0]["trace"].clone();
    let count = |name: &str| trailer[name].as_u64().unwrap();
    assert!(
        count("overwritten") > 0 && count("written") > 0,
        "{trailer:#}"
    );
    assert_eq!(
        count("seen"),
        count("written") + count("overwritten") + count("lost")
    );
}

#[test]
fn requests_of_the_disk_are_named_after_the_file() {
    let _machine = machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let script = format!("dd if={path} of=/dev/null bs={BLOCK} iflag=direct status=none");
    let document = json(&mut bench.seekscope(&["trace", "--command", &script, "--out", "run"]));
    let covered = document["summary"]["coverage"].as_array().unwrap();
    assert!(
        covered.iter().any(|group| group["covered"] == true),
        "{covered:#?}"
    );
    let (directory, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let files = directory.files().unwrap();
    let id = files.iter().find(|file| file.path == path).unwrap().file_id;
    let mut requested = 0;
    let mut asked = 0;
    directory
        .for_each_event(|event| {
            if event.file_id == id && event.op.kind() == IoKind::Read {
                match event.op.layer() {
                    IoLayer::File => asked += event.bytes(),
                    IoLayer::Device => requested += u64::from(event.length),
                }
                assert!(event.op != IoOp::BlockRead || event.request.is_some());
            }
        })
        .unwrap();
    // Where others keep the disk busy, the kernel skips a program at the end of some requests, and that many are said to
    // be lost, or still in flight if the kernel has not used the request again: 3, 8 and 26 of 500 in 3 of 91 runs.
    let trailer = &run_document(&bench.path("run"))["phases"][0]["trace"];
    let count = |name: &str| trailer[name].as_u64().unwrap();
    let lost = count("lost_end") + count("in_flight_at_end");
    assert!(lost <= BLOCKS / 10, "{trailer:#}");
    assert_eq!(
        (asked, requested + lost * BLOCK),
        (BLOCKS * BLOCK, BLOCKS * BLOCK)
    );
    let counted = document["summary"]["requests_counted"].as_array().unwrap();
    let of_files = counted.iter().filter(|c| c["cause"] == "traced_files");
    let read: u64 = of_files.map(|c| c["read_bytes"].as_u64().unwrap()).sum();
    assert!(read >= BLOCKS * BLOCK, "{counted:#?}");
    assert_valid("trace", &document);
}

#[test]
fn a_unit_is_found_by_its_control_group() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let path = data_file(&bench);
    let name = format!("unit-of-a-test-{}.service", std::process::id());
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/systemd"];
    let folder = roots
        .iter()
        .map(|root| Path::new(root).join(&name))
        .find(|folder| {
            let is_group = folder.parent().unwrap().join("cgroup.procs").exists();
            is_group && fs::create_dir(folder).is_ok()
        });
    let Some(folder) = folder else {
        // Control groups of the first version only: units live in none that we can make.
        let output = bench
            .seekscope(&["trace", "--unit", "no-such"])
            .output()
            .unwrap();
        return assert_fails(&output, 2, &["no-such.service", "systemctl status"]);
    };
    let reader = Reader::start(&path);
    fs::write(folder.join("cgroup.procs"), reader.pid()).unwrap();
    let document = json(&mut bench.seekscope(&[
        "trace",
        "--unit",
        name.trim_end_matches(".service"),
        "--for",
        "1s",
        "--out",
        "run",
    ]));
    assert!(file(&document, &path)["reads"].as_u64().unwrap() > BLOCKS);
    drop(reader);
    until(|| fs::remove_dir(&folder).is_ok());
}

#[test]
fn a_server_is_found_by_its_address_and_its_files_have_roles() {
    // Nothing may be lost while it writes as fast as it can.
    let _machine = machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("server"), "64M");
    let child = bench
        .seekscope(&["trace", "--target", &server.uri, "--json", "--out", "run"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| bench.loaded_programs() > 0);
    std::thread::sleep(Duration::from_millis(300));
    let namespace = Namespace::new("shop", "orders").unwrap();
    // More than its cache holds, so that it has to write.
    load_documents(&server.uri, &namespace, 40_000);
    std::thread::sleep(Duration::from_secs(2));
    send(&child, libc::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("trace", &document);
    assert_nothing_lost(&run_document(&bench.path("run"))["phases"][0]["trace"]);
    assert_eq!(document["target"]["pid"], server.pid());
    let files = document["summary"]["files"].as_array().unwrap();
    let written = |role: &str| {
        let of_role = files.iter().filter(|file| file["role"] == role);
        of_role
            .filter_map(|file| file["write_bytes"].as_u64())
            .sum::<u64>()
    };
    assert!(
        written("collection") + written("journal") > 1 << 20,
        "{files:#?}"
    );
    let roles = document["summary"]["roles"].as_array().unwrap();
    assert!(!roles.is_empty());
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    let bench = Bench::new();
    let own = &std::process::id().to_string();
    let fails = |arguments: &[&str], code, words: &[&str]| {
        let output = bench.seekscope(arguments).output().unwrap();
        assert_fails(&output, code, words);
    };
    fails(&["trace"], 2, &["nothing to trace", "-p PID"]);
    fails(&["trace", "-p", "4194304"], 2, &["no process 4194304"]);
    fails(&["trace", "-p", own, "--live"], 2, &["--live", "terminal"]);
    fails(
        &["trace", "-p", own, "--command", "x"],
        2,
        &["cannot be used"],
    );
    fails(
        &["trace", "-p", own, "--dump-latency", "1s"],
        2,
        &["--ring"],
    );
    fails(
        &["trace", "-p", own, "--aggregate", "--op", "block"],
        2,
        &["system calls"],
    );
    fails(
        &["trace", "-p", own, "--op", "read", "--whole-disk"],
        2,
        &["--whole-disk", "--op"],
    );
    fails(
        &["trace", "-p", own, "--sample", "4", "--sample-region", "5k"],
        2,
        &["power of two"],
    );
    fails(
        &["trace", "-p", own, "--file", "/no/such", "--for", "1s"],
        2,
        &["/no/such", "exists"],
    );
    fails(
        &["trace", "--cgroup", "/no/such/group"],
        2,
        &["not a control group"],
    );
    fails(
        &["trace", "--unit", "no-such-unit"],
        2,
        &["no-such-unit.service"],
    );
}
