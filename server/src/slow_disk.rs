//! Emulates a slow disk for one process: the kernel's cgroup I/O controller limits how many reads per second
//! and how many bytes per second a group of processes may send to one disk.
//!
//! Only reads are limited. cgroup v1 cannot charge write-back to the process that dirtied the pages, so a write
//! limit would apply to some writes and not to others.
//!
//! The limit counts requests, not distance: it resembles a disk arm because read-ahead makes sequential
//! requests large and random ones small. Time passes in slices of 100 ms, so totals over seconds are right
//! while single latencies are not.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use seekscope_run::control_groups::Hierarchy;
use seekscope_run::{DeviceFacts, Disk, ErrorKind, Kinded};

pub use crate::cgroup::CgroupTree;
use crate::cgroup::{Controller, join_group};

/// The limits of a slow disk. All are at least 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowDiskSpec {
    /// The name shown with every number of the emulated disk.
    pub name: String,
    /// Read requests per second.
    pub read_iops: u64,
    pub read_bytes_per_s: u64,
}

impl SlowDiskSpec {
    /// Returns a 7,200 rpm hard disk: 150 random reads per second, 150 MB/s sequential.
    pub fn hdd() -> Self {
        Self {
            name: "hdd".into(),
            read_iops: 150,
            read_bytes_per_s: 150_000_000,
        }
    }

    /// Returns the preset with this name.
    pub fn preset(name: &str) -> Option<Self> {
        (name == "hdd").then(Self::hdd)
    }

    /// Returns the disk for the record of a phase.
    pub fn disk(&self) -> Disk {
        Disk::Emulated {
            name: self.name.clone(),
            read_iops: self.read_iops,
            read_bytes_per_s: self.read_bytes_per_s,
        }
    }
}

