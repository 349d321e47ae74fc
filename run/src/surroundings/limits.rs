//! What the control groups of a process allow: its own and all above it that are visible, in both
//! versions of the interface (cgroups(7), Documentation/admin-guide/cgroup-v2.rst).
//!
//! One exception: version 1 throttles I/O by the own group alone. A limit of 50 reads/s in the
//! group above let 4 KiB direct reads through at 15,000/s on Linux 6.18; in the own group it held.

use std::path::{Component, Path, PathBuf};

use crate::kernel_files::{below, read_number, read_trimmed};
use crate::mounts::{Mount, mounts};
use crate::{DeviceFacts, HostFacts, IoLimit};

/// See the module. Where several groups set a limit for CPUs or memory, the tightest.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Limits {
    /// For the disk and all that it is made of.
    pub(super) io: Vec<IoLimit>,
    pub(super) cpus: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    /// The file that sets it.
    pub(super) memory_file: Option<PathBuf>,
}

/// Files of version 1 that limit I/O, and keys of version 2's `io.max`.
const IO_LIMITS: [(&str, &str, &str); 4] = [
    ("blkio.throttle.read_iops_device", "riops", "read IOPS"),
    ("blkio.throttle.write_iops_device", "wiops", "write IOPS"),
    ("blkio.throttle.read_bps_device", "rbps", "read bytes/s"),
    ("blkio.throttle.write_bps_device", "wbps", "write bytes/s"),
];

impl Limits {
    /// Of the process `pid`, or of this one.
    pub(super) fn read(
        root: &Path,
        pid: Option<u32>,
        device: &DeviceFacts,
        host: &HostFacts,
    ) -> Self {
        let groups = Groups::read(root, pid);
        let unified = groups.v2();
        let mut io: Vec<IoLimit> = unified.iter().flat_map(io_max).collect();
        if let Some(own) = groups.v1("blkio").first() {
            io.extend(blkio_throttle(own));
        }
        io.retain(|limit| device.layers.iter().any(|l| l.device == limit.device));
        let mut cpus: Vec<f64> = unified.iter().filter_map(cpu_max).collect();
        cpus.extend(groups.v1("cpu").iter().filter_map(cpu_quota));
        let mut memory = numbers(&unified, "memory.max");
        memory.extend(numbers(&groups.v1("memory"), "memory.limit_in_bytes"));
        // Without a limit version 1 says nearly 2^63; a limit above all memory limits nothing.
        let all_memory = match host.memory_bytes {
            0 => 1 << 62,
            bytes => bytes,
        };
        memory.retain(|(bytes, _)| *bytes < all_memory);
        let tightest = memory.into_iter().min();
        Self {
            io,
            cpus: cpus.into_iter().min_by(f64::total_cmp),
            memory_bytes: tightest.as_ref().map(|(bytes, _)| *bytes),
            memory_file: tightest.map(|(_, file)| file),
        }
    }
}

/// A control group that the process is in, or one above.
struct Group {
    /// Below the topmost visible group, e.g. "/system.slice/mongod.service".
    name: String,
    folder: PathBuf,
}

/// Where the process is in the hierarchies.
struct Groups<'a> {
    root: &'a Path,
    /// As we see them: its own could lead elsewhere.
    mounts: Vec<Mount>,
    is_ours: bool,
    /// `/proc/PID/cgroup`: a line `id:controllers:path` per hierarchy, without controllers for
    /// version 2.
    own: String,
}

impl<'a> Groups<'a> {
    fn read(root: &'a Path, pid: Option<u32>) -> Self {
        let process = pid.map_or("self".into(), |pid| pid.to_string());
        let group = root.join("proc").join(process).join("cgroup");
        Self {
            root,
            mounts: mounts(&root.join("proc")),
            is_ours: pid.is_none(),
            own: read_trimmed(group).unwrap_or_default(),
        }
    }

    fn v2(&self) -> Vec<Group> {
        let mut mounts = self.mounts.iter().rev();
        let mount = mounts.find(|mount| mount.filesystem == "cgroup2");
        self.own_to_top(mount, str::is_empty)
    }

    fn v1(&self, controller: &str) -> Vec<Group> {
        let has_it = |words: &str| words.split(',').any(|word| word == controller);
        let is_its =
            |mount: &&Mount| mount.filesystem == "cgroup" && has_it(&mount.filesystem_options);
        self.own_to_top(self.mounts.iter().rev().find(is_its), has_it)
    }

    /// The own group first.
    fn own_to_top(&self, mount: Option<&Mount>, is_hierarchy: impl Fn(&str) -> bool) -> Vec<Group> {
        let Some(mount) = mount else {
            return Vec::new();
        };
        let own = self.own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            is_hierarchy(controllers).then(|| Path::new(path))
        });
        // A container may see a path of the host that is not below what is mounted here.
        let own = own.and_then(|path| path.strip_prefix(&mount.root).ok());
        let is_plain = |path: &&Path| path.components().all(|c| matches!(c, Component::Normal(_)));
        let own = match own.filter(is_plain) {
            Some(own) => own,
            // We are at least in the topmost group that is visible here; another process need not be.
            None if self.is_ours => Path::new(""),
            None => return Vec::new(),
        };
        let top = below(self.root, &mount.point);
        own.ancestors()
            .map(|path| Group {
                name: format!("/{}", path.display()),
                folder: top.join(path),
            })
            .collect()
    }
}

impl Group {
    fn limit(&self, device: &str, what: &str, per_s: &str) -> Option<IoLimit> {
        Some(IoLimit {
            cgroup: self.name.clone(),
            device: device.into(),
            what: what.into(),
            per_s: per_s.parse().ok()?,
        })
    }
}

/// A file that holds one number, where it does.
fn numbers(groups: &[Group], file: &str) -> Vec<(u64, PathBuf)> {
    let files = groups.iter().map(|group| group.folder.join(file));
    files
        .filter_map(|file| Some((read_number(&file)?, file)))
        .collect()
}

/// Lines of `major:minor key=value …`; the value "max" is no limit.
fn io_max(group: &Group) -> Vec<IoLimit> {
    let text = read_trimmed(group.folder.join("io.max")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let device = words.next().unwrap_or_default();
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let what = IO_LIMITS.iter().find(|(_, name, _)| *name == key);
            limits.extend(what.and_then(|(_, _, what)| group.limit(device, what, value)));
        }
    }
    limits
}

/// A file per kind of limit, lines of `major:minor value`.
fn blkio_throttle(group: &Group) -> Vec<IoLimit> {
    let mut limits = Vec::new();
    for (file, _, what) in IO_LIMITS {
        let text = read_trimmed(group.folder.join(file)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        limits.extend(lines.filter_map(|(device, per_s)| group.limit(device, what, per_s)));
    }
    limits
}

/// `quota period`, both µs; the quota "max" is no limit.
fn cpu_max(group: &Group) -> Option<f64> {
    let text = read_trimmed(group.folder.join("cpu.max"))?;
    let (quota, period) = text.split_once(' ')?;
    cpus(quota.parse().ok()?, period.parse().ok()?)
}

/// The quota -1 is no limit.
fn cpu_quota(group: &Group) -> Option<f64> {
    let quota = read_number(group.folder.join("cpu.cfs_quota_us"))?;
    cpus(quota, read_number(group.folder.join("cpu.cfs_period_us"))?)
}

fn cpus(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}
