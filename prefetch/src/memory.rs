//! How much memory may be filled ahead of a scan: half of what the host can spare, and four fifths
//! of what our control group can. The host has other users. A group's limit applies to its members
//! only; there the rest is for what is being read, which is given back at once, and for what the
//! scan writes.

use std::fs;
use std::path::Path;

use seekscope_run::control_groups::{ControlGroups, Hierarchy};

/// Percentage of the available memory.
const HOST_PERCENT: u64 = 50;
const GROUP_PERCENT: u64 = 80;

/// Share of the leaves read ahead that may be gone before the scan comes to them: a sixteenth.
const LOST_SHARE: u64 = 16;
const DECREASE: f64 = 0.8;
const INCREASE: f64 = 0.02;
const PART_MIN: f64 = 0.05;
const BUDGET_BYTES_MIN: u64 = 4 << 20;

/// The memory that reading ahead may fill, which changes while a scan goes on: a server's own memory grows
/// as its cache fills, and the kernel may take pages all the same. Additive increase, multiplicative
/// decrease.
#[derive(Debug)]
pub struct Budget {
    /// Set by the user; otherwise what can be spared is looked up each time.
    named_bytes: Option<u64>,
    part: f64,
    /// Number of times it shrank because pages were taken.
    pub decreases: u64,
}

impl Budget {
    /// `named_bytes`: the amount the user wants, if any.
    pub fn new(named_bytes: Option<u64>) -> Self {
        Self {
            named_bytes,
            part: 1.0,
            decreases: 0,
        }
    }

    /// Returns the present budget, bytes, at least 4 MiB; `None` if nothing is known. Of `held`
    /// leaves, `lost` have gone since the last call.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "positive, and the cast saturates"
    )]
    pub fn bytes(&mut self, root: &Path, held: usize, lost: usize) -> Option<u64> {
        if lost as u64 > held as u64 / LOST_SHARE {
            self.part = (self.part * DECREASE).max(PART_MIN);
            self.decreases += 1;
        } else {
            self.part = (self.part + INCREASE).min(1.0);
        }
        let whole = self.named_bytes.or_else(|| spare_memory_bytes(root))?;
        Some(((whole as f64 * self.part) as u64).max(BUDGET_BYTES_MIN))
    }
}

/// Returns the memory available for reading ahead, bytes; `None` if the kernel does not say. `root`
/// is "/" outside of tests.
pub fn spare_memory_bytes(root: &Path) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    let host = kib.saturating_mul(1024) / 100 * HOST_PERCENT;
    let group = group_spare_bytes(root).map(|bytes| bytes / 100 * GROUP_PERCENT);
    Some(group.map_or(host, |group| group.min(host)))
}

/// What our control groups still allow, with caches of files counted as free: the least over all
/// levels. Supports versions 1 and 2.
fn group_spare_bytes(root: &Path) -> Option<u64> {
    let groups = ControlGroups::read(root, &root.join("proc"), None);
    let hierarchies = [(Hierarchy::V1("memory"), true), (Hierarchy::V2, false)].into_iter();
    let spare = hierarchies.flat_map(|(hierarchy, is_v1)| {
        let groups = groups.own_to_top(hierarchy).into_iter();
        groups.filter_map(move |group| spare_of(&group.folder, is_v1))
    });
    spare.min()
}

/// What one group can spare; `None` if it has no limit.
fn spare_of(group: &Path, is_v1: bool) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        fs::read_to_string(group.join(name))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let names = match is_v1 {
        true => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
        false => ["memory.max", "memory.current"],
    };
    let (limit, used) = (number(names[0])?, number(names[1])?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let caches = ["inactive_file", "active_file"].map(|name| {
        let wanted = if is_v1 {
            format!("total_{name}")
        } else {
            name.to_owned()
        };
        let lines = stat.lines().filter_map(|line| line.split_once(' '));
        let found = lines.into_iter().find(|(name, _)| *name == wanted);
        found
            .and_then(|(_, bytes)| bytes.trim().parse::<u64>().ok())
            .unwrap_or(0)
    });
    let fixed = used.saturating_sub(caches.iter().sum());
    Some(limit.saturating_sub(fixed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cgroup: &str, mountinfo: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    1000 kB\n");
        write("proc/self/cgroup", cgroup);
        write("proc/self/mountinfo", mountinfo);
        let v1 = "sys/fs/cgroup/memory/a";
        write(
            &format!("{v1}/b/memory.limit_in_bytes"),
            "9223372036854771712\n",
        );
        write(&format!("{v1}/b/memory.usage_in_bytes"), "5\n");
        write(&format!("{v1}/memory.limit_in_bytes"), "500000\n");
        write(&format!("{v1}/memory.usage_in_bytes"), "400000\n");
        write(
            &format!("{v1}/memory.stat"),
            "cache 1\ntotal_inactive_file 200000\ntotal_active_file 50000\n",
        );
        let v2 = "sys/fs/cgroup/unified/s";
        write(&format!("{v2}/memory.max"), "300000\n");
        write(&format!("{v2}/memory.current"), "100000\n");
        write(
            &format!("{v2}/memory.stat"),
            "inactive_file 40000\nactive_file 0\n",
        );
        root
    }

    const MOUNTS: &str = "30 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                          32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn it_gives_way_when_pages_are_taken_and_comes_back() {
        let nowhere = Path::new("/nonexistent");
        let mut budget = Budget::new(Some(100 << 20));
        assert_eq!(budget.bytes(nowhere, 100, 6), Some(100 << 20));
        assert_eq!(budget.bytes(nowhere, 100, 7), Some(80 << 20));
        assert_eq!(budget.decreases, 1);
        assert!(budget.bytes(nowhere, 0, 0) > Some(80 << 20));
        for _ in 0..20 {
            budget.bytes(nowhere, 100, 0);
        }
        assert_eq!(budget.bytes(nowhere, 100, 0), Some(100 << 20));
        for _ in 0..100 {
            budget.bytes(nowhere, 10, 10);
        }
        assert_eq!(budget.bytes(nowhere, 10, 10), Some(5 << 20));
        assert_eq!(Budget::new(None).bytes(nowhere, 0, 0), None);
        let group = host("4:memory:/a/b\n0::/\n", MOUNTS);
        assert_eq!(
            Budget::new(None).bytes(group.path(), 0, 0),
            Some(BUDGET_BYTES_MIN),
            "280,000 are too few"
        );
    }

    #[test]
    fn the_least_of_host_and_groups() {
        let spare = |cgroup: &str, mounts| spare_memory_bytes(host(cgroup, mounts).path());
        assert_eq!(spare("0::/\n", ""), Some(512_000), "half of the host's");
        // 500,000 minus 150,000 that are not caches.
        assert_eq!(spare("4:memory:/a/b\n0::/\n", MOUNTS), Some(280_000));
        assert_eq!(spare("4:memory:/a/b\n0::/s\n", MOUNTS), Some(192_000));
        assert_eq!(spare("0::/s\n", MOUNTS), Some(192_000));
        assert_eq!(spare_memory_bytes(Path::new("/nonexistent")), None);
    }
}
