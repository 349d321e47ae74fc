//! Disks that fail while they are measured: they end the job with words, and leave nothing.
//!
//! Not here: a quota, because not every kernel that these tests run on can keep one; the answer to
//! `EDQUOT` is that to a full disk in other words.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::directory_snapshot::content_hash;
use crate::mounts::{self, LoopDevice, Mount};
use crate::support::{Bench, assert_fails, run_document, shared_machine, stderr, until};

const GIB: u64 = 1 << 30;

/// The image of a disk whose end has been lost: reads there fail.
#[test]
fn reads_that_fail_end_the_job_with_their_offset() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let image = bench.path("image");
    let device = LoopDevice::of_new_image(&image, 256 << 20);
    std::fs::File::options()
        .write(true)
        .open(&image)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    for engine in ["uring", "sync", "mmap"] {
        let mut command = bench.seekscope(&["disk", "run", "--runtime", "5s", "--engine", engine]);
        command.arg("--read-existing").arg(&device.path);
        let output = command.output().unwrap();
        let words: &[&str] = if engine == "mmap" {
            &["read"]
        } else {
            &["offset", "dmesg"]
        };
        assert_fails(&output, 1, words);
    }
    let mut survey = bench.seekscope(&["disk", "--budget", "10s", "--out", "survey"]);
    survey.arg("--read-existing").arg(&device.path);
    assert_fails(&survey.output().unwrap(), 1, &["offset"]);
    let document = run_document(&bench.path("survey"));
    assert_eq!(document["outcome"], "failed");
}

/// The kernel answers with SIGBUS.
#[test]
fn a_file_that_shrinks_while_it_is_mapped_ends_with_words() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let file = bench.path("data");
    std::fs::write(&file, vec![7; 32 << 20]).unwrap();
    for engine in ["mmap", "sync", "uring"] {
        let mut command = bench.seekscope(&["disk", "run", "--runtime", "20s", "--engine", engine]);
        command
            .arg("--read-existing")
            .arg(&file)
            .args(["--out", engine]);
        let child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It reads when the log of its latencies has been begun.
        until(|| bench.path(engine).join("latency.hlog").exists());
        std::thread::sleep(Duration::from_millis(300));
        let handle = std::fs::File::options().write(true).open(&file).unwrap();
        handle.set_len(4096).unwrap();
        let output = child.wait_with_output().unwrap();
        handle.set_len(32 << 20).unwrap();
        assert_fails(&output, 1, &["shr"]);
    }
}

/// Slow filling leaves time to take the space away.
#[test]
fn a_disk_that_becomes_full_meanwhile_ends_it_cleanly() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let device = LoopDevice::of_new_image(&bench.path("image"), 2 * GIB);
    let mount = Mount::of_device(device.formatted(&["-m", "0"]), &bench.path("disk"), "rw");
    let mut command = bench.disk_job_in(&mount.point, &["--size", "256M", "--next-to-database"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    until(|| bench.path("run/run.json").exists());
    std::thread::sleep(Duration::from_millis(500));
    let rest = mount.point.join("of-others");
    fill_up(&rest);
    let others = content_hash(&rest);
    let output = child.wait_with_output().unwrap();
    assert_fails(&output, 1, &["full", "--size"]);
    assert_eq!(content_hash(&rest), others);
    let names: Vec<_> = mount
        .point
        .read_dir()
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(
        names.len(),
        2,
        "lost+found and the file of others: {names:?}"
    );
    let free_before = free_bytes(&mount.point);
    assert!(
        free_before > 1 << 20,
        "what was written is free again: {free_before}"
    );
}

fn fill_up(path: &Path) {
    let folder = path.parent().unwrap();
    while free_bytes(folder) > 0 {
        let length = path.metadata().map_or(0, |m| m.len()) + free_bytes(folder);
        let status = Command::new("fallocate")
            .arg("-l")
            .arg(length.to_string())
            .arg(path)
            .output();
        if !status.unwrap().status.success() {
            return;
        }
    }
}

fn free_bytes(folder: &Path) -> u64 {
    let text = mounts::run("stat", &["-f", "-c", "%a %S", folder.to_str().unwrap()]);
    let (blocks, size) = text.split_once(' ').unwrap();
    blocks.parse::<u64>().unwrap() * size.parse::<u64>().unwrap()
}

/// A filesystem that believes in 4 GiB, on memory that ends after 48 MiB.
#[test]
fn writes_that_fail_end_it_cleanly() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let memory = Mount::of_kind("tmpfs", &bench.path("memory"), "size=48M");
    let device = LoopDevice::of_new_image(&memory.point.join("image"), 4 * GIB);
    let device = device.formatted(&["-O", "^has_journal", "-E", "lazy_itable_init=1"]);
    let mount = Mount::of_device(device, &bench.path("disk"), "rw");
    let output = bench
        .disk_job_in(&mount.point, &["--size", "256M"])
        .output()
        .unwrap();
    assert_fails(&output, 1, &[]);
    let said = stderr(&output);
    assert!(
        said.contains("full") || said.contains("failed to write"),
        "{said}"
    );
    let names: Vec<_> = mount
        .point
        .read_dir()
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(names, ["lost+found"]);
    assert_eq!(run_document(&bench.path("run"))["outcome"], "failed");
}
