//! Filesystems and devices that are not what one hopes for.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use crate::directory_snapshot::{content_hash, unchanged_by};
use crate::mounts::{LoopDevice, Mount};
use crate::support::{Bench, as_nobody, assert_fails, install, json, shared_machine};

const SHORT: [&str; 6] = ["--size", "8M", "--runtime", "200ms", "--warm-up", "0ms"];
const GIB: u64 = 1 << 30;

#[test]
fn memory_is_measured_and_called_memory() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let tmpfs = Mount::of_kind("tmpfs", &bench.path("memory"), "size=2G");
    let document = unchanged_by(&tmpfs.point, || {
        json(bench.disk_job_in(&tmpfs.point, &[]).args(SHORT))
    });
    assert_eq!(document["summary"]["direct"], false);
    let distortions = &document["summary"]["surroundings"]["distortions"];
    assert_eq!(distortions[0]["id"], "tmpfs", "{distortions:#}");
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(
        text.contains("The reads were not direct") && text.contains("memory, not the"),
        "{text}"
    );
}

/// No filesystem here refuses direct I/O: tmpfs, overlay and vfat take it. ramfs does, but tells no
/// size.
#[test]
fn a_filesystem_that_tells_no_size_is_not_filled() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let ramfs = Mount::of_kind("ramfs", &bench.path("memory"), "mode=755");
    for more in [&[][..], &["--buffered"]] {
        let run = || {
            bench
                .disk_job_in(&ramfs.point, &SHORT)
                .args(more)
                .output()
                .unwrap()
        };
        let output = unchanged_by(&ramfs.point, run);
        assert_fails(&output, 2, &["does not report its size"]);
    }
}

#[test]
fn buffered_jobs_say_that_they_are() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let run = || {
        json(
            bench
                .disk_job_in(&bench.target(), &["--buffered"])
                .args(SHORT),
        )
    };
    let document = unchanged_by(&bench.target(), run);
    assert!(document["summary"]["operations"].as_u64() > Some(0));
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("buffered"));
}

#[test]
fn a_read_only_filesystem_is_named_as_the_reason() {
    let _machine = shared_machine();
    let bench = Bench::new();
    // Large enough, and too small: why it cannot be written is the same.
    for (name, bytes) in [("large", 4 * GIB), ("small", GIB / 16)] {
        let device = LoopDevice::of_new_image(&bench.path(&format!("{name}.image")), bytes);
        let mount = Mount::of_device(device.formatted(&[]), &bench.path(name), "ro");
        let output = unchanged_by(&mount.point, || {
            bench.disk_job_in(&mount.point, &SHORT).output().unwrap()
        });
        assert_fails(&output, 4, &["read-only", "--read-existing"]);
        std::fs::remove_dir_all(bench.path("run")).ok();
    }
}

#[test]
fn a_block_device_is_read_and_not_written() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let image = bench.path("image");
    let device = LoopDevice::of_new_image(&image, 64 << 20).formatted(&[]);
    let before = content_hash(&image);
    for engine in ["uring", "sync", "mmap"] {
        let mut command =
            bench.seekscope(&["disk", "run", "--runtime", "200ms", "--engine", engine]);
        let document = json(command.arg("--read-existing").arg(&device.path));
        assert!(
            document["summary"]["operations"].as_u64() > Some(0),
            "{engine}"
        );
        assert_eq!(document["summary"]["file_bytes"], 64 << 20);
    }
    let mut command = bench.seekscope(&["disk", "run", "--rw", "randwrite"]);
    let output = command
        .arg("--read-existing")
        .arg(&device.path)
        .output()
        .unwrap();
    assert_fails(&output, 2, &["only ever read"]);
    assert_eq!(content_hash(&image), before);
}

/// Where a user without privileges can run the binary.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let everybody = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), everybody).unwrap();
        let binary = folder.path().join("seekscope");
        install(Bench::new().seekscope(&[]).get_program(), &binary);
        Self { folder }
    }

    fn as_nobody(&self, arguments: &[&str]) -> Command {
        let mut command = as_nobody(&self.folder.path().join("seekscope"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("XDG_STATE_HOME", self.folder.path().join("state"));
        command
    }

    fn directory(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

#[test]
fn a_user_without_privileges_measures_where_it_may_write() {
    let _machine = shared_machine();
    let stage = Stage::new();
    let (open, closed) = (
        stage.directory("open", 0o777),
        stage.directory("closed", 0o755),
    );
    std::fs::write(closed.join("secret"), [7; 8192]).unwrap();
    std::fs::set_permissions(
        closed.join("secret"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let document = unchanged_by(&open, || {
        json(stage.as_nobody(&["disk", "run", "open"]).args(SHORT))
    });
    assert_eq!(document["outcome"], "ok");
    let refused = |arguments: &[&str], words: &[&str]| {
        let run = || stage.as_nobody(arguments).output().unwrap();
        assert_fails(&unchanged_by(&closed, run), 4, words);
    };
    refused(
        &["disk", "run", "closed", "--size", "8M"],
        &["closed", "permission denied"],
    );
    refused(
        &["disk", "closed", "--size", "32M"],
        &["closed", "permission denied"],
    );
    refused(
        &["disk", "run", "--read-existing", "closed/secret"],
        &["closed/secret", "ermission"],
    );
    refused(
        &[
            "disk",
            "run",
            "open",
            "--size",
            "8M",
            "--emulate-disk",
            "hdd",
        ],
        &["root"],
    );
}

/// Bytes of another owner around ours stay.
#[test]
fn neighbours_on_a_device_stay_what_they_were() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let data = bench.target().join("data");
    let file = std::fs::File::create(&data).unwrap();
    file.write_all_at(&[1; 4096], 0).unwrap();
    file.write_all_at(&[2; 4096], 1 << 20).unwrap();
    drop(file);
    for kind in ["write", "randwrite", "randrw"] {
        let run = || {
            json(
                bench
                    .disk_job_in(&bench.target(), &["--rw", kind])
                    .args(SHORT),
            )
        };
        unchanged_by(&bench.target(), run);
        std::fs::remove_dir_all(bench.path("run")).unwrap();
    }
}
