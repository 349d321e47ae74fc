//! Replays that cannot begin, or do not end as planned: a message, the exit code of the design,
//! nothing left behind.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use seekscope_run::{IoEvent, IoOp};

use crate::directory_snapshot::unchanged_by;
use crate::mounts::LoopDevice;
use crate::recorded_run::{DATA, MS, event, write_run};
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, run_document, send, shared_machine, stderr, wait};

const SIZE: u64 = 4 << 20;

/// A read every 10 ms for a minute.
fn write_minute(bench: &Bench) {
    let read = |n: u64| event(5, IoOp::Pread, n * 10 * MS, n % 1000 * 4096, 4096);
    let events: Vec<IoEvent> = (0..6000).map(read).collect();
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
}

#[test]
fn what_cannot_begin_is_refused() {
    let bench = Bench::new();
    write_minute(&bench);
    let only_writes = [event(5, IoOp::Pwrite, 1, 0, 4096)];
    write_run(
        &bench.path("writes"),
        &[(DATA, "/data/c.wt", SIZE)],
        &only_writes,
    );
    write_run(&bench.path("nothing"), &[], &[]);
    std::fs::write(bench.target().join("data"), vec![1; 8192]).unwrap();
    std::fs::write(bench.target().join("empty"), "").unwrap();
    let cases: [(&[&str], i32, &str); 16] = [
        (&["rec"], 2, "--file"),
        (
            &["rec", "--file", "target/data", "--copy-of", "target/data"],
            2,
            "cannot be used",
        ),
        (
            &["rec", "--file", "target/data", "--create", "target"],
            2,
            "cannot be used",
        ),
        (
            &[
                "rec", "--create", "target", "--speed", "max", "--loop", "open",
            ],
            2,
            "--speed max",
        ),
        (&["rec", "--create", "target", "--speed", "0"], 2, "factor"),
        (
            &["rec", "--create", "target", "--speed", "NaN"],
            2,
            "factor",
        ),
        (
            &["rec", "--create", "target", "--direct", "--buffered"],
            2,
            "cannot be used",
        ),
        (
            &["rec", "--create", "target", "--of", "d.wt"],
            2,
            "/data/c.wt",
        ),
        (
            &["rec", "--create", "target", "--phase", "p"],
            2,
            "no phase",
        ),
        (&["rec", "--create", "target/data"], 2, "is not a directory"),
        (
            &["rec", "--create", "target", "--size", "1000T"],
            1,
            "not enough space",
        ),
        (&["rec", "--file", "target"], 2, "neither a regular file"),
        (&["rec", "--file", "target/empty"], 2, "is empty"),
        (&["rec", "--file", "target/none"], 2, "No such file"),
        (
            &["writes", "--file", "target/data"],
            2,
            "writes are not replayed",
        ),
        (&["nothing", "--create", "target"], 2, "no reads or writes"),
    ];
    for (arguments, code, words) in cases {
        unchanged_by(&bench.path("."), || {
            let mut command = bench.seekscope(&["replay"]);
            assert_fails(&command.args(arguments).output().unwrap(), code, &[words]);
        });
    }
}

