//! Reads the memory of control groups: what a group may hold, what it holds, and what it had to give up and
//! read again. Of the server's own group and all groups above it, the one with the tightest limit is the
//! effective one.
//!
//! A group full of page cache is nothing unusual: the kernel gives cache up only when something else needs the
//! room. Refaults are the sign that it was needed: file pages that are read again although they had been in the
//! group's memory, which the kernel recognises by what it remembers of each evicted page.

use std::path::{Path, PathBuf};

use seekscope_run::control_groups::{ControlGroups, Hierarchy};

use super::cgroup::{field, read_file};
use crate::process::ProcFs;

/// A limit above this is none: version 1 shows nearly 2^63.
const NO_LIMIT: u64 = 1 << 62;

/// The files and fields in which a version of the interface keeps each figure.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Field of the lines `name value` in `memory.stat`, groups below included.
    anonymous: &'static str,
    of_files: &'static str,
    /// The part of it that the kernel gives up when memory is short; files that exist only in memory (tmpfs)
    /// are not given up.
    caches: [&'static str; 2],
    /// The field's names, by kernel release.
    refaults: [&'static str; 2],
}

const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    anonymous: "anon",
    of_files: "file",
    caches: ["inactive_file", "active_file"],
    refaults: ["workingset_refault_file", "workingset_refault"],
};
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    anonymous: "total_rss",
    of_files: "total_cache",
    caches: ["total_inactive_file", "total_active_file"],
    refaults: ["total_workingset_refault_file", "total_workingset_refault"],
};

/// The memory of one control group.
#[derive(Debug)]
pub struct GroupMemory {
    folder: PathBuf,
    files: &'static Files,
    page_bytes: u64,
}

impl GroupMemory {
    /// Finds the effective group, in either version of the interface. The version that shows the usage is the
    /// one with the controller.
    pub(super) fn find(groups: &ControlGroups) -> Option<Self> {
        let groups = [(Hierarchy::V2, &V2), (Hierarchy::V1("memory"), &V1)]
            .map(|(hierarchy, files)| Self::all(groups, hierarchy, files))
            .into_iter()
            .find(|groups| {
                groups
                    .first()
                    .is_some_and(|own| own.usage_bytes().is_some())
            })?;
        let limit_bytes = |group: &Self| group.limit_bytes().unwrap_or(u64::MAX);
        // Without any limit, the process's own group is taken.
        groups.into_iter().min_by_key(limit_bytes)
    }

    /// Returns the group of the process and all groups above it, its own first; `None` if they cannot be seen
    /// from here, so that there may be an unknown limit.
    pub fn all_of(proc_fs: &ProcFs, pid: u32) -> Option<Vec<Self>> {
        let groups = proc_fs.control_groups(pid);
        let hierarchy = groups.hierarchy_of("memory");
        let files = match hierarchy {
            Hierarchy::V1(_) => &V1,
            Hierarchy::V2 => &V2,
        };
        let groups = Self::all(&groups, hierarchy, files);
        groups.first()?.folder.is_dir().then_some(groups)
    }

    fn all(groups: &ControlGroups, hierarchy: Hierarchy, files: &'static Files) -> Vec<Self> {
        let groups = groups.own_to_top(hierarchy).into_iter();
        groups.map(|group| Self::at(group.folder, files)).collect()
    }

    fn at(folder: PathBuf, files: &'static Files) -> Self {
        Self {
            folder,
            files,
            page_bytes: rustix::param::page_size() as u64,
        }
    }

    /// Returns the directory where the kernel shows it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the limit, bytes; `None` if there is none.
    pub fn limit_bytes(&self) -> Option<u64> {
        number(&self.folder, self.files.limit).filter(|bytes| *bytes < NO_LIMIT)
    }

    fn usage_bytes(&self) -> Option<u64> {
        number(&self.folder, self.files.usage)
    }

    /// Returns what the group holds and the kernel cannot take back when the limit is reached: everything
    /// except caches of files.
    pub fn held_bytes(&self) -> Option<u64> {
        let usage_bytes = self.usage_bytes()?;
        let stat = read_file(&self.folder, "memory.stat");
        let caches = self.files.caches.iter();
        let caches_bytes: u64 = caches.filter_map(|name| field(stat.as_deref(), name)).sum();
        Some(usage_bytes.saturating_sub(caches_bytes))
    }

    /// Passes on the kernel's figures.
    pub(super) fn read(&self, mut push: impl FnMut(&str, Option<u64>)) {
        let stat = read_file(&self.folder, "memory.stat");
        let of_stat = |name| field(stat.as_deref(), name);
        let refaults = self.files.refaults.iter().find_map(|name| of_stat(name));
        push("memory_bytes", self.usage_bytes());
        push("memory_limit_bytes", self.limit_bytes());
        push("memory_anonymous_bytes", of_stat(self.files.anonymous));
        push("memory_file_bytes", of_stat(self.files.of_files));
        push(
            "memory_refault_bytes",
            refaults.map(|pages| pages.saturating_mul(self.page_bytes)),
        );
    }
}

