//! What the host and the disk under the data are, read from `/proc` and `/sys`.
//!
//! Everything is optional: a container may hide any of it, and a missing fact is not an error.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor, stat, statvfs};
use serde::{Deserialize, Serialize};

/// The machine. Its name is left out on purpose: reports are passed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct HostFacts {
    pub kernel: String,
    pub cpu_model: String,
    pub cpus: u32,
    pub memory_bytes: u64,
    /// Load average over one minute when the run began.
    pub load_1m: f64,
    /// `/sys/kernel/mm/transparent_hugepage/enabled`, the active word.
    pub transparent_huge_pages: Option<String>,
}

/// The disk and filesystem under a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DeviceFacts {
    /// The path asked about.
    pub path: String,
    /// Of the filesystem, `major:minor`.
    pub device: String,
    /// The whole disk's kernel name, e.g. "nvme0n1"; `None` for filesystems without a disk.
    pub disk: Option<String>,
    /// The whole disk, `major:minor`.
    pub disk_device: Option<String>,
    pub filesystem: String,
    pub mount_options: String,
    pub size_bytes: u64,
    pub free_bytes: u64,
    /// As the kernel claims; virtual disks lie.
    pub rotational: Option<bool>,
    pub scheduler: Option<String>,
    pub read_ahead_kib: Option<u64>,
    /// "write back" or "write through".
    pub write_cache: Option<String>,
}

fn read_trimmed(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

/// The active one of words like `always [madvise] never`.
fn bracketed(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_string())
}

impl HostFacts {
    /// Reads below `root` ("/" outside of tests).
    pub fn read(root: &Path) -> Self {
        let cpuinfo = read_trimmed(root.join("proc/cpuinfo")).unwrap_or_default();
        let cpu_models: Vec<&str> = cpuinfo
            .lines()
            .filter(|l| l.starts_with("model name"))
            .filter_map(|l| l.split_once(':').map(|(_, v)| v.trim()))
            .collect();
        let processors = cpuinfo
            .lines()
            .filter(|l| l.starts_with("processor"))
            .count();
        let meminfo = read_trimmed(root.join("proc/meminfo")).unwrap_or_default();
        let memory_kib: u64 = meminfo
            .lines()
            .find_map(|l| l.strip_prefix("MemTotal:"))
            .and_then(|v| v.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or(0);
        let load = read_trimmed(root.join("proc/loadavg")).unwrap_or_default();
        Self {
            kernel: read_trimmed(root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            cpu_model: (*cpu_models.first().unwrap_or(&"unknown")).to_string(),
            cpus: u32::try_from(processors).unwrap_or(0),
            memory_bytes: memory_kib * 1024,
            load_1m: load
                .split(' ')
                .next()
                .and_then(|v| v.parse().ok())
                .unwrap_or(0.0),
            transparent_huge_pages: read_trimmed(
                root.join("sys/kernel/mm/transparent_hugepage/enabled"),
            )
            .as_deref()
            .and_then(bracketed),
        }
    }
}

impl DeviceFacts {
    /// Facts about what `path` lies on, with `/proc` and `/sys` taken below `root`.
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
        let mut facts = Self {
            path: path.display().to_string(),
            ..Self::default()
        };
        if let Some(mount) = mount_of(root, path, &device) {
            facts.filesystem = mount.filesystem;
            facts.mount_options = mount.options;
        }
        let link = root.join("sys/dev/block").join(&device);
        if let Some(disk) = whole_disk(&link) {
            let queue = disk.join("queue");
            facts.disk = disk.file_name().map(|n| n.to_string_lossy().into_owned());
            facts.disk_device = read_trimmed(disk.join("dev"));
            facts.rotational = read_trimmed(queue.join("rotational")).map(|v| v == "1");
            facts.scheduler =
                read_trimmed(queue.join("scheduler")).map(|text| bracketed(&text).unwrap_or(text));
            facts.read_ahead_kib =
                read_trimmed(queue.join("read_ahead_kb")).and_then(|v| v.parse().ok());
            facts.write_cache = read_trimmed(queue.join("write_cache"));
        }
        facts.device = device;
        facts
    }
}

/// A partition's folder lies inside its disk's; only the disk has `queue`.
fn whole_disk(link: &Path) -> Option<PathBuf> {
    let folder = link.canonicalize().ok()?;
    if folder.join("queue").is_dir() {
        return Some(folder);
    }
    let parent = folder.parent()?;
    parent.join("queue").is_dir().then(|| parent.to_path_buf())
}

struct Mount {
    filesystem: String,
    options: String,
}

/// The mount that holds `path`: the one with its device number, else the longest mount point that
/// is a prefix (btrfs and overlayfs report other device numbers than their mounts).
fn mount_of(root: &Path, path: &Path, device: &str) -> Option<Mount> {
    let text = read_trimmed(root.join("proc/self/mountinfo"))?;
    let path = path.canonicalize().ok()?;
    let mut best: Option<(bool, usize, Mount)> = None;
    for line in text.lines() {
        // Fields (proc_pid_mountinfo(5)): id parent major:minor root mountpoint options … - type source superoptions
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let [_, _, dev, _, point, options, ..] = left[..] else {
            continue;
        };
        let point = point.replace("\\040", " ");
        if !path.starts_with(&point) {
            continue;
        }
        let rank = (dev == device, point.len());
        if best
            .as_ref()
            .is_none_or(|(same, length, _)| rank >= (*same, *length))
        {
            let filesystem = right.split(' ').next().unwrap_or_default().to_string();
            best = Some((
                rank.0,
                rank.1,
                Mount {
                    filesystem,
                    options: options.to_string(),
                },
            ));
        }
    }
    best.map(|(_, _, mount)| mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_faked_host() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/osrelease", "6.1.0\n");
        write(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Chip A\n\nprocessor\t: 1\nmodel name\t: Chip A\n",
        );
        write("proc/meminfo", "MemTotal:       1024 kB\nMemFree: 1 kB\n");
        write("proc/loadavg", "0.50 0.40 0.30 1/2 3\n");
        write(
            "sys/kernel/mm/transparent_hugepage/enabled",
            "always [madvise] never\n",
        );
        let facts = HostFacts::read(root.path());
        assert_eq!(
            (facts.cpus, facts.memory_bytes, facts.load_1m),
            (2, 1 << 20, 0.5)
        );
        assert_eq!(
            (facts.cpu_model.as_str(), facts.kernel.as_str()),
            ("Chip A", "6.1.0")
        );
        assert_eq!(facts.transparent_huge_pages.as_deref(), Some("madvise"));
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(HostFacts::read(empty.path()).memory_bytes, 0);
    }

    #[test]
    fn a_partition_leads_to_its_disk() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/devices/x/block/sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::write(disk.join("dev"), "8:0\n").unwrap();
        fs::write(disk.join("queue/read_ahead_kb"), "128\n").unwrap();
        fs::write(disk.join("queue/scheduler"), "none [mq-deadline]\n").unwrap();
        let dev = stat(root.path()).unwrap().st_dev;
        let links = root.path().join("sys/dev/block");
        fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink(
            disk.join("sda1"),
            links.join(format!("{}:{}", major(dev), minor(dev))),
        )
        .unwrap();
        let facts = DeviceFacts::of_path(root.path(), root.path()).unwrap();
        assert_eq!(facts.disk.as_deref(), Some("sda"));
        assert_eq!(facts.disk_device.as_deref(), Some("8:0"));
        assert_eq!(
            (facts.read_ahead_kib, facts.scheduler.as_deref()),
            (Some(128), Some("mq-deadline"))
        );
    }
}
