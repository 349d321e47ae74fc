//! Reads the settings of the host that bear on a database's disk from `/proc` and `/sys`: see [`HostSettings`].

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::kernel_files::{bracketed, read_number, read_trimmed};
use crate::{DeviceFacts, HostFacts, HostSettings, Surroundings};

/// The kernel returns no more than a page per read.
const NUMA_MAPS_BYTES: usize = 4_096;

impl HostSettings {
    /// Reads, below `root` ("/" outside of tests), the settings of the host and what applies to the process
    /// `pid`: its control groups, limits and memory. Without a process the limits are our own. `directory` is
    /// the data directory, which lies on `device`. Whatever is hidden is `None`.
    pub fn read(
        root: &Path,
        pid: Option<u32>,
        directory: &Path,
        device: &DeviceFacts,
        host: &HostFacts,
    ) -> Self {
        let process = pid.map(|pid| Process::new(root, pid));
        let process = process.as_ref();
        let vm = |name: &str| read_number(root.join("proc/sys/vm").join(name));
        let meminfo = read_trimmed(root.join("proc/meminfo")).unwrap_or_default();
        let huge_pages = |name: &str| {
            let path = root.join("sys/kernel/mm/transparent_hugepage").join(name);
            read_trimmed(path).as_deref().and_then(bracketed)
        };
        let numa_nodes = numa_nodes(root);
        Self {
            surroundings: Surroundings::of_process(root, pid, directory, device, host),
            numa_nodes,
            numa_interleaved: process.and_then(Process::numa_interleaved),
            numa_balancing: read_number::<u32>(root.join("proc/sys/kernel/numa_balancing"))
                .map(|mode| mode > 0),
            zone_reclaim_mode: vm("zone_reclaim_mode"),
            swappiness: vm("swappiness"),
            swap_total_bytes: bytes_of(&meminfo, "SwapTotal:"),
            swapped_bytes: process.and_then(Process::swapped_bytes),
            dirty_ratio: vm("dirty_ratio"),
            dirty_background_ratio: vm("dirty_background_ratio"),
            transparent_huge_pages: huge_pages("enabled"),
            transparent_huge_pages_defrag: huge_pages("defrag"),
            open_files_limit: process.and_then(Process::open_files_limit),
            open_files: process.and_then(Process::open_files),
            memory_available_bytes: bytes_of(&meminfo, "MemAvailable:"),
            containerised: process.is_some_and(Process::is_containerised),
        }
    }
}

/// A process below a `/proc` tree.
struct Process<'a> {
    root: &'a Path,
    folder: PathBuf,
}

impl<'a> Process<'a> {
    fn new(root: &'a Path, pid: u32) -> Self {
        Self {
            root,
            folder: root.join("proc").join(pid.to_string()),
        }
    }

    /// Returns whether its memory is spread over all nodes (numa(7)). A process started that way has the policy
    /// for nearly every mapping; single mappings may have another. `None` if there is nothing to read.
    ///
    /// Only the first mappings are examined: for each, the kernel counts all pages with the map of the
    /// process's memory locked, which would hold up a server with a large cache.
    fn numa_interleaved(&self) -> Option<bool> {
        let mut page = [0; NUMA_MAPS_BYTES];
        let bytes = File::open(self.folder.join("numa_maps"))
            .and_then(|mut file| file.read(&mut page))
            .ok()?;
        let maps = String::from_utf8_lossy(page.get(..bytes)?);
        let policies = maps.lines().filter_map(|line| line.split(' ').nth(1));
        let (mut interleaved, mut all) = (0_usize, 0_usize);
        for policy in policies {
            all += 1;
            interleaved += usize::from(policy.starts_with("interleave"));
        }
        (all > 0).then_some(interleaved * 2 > all)
    }

    fn swapped_bytes(&self) -> Option<u64> {
        bytes_of(&read_trimmed(self.folder.join("status"))?, "VmSwap:")
    }

    /// Returns the soft limit; no limit is given as the largest number.
    fn open_files_limit(&self) -> Option<u64> {
        let limits = read_trimmed(self.folder.join("limits"))?;
        let rest = limits
            .lines()
            .find_map(|line| line.strip_prefix("Max open files"))?;
        match rest.split_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    }

    fn open_files(&self) -> Option<u64> {
        let entries = std::fs::read_dir(self.folder.join("fd")).ok()?;
        u64::try_from(entries.count()).ok()
    }

    /// Returns whether it is in other PID or mount namespaces than ours.
    fn is_containerised(&self) -> bool {
        ["pid", "mnt"].iter().any(|kind| {
            let of = |folder: &Path| std::fs::read_link(folder.join("ns").join(kind)).ok();
            let (its, ours) = (of(&self.folder), of(&self.root.join("proc/self")));
            its.zip(ours).is_some_and(|(its, ours)| its != ours)
        })
    }
}

/// Returns the number of nodes with memory or processors; 1 if the kernel does not say.
fn numa_nodes(root: &Path) -> u32 {
    let entries = std::fs::read_dir(root.join("sys/devices/system/node"));
    let names = entries.into_iter().flatten().flatten();
    let nodes = names.filter(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    });
    u32::try_from(nodes.count()).unwrap_or(u32::MAX).max(1)
}

