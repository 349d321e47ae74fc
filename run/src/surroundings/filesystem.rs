//! Distortions that come from the filesystem and how it is mounted.

use std::fs::File;
use std::path::Path;

use rustix::fs::{IFlags, ioctl_getflags};

use super::{Detector, Distortion, Facts};
use crate::device::is_network_filesystem;
use crate::units::format_bytes;

pub(super) const DETECTORS: &[Detector] = &[
    memory,
    overlay,
    network,
    copy_on_write,
    not_xfs,
    no_barriers,
    synchronous,
    online_discard,
    access_times,
    nearly_full,
];

/// Returns whether the folder is marked with `chattr +C`. Files created in it inherit that.
pub(super) fn overwritten_in_place(directory: &Path) -> bool {
    File::open(directory)
        .and_then(|folder| Ok(ioctl_getflags(folder)?))
        .is_ok_and(|flags| flags.contains(IFlags::NOCOW))
}

impl Facts<'_> {
    /// Returns whether the mount or its filesystem has the option.
    fn has_option(&self, option: &str) -> bool {
        let both = [&self.device.mount_options, &self.device.filesystem_options];
        both.iter().any(|o| o.split(',').any(|word| word == option))
    }

    fn is_one_of(&self, filesystems: &[&str]) -> bool {
        filesystems.contains(&self.device.filesystem.as_str())
    }
}

fn memory(facts: &Facts<'_>) -> Option<Distortion> {
    facts.is_one_of(&["tmpfs", "ramfs"]).then(|| {
        Distortion::new(
            "tmpfs",
            format!("{} is on {}", facts.device.path, facts.device.filesystem),
            "This is memory, not a disk: none of the figures describes a disk, direct I/O is \
             accepted but cached all the same, and the data is lost on a restart.",
            "Name a folder on the disk that the database uses.",
        )
    })
}

fn overlay(facts: &Facts<'_>) -> Option<Distortion> {
    facts.is_one_of(&["overlay", "aufs"]).then(|| {
        Distortion::new(
            "overlay",
            format!(
                "{} is on {}, the writable layer of a container",
                facts.device.path, facts.device.filesystem
            ),
            "The first write to a file of the image copies the whole file, the layer has its own \
             read-ahead setting, and the data is removed together with the container.",
            "Put the data on a volume (docker run -v VOLUME:/data/db …) and measure there.",
        )
    })
}

fn network(facts: &Facts<'_>) -> Option<Distortion> {
    is_network_filesystem(&facts.device.filesystem).then(|| {
        Distortion::new(
            "network-filesystem",
            format!(
                "{} is on {}, served by another host or process",
                facts.device.path, facts.device.filesystem
            ),
            "Every cache miss and every sync waits for that server; its cache can make reads look \
             faster than its disk; whether a sync reaches a disk, and whether direct I/O bypasses \
             all caches, depends on the server.",
            "Use a local disk or a network block device for a database; if it has to be this \
             filesystem, measure with data larger than the memory of the server.",
        )
    })
}

fn copy_on_write(facts: &Facts<'_>) -> Option<Distortion> {
    let btrfs_in_place = facts.device.filesystem == "btrfs"
        && (facts.overwritten_in_place || facts.has_option("nodatacow"));
    (facts.is_one_of(&["btrfs", "zfs", "bcachefs"]) && !btrfs_in_place).then(|| {
        let remedy = match facts.device.filesystem.as_str() {
            "btrfs" => {
                "Create the data folder anew and set `chattr +C` on it while it is empty (which \
                        disables checksums and compression), or use XFS."
            }
            "zfs" => {
                "Set recordsize to the block size of the database (16K to 32K), and \
                      primarycache=metadata if the database has its own cache; or use XFS."
            }
            _ => "Use XFS for a database.",
        };
        Distortion::new(
            "copy-on-write",
            format!(
                "{} writes every changed block to a new place",
                facts.device.filesystem
            ),
            "Files that a database overwrites in small pieces become fragmented, so that ordered \
             scans turn into random reads as the data ages; writes smaller than a record require a \
             read; direct I/O may go through a cache.",
            remedy,
        )
    })
}

fn not_xfs(facts: &Facts<'_>) -> Option<Distortion> {
    facts.is_one_of(&["ext2", "ext3", "ext4"]).then(|| {
        Distortion::new(
            "ext4-for-mongodb",
            format!("{} is on {}", facts.device.path, facts.device.filesystem),
            "MongoDB recommends XFS for WiredTiger because of performance problems seen on ext4.",
            "Measure checkpoints on both filesystems before you move a database; use XFS \
             for a new one.",
        )
    })
}

fn no_barriers(facts: &Facts<'_>) -> Option<Distortion> {
    let off = ["nobarrier", "barrier=0"];
    let found = off.into_iter().find(|option| facts.has_option(option))?;
    Some(Distortion::new(
        "barriers-off",
        format!("{} is mounted with {found}", facts.device.path),
        "A sync returns before the disk's own cache is written: syncs look fast, and a power \
         failure can lose or damage committed data unless that cache is battery-backed.",
        "Mount without the option (the default is safe).",
    ))
}

fn synchronous(facts: &Facts<'_>) -> Option<Distortion> {
    let found = ["sync", "dirsync"]
        .into_iter()
        .find(|o| facts.has_option(o))?;
    Some(Distortion::new(
        "synchronous-mount",
        format!("{} is mounted with {found}", facts.device.path),
        "Writes that a database would sync together wait for the disk one by one.",
        "Mount without the option; databases sync by themselves whatever has to be durable.",
    ))
}

fn online_discard(facts: &Facts<'_>) -> Option<Distortion> {
    let found = ["discard", "discard=sync"]
        .into_iter()
        .find(|o| facts.has_option(o))?;
    Some(Distortion::new(
        "online-discard",
        format!("{} is mounted with {found}", facts.device.path),
        "Removing or shrinking a file sends trim requests immediately; on many disks these delay \
         reads and writes, for example when a journal file or a collection is removed.",
        "Mount without the option, and run fstrim weekly (systemctl enable --now fstrim.timer).",
    ))
}

/// Finds strict access times. The kernel shows `noatime` and `relatime`; strict updates are shown by the
/// absence of both.
fn access_times(facts: &Facts<'_>) -> Option<Distortion> {
    let strict =
        facts.has_option("rw") && !["noatime", "relatime"].iter().any(|o| facts.has_option(o));
    strict.then(|| {
        Distortion::new(
            "access-times",
            format!("{} is mounted with strictatime", facts.device.path),
            "Every read of a file also updates its access time.",
            "Remount with noatime.",
        )
    })
}

fn nearly_full(facts: &Facts<'_>) -> Option<Distortion> {
    let (free, size) = (facts.device.free_bytes, facts.device.size_bytes);
    (size > 0 && free < size / 10).then(|| {
        Distortion::new(
            "nearly-full",
            format!(
                "{} of {} are free ({:.1} %)",
                format_bytes(free),
                format_bytes(size),
                free as f64 / size as f64 * 100.0
            ),
            "New blocks end up in scattered gaps, flash disks slow down when they run out of \
             erased blocks, and an index build or compaction may run out of space.",
            "Free or add space before measuring.",
        )
    })
}
