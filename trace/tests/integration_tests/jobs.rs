//! What traced children do. Each says on stderr, a pipe, what a correct trace must contain.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_run::IoOp;
use seekscope_trace::{LiveSource, TraceOptions};

use crate::support::{FOLDER, JOB};

pub(crate) const THREADS: usize = 64;
pub(crate) const ROUNDS: usize = 20;
pub(crate) const FAST_READS: u64 = 200_000;
pub(crate) const CACHE_READS: usize = 6_000;
pub(crate) const COUNTED_THREADS: usize = 4;
const PAGE: usize = 4096;

/// The child's main function. As a test of the parent process it does nothing.
#[test]
fn entry() {
    let Ok(job) = std::env::var(JOB) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    match job.as_str() {
        "ten_calls" => ten_calls(&folder),
        "fast_reads" => fast_reads(&folder),
        "cached_and_not" => cached_and_not(&folder),
        "come_and_go" => come_and_go(&folder),
        "counted" => counted(&folder),
        "attach" => attach(&folder),
        "choose" => crate::choices::job(&folder),
        other => crate::group_jobs::run(other, &folder),
    }
}

pub(crate) fn say(line: &str) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Says that preparation is over and waits for the word. This read of a pipe is in flight when
/// tracing starts.
pub(crate) fn ready() {
    say("ready");
    let mut word = [0; 3];
    std::io::stdin().read_exact(&mut word).unwrap();
}

/// Says that the work is done and stays, so that files can still be looked up.
pub(crate) fn done() {
    say("done");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
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

// ---- ten_calls ----

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
fn one_thread(folder: &Path, index: usize) -> Vec<String> {
    let path = folder.join(format!("thread-{index}.dat"));
    let file = filled(&path, 1 << 20);
    let appended = OpenOptions::new()
        .read(true)
        .append(true)
        .open(&path)
        .unwrap();
    let write_only = OpenOptions::new().write(true).open(&path).unwrap();
    let (mut one, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut expected = Vec::new();
    for round in 0..ROUNDS {
        let at = i64::try_from(index * 8192 + round * 512).unwrap();
        expected.extend(positional(file.as_raw_fd(), at));
        expected.extend(at_position(file.as_raw_fd(), at));
        let end = i64::try_from((1 << 20) + round * 700).unwrap();
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
    let line = |e: &Expected| {
        format!(
            "{} {tid} {} {} {} {}",
            path.display(),
            e.op as u8,
            e.offset,
            e.length,
            e.result
        )
    };
    expected.iter().map(line).collect()
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

fn ten_calls(folder: &Path) {
    // The threads' own files may be closed before anyone looks; this one tells their folder.
    let _neighbour = filled(&folder.join("neighbour.dat"), 1);
    ready();
    let mut lines = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|index| scope.spawn(move || one_thread(folder, index)))
            .collect();
        for thread in threads {
            lines.extend(thread.join().unwrap());
        }
    });
    for line in lines {
        say(&line);
    }
    done();
}

// ---- fast_reads ----

fn fast_reads(folder: &Path) {
    let file = filled(&folder.join("fast.dat"), 1 << 20);
    ready();
    let mut buffer = [0; 512];
    for round in 0..FAST_READS {
        file.read_exact_at(&mut buffer, round % 2000 * 512).unwrap();
    }
    done();
}

// ---- cached_and_not ----

/// Reads of which the kernel's own `mincore` says beforehand whether they will be hits.
fn cached_and_not(folder: &Path) {
    const PAGES: usize = 16 * 1024;
    let path = folder.join("cached.dat");
    let file = filled(&path, PAGES * PAGE);
    file.sync_all().unwrap();
    let fd = file.as_raw_fd();
    // SAFETY: a private, read-only mapping of a file that nobody truncates; advice on our file.
    let map = unsafe {
        let map = libc::mmap(
            std::ptr::null_mut(),
            PAGES * PAGE,
            libc::PROT_READ,
            libc::MAP_SHARED,
            fd,
            0,
        );
        assert_ne!(map, libc::MAP_FAILED);
        assert_eq!(libc::madvise(map, PAGES * PAGE, libc::MADV_RANDOM), 0);
        assert_eq!(libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_RANDOM), 0);
        map
    };
    evict(&file, map, PAGES);
    ready();
    let mut random = 88_172_645_463_325_252u64;
    let mut resident = Vec::with_capacity(CACHE_READS);
    let mut buffer = [0; PAGE];
    for _ in 0..CACHE_READS {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // A quarter of the file, so that pages come up again and are hits then.
        let page = usize::try_from(random).unwrap() % (PAGES / 4);
        let mut state = 0u8;
        // SAFETY: one page of the mapping, one byte of answer.
        let failed = unsafe { libc::mincore(map.byte_add(page * PAGE), PAGE, &mut state) };
        assert_eq!(failed, 0);
        resident.push(state & 1);
        file.read_exact_at(&mut buffer, (page * PAGE) as u64)
            .unwrap();
    }
    for state in resident {
        say(&state.to_string());
    }
    done();
}

