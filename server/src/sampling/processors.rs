//! Finds how many processors a process may use: those of its host that its affinity names (including cpusets),
//! and no more than the quota of any control group around it (Documentation/admin-guide/cgroup-v2.rst,
//! scheduler/sched-bwc.rst).

use std::path::Path;

use seekscope_run::control_groups::{ControlGroups, Hierarchy};

use super::cgroup::read_file;
use crate::process::ProcFs;

/// Returns the number of processors; `None` if neither affinity nor groups can be seen from here.
pub fn processors_allowed(proc_fs: &ProcFs, pid: u32) -> Option<u32> {
    let status = proc_fs.read(pid, "status").ok();
    let of_affinity = status.as_deref().and_then(affinity);
    let of_groups = least_quota(&proc_fs.control_groups(pid));
    of_affinity.into_iter().chain(of_groups).min()
}

/// Counts the processors in the line `Cpus_allowed_list: 0-3,8`.
fn affinity(status: &str) -> Option<u32> {
    let list = (status.lines()).find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let counts = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    counts.sum()
}

/// Returns the smallest quota of the groups around the process, in whole processors.
fn least_quota(groups: &ControlGroups) -> Option<u32> {
    let hierarchy = groups.hierarchy_of("cpu");
    let quota = match hierarchy {
        Hierarchy::V1(_) => quota_v1,
        Hierarchy::V2 => quota_v2,
    };
    let groups = groups.own_to_top(hierarchy);
    groups.iter().filter_map(|g| quota(&g.folder)).min()
}

/// Reads `cpu.max`, which is "QUOTA PERIOD" or "max PERIOD".
fn quota_v2(folder: &Path) -> Option<u32> {
    let text = read_file(folder, "cpu.max")?;
    let (quota, period) = text.trim().split_once(' ')?;
    whole(quota.parse().ok()?, period.parse().ok()?)
}

/// Reads a quota of version 1; -1 is none.
fn quota_v1(folder: &Path) -> Option<u32> {
    let number = |name| read_file(folder, name)?.trim().parse().ok();
    whole(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
}

/// Rounds up to whole processors: half a processor still runs a thread.
fn whole(quota_us: i64, period_us: i64) -> Option<u32> {
    (quota_us > 0 && period_us > 0)
        .then(|| quota_us.saturating_add(period_us - 1) / period_us)
        .and_then(|count| u32::try_from(count).ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn affinity_is_a_list_of_ranges() {
        let of = |list: &str| affinity(&format!("Name:\tmongod\nCpus_allowed_list:\t{list}\n"));
        assert_eq!(
            (of("0-3"), of("0-1,8,10-11"), of("5")),
            (Some(4), Some(5), Some(1))
        );
        assert_eq!(
            (of(""), of("3-1"), of("a"), affinity("")),
            (None, None, None, None)
        );
    }

    #[test]
    fn the_least_of_affinity_and_every_groups_quota() {
        for (kind, line, of_own, of_pod) in [
            (
                "cgroup2",
                "0::/pod/db\n",
                ("cpu.max", "max 100000\n"),
                [("cpu.max", "250000 100000\n"), ("unused", "")],
            ),
            (
                "cgroup",
                "3:cpu,cpuacct:/pod/db\n0::/\n",
                ("cpu.cfs_quota_us", "-1\n"),
                [
                    ("cpu.cfs_quota_us", "250000\n"),
                    ("cpu.cfs_period_us", "100000\n"),
                ],
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            let top = root.join("groups");
            let mount = format!(
                "32 23 0:29 / {} rw - {kind} {kind} rw,cpu,cpuacct\n",
                top.display()
            );
            let status = "Cpus_allowed_list:\t0-7\n";
            let files = [
                ("self/mountinfo", &*mount),
                ("7/cgroup", line),
                ("7/status", status),
            ];
            write(root, &files);
            write(&top.join("pod/db"), &[of_own]);
            let proc_fs = ProcFs::at(root);
            assert_eq!(processors_allowed(&proc_fs, 7), Some(8), "{kind}");
            write(&top.join("pod"), &of_pod);
            assert_eq!(processors_allowed(&proc_fs, 7), Some(3), "{kind}");
            write(root, &[("7/status", "Cpus_allowed_list:\t2\n")]);
            assert_eq!(processors_allowed(&proc_fs, 7), Some(1), "{kind}");
            assert_eq!(processors_allowed(&proc_fs, 8), None);
        }
    }
}
