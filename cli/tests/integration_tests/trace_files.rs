//! `seekscope trace import` and `trace export`: every format in and out, and what may go wrong.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use seekscope_run::{IoEvent, IoOp, RunDirectory, RunDocument};
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, python, run_document, send, stderr, wait};

const CSV: &str = "\
t_ns,tid,comm,op,path,offset,length,latency_ns,result,flags
1000,7,conn,pread64,/d/a.wt,0,4096,500,4096,0
3000,7,conn,pread64,/d/a.wt,4096,4096,90000,4096,3
2000,8,log,pwrite64,/d/journal,0,128,700,-28,0
9000,8,log,write,/d/journal,,128,700,128,0
9500,8,log,fdatasync,/d/journal,,0,99000,0,0
";

impl Bench {
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Imports a text into the run `NAME.run`.
    fn import(&self, name: &str, text: &str) -> Value {
        self.write(name, text);
        let run = format!("{name}.run");
        let document = json(&mut self.seekscope(&["trace", "import", name, "--out", &run]));
        assert_valid("trace-import", &document);
        document
    }

    fn events(&self, run: &str) -> (RunDocument, Vec<IoEvent>) {
        let (directory, document) = RunDirectory::open(&self.path(run)).unwrap();
        let mut events = Vec::new();
        directory.for_each_event(|e| events.push(*e)).unwrap();
        (document, events)
    }

