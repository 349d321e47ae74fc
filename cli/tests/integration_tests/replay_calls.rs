//! What a replay asks of the kernel, seen by strace: exactly what was recorded.

use std::collections::BTreeMap;
use std::process::Command;

use seekscope_run::{IoEvent, IoFlags, IoOp};

use crate::directory_snapshot::unchanged_by;
use crate::recorded_run::{DATA, event, write_run};
use crate::support::{Bench, stderr};

/// A call: name, length, offset; of a sync, its name alone.
type Call = (String, u64, u64);

/// Runs `seekscope replay rec ARGUMENTS` below strace. Returns the calls of each playing thread by
/// the recorded thread's number, and all lines.
fn traced(bench: &Bench, arguments: &[&str]) -> (BTreeMap<u32, Vec<Call>>, String) {
    let log = bench.path("strace.txt");
    let seekscope = bench.seekscope(&["replay", "rec", "--out", "run", "--quiet"]);
    let calls = "trace=prctl,openat,pread64,pwrite64,fsync,fdatasync";
    let output = Command::new("strace")
        .args(["-f", "-a", "1", "-e", calls, "-o"])
        .arg(&log)
        .arg(seekscope.get_program())
        .args(seekscope.get_args())
        .args(arguments)
        .current_dir(bench.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    std::fs::remove_dir_all(bench.path("run")).unwrap();
    (calls_by_thread(&whole_lines(&text)), text)
}

/// Calls that strace had to tell in two lines, as one.
fn whole_lines(text: &str) -> Vec<String> {
    let mut open: BTreeMap<&str, &str> = BTreeMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let (tid, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim();
        if let Some(begin) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(tid, begin);
        } else if let Some((_, end)) = rest.split_once(" resumed>") {
            lines.push(format!("{tid} {}{end}", open.remove(tid).unwrap()));
        } else {
            lines.push(format!("{tid} {rest}"));
        }
    }
    lines
}

fn calls_by_thread(lines: &[String]) -> BTreeMap<u32, Vec<Call>> {
    let mut recorded: BTreeMap<&str, u32> = BTreeMap::new();
    let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for line in lines {
        let (tid, rest) = line.split_once(' ').unwrap();
        if let Some(name) = rest.strip_prefix("prctl(PR_SET_NAME, \"replay ") {
            let number = name.split('"').next().unwrap().parse().unwrap();
            recorded.insert(tid, number);
            calls.entry(number).or_default();
        } else if let (Some(number), Some(call)) = (recorded.get(tid), call(rest)) {
            calls.get_mut(number).unwrap().push(call);
        }
    }
    calls
}

/// `pread64(5, "…"..., 4096, 8192) = 4096` and its kin.
fn call(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    match name {
        "fsync" | "fdatasync" => Some((name.into(), 0, 0)),
        "pread64" | "pwrite64" => {
            let (arguments, result) = rest.rsplit_once(") = ")?;
            let mut arguments = arguments.rsplit(", ");
            let offset = arguments.next()?.parse().ok()?;
            let length: u64 = arguments.next()?.parse().ok()?;
            assert_eq!(result.trim().parse(), Ok(length), "{line}");
            Some((name.into(), length, offset))
        }
        _ => None,
    }
}

fn expected(events: &[IoEvent]) -> BTreeMap<u32, Vec<Call>> {
    let mut calls: BTreeMap<u32, Vec<Call>> = BTreeMap::new();
    for event in events {
        let (name, offset) = match event.op {
            op if op.is_read() => ("pread64", event.offset.unwrap()),
            op if op.is_write() => ("pwrite64", event.offset.unwrap()),
            IoOp::Fsync => ("fsync", 0),
            _ => ("fdatasync", 0),
        };
        let call = (name.into(), event.length.into(), offset);
        calls.entry(event.tid).or_default().push(call);
    }
    calls
}

/// Three threads whose calls interleave, at odd offsets and lengths.
fn known_events(ops: &[IoOp]) -> Vec<IoEvent> {
    (0..240u64)
        .map(|n| {
            let op = ops[usize::try_from(n * 7 % 11).unwrap() % ops.len()];
            let is_sync = !op.is_read() && !op.is_write();
            let (offset, bytes) = match (is_sync, n % 3) {
                (true, _) => (0, 0),
                (_, 0) => (n * 4096, 4096),
                (_, 1) => ((n * 7919 * 512) % (6 << 20), 32_768),
                _ => (n * 1237 % (7 << 20), 777),
            };
            let tid = 11 + u32::try_from(n % 3).unwrap();
            event(tid, op, 1_000_000 + n * 1_000, offset, bytes)
        })
        .collect()
}

const SIZE: u64 = 8 << 20;