/// Advice leaves pages that are being written or have just been; it is repeated until nearly all
/// are gone.
pub(crate) fn evict(file: &File, map: *mut libc::c_void, pages: usize) {
    let mut states = vec![0u8; pages];
    for _ in 0..200 {
        file.sync_all().unwrap();
        // SAFETY: advice on our own file; the mapping has `pages` pages, one byte of answer each.
        let failed = unsafe {
            libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED)
                + libc::mincore(map, pages * PAGE, states.as_mut_ptr())
        };
        assert_eq!(failed, 0);
        if states.iter().filter(|state| **state & 1 == 1).count() < pages / 50 {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("the file stays in the page cache");
}

// ---- come_and_go ----

fn come_and_go(folder: &Path) {
    let [deleted, renamed] =
        ["deleted.dat", "renamed.dat"].map(|name| filled(&folder.join(name), PAGE));
    ready();
    let mut buffer = [0; 100];
    let mut read = |file: &File| file.read_exact_at(&mut buffer, 0).unwrap();
    read(&deleted);
    read(&renamed);
    std::fs::remove_file(folder.join("deleted.dat")).unwrap();
    std::fs::rename(folder.join("renamed.dat"), folder.join("new-name.dat")).unwrap();
    let late = filled(&folder.join("late.dat"), PAGE);
    let short_lived = filled(&folder.join("short.dat"), PAGE);
    for file in [&deleted, &renamed, &late, &short_lived] {
        read(file);
    }
    drop(short_lived);
    std::fs::remove_file(folder.join("short.dat")).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    done();
}

// ---- counted ----

/// Reads of different kinds on several threads, for an independent instrument to count.
fn counted(folder: &Path) {
    let path = folder.join("counted.dat");
    filled(&path, 1 << 20);
    ready();
    std::thread::scope(|scope| {
        for thread in 0..COUNTED_THREADS {
            let path = &path;
            scope.spawn(move || {
                let mut file = File::open(path).unwrap();
                let mut buffer = vec![0; 3000];
                for round in 0..300 {
                    let length = 1000 + (round * 7 + thread * 13) % 2000;
                    file.read_exact_at(&mut buffer[..length], (round * 3000) as u64)
                        .unwrap();
                    assert!(file.read(&mut buffer[..length]).unwrap() > 0);
                }
                // Beyond the end: calls that return nothing.
                for _ in 0..5 {
                    assert_eq!(file.read_at(&mut buffer, 1 << 30).unwrap(), 0);
                }
            });
        }
    });
    done();
}

// ---- attach ----

/// Tries to trace the process named in a file, else itself.
fn attach(folder: &Path) {
    let other = std::fs::read_to_string(folder.join("pid"));
    let pid = other.map_or(std::process::id(), |pid| pid.parse().unwrap());
    match LiveSource::attach(&TraceOptions::new(pid)) {
        Ok(_) => say("attached"),
        Err(error) => say(&format!("{} {error}", error.is_permission())),
    }
}
