//! A program of reads and writes that knows what a correct trace of it contains. Runs as a traced
//! child of the tests, and of `examples/kernel_check.rs` on other kernels.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use seekscope_run::{IoEvent, IoOp};

/// Calls that each thread makes per round, and the one that fills its file.
pub(crate) const CALLS_PER_ROUND: usize = 16;
pub(crate) const CALLS_BEFORE: usize = 1;
const FILE_BYTES: usize = 1 << 20;

/// Runs `threads` threads at once, each with a file of its own in `folder`; returns a [`line`] per
/// call.
pub(crate) fn run(folder: &Path, threads: usize, rounds: usize) -> Vec<String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|index| scope.spawn(move || one_thread(folder, index, rounds)))
            .collect();
        let lines = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap());
        lines.collect()
    })
}

/// A traced event as [`run`] describes it.
pub(crate) fn event_line(path: &str, event: &IoEvent) -> String {
    let offset = event.offset.map_or(-1, |offset| offset.cast_signed());
    let (tid, length, result) = (event.tid, event.length, event.result);
    line(
        &path,
        tid.into(),
        event.op,
        offset,
        length.into(),
        result.into(),
    )
}

fn line(path: &dyn Display, tid: i64, op: IoOp, offset: i64, length: i64, result: i64) -> String {
    format!("{path} {tid} {} {offset} {length} {result}", op.name())
}

/// Lines that only one side has, each as often as it has it more: nothing where both agree.
pub(crate) fn differences(mut found: Vec<String>, mut expected: Vec<String>) -> Vec<String> {
    found.sort();
    expected.sort();
    let (mut found, mut expected) = (
        found.into_iter().peekable(),
        expected.into_iter().peekable(),
    );
    let mut differences = Vec::new();
    loop {
        match (found.peek(), expected.peek()) {
            (None, None) => return differences,
            (Some(f), Some(e)) if f == e => {
                found.next();
                expected.next();
            }
            (Some(f), e) if e.is_none_or(|e| f < e) => {
                differences.extend(found.next().map(|line| format!("not made: {line}")));
            }
            _ => differences.extend(expected.next().map(|line| format!("not traced: {line}"))),
        }
    }
}

pub(crate) fn filled(path: &Path, bytes: usize) -> File {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
        .unwrap();
    file.write_all(&vec![7; bytes]).unwrap();
    file
}

/// A call as the trace must show it, but for the thread.
struct Expected {
    op: IoOp,
    offset: i64,
    length: i64,
    result: i64,
}

fn expect(op: IoOp, offset: i64, length: i64, result: i64) -> Expected {
    Expected {
        op,
        offset,
        length,
        result,
    }
}

/// The raw system call, so that the C library cannot choose another.
fn call(number: i64, arguments: [i64; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the callers pass valid buffers that outlive the call.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    match result {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap()),
        other => other,
    }
}

/// Two pieces of `length` bytes in all.
fn pieces(buffer: &mut [u8], length: usize) -> [libc::iovec; 2] {
    let half = length / 2;
    let (first, second) = buffer[..length].split_at_mut(half);
    [first, second].map(|part| libc::iovec {
        iov_base: part.as_mut_ptr().cast(),
        iov_len: part.len(),
    })
}

