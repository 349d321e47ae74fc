//! Reads the kernel's counters for the control group of the server's process, in both versions of the interface
//! (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/{cpuacct,memory}.rst).

use std::fs;
use std::path::{Path, PathBuf};

use seekscope_run::control_groups::Hierarchy;

use super::Rows;
use super::group_memory::GroupMemory;
use crate::process::ProcFs;

const SOURCE: &str = "cgroup";

/// Folders of the group, per hierarchy; `None` if there is none.
#[derive(Debug, Default)]
pub(super) struct GroupCounters {
    unified: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
    /// The group and those around it, each of which may have a quota.
    cpu: Vec<PathBuf>,
    /// The group whose limit of memory is the tightest, and the process's own, which counts what the kernel ended.
    memory: Option<GroupMemory>,
    own_memory: Option<PathBuf>,
    blkio: Option<PathBuf>,
}

impl GroupCounters {
    /// Finds the group that the process is in now.
    pub(super) fn find(proc_fs: &ProcFs, pid: Option<u32>) -> Self {
        let Some(pid) = pid else {
            return Self::default();
        };
        let groups = proc_fs.control_groups(pid);
        let own = |hierarchy| groups.own_to_top(hierarchy).into_iter().next();
        let folder = |hierarchy| Some(own(hierarchy)?.folder);
        let around = groups.own_to_top(groups.hierarchy_of("cpu")).into_iter();
        Self {
            memory: GroupMemory::find(&groups),
            own_memory: folder(groups.hierarchy_of("memory")),
            unified: folder(Hierarchy::V2),
            cpuacct: folder(Hierarchy::V1("cpuacct")),
            cpu: around.map(|group| group.folder).collect(),
            blkio: folder(Hierarchy::V1("blkio")),
        }
    }

    /// Reads the counters. If both versions count something, the newer one's figure is taken.
    pub(super) fn read(&self, device: Option<&str>, rows: &mut Rows) {
        let unified = |name| self.unified.as_deref().and_then(|f| read_file(f, name));
        let v1 =
            |folder: &Option<PathBuf>, name| folder.as_deref().and_then(|f| read_file(f, name));
        let number = |text: Option<String>| text.and_then(|t| t.trim().parse::<u64>().ok());

        let stat = unified("cpu.stat");
        let cpu_ns = field(stat.as_deref(), "usage_usec")
            .map(|us| us.saturating_mul(1_000))
            .or_else(|| number(v1(&self.cpuacct, "cpuacct.usage")));
        push(rows, "cpu_ns", cpu_ns);
        push(rows, "cpu_throttled_ns", self.throttled_ns());
        if let Some(memory) = &self.memory {
            memory.read(|name, value| push(rows, name, value));
        }

        let Some(device) = device else { return };
        let stat = unified("io.stat").unwrap_or_default();
        let bytes = v1(&self.blkio, "blkio.throttle.io_service_bytes").unwrap_or_default();
        let requests = v1(&self.blkio, "blkio.throttle.io_serviced").unwrap_or_default();
        for (key, old, word, name) in [
            ("rbytes", &bytes, "Read", "read_bytes"),
            ("wbytes", &bytes, "Write", "write_bytes"),
            ("rios", &requests, "Read", "reads"),
            ("wios", &requests, "Write", "writes"),
        ] {
            let value = of_device(&stat, device, key, '=');
            push(
                rows,
                name,
                value.or_else(|| of_device(old, device, word, ' ')),
            );
        }
    }

    /// Reads how many processes of the group the kernel ended for want of memory. The group may outlive the server's.
    pub(super) fn read_oom_kills(&self, rows: &mut Rows) {
        let events = ["memory.events", "memory.oom_control"].into_iter();
        let mut events = events.filter_map(|name| read_file(self.own_memory.as_deref()?, name));
        push(
            rows,
            "oom_kills",
            field(events.next().as_deref(), "oom_kill"),
        );
    }

    /// Returns the time for which the group was throttled, summed over CPUs: each group counts what its own quota did.
    fn throttled_ns(&self) -> Option<u64> {
        let of_group = |folder: &PathBuf| {
            let stat = read_file(folder, "cpu.stat");
            let us = field(stat.as_deref(), "throttled_usec");
            let ns = us.map(|us| us.saturating_mul(1_000));
            ns.or_else(|| field(stat.as_deref(), "throttled_time"))
        };
        let known = self.cpu.iter().filter_map(of_group);
        known.reduce(u64::saturating_add)
    }
}

pub(super) fn read_file(folder: &Path, name: &str) -> Option<String> {
    fs::read_to_string(folder.join(name)).ok()
}

