//! Finds the disk and the filesystem under a path, from `/proc` and `/sys`.
//!
//! Everything is optional: a container may hide any of it, and a missing fact is not an error.

mod layers;

use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor, stat, statvfs};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel_files::{below, bracketed, read_number, read_trimmed};
use crate::mounts::{Mount, mount_of, mounts};

pub use layers::BlockLayer;

/// The disk and filesystem under a path. The disk is the one that the filesystem knows; it may be made of others
/// ([`DeviceFacts::layers`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DeviceFacts {
    /// The path that was examined.
    pub path: String,
    /// Device number of the filesystem, `major:minor`.
    pub device: String,
    /// Kernel name of the whole disk, e.g. "nvme0n1"; `None` for filesystems without a disk.
    pub disk: Option<String>,
    /// Device number of the whole disk, `major:minor`.
    pub disk_device: Option<String>,
    /// Model name that the disk reports; most virtual disks report none.
    pub model: Option<String>,
    pub filesystem: String,
    pub mount_options: String,
    /// Options of the filesystem itself, e.g. "rw,discard"; names and addresses are left out, because reports are
    /// passed on.
    pub filesystem_options: String,
    /// Size of the filesystem, bytes.
    pub size_bytes: u64,
    /// Space available in the filesystem, bytes.
    pub free_bytes: u64,
    /// Whether the disk rotates, according to the kernel; virtual disks may report it wrongly.
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
    pub read_ahead_kib: Option<u64>,
    /// "write back" or "write through".
    pub write_cache: Option<String>,
    /// Smallest addressable unit, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Largest request that the kernel sends (`max_sectors_kb`), bytes.
    pub request_bytes_max: Option<u64>,
    /// Number of requests that fit into the queue (`nr_requests`).
    pub queue_requests: Option<u64>,
    /// The disk and everything that it is made of, outermost first; empty without a disk.
    pub layers: Vec<BlockLayer>,
}

impl DeviceFacts {
    /// Returns the device whose counters the kernel keeps, `major:minor`: the whole disk. For a filesystem
    /// without a disk, or on several, it is the filesystem's own device, which may have no counters.
    pub fn counted_device(&self) -> &str {
        self.disk_device.as_deref().unwrap_or(&self.device)
    }

    /// Returns facts about what `path` lies on, with `/proc` and `/sys` taken below `root`.
    pub fn of_path(root: &Path, path: &Path) -> std::io::Result<Self> {
        let status = stat(path)?;
        let space = statvfs(path)?;
        let mut facts = Self::of_device(root, path, status.st_dev);
        facts.size_bytes = space.f_blocks * space.f_frsize;
        facts.free_bytes = space.f_bavail * space.f_frsize;
        Ok(facts)
    }

    fn of_device(root: &Path, path: &Path, dev: Dev) -> Self {
        let device = format!("{}:{}", major(dev), minor(dev));
        let mount = mount_of(mounts(&root.join("proc")), path, &device);
        let mut disk = whole_disk(&root.join("sys/dev/block").join(&device));
        let mut facts = Self {
            path: path.display().to_string(),
            device,
            ..Self::default()
        };
        if let Some(mount) = mount {
            // btrfs has a device number of its own, but names a disk as its source.
            disk = disk.or_else(|| disk_of_source(root, &mount.source));
            facts.filesystem_options = harmless_options(&mount);
            facts.filesystem = mount.filesystem;
            facts.mount_options = mount.options;
        }
        if let Some(disk) = disk {
            facts.describe_disk(&disk);
        }
        facts
    }

    /// Fills in the facts about a disk; `disk` is its folder in `/sys`.
    fn describe_disk(&mut self, disk: &Path) {
        let queue = disk.join("queue");
        self.disk = Some(name_of(disk));
        self.disk_device = read_trimmed(disk.join("dev"));
        self.model = read_trimmed(disk.join("device/model")).filter(|model| !model.is_empty());
        self.rotational = read_trimmed(queue.join("rotational")).map(|v| v == "1");
        self.scheduler =
            read_trimmed(queue.join("scheduler")).map(|text| bracketed(&text).unwrap_or(text));
        self.read_ahead_kib = read_number(queue.join("read_ahead_kb"));
        self.write_cache = read_trimmed(queue.join("write_cache"));
        self.logical_block_bytes = read_number(queue.join("logical_block_size"));
        self.request_bytes_max =
            read_number::<u64>(queue.join("max_sectors_kb")).and_then(|kib| kib.checked_mul(1024));
        self.queue_requests = read_number(queue.join("nr_requests"));
        self.layers = layers::of_disk(disk);
    }
}

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the folder of the whole disk: a partition's folder lies inside its disk's, and only the disk has
/// `queue`.
fn whole_disk(link: &Path) -> Option<PathBuf> {
    let folder = link.canonicalize().ok()?;
    if folder.join("queue").is_dir() {
        return Some(folder);
    }
    let parent = folder.parent()?;
    parent.join("queue").is_dir().then(|| parent.to_path_buf())
}

/// Returns the disk behind a mount's source such as `/dev/sda1` or `/dev/mapper/data`.
fn disk_of_source(root: &Path, source: &str) -> Option<PathBuf> {
    if !source.starts_with("/dev/") {
        return None;
    }
    let node = below(root, Path::new(source));
    let node = node.canonicalize().unwrap_or(node);
    whole_disk(&root.join("sys/class/block").join(node.file_name()?))
}

/// Returns the options that are safe to record: those of network filesystems hold addresses and names, those of
/// others at most paths.
fn harmless_options(mount: &Mount) -> String {
    if is_network_filesystem(&mount.filesystem) {
        return String::new();
    }
    let options = mount.filesystem_options.split(',');
    let harmless: Vec<&str> = options.filter(|option| !option.contains('/')).collect();
    harmless.join(",")
}

/// Decides by the type in mountinfo. FUSE can be anything; `fuseblk` is a local disk.
pub(crate) fn is_network_filesystem(kind: &str) -> bool {
    const KINDS: [&str; 14] = [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "9p",
        "virtiofs",
        "fuse",
        "glusterfs",
        "lustre",
        "afs",
        "gpfs",
        "beegfs",
    ];
    KINDS.contains(&kind) || kind.starts_with("fuse.")
}

#[cfg(test)]
mod tests;