/// All ten calls on one file of this thread, with plain, short, refused and appending variants.
fn one_thread(folder: &Path, index: usize, rounds: usize) -> Vec<String> {
    let path = folder.join(format!("thread-{index}.dat"));
    let file = filled(&path, FILE_BYTES);
    let appended = OpenOptions::new()
        .read(true)
        .append(true)
        .open(&path)
        .unwrap();
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    let (mut one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut expected = vec![filling()];
    for round in 0..rounds {
        let at = i64::try_from(index * 8192 + round * 512).unwrap();
        expected.extend(positional(file.as_raw_fd(), at));
        expected.extend(at_position(file.as_raw_fd(), at));
        let end = i64::try_from(FILE_BYTES + round * 700).unwrap();
        expected.extend(appending(appended.as_raw_fd(), end));
        expected.push(refused(write_only.as_raw_fd(), at));
        one.write_all(b"not a file").unwrap();
        other.read_exact(&mut [0; 10]).unwrap();
        let mut proc = String::new();
        File::open("/proc/self/stat")
            .unwrap()
            .read_to_string(&mut proc)
            .unwrap();
        seek_as_32_bit(file.as_raw_fd());
    }
    // SAFETY: no arguments.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) };
    let path = path.display();
    let line = |e: &Expected| line(&path, tid, e.op, e.offset, e.length, e.result);
    expected.iter().map(line).collect()
}

/// How [`filled`] fills a file.
fn filling() -> Expected {
    let bytes = i64::try_from(FILE_BYTES).unwrap();
    expect(IoOp::Write, 0, bytes, bytes)
}

fn positional(fd: i32, at: i64) -> Vec<Expected> {
    let (fd, mut bytes) = (i64::from(fd), vec![1u8; 8192]);
    let buffer = bytes.as_mut_ptr() as i64;
    let vector = pieces(&mut bytes, 600);
    let vector = vector.as_ptr() as i64;
    let mut expected = Vec::new();
    let mut plain = |number, op, length: i64, offset: i64, expected_result| {
        assert_eq!(
            call(number, [fd, buffer, length, offset, 0, 0]),
            expected_result
        );
        expected.push(expect(op, offset, length, expected_result));
    };
    plain(libc::SYS_pread64, IoOp::Pread, 4096, at, 4096);
    plain(libc::SYS_pread64, IoOp::Pread, 4096, 1 << 40, 0);
    plain(libc::SYS_pwrite64, IoOp::Pwrite, 333, at + 1, 333);
    for (number, op) in [
        (libc::SYS_preadv, IoOp::Preadv),
        (libc::SYS_preadv2, IoOp::Preadv2),
        (libc::SYS_pwritev, IoOp::Pwritev),
        (libc::SYS_pwritev2, IoOp::Pwritev2),
    ] {
        let offset = at + op as i64;
        assert_eq!(call(number, [fd, vector, 2, offset, 0, 0]), 600);
        expected.push(expect(op, offset, 600, 600));
    }
    expected
}

fn at_position(fd: i32, at: i64) -> Vec<Expected> {
    let (fd, mut bytes) = (i64::from(fd), vec![2u8; 8192]);
    let buffer = bytes.as_mut_ptr() as i64;
    let vector = pieces(&mut bytes, 500);
    let vector = vector.as_ptr() as i64;
    assert_eq!(call(libc::SYS_lseek, [fd, at, 0, 0, 0, 0]), at);
    assert_eq!(call(libc::SYS_read, [fd, buffer, 300, 0, 0, 0]), 300);
    assert_eq!(call(libc::SYS_readv, [fd, vector, 2, 0, 0, 0]), 500);
    assert_eq!(call(libc::SYS_preadv2, [fd, vector, 2, -1, 0, 0]), 500);
    assert_eq!(call(libc::SYS_write, [fd, buffer, 200, 0, 0, 0]), 200);
    assert_eq!(call(libc::SYS_writev, [fd, vector, 2, 0, 0, 0]), 500);
    assert_eq!(call(libc::SYS_pwritev2, [fd, vector, 2, -1, 0, 0]), 500);
    vec![
        expect(IoOp::Read, at, 300, 300),
        expect(IoOp::Readv, at + 300, 500, 500),
        expect(IoOp::Preadv2, at + 800, 500, 500),
        expect(IoOp::Write, at + 1300, 200, 200),
        expect(IoOp::Writev, at + 1500, 500, 500),
        expect(IoOp::Pwritev2, at + 2000, 500, 500),
    ]
}

/// Writes of a file open for appending land at its end, whatever offset is given.
fn appending(fd: i32, end: i64) -> Vec<Expected> {
    let (fd, bytes) = (i64::from(fd), [3u8; 400]);
    let buffer = bytes.as_ptr() as i64;
    assert_eq!(call(libc::SYS_write, [fd, buffer, 400, 0, 0, 0]), 400);
    assert_eq!(call(libc::SYS_pwrite64, [fd, buffer, 300, 5, 0, 0]), 300);
    vec![
        expect(IoOp::Write, end, 400, 400),
        expect(IoOp::Pwrite, end + 400, 300, 300),
    ]
}

/// A failing call is an event too.
fn refused(fd: i32, at: i64) -> Expected {
    let mut bytes = [0u8; 100];
    let refused = -i64::from(libc::EBADF);
    assert_eq!(
        call(
            libc::SYS_pread64,
            [i64::from(fd), bytes.as_mut_ptr() as i64, 100, at, 0, 0]
        ),
        refused
    );
    expect(IoOp::Pread, at, 100, refused)
}

/// `lseek` through the 32-bit gate: its number there is 19, which is `readv` in 64 bits.
#[cfg(target_arch = "x86_64")]
fn seek_as_32_bit(fd: i32) {
    let mut result = 19i64;
    // SAFETY: lseek(fd, 0, SEEK_SET) touches no memory; rbx, which the compiler reserves, is
    // restored; the gate clobbers r8 to r11 on some kernels.
    unsafe {
        std::arch::asm!(
            "xchg {fd:r}, rbx", "int 0x80", "xchg {fd:r}, rbx",
            fd = inout(reg) i64::from(fd) => _,
            inout("rax") result, in("rcx") 0i64, in("rdx") 0i64,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    assert_eq!(result, 0);
}

#[cfg(not(target_arch = "x86_64"))]
fn seek_as_32_bit(_: i32) {}
