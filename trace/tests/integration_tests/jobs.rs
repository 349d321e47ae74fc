//! What traced children do. Each says on stderr, a pipe, what a correct trace must contain.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_trace::{BackendChoice, LiveSource, TraceOptions};

use crate::cold_reads::{self, Mix};
use crate::known_program::{self, filled};
use crate::support::{FOLDER, JOB};

pub(crate) const THREADS: usize = 64;
pub(crate) const ROUNDS: usize = 20;
pub(crate) const FAST_READS: u64 = 200_000;
pub(crate) const COUNTED_THREADS: usize = 4;
pub(crate) const PAGE: usize = 4096;

/// The child's main function. As a test of the parent process it does nothing.
#[test]
fn entry() {
    let Ok(job) = std::env::var(JOB) else { return };
    let folder = PathBuf::from(std::env::var_os(FOLDER).unwrap());
    match job.as_str() {
        "ten_calls" => ten_calls(&folder),
        "fast_reads" => fast_reads(&folder),
        "random_reads" => cold_reads::read(&folder, Mix::Random),
        "default_reads" => cold_reads::read(&folder, Mix::Default),
        "sequential_reads" => cold_reads::read(&folder, Mix::Sequential),
        "come_and_go" => come_and_go(&folder),
        "counted" => counted(&folder),
        "attach" => attach(&folder, BackendChoice::Auto),
        "attach_tracepoint" => attach(&folder, BackendChoice::Tracepoint),
        "attach_without_bpf" => {
            forbid(libc::SYS_bpf);
            attach(&folder, BackendChoice::Auto);
        }
        "choose" => crate::choices::job(&folder),
        "slow_read" => crate::slow_calls::job(&folder),
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
fn attach(folder: &Path, backend: BackendChoice) {
    let other = std::fs::read_to_string(folder.join("pid"));
    let pid = other.map_or(std::process::id(), |pid| pid.parse().unwrap());
    match LiveSource::attach(&TraceOptions {
        backend,
        ..TraceOptions::new(pid)
    }) {
        Ok(_) => say("attached"),
        Err(error) => say(&format!("{} {error}", error.is_permission())),
    }
}

/// Makes this system call fail with EPERM from now on, in this thread and those it starts.
fn forbid(system_call: libc::c_long) {
    let number = u32::try_from(system_call).unwrap();
    let instruction = |code: u32, jump_if_not, k| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: jump_if_not,
        k,
    };
    let mut filter = [
        // The number is the first field of what the filter is given (struct seccomp_data).
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, number),
        instruction(
            libc::BPF_RET,
            0,
            libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned(),
        ),
        instruction(libc::BPF_RET, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap(),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its instructions outlive the calls.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            + libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    assert_eq!(failed, 0);
}