/// The reason why a disk cannot be slowed down.
#[derive(Debug, thiserror::Error)]
pub enum SlowDiskError {
    #[error(
        "this kernel offers no I/O limits: neither a cgroup v1 hierarchy with blkio nor a cgroup v2 \
         one with io is mounted; mount one (mount -t cgroup -o blkio none /sys/fs/cgroup/blkio), \
         or run without an emulated disk"
    )]
    NoController,
    #[error(
        "{path}: permission denied; limiting a disk requires root (sudo) and, in a container, a \
         writable cgroup tree"
    )]
    NotPermitted { path: PathBuf },
    #[error(
        "{path} is on {filesystem}, which is not on a disk that could be limited; put the data on \
         a disk filesystem (ext4, xfs)"
    )]
    NoBlockDevice { path: String, filesystem: String },
    #[error(
        "the limit for {device} was refused ({path}: {source}); the kernel needs CONFIG_BLK_DEV_THROTTLING"
    )]
    Refused {
        device: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("process {pid} cannot be moved into the control group that limits the disk: {source}")]
    Process { pid: u32, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl Kinded for SlowDiskError {
    fn kind(&self) -> Option<ErrorKind> {
        matches!(self, Self::NotPermitted { .. }).then_some(ErrorKind::NotPermitted)
    }
}

/// A group of processes for which one disk is slow. Dropping it makes the disk fast again, moves the processes
/// back to where they came from and removes the group.
#[derive(Debug)]
pub struct SlowDisk {
    controller: Controller,
    group: PathBuf,
    device: String,
    spec: SlowDiskSpec,
    /// Groups that the processes came from; their later children go back to the first.
    origins: Vec<(u32, PathBuf)>,
    removed: bool,
}

impl SlowDisk {
    /// Creates the group `unique_name` (one path component, e.g. [`crate::Workspace::unique_name`]) that limits
    /// the whole disk under `device`. It contains no process yet.
    pub fn create(
        tree: &CgroupTree,
        spec: &SlowDiskSpec,
        device: &DeviceFacts,
        unique_name: &str,
    ) -> Result<Self, SlowDiskError> {
        let disk = device
            .disk_device
            .clone()
            .ok_or_else(|| SlowDiskError::NoBlockDevice {
                path: device.path.clone(),
                filesystem: device.filesystem.clone(),
            })?;
        let controller = tree.io_controller().ok_or(SlowDiskError::NoController)?;
        controller
            .enable()
            .map_err(|source| io_error(controller.top(), source))?;
        let group = controller.top().join(unique_name);
        if group.parent() != Some(controller.top()) {
            let source =
                io::Error::other("the name of a control group must be a single path component");
            return Err(SlowDiskError::Io {
                path: group,
                source,
            });
        }
        fs::create_dir(&group).map_err(|source| io_error(&group, source))?;
        let slow = Self {
            controller,
            group,
            device: disk,
            spec: spec.clone(),
            origins: Vec::new(),
            removed: false,
        };
        for (file, line) in limit_lines(&slow.controller, &slow.device, &slow.spec) {
            let path = slow.group.join(file);
            fs::write(&path, line).map_err(|source| match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    SlowDiskError::NotPermitted { path: path.clone() }
                }
                _ => SlowDiskError::Refused {
                    device: slow.device.clone(),
                    path: path.clone(),
                    source,
                },
            })?;
        }
        Ok(slow)
    }

    /// Slows down all threads of a process; its later children start in the group too.
    pub fn add_process(&mut self, pid: u32) -> Result<(), SlowDiskError> {
        let failed = |source| SlowDiskError::Process { pid, source };
        let origin = self.controller.group_of(pid).map_err(failed)?;
        join_group(&self.group, pid).map_err(failed)?;
        self.origins.push((pid, origin));
        Ok(())
    }

    /// Makes the disk fast again for a process; one that is not slowed down is left alone.
    pub fn release_process(&mut self, pid: u32) -> Result<(), SlowDiskError> {
        let Some(place) = self.origins.iter().position(|(p, _)| *p == pid) else {
            return Ok(());
        };
        let (_, origin) = self.origins.swap_remove(place);
        join_group(&origin, pid).map_err(|source| SlowDiskError::Process { pid, source })
    }

    /// Returns the group's directory, to be recorded in the lease.
    pub fn group(&self) -> &Path {
        &self.group
    }

    /// Returns the disk that is emulated.
    pub fn disk(&self) -> Disk {
        self.spec.disk()
    }

    /// Lifts the limits and removes the group.
    pub fn remove(mut self) -> Result<(), SlowDiskError> {
        self.lift()
    }

    fn lift(&mut self) -> Result<(), SlowDiskError> {
        if self.removed {
            return Ok(());
        }
        // The limits come first: even if a process cannot be moved, it is fast again.
        for (file, line) in lift_lines(&self.controller, &self.device) {
            let _ = fs::write(self.group.join(file), line);
        }
        let first_origin = self.origins.first().map(|(_, origin)| origin.clone());
        let fallback = first_origin.unwrap_or_else(|| self.controller.top().to_path_buf());
        let origins = &self.origins;
        let home = |pid| {
            origins
                .iter()
                .find(|(p, _)| *p == pid)
                .map_or(&fallback, |(_, o)| o)
                .clone()
        };
        remove_group_with(&self.group, home).map_err(|source| io_error(&self.group, source))?;
        self.removed = true;
        Ok(())
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = self.lift();
    }
}

/// Removes a group that a dead run left; its processes move to the group above. Only a directory that is a
/// cgroup (has `cgroup.procs`) and was named by us is touched.
pub(crate) fn remove_group(group: &Path) -> io::Result<()> {
    let above = group.parent().unwrap_or(Path::new("/"));
    let named_by_us = group
        .file_name()
        .is_some_and(|n| n.to_string_lossy().starts_with("seekscope-"));
    if !group.exists() {
        return Ok(());
    }
    if !named_by_us || !crate::cgroup::is_cgroup(group) || !crate::cgroup::is_cgroup(above) {
        return Err(io::Error::other(format!(
            "{} is not a control group that seekscope created",
            group.display()
        )));
    }
    remove_group_with(group, |_| above.to_path_buf())
}