/// Reads a field from lines `name value`.
pub(super) fn field(text: Option<&str>, name: &str) -> Option<u64> {
    let mut lines = text?.lines();
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

/// Reads a value from lines `major:minor key=value key=value` (version 2) or `major:minor key value` (version
/// 1).
fn of_device(text: &str, device: &str, key: &str, equals: char) -> Option<u64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
    lines.find_map(|line| {
        let at = line.find(key)?;
        let value = line.get(at + key.len()..)?.strip_prefix(equals)?;
        value.split(' ').next()?.parse().ok()
    })
}

fn push(rows: &mut Rows, name: &str, value: Option<u64>) {
    if let Some(value) = value {
        rows.push(SOURCE, name, value as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counters of process 7, with `mountinfo` and its group as given.
    fn read(root: &Path, mounts: &str, group: &str) -> Vec<(String, f64)> {
        fs::create_dir_all(root.join("self")).unwrap();
        fs::create_dir_all(root.join("7")).unwrap();
        fs::write(root.join("self/mountinfo"), mounts).unwrap();
        fs::write(root.join("7/cgroup"), group).unwrap();
        let group = GroupCounters::find(&ProcFs::at(root), Some(7));
        let mut rows = Rows::now();
        group.read(Some("254:0"), &mut rows);
        group.read_oom_kills(&mut rows);
        let samples = rows.samples.into_iter();
        samples.map(|s| (s.name, s.value)).collect()
    }

    #[test]
    fn both_versions() {
        let root = tempfile::tempdir().unwrap();
        let point = root.path().join("groups");
        let group = point.join("db");
        fs::create_dir_all(&group).unwrap();
        for (name, text) in [
            (
                "cpu.stat",
                "usage_usec 5\nnr_throttled 1\nthrottled_usec 2\n",
            ),
            ("memory.current", "4096\n"),
            (
                "io.stat",
                "8:0 rbytes=1\n254:0 rbytes=10 wbytes=20 rios=3 wios=x\n",
            ),
            ("cpuacct.usage", "77\n"),
            (
                "blkio.throttle.io_serviced",
                "8:0 Read 1\n254:0 Read 5\n254:0 Write 6\n254:0 Total 11\nTotal 12\n",
            ),
            (
                "blkio.throttle.io_service_bytes",
                "254:0 Read 4096\n254:0 Write x\n",
            ),
        ] {
            fs::write(group.join(name), text).unwrap();
        }
        let point = point.display();
        let v2 = format!("32 23 0:29 / {point} rw - cgroup2 cgroup2 rw\n");
        let expected = [
            ("cpu_ns", 5_000.0),
            ("cpu_throttled_ns", 2_000.0),
            ("memory_bytes", 4_096.0),
            ("read_bytes", 10.0),
            ("write_bytes", 20.0),
            ("reads", 3.0),
        ]
        .map(|(name, value)| (name.to_string(), value));
        assert_eq!(read(root.path(), &v2, "0::/db\n"), expected);
        assert_eq!(read(root.path(), &v2, "0::/../../etc\n"), []);

        let v1 = format!("32 23 0:29 / {point} rw - cgroup cgroup rw,cpu,cpuacct\n");
        // A quota of the group, and one of the group around it.
        fs::write(group.join("cpu.stat"), "nr_throttled 1\nthrottled_time 5\n").unwrap();
        fs::write(
            group.parent().unwrap().join("cpu.stat"),
            "throttled_time 9\n",
        )
        .unwrap();
        let expected = [("cpu_ns", 77.0), ("cpu_throttled_ns", 14.0)];
        let expected = expected.map(|(name, value)| (name.to_string(), value));
        assert_eq!(read(root.path(), &v1, "2:cpu,cpuacct:/db\n"), expected);
        fs::write(
            group.join("memory.oom_control"),
            "under_oom 0\noom_kill 2\n",
        )
        .unwrap();
        let v1 = format!("32 23 0:29 / {point} rw - cgroup cgroup rw,memory\n");
        let read_in_v1 = read(root.path(), &v1, "2:memory:/db\n");
        assert!(
            read_in_v1.contains(&("oom_kills".into(), 2.0)),
            "{read_in_v1:?}"
        );
        let v1 = format!("32 23 0:29 / {point} rw - cgroup cgroup rw,blkio\n");
        let expected = [("read_bytes", 4_096.0), ("reads", 5.0), ("writes", 6.0)];
        let expected = expected.map(|(name, value)| (name.to_string(), value));
        assert_eq!(read(root.path(), &v1, "2:blkio:/db\n"), expected);
    }
}