/// Reads a value from lines such as `SwapTotal:  2048 kB`.
fn bytes_of(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::BlockLayer;

    /// Returns a host with two nodes and a server in a container, process 7; we are in group "/ours".
    fn host() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             100                  100                  processes\n\
                      Max open files            64000                128000               files\n";
        for (name, text) in [
            (
                "proc/meminfo",
                "MemTotal: 100 kB\nMemAvailable:    40 kB\nSwapTotal:  8 kB\n",
            ),
            ("proc/sys/vm/swappiness", "1\n"),
            ("proc/sys/vm/zone_reclaim_mode", "0\n"),
            ("proc/sys/vm/dirty_ratio", "15\n"),
            ("proc/sys/vm/dirty_background_ratio", "x\n"),
            ("proc/sys/kernel/numa_balancing", "2\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never\n",
            ),
            (
                "sys/kernel/mm/transparent_hugepage/defrag",
                "always defer [madvise] never\n",
            ),
            ("sys/devices/system/node/node0/cpulist", "0\n"),
            ("sys/devices/system/node/node1/cpulist", "1\n"),
            ("sys/devices/system/node/possible", "0-1\n"),
            ("proc/7/status", "Name:\tmongod\nVmSwap:\t   12 kB\n"),
            ("proc/7/limits", limits),
            (
                "proc/7/numa_maps",
                "55d interleave:0-1 file=/x\n7ff interleave:0-1 heap\n7fe default stack\n",
            ),
            ("proc/7/cgroup", "0::/server\n"),
            ("proc/self/cgroup", "0::/ours\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/server/io.max", "259:0 riops=500\n"),
            ("sys/fs/cgroup/server/memory.max", "40960\n"),
            ("sys/fs/cgroup/ours/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/ours/memory.max", "4096\n"),
        ] {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (process, namespace) in [("7", "pid:[2]"), ("self", "pid:[1]")] {
            let folder = root.path().join("proc").join(process);
            fs::create_dir_all(folder.join("ns")).unwrap();
            symlink(namespace, folder.join("ns/pid")).unwrap();
            fs::create_dir_all(folder.join("fd")).unwrap();
            symlink("/dev/null", folder.join("fd/0")).unwrap();
        }
        root
    }

    fn read(root: &Path, pid: Option<u32>) -> HostSettings {
        let device = DeviceFacts {
            layers: vec![BlockLayer {
                name: "nvme0n1".into(),
                device: "259:0".into(),
                kind: "disk".into(),
            }],
            ..DeviceFacts::default()
        };
        HostSettings::read(root, pid, root, &device, &HostFacts::default())
    }

    #[test]
    fn of_a_server_in_a_container() {
        let root = host();
        let settings = read(root.path(), Some(7));
        assert_eq!(
            (settings.numa_nodes, settings.numa_interleaved),
            (2, Some(true))
        );
        assert_eq!(settings.numa_balancing, Some(true));
        assert_eq!(
            (settings.swappiness, settings.zone_reclaim_mode),
            (Some(1), Some(0))
        );
        assert_eq!(
            (settings.dirty_ratio, settings.dirty_background_ratio),
            (Some(15), None)
        );
        assert_eq!(settings.swap_total_bytes, Some(8 << 10));
        assert_eq!(settings.swapped_bytes, Some(12 << 10));
        assert_eq!(settings.memory_available_bytes, Some(40 << 10));
        assert_eq!(settings.transparent_huge_pages.as_deref(), Some("always"));
        assert_eq!(
            settings.transparent_huge_pages_defrag.as_deref(),
            Some("madvise")
        );
        assert_eq!(
            (settings.open_files_limit, settings.open_files),
            (Some(64_000), Some(1))
        );
        assert!(settings.containerised);
        // The limits are those of the server's group, not of ours.
        let surroundings = &settings.surroundings;
        assert_eq!(surroundings.memory_limit_bytes, Some(40_960));
        assert_eq!(surroundings.io_limits[0].per_s, 500);
        assert_eq!(surroundings.cpu_quota, None);
    }

    #[test]
    fn without_a_process_the_limits_are_ours() {
        let root = host();
        let settings = read(root.path(), None);
        assert_eq!(settings.surroundings.memory_limit_bytes, Some(4_096));
        assert_eq!(settings.surroundings.cpu_quota, Some(0.5));
        assert_eq!(
            (settings.open_files, settings.numa_interleaved),
            (None, None)
        );
        assert!(!settings.containerised);
        assert_eq!(settings.swappiness, Some(1));
    }

    #[test]
    fn a_group_out_of_sight_has_no_limits() {
        let root = host();
        fs::write(root.path().join("proc/7/cgroup"), "0::/../../ours\n").unwrap();
        let settings = read(root.path(), Some(7));
        assert_eq!(settings.surroundings.memory_limit_bytes, None);
    }

    #[test]
    fn nothing_is_known_of_an_empty_host() {
        let root = tempfile::tempdir().unwrap();
        let settings = read(root.path(), Some(7));
        let nothing = HostSettings {
            numa_nodes: 1,
            ..HostSettings::default()
        };
        assert_eq!(settings, nothing);
    }
}