fn remove_group_with(group: &Path, home: impl Fn(u32) -> PathBuf) -> io::Result<()> {
    let mut tries = 0;
    loop {
        let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines().filter_map(|line| line.parse().ok()) {
            // It may have ended meanwhile.
            let _ = join_group(&home(pid), pid);
        }
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Ending processes count as members for a moment longer.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && tries < 50 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
}

fn limit_lines(
    controller: &Controller,
    device: &str,
    spec: &SlowDiskSpec,
) -> Vec<(&'static str, String)> {
    let (iops, bytes) = (spec.read_iops.max(1), spec.read_bytes_per_s.max(1));
    match controller.hierarchy {
        Hierarchy::V1(_) => vec![
            (
                "blkio.throttle.read_iops_device",
                format!("{device} {iops}"),
            ),
            (
                "blkio.throttle.read_bps_device",
                format!("{device} {bytes}"),
            ),
        ],
        Hierarchy::V2 => vec![("io.max", format!("{device} riops={iops} rbps={bytes}"))],
    }
}

fn lift_lines(controller: &Controller, device: &str) -> Vec<(&'static str, String)> {
    match controller.hierarchy {
        Hierarchy::V1(_) => vec![
            ("blkio.throttle.read_iops_device", format!("{device} 0")),
            ("blkio.throttle.read_bps_device", format!("{device} 0")),
        ],
        Hierarchy::V2 => vec![("io.max", format!("{device} riops=max rbps=max"))],
    }
}

fn io_error(path: &Path, source: io::Error) -> SlowDiskError {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            SlowDiskError::NotPermitted { path }
        }
        _ => SlowDiskError::Io { path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> DeviceFacts {
        DeviceFacts {
            path: "/data".into(),
            disk_device: Some("254:0".into()),
            ..DeviceFacts::default()
        }
    }

    #[test]
    fn limits_are_written_for_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let v1 = CgroupTree::made_up("cgroup", root.path());
        let slow = SlowDisk::create(&v1, &SlowDiskSpec::hdd(), &device(), "seekscope-a").unwrap();
        let read = |file: &str| fs::read_to_string(slow.group().join(file)).unwrap();
        assert_eq!(read("blkio.throttle.read_iops_device"), "254:0 150");
        assert_eq!(read("blkio.throttle.read_bps_device"), "254:0 150000000");
        assert_eq!(slow.disk().label(), "emulated hdd (150 IOPS, 150 MB/s)");

        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu io memory\n").unwrap();
        fs::write(root.path().join("cgroup.subtree_control"), "").unwrap();
        let v2 = CgroupTree::made_up("cgroup2", root.path());
        let slow = SlowDisk::create(&v2, &SlowDiskSpec::hdd(), &device(), "seekscope-b").unwrap();
        let read = |file: &str| fs::read_to_string(slow.group().join(file)).unwrap();
        assert_eq!(read("io.max"), "254:0 riops=150 rbps=150000000");
        assert_eq!(
            fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap(),
            "+io"
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = tempfile::tempdir().unwrap();
        let tree = CgroupTree::made_up("cgroup", root.path());
        let memory = DeviceFacts {
            path: "/dev/shm".into(),
            filesystem: "tmpfs".into(),
            ..DeviceFacts::default()
        };
        let error =
            SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &memory, "seekscope-a").unwrap_err();
        assert!(
            error.to_string().contains("/dev/shm is on tmpfs"),
            "{error}"
        );
        let error = SlowDisk::create(
            &CgroupTree::discover(Path::new("/nonexistent")),
            &SlowDiskSpec::hdd(),
            &device(),
            "x",
        )
        .unwrap_err();
        assert!(matches!(error, SlowDiskError::NoController));
        for name in ["../x", "a/b", "", ".."] {
            assert!(
                SlowDisk::create(&tree, &SlowDiskSpec::hdd(), &device(), name).is_err(),
                "{name:?}"
            );
        }
    }

    #[test]
    fn only_our_own_cgroups_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("seekscope-x");
        fs::create_dir(&group).unwrap();
        assert!(remove_group(&group).is_err());
        assert!(remove_group(root.path()).is_err());
        remove_group(&root.path().join("seekscope-gone")).unwrap();
    }
}
