//! Reads what the control groups of a process allow: its own and all visible groups above it, in both versions
//! of the interface (cgroups(7), Documentation/admin-guide/cgroup-v2.rst).
//!
//! There is one exception: version 1 throttles I/O by the process's own group alone. A limit of 50 reads/s in
//! the group above let 4 KiB direct reads through at 15,000/s on Linux 6.18; in the own group it held.

use std::path::{Path, PathBuf};

use crate::control_groups::{ControlGroup, ControlGroups, Hierarchy};
use crate::kernel_files::{read_number, read_trimmed};
use crate::{DeviceFacts, HostFacts, IoLimit};

/// The limits that apply to a process. If several groups set one for CPUs or memory, the tightest counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Limits {
    /// Limits for the disk and everything it is made of.
    pub(super) io: Vec<IoLimit>,
    pub(super) cpus: Option<f64>,
    pub(super) memory_bytes: Option<u64>,
    /// The file that sets the quota of the CPUs.
    pub(super) cpus_file: Option<PathBuf>,
    /// The file that sets the memory limit.
    pub(super) memory_file: Option<PathBuf>,
}

/// Files of version 1 that limit I/O, and keys of version 2's `io.max`.
pub(super) const IO_LIMITS: [(&str, &str, &str); 4] = [
    ("blkio.throttle.read_iops_device", "riops", "read IOPS"),
    ("blkio.throttle.write_iops_device", "wiops", "write IOPS"),
    ("blkio.throttle.read_bps_device", "rbps", "read bytes/s"),
    ("blkio.throttle.write_bps_device", "wbps", "write bytes/s"),
];

impl Limits {
    /// Reads the limits of the process `pid`, or of this process.
    pub(super) fn read(
        root: &Path,
        pid: Option<u32>,
        device: &DeviceFacts,
        host: &HostFacts,
    ) -> Self {
        let groups = ControlGroups::read(root, &root.join("proc"), pid);
        let unified = groups.own_to_top(Hierarchy::V2);
        let mut io: Vec<IoLimit> = unified.iter().flat_map(io_max).collect();
        if let Some(own) = groups.own_to_top(Hierarchy::V1("blkio")).first() {
            io.extend(blkio_throttle(own));
        }
        io.retain(|limit| device.layers.iter().any(|l| l.device == limit.device));
        let mut cpus: Vec<(f64, PathBuf)> = unified.iter().filter_map(cpu_max).collect();
        cpus.extend(
            groups
                .own_to_top(Hierarchy::V1("cpu"))
                .iter()
                .filter_map(cpu_quota),
        );
        let mut memory = numbers(&unified, "memory.max");
        memory.extend(numbers(
            &groups.own_to_top(Hierarchy::V1("memory")),
            "memory.limit_in_bytes",
        ));
        // Without a limit, version 1 shows nearly 2^63; a limit above all memory limits nothing.
        let all_memory = match host.memory_bytes {
            0 => 1 << 62,
            bytes => bytes,
        };
        memory.retain(|(bytes, _)| *bytes < all_memory);
        let tightest = memory.into_iter().min();
        let fewest_cpus = cpus.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            io,
            cpus: fewest_cpus.as_ref().map(|(cpus, _)| *cpus),
            cpus_file: fewest_cpus.map(|(_, file)| file),
            memory_bytes: tightest.as_ref().map(|(bytes, _)| *bytes),
            memory_file: tightest.map(|(_, file)| file),
        }
    }
}

fn limit(group: &ControlGroup, device: &str, what: &str, per_s: &str) -> Option<IoLimit> {
    Some(IoLimit {
        cgroup: group.name.clone(),
        device: device.into(),
        what: what.into(),
        per_s: per_s.parse().ok()?,
    })
}

/// Reads a file that holds one number, from each group that has it.
fn numbers(groups: &[ControlGroup], file: &str) -> Vec<(u64, PathBuf)> {
    let files = groups.iter().map(|group| group.folder.join(file));
    files
        .filter_map(|file| Some((read_number(&file)?, file)))
        .collect()
}

/// Parses lines of `major:minor key=value …`; the value "max" is no limit.
fn io_max(group: &ControlGroup) -> Vec<IoLimit> {
    let text = read_trimmed(group.folder.join("io.max")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let device = words.next().unwrap_or_default();
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let what = IO_LIMITS.iter().find(|(_, name, _)| *name == key);
            limits.extend(what.and_then(|(_, _, what)| limit(group, device, what, value)));
        }
    }
    limits
}

/// Reads one file per kind of limit, with lines of `major:minor value`.
fn blkio_throttle(group: &ControlGroup) -> Vec<IoLimit> {
    let mut limits = Vec::new();
    for (file, _, what) in IO_LIMITS {
        let text = read_trimmed(group.folder.join(file)).unwrap_or_default();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        limits.extend(lines.filter_map(|(device, per_s)| limit(group, device, what, per_s)));
    }
    limits
}

/// Parses `quota period`, both µs; the quota "max" is no limit.
fn cpu_max(group: &ControlGroup) -> Option<(f64, PathBuf)> {
    let file = group.folder.join("cpu.max");
    let text = read_trimmed(&file)?;
    let (quota, period) = text.split_once(' ')?;
    Some((cpus(quota.parse().ok()?, period.parse().ok()?)?, file))
}

/// Returns the CPUs that the quota allows; the quota -1 is no limit.
fn cpu_quota(group: &ControlGroup) -> Option<(f64, PathBuf)> {
    let file = group.folder.join("cpu.cfs_quota_us");
    let period_us = read_number(group.folder.join("cpu.cfs_period_us"))?;
    Some((cpus(read_number(&file)?, period_us)?, file))
}

fn cpus(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}
