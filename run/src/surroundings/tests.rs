use std::fs;

use super::*;
use crate::BlockLayer;

/// Returns a device with nothing to complain about: XFS on an NVMe disk.
fn good_device() -> DeviceFacts {
    DeviceFacts {
        path: "/data".into(),
        device: "259:1".into(),
        disk: Some("nvme0n1".into()),
        disk_device: Some("259:0".into()),
        filesystem: "xfs".into(),
        mount_options: "rw,noatime".into(),
        filesystem_options: "rw,attr2,inode64,noquota".into(),
        size_bytes: 900 << 30,
        free_bytes: 500 << 30,
        rotational: Some(false),
        scheduler: Some("none".into()),
        read_ahead_kib: Some(128),
        write_cache: Some("write through".into()),
        layers: vec![layer("nvme0n1", "259:0", "disk")],
        ..DeviceFacts::default()
    }
}

fn layer(name: &str, device: &str, kind: &str) -> BlockLayer {
    BlockLayer {
        name: name.into(),
        device: device.into(),
        kind: kind.into(),
    }
}

fn host() -> HostFacts {
    HostFacts {
        memory_bytes: 64 << 30,
        transparent_huge_pages: Some("madvise".into()),
        ..HostFacts::default()
    }
}

/// Creates a `/proc` and `/sys` with these files.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn read(root: &tempfile::TempDir, device: &DeviceFacts, host: &HostFacts) -> Surroundings {
    Surroundings::read(root.path(), root.path(), device, host)
}

/// Returns what is found when only the device differs from a good one.
fn found(change: impl FnOnce(&mut DeviceFacts)) -> Vec<Distortion> {
    let mut device = good_device();
    change(&mut device);
    read(&tree(&[]), &device, &host()).distortions
}

fn ids(distortions: &[Distortion]) -> Vec<&str> {
    distortions.iter().map(|d| d.id.as_str()).collect()
}

#[test]
fn a_good_disk_is_left_in_peace() {
    assert_eq!(found(|_| ()), []);
    assert_eq!(
        read(&tree(&[]), &good_device(), &host()),
        Surroundings::default()
    );
    // An unknown fact is not a wrong one.
    let unknown = read(&tree(&[]), &DeviceFacts::default(), &HostFacts::default());
    assert_eq!(unknown, Surroundings::default());
}

#[test]
fn kinds_of_filesystem() {
    for (kind, id) in [
        ("tmpfs", "tmpfs"),
        ("ramfs", "tmpfs"),
        ("overlay", "overlay"),
        ("nfs4", "network-filesystem"),
        ("fuse.sshfs", "network-filesystem"),
        ("virtiofs", "network-filesystem"),
        ("zfs", "copy-on-write"),
        ("btrfs", "copy-on-write"),
        ("ext4", "ext4-for-mongodb"),
    ] {
        let distortions = found(|d| d.filesystem = kind.into());
        assert_eq!(ids(&distortions), [id], "{kind}");
        assert!(
            distortions[0].what.contains(kind),
            "{}",
            distortions[0].what
        );
    }
    assert_eq!(found(|d| d.filesystem = "fuseblk".into()), []);
    let in_place = found(|d| {
        d.filesystem = "btrfs".into();
        d.filesystem_options = "rw,nodatacow".into();
    });
    assert_eq!(in_place, []);
}

#[test]
fn mount_options() {
    for (mount, filesystem, expected) in [
        ("rw,noatime", "rw,nobarrier", &["barriers-off"][..]),
        ("rw,noatime", "rw,barrier=0", &["barriers-off"]),
        ("rw,noatime", "rw,barrier=1", &[]),
        ("rw,noatime", "rw,sync", &["synchronous-mount"]),
        ("rw,noatime,dirsync", "rw", &["synchronous-mount"]),
        ("rw,noatime", "rw,discard", &["online-discard"]),
        ("rw,noatime", "rw,discard=async,nodiscard", &[]),
        ("rw,relatime", "rw", &[]),
        ("rw,nosuid", "rw", &["access-times"]),
        ("ro,nosuid", "ro", &[]),
    ] {
        let distortions = found(|d| {
            d.mount_options = mount.into();
            d.filesystem_options = filesystem.into();
        });
        assert_eq!(ids(&distortions), expected, "{mount} {filesystem}");
    }
}

#[test]
fn free_space() {
    assert_eq!(found(|d| d.free_bytes = 90 << 30), []);
    let distortions = found(|d| d.free_bytes = 45 << 30);
    assert_eq!(ids(&distortions), ["nearly-full"]);
    assert_eq!(distortions[0].what, "45.0 GiB of 900 GiB are free (5.0 %)");
}

#[test]
fn layers_below_the_filesystem() {
    let distortions = found(|d| {
        d.layers = vec![
            layer("dm-1", "252:1", "lvm"),
            layer("dm-0", "252:0", "crypt"),
            layer("md0", "9:0", "raid10"),
            layer("loop3", "7:3", "loop"),
        ]
    });
    assert_eq!(ids(&distortions), ["loop-device", "encryption", "raid"]);
    assert!(
        distortions[1].what.contains("dm-0"),
        "{}",
        distortions[1].what
    );
}

