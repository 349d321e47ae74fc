//! Facts about the host, read from `/proc` and `/sys`.
//!
//! Everything is optional: a container may hide any of it, and a missing fact is not an error.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel_files::{bracketed, read_trimmed};

/// The host. Its name is left out on purpose, because reports are passed on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct HostFacts {
    /// Kernel release.
    pub kernel: String,
    pub cpu_model: String,
    /// Number of logical CPUs.
    pub cpus: u32,
    /// Total memory, bytes.
    pub memory_bytes: u64,
    /// Load average over one minute when the run began.
    pub load_1m: f64,
    /// The active setting in `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub transparent_huge_pages: Option<String>,
    /// Whether the kernel paged out idle memory when the run began, although none was short
    /// ([`HostFacts::pages_out_idle_memory`]).
    pub idle_is_paged_out: bool,
}

impl HostFacts {
    /// Reads the facts below `root` ("/" outside of tests).
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
        Self {
            kernel: read_trimmed(root.join("proc/sys/kernel/osrelease")).unwrap_or_default(),
            cpu_model: (*cpu_models.first().unwrap_or(&"unknown")).to_string(),
            cpus: u32::try_from(processors).unwrap_or(0),
            memory_bytes: memory_kib * 1024,
            load_1m: Self::load_1m(root),
            transparent_huge_pages: read_trimmed(
                root.join("sys/kernel/mm/transparent_hugepage/enabled"),
            )
            .as_deref()
            .and_then(bracketed),
            idle_is_paged_out: Self::pages_out_idle_memory(root),
        }
    }

    /// Returns whether the kernel pages out memory that has not been used for a while, although none is short
    /// (DAMON's proactive reclaim, which some virtual machines use to return memory to their hosts). The page
    /// cache then loses pages that a host with as much free memory would keep. False if that is hidden.
    pub fn pages_out_idle_memory(root: &Path) -> bool {
        let reclaim = read_trimmed(root.join("sys/module/damon_reclaim/parameters/enabled"));
        if reclaim.is_some_and(|enabled| enabled == "Y") {
            return true;
        }
        let numbered = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_number = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.parse::<u32>().is_ok())
            };
            entries
                .map(|entry| entry.path())
                .filter(is_number)
                .collect()
        };
        let monitors = numbered(&root.join("sys/kernel/mm/damon/admin/kdamonds"));
        let is_on = |monitor: &PathBuf| {
            read_trimmed(monitor.join("state")).is_some_and(|state| state == "on")
        };
        let contexts = monitors
            .iter()
            .filter(|monitor| is_on(monitor))
            .flat_map(|monitor| numbered(&monitor.join("contexts")));
        let mut schemes = contexts.flat_map(|context| numbered(&context.join("schemes")));
        schemes.any(|scheme| {
            read_trimmed(scheme.join("action")).is_some_and(|action| action == "pageout")
        })
    }

    /// Returns the present load average over one minute; 0 if it is hidden.
    pub fn load_1m(root: &Path) -> f64 {
        let load = read_trimmed(root.join("proc/loadavg")).unwrap_or_default();
        let first = load.split(' ').next();
        first.and_then(|v| v.parse().ok()).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn paging_out_of_idle_memory_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join("sys").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let is_seen = || HostFacts::read(root.path()).idle_is_paged_out;
        assert!(!is_seen());
        let monitor = "kernel/mm/damon/admin/kdamonds";
        write(&format!("{monitor}/nr_kdamonds"), "1\n");
        write(&format!("{monitor}/0/state"), "on\n");
        let scheme = format!("{monitor}/0/contexts/0/schemes/0/action");
        write(&scheme, "stat\n");
        assert!(!is_seen());
        write(&scheme, "pageout\n");
        assert!(is_seen());
        write(&format!("{monitor}/0/state"), "off\n");
        assert!(!is_seen());
        write("module/damon_reclaim/parameters/enabled", "N\n");
        assert!(!is_seen());
        write("module/damon_reclaim/parameters/enabled", "Y\n");
        assert!(is_seen());
    }
}
