//! What, around a disk, distorts a measurement on it or hurts a database.
//!
//! `limits` reads what control groups allow. Each distortion is found by one small function over the facts; the
//! functions are listed in tables, by where the distortion lies: `filesystem`, `disk`, `host_limits`.

mod disk;
mod filesystem;
mod host_limits;
mod limits;

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeviceFacts, HostFacts};

/// A disk limit that is set by a cgroup above this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IoLimit {
    /// Path of the cgroup below its hierarchy's root.
    pub cgroup: String,
    /// Device number of the disk, `major:minor`.
    pub device: String,
    /// What is limited: "read IOPS", "write IOPS", "read bytes/s" or "write bytes/s".
    pub what: String,
    /// The limit, per second.
    pub per_s: u64,
}

impl IoLimit {
    /// Returns whether writes are limited, not reads.
    pub fn is_of_writes(&self) -> bool {
        self.what.starts_with("write")
    }

    /// Returns whether bytes are limited, not requests.
    pub fn is_in_bytes(&self) -> bool {
        self.what.ends_with("bytes/s")
    }

    /// Returns the file that sets it in version 1 of control groups, and its key in version 2's `io.max`.
    pub fn file_and_key(&self) -> Option<(&'static str, &'static str)> {
        let mut known = limits::IO_LIMITS.iter();
        let (file, key, _) = known.find(|(_, _, what)| *what == self.what)?;
        Some((file, key))
    }
}

/// Something that makes the disk look different from what it is, or that hurts a database on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Distortion {
    /// Stable identifier, e.g. "tmpfs", "overlay", "cgroup-io-limit", "read-ahead-large".
    pub id: String,
    /// What was found, with numbers.
    pub what: String,
    /// Its effect on a database or on this measurement.
    pub consequence: String,
    /// What to do about it; empty if there is nothing to do.
    pub remedy: String,
}

/// What else distorts the measurements of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Surroundings {
    pub io_limits: Vec<IoLimit>,
    /// Number of CPUs that the cgroups allow; `None` if no limit was found.
    pub cpu_quota: Option<f64>,
    /// The kernel's file that sets the quota of the CPUs; if several groups set one, that of the tightest.
    pub cpu_quota_file: Option<String>,
    /// Memory that the cgroups allow, bytes; `None` if no limit was found.
    pub memory_limit_bytes: Option<u64>,
    /// The kernel's file that sets the memory limit, on the host that seekscope ran on; if several groups set one,
    /// that of the tightest.
    pub memory_limit_file: Option<String>,
    pub distortions: Vec<Distortion>,
}

impl Distortion {
    fn new(id: &str, what: String, consequence: &str, remedy: &str) -> Self {
        Self {
            id: id.into(),
            what,
            consequence: consequence.into(),
            remedy: remedy.into(),
        }
    }
}

/// The facts that the detectors judge.
struct Facts<'a> {
    device: &'a DeviceFacts,
    host: &'a HostFacts,
    limits: &'a limits::Limits,
    /// Whether the folder is marked to be overwritten in place on a copy-on-write filesystem.
    overwritten_in_place: bool,
}

/// Looks for one distortion.
type Detector = fn(&Facts<'_>) -> Option<Distortion>;

impl Surroundings {
    /// Returns the surroundings of `device`, on which `directory` lies, for this process; `/proc` and `/sys`
    /// are taken below `root` ("/" outside of tests).
    pub fn read(root: &Path, directory: &Path, device: &DeviceFacts, host: &HostFacts) -> Self {
        Self::of_process(root, None, directory, device, host)
    }

    /// Like [`Self::read`], with the limits of the control groups that the process `pid` is in.
    pub fn of_process(
        root: &Path,
        pid: Option<u32>,
        directory: &Path,
        device: &DeviceFacts,
        host: &HostFacts,
    ) -> Self {
        let limits = limits::Limits::read(root, pid, device, host);
        let facts = Facts {
            device,
            host,
            limits: &limits,
            overwritten_in_place: filesystem::overwritten_in_place(directory),
        };
        let detectors = [
            filesystem::DETECTORS,
            disk::DETECTORS,
            host_limits::DETECTORS,
        ];
        Self {
            distortions: detectors
                .concat()
                .iter()
                .filter_map(|detect| detect(&facts))
                .collect(),
            io_limits: limits.io,
            cpu_quota: limits.cpus,
            cpu_quota_file: limits.cpus_file.map(|file| file.display().to_string()),
            memory_limit_bytes: limits.memory_bytes,
            memory_limit_file: limits.memory_file.map(|file| file.display().to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