#[test]
fn queue_settings() {
    let large = found(|d| d.read_ahead_kib = Some(8192));
    assert_eq!(ids(&large), ["read-ahead-large"]);
    assert!(large[0].what.contains("8192 KiB"));
    for fine in ["none", "mq-deadline", "kyber"] {
        assert_eq!(found(|d| d.scheduler = Some(fine.into())), []);
    }
    let bfq = |disk: &str| {
        let distortions = found(|d| {
            d.scheduler = Some("bfq".into());
            d.disk = Some(disk.into());
        });
        assert_eq!(ids(&distortions), ["scheduler"]);
        distortions[0].remedy.clone()
    };
    assert_eq!(
        bfq("nvme0n1"),
        "echo none > /sys/block/nvme0n1/queue/scheduler"
    );
    assert_eq!(
        bfq("sda"),
        "echo mq-deadline > /sys/block/sda/queue/scheduler"
    );
    let cache = found(|d| d.write_cache = Some("write back".into()));
    assert_eq!(ids(&cache), ["write-cache"]);
    let claim = |disk: &str| {
        found(|d| {
            d.rotational = Some(true);
            d.disk = Some(disk.into());
        })
    };
    assert_eq!(ids(&claim("vda")), ["rotational-claim"]);
    assert_eq!(claim("sda"), [], "may well rotate");
}

#[test]
fn huge_pages() {
    let host = HostFacts {
        transparent_huge_pages: Some("always".into()),
        ..host()
    };
    let surroundings = read(&tree(&[]), &good_device(), &host);
    assert_eq!(ids(&surroundings.distortions), ["transparent-huge-pages"]);
}

#[test]
fn limits_of_version_2_on_the_way_up() {
    let root = tree(&[
        (
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "0::/a/b\n"),
        (
            "sys/fs/cgroup/a/b/io.max",
            "259:0 rbps=1048576 wbps=max riops=max wiops=120\n8:0 riops=7\n",
        ),
        (
            "sys/fs/cgroup/a/io.max",
            "259:0 rbps=max riops=150 new=1\nodd\n",
        ),
        ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("sys/fs/cgroup/a/memory.max", "1073741824\n"),
        ("sys/fs/cgroup/c/cpu.max", "1000 100000\n"),
    ]);
    let found = read(&root, &good_device(), &host());
    let limit = |cgroup: &str, what: &str, per_s| IoLimit {
        cgroup: cgroup.into(),
        device: "259:0".into(),
        what: what.into(),
        per_s,
    };
    assert_eq!(
        found.io_limits,
        [
            limit("/a/b", "read bytes/s", 1 << 20),
            limit("/a/b", "write IOPS", 120),
            limit("/a", "read IOPS", 150),
        ]
    );
    assert_eq!(
        (found.cpu_quota, found.memory_limit_bytes),
        (Some(1.5), Some(1 << 30))
    );
    assert_eq!(
        ids(&found.distortions),
        ["cgroup-io-limit", "cpu-quota", "memory-limit"]
    );
    let numbers = "read 1.00 MiB/s on 259:0 (group /a/b); 120 write IOPS on 259:0 (group /a/b); \
                   150 read IOPS on 259:0 (group /a)";
    assert!(
        found.distortions[0].what.ends_with(numbers),
        "{}",
        found.distortions[0].what
    );
}

#[test]
fn limits_of_version_1_in_a_container() {
    let mount = |controller: &str| {
        format!("31 23 0:28 /box /sys/fs/cgroup/{controller} rw - cgroup cgroup rw,{controller}\n")
    };
    let mounts = ["blkio", "memory", "cpu"].map(mount).concat();
    let root = tree(&[
        ("proc/self/mountinfo", &mounts),
        (
            "proc/self/cgroup",
            "7:blkio:/box/in\n4:memory:/box\n1:cpu,cpuacct:/elsewhere/../..\n0::/\n",
        ),
        (
            "sys/fs/cgroup/blkio/in/blkio.throttle.read_iops_device",
            "259:0 150\n8:16 9\n",
        ),
        (
            "sys/fs/cgroup/blkio/in/blkio.throttle.write_bps_device",
            "252:0 1000\n",
        ),
        (
            "sys/fs/cgroup/blkio/blkio.throttle.read_bps_device",
            "259:0 7\n",
        ),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        ),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ]);
    let mut device = good_device();
    device.layers.insert(0, layer("dm-0", "252:0", "lvm"));
    let found = read(&root, &device, &host());
    let limits: Vec<_> = found
        .io_limits
        .iter()
        .map(|l| (l.cgroup.as_str(), l.what.as_str(), l.per_s))
        .collect();
    // The group above sets a limit too, but version 1 throttles by the process's own group alone.
    assert_eq!(
        limits,
        [("/in", "read IOPS", 150), ("/in", "write bytes/s", 1000)]
    );
    assert_eq!(
        (found.cpu_quota, found.memory_limit_bytes),
        (Some(4.0), None)
    );
    assert_eq!(
        ids(&found.distortions),
        ["cgroup-io-limit"],
        "four CPUs are enough"
    );
}

#[test]
fn a_memory_limit_above_all_memory_limits_nothing() {
    let root = tree(&[
        (
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("proc/self/cgroup", "0::/\n"),
        ("sys/fs/cgroup/memory.max", "68719476736\n"),
        ("sys/fs/cgroup/cpu.max", "0 0\n"),
    ]);
    assert_eq!(
        read(&root, &good_device(), &host()),
        Surroundings::default()
    );
}

#[test]
fn this_host_can_be_read() {
    let root = Path::new("/");
    let folder = tempfile::tempdir().unwrap();
    let device = DeviceFacts::of_path(root, folder.path()).unwrap();
    let surroundings = Surroundings::read(root, folder.path(), &device, &HostFacts::read(root));
    println!("{device:#?}\n{surroundings:#?}");
    for distortion in &surroundings.distortions {
        assert!(!distortion.what.is_empty() && !distortion.consequence.is_empty());
    }
    let mut ids = ids(&surroundings.distortions);
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "each is said once");
}