#[test]
fn each_thread_makes_exactly_the_recorded_calls() {
    let bench = Bench::new();
    let events = known_events(&[
        IoOp::Pread,
        IoOp::Read,
        IoOp::Pwrite,
        IoOp::Fsync,
        IoOp::Preadv,
        IoOp::Fdatasync,
    ]);
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
    let target = bench.target();
    for more in [&["--speed", "max"][..], &["--loop", "open"], &[]] {
        let mut arguments = vec!["--create", target.to_str().unwrap()];
        arguments.extend(more);
        let (calls, _) = unchanged_by(&target, || traced(&bench, &arguments));
        assert_eq!(calls, expected(&events), "{more:?}");
    }
}

#[test]
fn an_existing_file_is_opened_for_reading_only_and_not_written() {
    let bench = Bench::new();
    let events = known_events(&[IoOp::Pread, IoOp::Pwrite, IoOp::Fsync]);
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
    let target = bench.target();
    let file = target.join("precious");
    std::fs::write(&file, vec![7; usize::try_from(SIZE).unwrap()]).unwrap();
    let (calls, log) = unchanged_by(&target, || {
        traced(&bench, &["--file", file.to_str().unwrap()])
    });
    let reads: Vec<IoEvent> = events.iter().copied().filter(|e| e.op.is_read()).collect();
    assert!(reads.len() < events.len());
    assert_eq!(calls, expected(&reads));
    let opens = log
        .lines()
        .filter(|l| l.contains("openat(") && l.contains("precious"));
    assert!(opens.clone().count() > 0, "{log}");
    // Its later descriptions are opened through /proc/self/fd.
    let again = log
        .lines()
        .filter(|l| l.contains("openat(") && l.contains("/proc/self/fd/"));
    assert!(again.clone().count() > 0, "{log}");
    for open in opens.chain(again) {
        assert!(open.contains("O_RDONLY"), "{open}");
    }
}

#[test]
fn several_files_lie_side_by_side() {
    let bench = Bench::new();
    let other = |n: u64| IoEvent {
        file_id: 8,
        ..event(21, IoOp::Pread, n, n * 4096, 4096)
    };
    let mut events: Vec<IoEvent> = (0..20).map(other).collect();
    events.extend((0..30).map(|n| event(20, IoOp::Pread, n, n * 8192, 8192)));
    let files = [(DATA, "/data/a.wt", 1_000_000), (8, "/data/b.wt", 100_000)];
    write_run(&bench.path("rec"), &files, &events);
    let target = bench.target();
    let (calls, _) = traced(
        &bench,
        &[
            "--create",
            target.to_str().unwrap(),
            "--of",
            "all",
            "--speed",
            "max",
        ],
    );
    // The most read comes first; the next begins at a whole page behind it.
    let base = 1_000_000u64.next_multiple_of(4096);
    let offsets = |tid: u32| calls[&tid].iter().map(|c| c.2).collect::<Vec<_>>();
    assert_eq!(offsets(20), (0..30).map(|n| n * 8192).collect::<Vec<_>>());
    assert_eq!(
        offsets(21),
        (0..20).map(|n| base + n * 4096).collect::<Vec<_>>()
    );
    let (calls, _) = traced(
        &bench,
        &[
            "--create",
            target.to_str().unwrap(),
            "--of",
            "b.wt",
            "--speed",
            "max",
        ],
    );
    assert_eq!(calls.keys().collect::<Vec<_>>(), [&21]);
    assert_eq!(calls[&21][3].2, 3 * 4096);
}

#[test]
fn direct_calls_are_direct_where_their_alignment_allows_it() {
    let bench = Bench::new();
    let direct = |n: u64, bytes| IoEvent {
        flags: IoFlags(IoFlags::DIRECT),
        ..event(20, IoOp::Pread, n, n * 4096, bytes)
    };
    let events = [
        direct(0, 4096),
        direct(1, 777),
        event(20, IoOp::Pread, 2, 0, 4096),
    ];
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
    let target = bench.target();
    // Descriptors of the calls, and which of them were opened for direct I/O.
    let descriptors = |more: &[&str]| -> Vec<bool> {
        let mut arguments = vec!["--create", target.to_str().unwrap(), "--speed", "max"];
        arguments.extend(more);
        let (calls, log) = traced(&bench, &arguments);
        assert_eq!(calls[&20].len(), 3, "{log}");
        let mut direct: BTreeMap<String, bool> = BTreeMap::new();
        let mut made = Vec::new();
        let mut playing = false;
        for line in whole_lines(&log) {
            playing |= line.contains("\"replay 20\"");
            if let (true, Some((_, fd))) = (line.contains("openat("), line.rsplit_once(" = ")) {
                direct.insert(fd.into(), line.contains("O_DIRECT"));
            } else if let (true, Some((_, rest))) = (playing, line.split_once("pread64(")) {
                made.push(direct[rest.split(',').next().unwrap()]);
            }
        }
        made
    };
    assert_eq!(descriptors(&[]), [true, false, false]);
    assert_eq!(descriptors(&["--direct"]), [true, false, true]);
    assert_eq!(descriptors(&["--buffered"]), [false; 3]);
}
