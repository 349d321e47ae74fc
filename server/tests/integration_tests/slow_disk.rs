//! The kernel's throttle. Needs root and a cgroup controller for I/O.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use seekscope_run::DeviceFacts;
use seekscope_server::page_cache::evict;
use seekscope_server::{CgroupTree, SlowDisk, SlowDiskError, SlowDiskSpec};

use crate::child::Helper;

const READS: u32 = 300;

#[test]
fn random_reads_are_slow_in_the_group_and_fast_before_and_after() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = root.path().join("data");
    let mut file = fs::File::create(&path).unwrap();
    for n in 0..64u8 {
        file.write_all(&vec![n; 1 << 20]).unwrap();
    }
    drop(file);
    let mut reader = Helper::start("reads_at_random", &path.to_string_lossy());
    assert_eq!(reader.hear(), "ready");
    let mut seconds = || {
        assert_eq!(evict(root.path()).unwrap().resident_bytes, 0);
        reader.tell(&READS.to_string());
        Duration::from_nanos(reader.hear().parse().unwrap()).as_secs_f64()
    };
    let before = seconds();

    let device = DeviceFacts::of_path(Path::new("/"), root.path()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    let name = format!("seekscope-test-{}", std::process::id());
    let mut slow = SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, &name)
        .expect("this test needs root and a cgroup controller for I/O");
    let pid = reader_pid(&reader);
    let group_before = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    slow.add_process(pid).unwrap();
    let group = slow.group().to_path_buf();
    let mut seconds = || {
        assert_eq!(evict(root.path()).unwrap().resident_bytes, 0);
        reader.tell(&READS.to_string());
        Duration::from_nanos(reader.hear().parse().unwrap()).as_secs_f64()
    };
    let throttled = seconds();
    drop(slow);
    let after = seconds();

    println!("{READS} reads: {before:.2} s, throttled {throttled:.2} s, after {after:.2} s");
    assert!((1.5..4.0).contains(&throttled), "{throttled}");
    assert!(
        before < throttled / 3.0 && after < throttled / 3.0,
        "{before} {after}"
    );
    assert!(!group.exists());
    assert_eq!(
        fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap(),
        group_before
    );
}

fn reader_pid(reader: &Helper) -> u32 {
    reader.child.id()
}

#[test]
fn a_group_with_a_living_process_is_removed_at_once() {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let device = DeviceFacts::of_path(Path::new("/"), root.path()).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    let name = format!("seekscope-test-living-{}", std::process::id());
    let mut slow = SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, &name)
        .expect("this test needs root and a cgroup controller for I/O");
    let mut sleeper = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    slow.add_process(sleeper.id()).unwrap();
    assert!(matches!(
        SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device, &name),
        Err(SlowDiskError::Io { .. })
    ));
    let group = slow.group().to_path_buf();
    let start = Instant::now();
    slow.remove().unwrap();
    assert!(start.elapsed() < Duration::from_secs(1) && !group.exists());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn memory_has_no_disk_to_slow_down() {
    let memory = DeviceFacts::of_path(Path::new("/"), Path::new("/dev/shm")).unwrap();
    let tree = CgroupTree::discover(Path::new("/proc"));
    let error =
        SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &memory, "seekscope-test-shm").unwrap_err();
    assert!(
        matches!(error, SlowDiskError::NoBlockDevice { .. }),
        "{error}"
    );
}
