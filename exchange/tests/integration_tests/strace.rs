//! Texts of real strace, of programs whose I/O is known.

use std::path::Path;
use std::process::Command;

use seekscope_exchange::{Format, ImportSummary, detect};
use seekscope_run::{IoFlags, IoOp};

use crate::{Memory, read};

/// Every kind of call once or more, with a descriptor that is copied, shared with a child and with
/// threads.
const PROGRAM: &str = r"
import os, sys, threading
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
for i in range(10):
    os.write(fd, b'x' * 1000)
os.lseek(fd, 500, os.SEEK_SET)
os.read(fd, 100)
copy = os.dup(fd)
os.read(copy, 50)
os.pread(fd, 4096, 8000)
os.preadv(fd, [bytearray(10), bytearray(20)], 64)
os.pwrite(fd, b'abc', 20000)
os.fsync(fd)
os.fdatasync(fd)
end = os.open(path, os.O_WRONLY | os.O_APPEND)
os.write(end, b'zz')
child = os.fork()
if child == 0:
    os.read(fd, 5)
    os._exit(0)
os.waitpid(child, 0)
os.read(fd, 7)
os.close(copy)
read_end, write_end = os.pipe()
os.write(write_end, b'not a file')
def work(number):
    for i in range(50):
        os.pread(fd, 10 + number, i * 100)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
try:
    os.pread(write_end, 5, 0)
except OSError:
    pass
os.lseek(fd, 0, os.SEEK_END)
os.read(fd, 11)
";

fn strace(folder: &Path, options: &[&str], program: &[&str]) -> String {
    let output = Command::new("strace")
        .args(["-f", "-o", "trace"])
        .args(options)
        .args(program)
        .current_dir(folder)
        .output()
        .expect("strace; `./x test` installs it");
    assert!(output.status.success(), "{output:?}");
    std::fs::read_to_string(folder.join("trace")).unwrap()
}

type Fact = (IoOp, Option<u64>, u32, i32);

/// Calls on the file in question, those of the four threads counted apart.
fn facts(memory: &Memory, name: &str) -> (Vec<Fact>, usize) {
    let on_file = memory
        .events
        .iter()
        .filter(|e| memory.path(e).ends_with(name));
    // Which of the two Python calls depends on its C library.
    let op = |op| {
        if op == IoOp::Preadv2 {
            IoOp::Preadv
        } else {
            op
        }
    };
    let all: Vec<Fact> = on_file
        .map(|e| (op(e.op), e.offset, e.length, e.result))
        .collect();
    let of_thread = |f: &Fact| f.0 == IoOp::Pread && (10..14).contains(&f.2);
    let in_threads = all.iter().filter(|f| of_thread(f)).count();
    (
        all.into_iter().filter(|f| !of_thread(f)).collect(),
        in_threads,
    )
}

fn expected() -> Vec<Fact> {
    let mut facts: Vec<Fact> = (0..10)
        .map(|i| (IoOp::Write, Some(i * 1000), 1000, 1000))
        .collect();
    facts.extend([
        (IoOp::Read, Some(500), 100, 100),
        (IoOp::Read, Some(600), 50, 50),
        (IoOp::Pread, Some(8000), 4096, 2000),
        (IoOp::Preadv, Some(64), 30, 30),
        (IoOp::Pwrite, Some(20_000), 3, 3),
        (IoOp::Fsync, None, 0, 0),
        (IoOp::Fdatasync, None, 0, 0),
        (IoOp::Write, None, 2, 2),
        (IoOp::Read, Some(650), 5, 5),
        (IoOp::Read, Some(655), 7, 7),
        (IoOp::Read, Some(20_005), 11, 0),
    ]);
    facts
}

fn of_python(options: &[&str]) -> (Memory, ImportSummary) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("known, file");
    let text = strace(
        folder.path(),
        options,
        &["python3", "-I", "-S", "-c", PROGRAM, path.to_str().unwrap()],
    );
    assert_eq!(detect(text.as_bytes()), Some(Format::Strace));
    let (memory, summary) = read(Format::Strace, &text);
    assert_eq!(
        facts(&memory, "known, file"),
        (expected(), 200),
        "{options:?}"
    );
    (memory, summary)
}

