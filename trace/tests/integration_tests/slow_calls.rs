//! Calls that take longer than 32 bits of nanoseconds can say: 4.29 s.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use seekscope_run::IoOp;
use seekscope_trace::{BackendChoice, Group, LiveSource, Recording, TraceOptions};

use crate::group_jobs::{MIB, aligned, open_direct};
use crate::jobs::{done, ready, say};
use crate::known_program::filled;
use crate::support::{Collector, Worker, alone};

/// Read at a rate of [`BYTES_PER_S`].
const BYTES: usize = 6 * MIB;
const BYTES_PER_S: usize = MIB;
const CUT_OFF_NS: u64 = u32::MAX as u64;

/// A control group whose members read slowly; gone when this is.
struct SlowGroup(PathBuf);

impl SlowGroup {
    /// Moves this process into a new group. `file` tells the disk, which must not be partitioned, or
    /// the kernel takes the partition's number.
    fn enter(file: &Path) -> Self {
        let device = fs::metadata(file).unwrap().st_dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let name = format!("seekscope-slow-{}", std::process::id());
        let first_version = Path::new("/sys/fs/cgroup/blkio");
        let (group, limit) = if first_version.exists() {
            let group = first_version.join(name);
            fs::create_dir(&group).unwrap();
            let limit = format!("{major}:{minor} {BYTES_PER_S}");
            (group, ("blkio.throttle.read_bps_device", limit))
        } else {
            let group = Path::new("/sys/fs/cgroup").join(name);
            fs::create_dir(&group).unwrap();
            (
                group,
                ("io.max", format!("{major}:{minor} rbps={BYTES_PER_S}")),
            )
        };
        let group = Self(group);
        fs::write(group.0.join(limit.0), limit.1).unwrap();
        fs::write(group.0.join("cgroup.procs"), "0").unwrap();
        group
    }
}

impl Drop for SlowGroup {
    fn drop(&mut self) {
        let parent = self.0.parent().unwrap();
        fs::write(parent.join("cgroup.procs"), "0").unwrap();
        fs::remove_dir(&self.0).unwrap();
    }
}

/// The child's work: one read, and how long it took.
pub(crate) fn job(folder: &Path) {
    let path = folder.join("slow.dat");
    filled(&path, BYTES).sync_all().unwrap();
    let file = open_direct(&path);
    let buffer = aligned(BYTES);
    ready();
    let group = SlowGroup::enter(&path);
    let before = Instant::now();
    std::os::unix::fs::FileExt::read_exact_at(&file, buffer, 0).unwrap();
    say(&before.elapsed().as_nanos().to_string());
    drop(group);
    done();
}

#[test]
fn a_call_of_more_than_four_seconds_has_its_whole_latency() {
    let _turn = alone();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut worker = Worker::start("slow_read", folder.path());
    let sink = Collector::default();
    let source = LiveSource::attach(&TraceOptions {
        groups: vec![Group::Calls],
        backend: BackendChoice::Auto,
        ..TraceOptions::new(worker.pid())
    })
    .unwrap();
    let recording = Recording::start(Box::new(source), Box::new(sink.clone()));
    let said = worker.work();
    recording.stop().unwrap();
    let measured_ns: u64 = said[0].parse().unwrap();
    assert!(
        measured_ns > CUT_OFF_NS,
        "the disk was not slow: {measured_ns} ns"
    );
    let traced = sink.take();
    let path = folder.path().join("slow.dat");
    let reads = traced.events_on(path.to_str().unwrap());
    let traced_ns: u64 = reads
        .filter(|e| e.op == IoOp::Pread)
        .map(|e| {
            assert!(!e.is_cut_off());
            e.latency_ns
        })
        .sum();
    assert!(
        (measured_ns - measured_ns / 100..=measured_ns).contains(&traced_ns),
        "traced {traced_ns} ns of {measured_ns}"
    );
}
