use std::fs;
use std::os::unix::fs::symlink;

use super::*;

/// Creates a fake `/sys` in which the temporary folder itself lies on `folder`.
fn lies_on(root: &Path, folder: &Path) {
    let dev = stat(root).unwrap().st_dev;
    let links = root.join("sys/dev/block");
    fs::create_dir_all(&links).unwrap();
    symlink(folder, links.join(format!("{}:{}", major(dev), minor(dev)))).unwrap();
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn a_partition_leads_to_its_disk() {
    let root = tempfile::tempdir().unwrap();
    let disk = root.path().join("sys/devices/x/block/sda");
    write(
        &disk,
        &[
            ("dev", "8:0\n"),
            ("device/model", "Solid 9000  \n"),
            ("queue/read_ahead_kb", "128\n"),
            ("queue/scheduler", "none [mq-deadline]\n"),
            ("queue/max_sectors_kb", "1280\n"),
            ("queue/logical_block_size", "512\n"),
            ("queue/nr_requests", "64\n"),
        ],
    );
    fs::create_dir_all(disk.join("sda1")).unwrap();
    lies_on(root.path(), &disk.join("sda1"));
    let facts = DeviceFacts::of_path(root.path(), root.path()).unwrap();
    assert_eq!(facts.disk.as_deref(), Some("sda"));
    assert_eq!(facts.disk_device.as_deref(), Some("8:0"));
    assert_eq!(facts.model.as_deref(), Some("Solid 9000"));
    assert_eq!(
        (facts.read_ahead_kib, facts.scheduler.as_deref()),
        (Some(128), Some("mq-deadline"))
    );
    let sizes = (
        facts.request_bytes_max,
        facts.logical_block_bytes,
        facts.queue_requests,
    );
    assert_eq!(sizes, (Some(1280 * 1024), Some(512), Some(64)));
    assert_eq!(facts.layers.len(), 1);
    assert_eq!(facts.write_cache, None);
}

#[test]
fn layers_are_followed_to_the_disks() {
    let root = tempfile::tempdir().unwrap();
    let blocks = root.path().join("sys/devices/virtual/block");
    write(
        &blocks,
        &[
            ("dm-1/dev", "252:1\n"),
            ("dm-1/dm/uuid", "LVM-abc\n"),
            ("dm-1/queue/nr_requests", "1\n"),
            ("dm-0/dev", "252:0\n"),
            ("dm-0/dm/uuid", "CRYPT-LUKS2-abc\n"),
            ("dm-0/queue/nr_requests", "1\n"),
            ("md0/dev", "9:0\n"),
            ("md0/md/level", "raid1\n"),
            ("md0/queue/nr_requests", "1\n"),
            ("sda/dev", "8:0\n"),
            ("sda/queue/nr_requests", "1\n"),
            ("sda/sda1/dev", "8:1\n"),
        ],
    );
    for (upper, lower) in [
        ("dm-1", "dm-0"),
        ("dm-0", "md0"),
        ("md0", "sda/sda1"),
        ("sda", "dm-1"),
    ] {
        let slaves = blocks.join(upper).join("slaves");
        fs::create_dir_all(&slaves).unwrap();
        symlink(blocks.join(lower), slaves.join("x")).unwrap();
    }
    lies_on(root.path(), &blocks.join("dm-1"));
    let facts = DeviceFacts::of_path(root.path(), root.path()).unwrap();
    let found: Vec<_> = facts
        .layers
        .iter()
        .map(|l| (l.device.as_str(), l.kind.as_str()))
        .collect();
    let expected = [
        ("252:1", "lvm"),
        ("252:0", "crypt"),
        ("9:0", "raid1"),
        ("8:0", "disk"),
    ];
    assert_eq!(
        found, expected,
        "although the made-up disk leads in a circle"
    );
}

#[test]
fn a_filesystem_with_a_device_number_of_its_own_names_its_disk() {
    let root = tempfile::tempdir().unwrap();
    write(
        root.path(),
        &[
            (
                "proc/self/mountinfo",
                "27 1 0:99 / / rw,relatime - btrfs /dev/sda1 rw,subvol=/x,discard\n",
            ),
            ("sys/class/block/sda1/queue/nr_requests", "7\n"),
        ],
    );
    let facts = DeviceFacts::of_path(root.path(), root.path()).unwrap();
    assert_eq!(facts.filesystem, "btrfs");
    assert_eq!(facts.filesystem_options, "rw,discard");
    assert_eq!(
        (facts.disk.as_deref(), facts.queue_requests),
        (Some("sda1"), Some(7))
    );
}

#[test]
fn addresses_are_left_out() {
    let root = tempfile::tempdir().unwrap();
    let line = "27 1 0:99 / / rw,relatime - nfs4 store:/x rw,addr=192.0.2.1\n";
    write(root.path(), &[("proc/self/mountinfo", line)]);
    let facts = DeviceFacts::of_path(root.path(), root.path()).unwrap();
    assert_eq!(facts.filesystem, "nfs4");
    assert_eq!((facts.filesystem_options.as_str(), facts.disk), ("", None));
}