#[test]
fn beside_a_database_it_wants_to_be_asked_twice() {
    let bench = Bench::new();
    write_minute(&bench);
    let lock = std::fs::File::create(bench.target().join("mongod.lock")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    std::fs::write(bench.target().join("data"), vec![1; 8192]).unwrap();
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    for more in [
        &["--create", "target"][..],
        &["--file", "target/data"],
        &["--copy-of", "target/data", "--create", "elsewhere"],
    ] {
        let refused = bench
            .seekscope(&["replay", "rec"])
            .args(more)
            .output()
            .unwrap();
        assert_fails(&refused, 3, &["mongod.lock", "--next-to-database"]);
    }
    // 200 requests per second.
    let mut gentle = bench.seekscope(&["replay", "rec", "--file", "target/data", "--speed", "max"]);
    let document = json(gentle.args(["--next-to-database", "--time-limit", "1s"]));
    assert_valid("replay", &document);
    let played = document["summary"]["outcome"]["reads"]["replayed"]["count"]
        .as_u64()
        .unwrap();
    assert!((1..=201).contains(&played), "{played}");
}

/// Starts a replay of a minute on a copy, and waits until some of it has been played.
fn playing(bench: &Bench) -> Child {
    let data = bench.target().join("data");
    let mut command = bench.seekscope(&["replay", "rec", "--out", "run", "--copy-of"]);
    command
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(30);
    let spool = bench.path("run").join("intervals.spool");
    while spool.metadata().map_or(0, |m| m.len()) == 0 {
        assert!(Instant::now() < end, "nothing was played");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn interrupted_it_keeps_what_was_played_and_no_copy() {
    let bench = Bench::new();
    write_minute(&bench);
    std::fs::write(bench.target().join("data"), vec![1; 1 << 20]).unwrap();
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let output = unchanged_by(&bench.target(), || {
            let child = playing(&bench);
            send(&child, signal);
            child.wait_with_output().unwrap()
        });
        assert_fails(&output, 130, &["interrupted by SIG"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("interrupted") && text.contains("\n recorded"),
            "{text}"
        );
        assert_eq!(run_document(&bench.path("run"))["outcome"], "partial");
        let document = json(&mut bench.seekscope(&["report", "run"]));
        assert_valid("replay", &document);
        let summary = &document["summary"];
        let played = summary["outcome"]["reads"]["replayed"]["count"]
            .as_u64()
            .unwrap();
        assert!((1..6000).contains(&played), "{played}");
        assert_eq!(summary["outcome"]["reads"]["recorded"]["count"], played);
        assert_eq!(summary["ended"], "interrupted");
        assert_eq!(
            bench.leftovers(&["target", "rec", "run"]),
            Vec::<String>::new()
        );
        std::fs::remove_dir_all(bench.path("run")).unwrap();
    }
}

#[test]
fn even_a_kill_leaves_no_copy() {
    let bench = Bench::new();
    write_minute(&bench);
    std::fs::write(bench.target().join("data"), vec![1; 1 << 20]).unwrap();
    unchanged_by(&bench.target(), || {
        let mut child = playing(&bench);
        send(&child, libc::SIGKILL);
        wait(&mut child, Duration::from_secs(10))
    });
    assert_eq!(
        bench.leftovers(&["target", "rec", "run"]),
        Vec::<String>::new()
    );
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(2), "{}", stderr(&shown));
}

#[test]
fn a_file_that_shrinks_meanwhile_ends_it_with_words() {
    let bench = Bench::new();
    write_minute(&bench);
    let path = bench.target().join("data");
    std::fs::write(&path, vec![1; 8 << 20]).unwrap();
    let mut command = bench.seekscope(&["replay", "rec", "--out", "run", "--file"]);
    command
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_fails(&output, 1, &["shrink"]);
    assert_eq!(run_document(&bench.path("run"))["outcome"], "failed");
    let document = json(&mut bench.seekscope(&["report", "run"]));
    assert_valid("replay", &document);
    assert_eq!(document["summary"]["ended"], "failed");
    assert_eq!(
        document["summary"]["outcome"]["reads"]["replayed"]["errors"],
        1
    );
}

/// The image of a disk whose end has been lost: reads there fail.
#[test]
fn reads_that_fail_end_it_with_their_offset() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let image = bench.path("image");
    let device = LoopDevice::of_new_image(&image, 64 << 20);
    let lost = std::fs::File::options().write(true).open(&image).unwrap();
    lost.set_len(1 << 20).unwrap();
    let events = [
        event(5, IoOp::Pread, 1, 0, 4096),
        event(5, IoOp::Pread, 2, 32 << 20, 4096),
    ];
    write_run(
        &bench.path("rec"),
        &[(DATA, "/data/c.wt", 64 << 20)],
        &events,
    );
    let mut command = bench.seekscope(&["replay", "rec", "--out", "run", "--file"]);
    let output = command.arg(&device.path).output().unwrap();
    assert_fails(&output, 1, &["failed to read at offset 33554432", "dmesg"]);
    let outcome = &run_document(&bench.path("run"))["summary"]["outcome"]["reads"]["replayed"];
    assert_eq!(
        (&outcome["count"], &outcome["errors"]),
        (&1.into(), &1.into())
    );
}