    /// What the export prints.
    fn export(&self, run: &str, more: &[&str]) -> String {
        let mut command = self.seekscope(&["trace", "export", run]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn every_format_becomes_a_run() {
    let bench = Bench::new();
    let texts = [
        (
            "fio",
            "fio version 3 iolog\n0 /d/a add\n5 /d/a read 0 4096\n9 /d/a write 0 512\n",
            2,
        ),
        (
            "blkparse",
            "8,0 3 5 0.000008289 697 D WS 8 + 8 [kj]\n8,0 1 7 0.000108289 0 C WS 8 + 8 [0]\n",
            1,
        ),
        (
            "strace",
            "7 1700000000.000100 pread64(3</d/a>, \"\", 10, 20) = 10 <0.000011>\n7 1700000001.0 +++ exited with 0 +++\n",
            1,
        ),
        ("csv", CSV, 5),
    ];
    for (name, text, count) in texts {
        let printed = bench.import(name, text);
        let run = format!("{name}.run");
        let (document, events) = bench.events(&run);
        assert_eq!(printed["summary"]["written"], count, "{printed}");
        assert_eq!(events.len(), count);
        assert_eq!(document.command, "trace");
        let [phase] = &document.phases[..] else {
            panic!("{:?}", document.phases);
        };
        let facts = phase.trace.as_ref().unwrap();
        assert_eq!(
            (&*facts.backend, facts.seen, facts.lost),
            ("import", count as u64, 0)
        );
        assert_eq!(facts.seen, facts.written);
        for event in &events {
            assert!(phase.started_ns <= event.t_ns && event.t_ns < phase.ended_ns);
        }
        assert!(!document.limitations.is_empty());
        assert!(document.started.monotonic_ns <= document.ended_ns.unwrap());
        if name == "strace" {
            assert_eq!(document.started.realtime_ns, 1_700_000_000_000_100_000);
        }
    }
    assert_eq!(bench.events("blkparse.run").1[0].op, IoOp::BlockWrite);
}

#[test]
fn a_real_strace_through_a_pipe() {
    let bench = Bench::new();
    bench.write("data", &"x".repeat(50_000));
    let traced = Command::new("strace")
        .args([
            "-f",
            "-ttt",
            "-T",
            "-y",
            "-o",
            "/dev/stdout",
            "dd",
            "if=data",
            "of=copy",
            "bs=5000",
        ])
        .current_dir(bench.path(""))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let mut command = bench.seekscope(&["trace", "import", "-", "--out", "run", "--quiet"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&traced.stdout)
        .unwrap();
    assert!(wait(&mut child, Duration::from_secs(30)).success());
    let (directory, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let files = directory.files().unwrap();
    let copy = files.iter().find(|f| f.path.ends_with("/copy")).unwrap();
    let mut offsets = Vec::new();
    directory
        .for_each_event(|e| {
            if e.file_id == copy.file_id {
                offsets.push((e.offset, e.result));
            }
        })
        .unwrap();
    let expected: Vec<_> = (0..10).map(|i| (Some(i * 5000), 5000)).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn every_format_goes_out() {
    let bench = Bench::new();
    bench.import("trace", CSV);
    let csv = bench.export("trace.run", &["--to", "csv"]);
    assert_eq!(csv.lines().count(), 6);
    assert!(
        csv.contains("2000,8,8,log,/d/journal,pwrite64,0,128,700,-28,0,0,,,"),
        "{csv}"
    );
    let fio = bench.export("trace.run", &["--to", "fio", "--quiet"]);
    let expected = "fio version 2 iolog\n/d/a.wt add\n/d/a.wt open\n/d/a.wt read 0 4096\n\
                    /d/a.wt read 4096 4096\n/d/journal add\n/d/journal open\n/d/journal datasync 0 0\n\
                    /d/a.wt close\n/d/journal close\n";
    assert_eq!(fio, expected);
    assert!(
        bench
            .export("trace.run", &["--to", "fio3"])
            .starts_with("fio version 3 iolog\n0 /d/")
    );
    let chrome = bench.export("trace.run", &["--to", "chrome", "--file", "a.wt"]);
    let chrome: Value = serde_json::from_str(&chrome).unwrap();
    assert_eq!(
        chrome["traceEvents"].as_array().unwrap().len(),
        3,
        "a thread and two calls"
    );
    let by_id = bench.export(
        "trace.run",
        &["--to", "csv", "--file", "1", "--file", "/d/a.wt"],
    );
    assert_eq!(by_id.lines().count(), 6);
    let mut command = bench.seekscope(&["trace", "export", "trace.run", "--to", "parquet"]);
    let document = json(command.args(["--output", "one.parquet"]));
    assert_valid("trace-export", &document);
    assert_eq!(document["summary"]["events"], 5);
    let rows = python(
        "import duckdb, sys; print(duckdb.sql(f\"select t_ns, path, thread, role, op, \\\"offset\\\" from '{sys.argv[1]}'\").fetchall())",
        &[&bench.path("one.parquet")],
    );
    assert!(
        rows.contains("(2000, '/d/journal', 'log', 'other', 'pwrite64', 0)"),
        "{rows}"
    );
    assert!(
        rows.contains("(9000, '/d/journal', 'log', 'other', 'write', None)"),
        "{rows}"
    );
    let mode = std::fs::metadata(bench.path("one.parquet"))
        .unwrap()
        .permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o444,
        0o444,
        "not a secret"
    );
    // The same events again.
    bench.write("again.csv", &csv);
    bench.import("again", &csv);
    assert_eq!(bench.events("again.run").1, bench.events("trace.run").1);
}

#[test]
fn what_exists_is_not_replaced_unasked() {
    let bench = Bench::new();
    bench.import("trace", CSV);
    bench.write("precious", "mine");
    let export = |more: &[&str]| {
        let mut command = bench.seekscope(&["trace", "export", "trace.run", "--to"]);
        command.args(more).output().unwrap()
    };
    assert_fails(
        &export(&["csv", "--output", "precious"]),
        2,
        &["precious", "--force"],
    );
    assert_eq!(std::fs::read(bench.path("precious")).unwrap(), b"mine");
    assert!(
        export(&["csv", "--output", "precious", "--force"])
            .status
            .success()
    );
    assert_ne!(std::fs::read(bench.path("precious")).unwrap(), b"mine");
    assert_fails(
        &export(&["csv", "--output", "/dev/null", "--force"]),
        2,
        &["/dev/null"],
    );
    assert_fails(&export(&["parquet"]), 2, &["--output"]);
    assert_fails(
        &export(&["csv", "--file", "nothing.wt"]),
        2,
        &["nothing.wt"],
    );
    assert_fails(
        &export(&["csv", "--output", "no/such/folder/x"]),
        1,
        &["no/such/folder"],
    );
    assert_eq!(
        bench.leftovers(&["trace", "trace.run", "precious"]),
        [""; 0]
    );
}

#[test]
fn bad_traces_are_refused_with_reasons() {
    let bench = Bench::new();
    let import = |name: &str, more: &[&str]| {
        let mut command = bench.seekscope(&["trace", "import", name, "--out", "run"]);
        let output = command.args(more).output().unwrap();
        let _ = std::fs::rename(bench.path("run"), bench.path("failed"));
        output
    };
    assert_fails(&import("missing", &[]), 2, &["cannot read missing"]);
    bench.write("letter", "Dear Sir,\nno trace\n");
    assert_fails(&import("letter", &[]), 2, &["letter", "--format"]);
    assert!(!bench.path("failed").exists(), "nothing was begun");
    bench.write(
        "damaged",
        "fio version 3 iolog\n1 /a read 0 4096\n2 /a read \u{1b}[2J 1\n3 /a read 0 1\n",
    );
    let output = import("damaged", &[]);
    assert_fails(&output, 1, &["line 3", "offset", r"\u{1b}"]);
    let document = run_document(&bench.path("failed"));
    assert_eq!(document["outcome"], "failed");
    assert_eq!(
        bench.events("failed").1.len(),
        1,
        "what came before it is there"
    );
    bench.write("empty", "fio version 2 iolog\n");
    std::fs::remove_dir_all(bench.path("failed")).unwrap();
    assert_fails(&import("empty", &[]), 1, &["holds no I/O"]);
    let folder = bench
        .seekscope(&["trace", "import", "failed"])
        .output()
        .unwrap();
    assert_fails(&folder, 1, &["failed"]);
    let export = bench
        .seekscope(&["trace", "export", "failed", "--to", "csv"])
        .output()
        .unwrap();
    assert_fails(&export, 2, &["no events"]);
    let nothing = bench
        .seekscope(&["trace", "export", "nowhere", "--to", "csv"])
        .output()
        .unwrap();
    assert_fails(&nothing, 2, &["nowhere"]);
}

#[test]
fn an_interrupted_import_keeps_what_it_read() {
    let bench = Bench::new();
    let mut command = bench.seekscope(&["trace", "import", "-", "--format", "fio", "--out", "run"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = child.stdin.take().unwrap();
    let mut iolog = String::from("fio version 2 iolog\n");
    for i in 0..200_000 {
        iolog.push_str(&format!("/d/a read {} 4096\n", i * 4096));
    }
    text.write_all(iolog.as_bytes()).unwrap();
    text.flush().unwrap();
    while !bench.path("run/run.json").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    send(&child, libc::SIGINT);
    // More keeps coming until the import has had enough.
    while text
        .write_all(b"/d/a read 0 4096\n/d/a read 4096 4096\n")
        .is_ok()
    {}
    let status = wait(&mut child, Duration::from_secs(30));
    assert_eq!(status.code(), Some(130));
    let (document, events) = bench.events("run");
    assert_eq!(document.outcome, seekscope_run::Outcome::Partial);
    assert!(!events.is_empty());
    assert_eq!(
        document.phases[0].trace.as_ref().unwrap().written,
        events.len() as u64
    );
}
