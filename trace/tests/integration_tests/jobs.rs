//! What traced children do. Each says on stderr, a pipe, what a correct trace must contain.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_trace::{LiveSource, TraceOptions};

use crate::known_program::{self, filled};
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
        other => panic!("no job {other}"),
    }
}

fn say(line: &str) {
    std::io::stderr()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Says that preparation is over and waits for the word. This read of a pipe is in flight when
/// tracing starts.
fn ready() {
    say("ready");
    let mut word = [0; 3];
    std::io::stdin().read_exact(&mut word).unwrap();
}

/// Says that the work is done and stays, so that files can still be looked up.
fn done() {
    say("done");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).unwrap();
}

// ---- ten_calls ----

fn ten_calls(folder: &Path) {
    // The threads' own files may be closed before anyone looks; this one tells their folder.
    let _neighbour = filled(&folder.join("neighbour.dat"), 1);
    ready();
    for line in known_program::run(folder, THREADS, ROUNDS) {
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
fn evict(file: &File, map: *mut libc::c_void, pages: usize) {
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