#[test]
fn a_known_program_with_every_option() {
    let (memory, summary) = of_python(&["-ttt", "-T", "-y"]);
    assert!(summary.since_1970 && !summary.without_latency && !summary.untimed);
    let calls = || {
        memory
            .events
            .iter()
            .filter(|e| memory.path(e).ends_with("known, file"))
    };
    assert!(calls().all(|e| e.latency_ns > 0 && e.flags.has(IoFlags::CACHE_UNKNOWN)));
    let mut tids: Vec<u32> = calls().map(|e| e.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    assert_eq!(tids.len(), 6, "main, child, four threads");
    let mut pids: Vec<u32> = calls().map(|e| e.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 2, "threads belong to their process");
}

#[test]
fn a_known_program_without_paths_or_with_other_times() {
    of_python(&["-ttt", "-T"]);
    of_python(&["-tt"]);
    of_python(&["-r", "-T"]);
    let (_, summary) = of_python(&[]);
    assert!(summary.untimed && summary.without_latency);
}

#[test]
fn dd_reads_and_writes_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), vec![1; 100_000]).unwrap();
    let text = strace(
        folder.path(),
        &["-ttt", "-T", "-y"],
        &["dd", "if=in", "of=out", "bs=4096", "skip=2", "conv=fsync"],
    );
    let (memory, _) = read(Format::Strace, &text);
    let sum = |name: &str, op: IoOp| -> (usize, u64) {
        let of = memory
            .events
            .iter()
            .filter(|e| e.op == op && memory.path(e).ends_with(name));
        (
            of.clone().count(),
            of.map(seekscope_run::IoEvent::bytes).sum(),
        )
    };
    // 23 blocks, the last of them short, and the end of the file.
    assert_eq!(sum("/in", IoOp::Read), (24, 100_000 - 2 * 4096));
    assert_eq!(sum("/out", IoOp::Write), (23, 100_000 - 2 * 4096));
    assert_eq!(sum("/out", IoOp::Fsync), (1, 0));
    let first = memory
        .events
        .iter()
        .find(|e| memory.path(e).ends_with("/in"));
    assert_eq!(first.unwrap().offset, Some(8192));
}

/// Written by hand: threads that interrupt each other's calls, one of them attached to.
#[test]
fn interrupted_calls_and_descriptors_from_before() {
    let text = "\
strace: Process 7 attached with 2 threads
[pid     7] 1700000000.000100 pread64(3</d/a>,  <unfinished ...>
[pid     8] 1700000000.000150 read(3</d/a>, \"x\", 10) = 10 <0.000010>
[pid     7] 1700000000.000200 <... pread64 resumed>\"abc\", 100, 4096) = 3 <0.000105>
[pid     8] 1700000000.000300 lseek(3</d/a>, 50, SEEK_SET) = 50 <0.000001>
[pid     8] 1700000000.000400 read(3</d/a>, \"x\", 10) = 10 <0.000010>
[pid     8] 1700000000.000500 fsync(4</d/b>(deleted)) = -1 EIO (Input/output error) <0.000010>
[pid     8] 1700000000.000600 read(5<socket:[99]>, 0x7f, 10) = ? ERESTARTSYS (To be restarted)
[pid     7] 1700000000.000700 read(3</d/a>,  <detached ...>
";
    let (memory, _) = read(Format::Strace, text);
    let seen: Vec<_> = memory
        .events
        .iter()
        .map(|e| (e.tid, e.t_ns % 1_000_000, e.latency_ns, e.offset, e.result))
        .collect();
    assert_eq!(
        seen,
        [
            (8, 150_000, 10_000, None, 10),
            (7, 100_000, 105_000, Some(4096), 3),
            (8, 400_000, 10_000, Some(50), 10),
            (8, 500_000, 10_000, None, -5),
        ]
    );
    assert_eq!(memory.path(&memory.events[3]), "/d/b");
}