fn number(folder: &Path, name: &str) -> Option<u64> {
    read_file(folder, name)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::fs;

    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn read(memory: &GroupMemory) -> HashMap<String, u64> {
        let mut found = HashMap::new();
        memory.read(|name, value| {
            found.extend(value.map(|value| (name.to_string(), value)));
        });
        found
    }

    /// Returns the effective group for process 7, whose line is given, in one hierarchy mounted at `top`.
    fn find(top: &Path, filesystem: &str, line: &str) -> Option<GroupMemory> {
        let root = tempfile::tempdir().unwrap();
        let mount = format!(
            "32 23 0:29 / {} rw - {filesystem} {filesystem} rw,memory\n",
            top.display()
        );
        write(&root.path().join("self"), &[("mountinfo", &mount)]);
        write(&root.path().join("7"), &[("cgroup", line)]);
        GroupMemory::find(&ProcFs::at(root.path()).control_groups(7))
    }

    #[test]
    fn the_tightest_group_of_version_1() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        let pod = top.join("pod");
        let own = pod.join("db");
        write(top, &[("memory.limit_in_bytes", "9223372036854771712\n")]);
        write(
            &pod,
            &[
                ("memory.limit_in_bytes", "700\n"),
                ("memory.usage_in_bytes", "697\n"),
                (
                    "memory.stat",
                    "cache 1\ntotal_cache 430\ntotal_rss 260\ntotal_workingset_refault_file 3\n",
                ),
            ],
        );
        write(
            &own,
            &[
                ("memory.limit_in_bytes", "900\n"),
                ("memory.usage_in_bytes", "600\n"),
            ],
        );
        let found = read(&find(top, "cgroup", "4:memory:/pod/db\n").unwrap());
        let value = |name: &str| found.get(name).copied();
        assert_eq!(value("memory_bytes"), Some(697));
        assert_eq!(value("memory_limit_bytes"), Some(700));
        assert_eq!(value("memory_anonymous_bytes"), Some(260));
        assert_eq!(value("memory_file_bytes"), Some(430));
        let page = rustix::param::page_size() as u64;
        assert_eq!(value("memory_refault_bytes"), Some(3 * page));
    }

    #[test]
    fn version_2_without_a_limit_is_the_own_group() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("db");
        write(
            &own,
            &[
                ("memory.max", "max\n"),
                ("memory.current", "600\n"),
                ("memory.stat", "anon 200\nfile x\nworkingset_refault 2\n"),
            ],
        );
        let line = "4:memory:/\n0::/db\n";
        let found = read(&find(top.path(), "cgroup2", line).unwrap());
        assert_eq!(found.get("memory_bytes"), Some(&600));
        assert_eq!(found.get("memory_anonymous_bytes"), Some(&200));
        assert_eq!(found.get("memory_limit_bytes"), None);
        assert_eq!(found.get("memory_file_bytes"), None);
        assert!(found.contains_key("memory_refault_bytes"));
        // The hierarchy is mounted, but without the controller.
        assert!(find(top.path(), "cgroup", line).is_none());
    }

    /// Returns the groups of process 7, with its line and `mountinfo` as given, below folders as given.
    fn all_of(root: &Path, mounts: &str, line: &str) -> Option<Vec<GroupMemory>> {
        write(&root.join("self"), &[("mountinfo", mounts)]);
        write(&root.join("7"), &[("cgroup", line)]);
        GroupMemory::all_of(&ProcFs::at(root), 7)
    }

    #[test]
    fn all_groups_of_a_process_are_seen_or_none() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("groups");
        let mount = |kind: &str, options: &str| {
            let point = top.join(kind);
            format!(
                "32 23 0:29 / {} rw - {kind} {kind} {options}\n",
                point.display()
            )
        };
        let both = mount("cgroup", "rw,memory") + &mount("cgroup2", "rw");
        write(
            &top.join("cgroup/pod/db"),
            &[
                ("memory.usage_in_bytes", "690\n"),
                ("memory.limit_in_bytes", "9223372036854771712\n"),
                (
                    "memory.stat",
                    "inactive_file 1\ntotal_inactive_file 300\ntotal_active_file 40\n",
                ),
            ],
        );
        write(
            &top.join("cgroup/pod"),
            &[("memory.limit_in_bytes", "700\n")],
        );
        write(&top.join("cgroup2/db"), &[("memory.max", "600\n")]);

        let groups = all_of(root.path(), &both, "4:memory:/pod/db\n0::/db\n").unwrap();
        let limits: Vec<_> = groups.iter().map(GroupMemory::limit_bytes).collect();
        assert_eq!(limits, [None, Some(700), None]);
        assert_eq!(groups[0].held_bytes(), Some(350));
        assert_eq!(groups[2].held_bytes(), None, "unknown is not zero");

        let groups = all_of(root.path(), &both, "0::/db\n").unwrap();
        assert_eq!(groups[0].limit_bytes(), Some(600));
        // Version 2 shows nothing for the topmost group, and it has no limit.
        let groups = all_of(root.path(), &both, "0::/\n").unwrap();
        assert_eq!(groups[0].limit_bytes(), None);

        for unseen in ["4:memory:/elsewhere\n0::/db\n", "0::/../db\n", ""] {
            assert!(all_of(root.path(), &both, unseen).is_none(), "{unseen}");
        }
        assert!(all_of(root.path(), "", "0::/db\n").is_none());
        assert!(GroupMemory::all_of(&ProcFs::at(root.path()), 8).is_none());
    }
}
