//! Bad input: a clear message, the exit code of the design, nothing left, nothing changed.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};

use crate::directory_snapshot::unchanged_by;
use crate::mounts;
use crate::support::{Bench, assert_fails, json, shared_machine, stderr};

const SHORT: [&str; 6] = ["--size", "8M", "--runtime", "200ms", "--warm-up", "0ms"];

/// Ends with `code`, says `words`, and leaves everything in the bench as it was.
fn refused(bench: &Bench, command: &mut Command, code: i32, words: &str) -> Output {
    let place = bench.path(".");
    unchanged_by(&place, || {
        let output = command.output().unwrap();
        assert_fails(&output, code, &[words]);
        output
    })
}

#[test]
fn only_a_directory_can_be_measured_in() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "precious").unwrap();
    symlink("file", bench.path("link")).unwrap();
    for verb in [&["disk"][..], &["disk", "run"]] {
        for name in ["file", "link"] {
            let mut command = bench.seekscope(verb);
            refused(&bench, command.arg(name), 2, "is not a directory");
        }
        let mut command = bench.seekscope(verb);
        refused(&bench, command.arg("nowhere"), 2, "nowhere: No such file");
    }
}

#[test]
fn a_link_to_a_directory_will_do() {
    let _machine = shared_machine();
    let bench = Bench::new();
    std::fs::write(bench.target().join("data"), "precious").unwrap();
    symlink("target", bench.path("link")).unwrap();
    let document = unchanged_by(&bench.target(), || {
        json(bench.seekscope(&["disk", "run", "link"]).args(SHORT))
    });
    assert!(document["summary"]["operations"].as_u64() > Some(0));
}

#[test]
fn only_files_and_block_devices_are_read() {
    let bench = Bench::new();
    mounts::run("mkfifo", &[bench.path("fifo").to_str().unwrap()]);
    let _socket = UnixListener::bind(bench.path("socket")).unwrap();
    std::fs::write(bench.path("empty"), "").unwrap();
    std::fs::write(bench.path("tiny"), "123").unwrap();
    for verb in [&["disk"][..], &["disk", "run"]] {
        let read = |name: &str, code, words| {
            let mut command = bench.seekscope(verb);
            command.arg("--read-existing").arg(name);
            refused(&bench, &mut command, code, words);
        };
        for name in ["fifo", "socket", ".", "/dev/null"] {
            read(name, 2, "neither a regular file nor a block device");
        }
        read("empty", 2, "empty");
        read("tiny", 2, "3 ");
        read("nowhere", 2, "nowhere: No such file");
    }
}

/// The survey reads blocks of up to 1 MiB.
#[test]
fn a_file_too_small_for_a_survey_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    std::fs::write(bench.path("small"), [7; 100_000]).unwrap();
    let mut command = bench.seekscope(&["disk", "--read-existing", "small"]);
    refused(&bench, &mut command, 2, "small");
}

#[test]
fn zero_and_absurd_values_are_refused() {
    let bench = Bench::new();
    bench.target();
    let values: [(&str, &[&str]); 11] = [
        (
            "--bs",
            &[
                "0",
                "1000",
                "511",
                "2G",
                "16E",
                "99999999999999999999",
                "4k5",
                "",
                "k",
                "-1",
            ],
        ),
        (
            "--depth",
            &["0", "4097", "4294967295", "4294967296", "-1", "many"],
        ),
        (
            "--threads",
            &["0", "4097", "4294967295", "99999999999", "1.5"],
        ),
        (
            "--size",
            &["0", "1", "1023k", "16E", "18446744073709551616", "nan"],
        ),
        (
            "--runtime",
            &[
                "0",
                "0s",
                "0ms",
                "-1s",
                "1e300s",
                "nan",
                "inf",
                "1 fortnight",
            ],
        ),
        ("--warm-up", &["-1s", "1e300s", "soon"]),
        ("--rate", &["0", "-1", "nan", "inf", "1e300", "1e-300"]),
        ("--read-share", &["2", "-0.1", "nan", "inf", "50%"]),
        ("--min-iops", &["nan", "-1", "many"]),
        ("--max-p99", &["-1", "nan", "fast"]),
        ("--seed", &["-1", "1.5", "18446744073709551616"]),
    ];
    let mut wrong = Vec::new();
    for (name, values) in values {
        for value in values {
            let mut arguments = vec!["--out", "run", "--rw", "randrw"];
            for (other, given) in [
                ("--size", "8M"),
                ("--runtime", "100ms"),
                ("--warm-up", "0ms"),
            ] {
                if name != other {
                    arguments.extend([other, given]);
                }
            }
            let option = format!("{name}={value}");
            let output = bench.disk_job(&arguments).arg(&option).output().unwrap();
            let said = stderr(&output);
            if output.status.code() != Some(2) || bench.path("run").exists() {
                wrong.push(format!("{option}: {:?} {said}", output.status.code()));
                let _ = std::fs::remove_dir_all(bench.path("run"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn combinations_that_cannot_be_are_refused() {
    let bench = Bench::new();
    bench.target();
    for (more, words) in [
        (&["--poisson"][..], "--rate"),
        (&["--engine", "sync", "--depth", "4"], "--threads 4"),
        (&["--engine", "mmap", "--depth", "4"], "--threads 4"),
        (&["--size", "8M", "--bs", "16M"], "fewer"),
        (&["--size", "8M", "--bs", "4M", "--threads", "3"], "fewer"),
        (&["--size", "8M", "--read-existing", "x"], "--read-existing"),
        (&["--read-existing", "x"], "--read-existing"),
        (&["--bs", "1000"], "multiple of 512"),
    ] {
        refused(&bench, &mut bench.disk_job(more), 2, words);
    }
}

#[test]
fn a_survey_refuses_absurd_values_too() {
    let bench = Bench::new();
    bench.target();
    for more in [
        ["--budget", "0s"],
        ["--budget", "-1s"],
        ["--budget", "nan"],
        ["--size", "0"],
        ["--size", "16E"],
        ["--profile", "endless"],
        ["--engine", "mmap"],
    ] {
        let option = more.join("=");
        let mut command = bench.seekscope(&["disk", "target", &option]);
        refused(&bench, &mut command, 2, "");
    }
}

#[test]
fn without_space_nothing_is_begun() {
    let bench = Bench::new();
    let mut command = bench.disk_job(&["--size", "100T"]);
    let said = stderr(&refused(&bench, &mut command, 1, "not enough space"));
    for words in ["100 TiB", "GiB must stay free", "--size"] {
        assert!(said.contains(words), "{said}");
    }
}

/// Beyond this limit the kernel does not fail the write but kills the process.
#[test]
fn a_limit_of_file_sizes_is_respected() {
    let bench = Bench::new();
    let job = bench.disk_job(&["--size", "8M"]);
    let mut limited = Command::new("prlimit");
    limited
        .arg("--fsize=1000000")
        .arg(job.get_program())
        .args(job.get_args());
    limited.current_dir(bench.path("."));
    refused(&bench, &mut limited, 1, "ulimit -f");
}
