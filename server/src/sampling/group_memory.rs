//! Memory of the control group whose limit counts: of the server's own group and all above it, the one with
//! the tightest limit. What it holds, and what it had to give up and read again.
//!
//! A group full of page cache is nothing unusual: the kernel gives cache up only when something else needs
//! the room. Refaults are the sign that it was needed: pages of files that are read again although they had
//! been in the group's memory, which the kernel tells by what it remembers of each page that it evicted.

use std::path::{Path, PathBuf};

use super::cgroup::{field, read_file};

/// Above this a limit is none: version 1 says nearly 2^63.
const NO_LIMIT: u64 = 1 << 62;

/// Where a version of the interface keeps what.
#[derive(Debug)]
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// Of lines `name value` in `memory.stat`, groups below included.
    anonymous: &'static str,
    of_files: &'static str,
    /// By release of the kernel.
    refaults: [&'static str; 2],
}

const V2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    anonymous: "anon",
    of_files: "file",
    refaults: ["workingset_refault_file", "workingset_refault"],
};
const V1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    anonymous: "total_rss",
    of_files: "total_cache",
    refaults: ["total_workingset_refault_file", "total_workingset_refault"],
};

/// See the module.
#[derive(Debug)]
pub(super) struct GroupMemory {
    folder: PathBuf,
    files: &'static Files,
    page_bytes: u64,
}

impl GroupMemory {
    /// Of the own group's folder and the top of its hierarchy, in either version of the interface. The one
    /// that tells the usage has the controller.
    pub(super) fn find(
        unified: Option<&(PathBuf, &Path)>,
        v1: Option<&(PathBuf, &Path)>,
    ) -> Option<Self> {
        let candidates = [(unified, &V2), (v1, &V1)];
        let mut known = candidates
            .into_iter()
            .filter_map(|(place, files)| Some((place?, files)))
            .filter(|((own, _), files)| number(own, files.usage).is_some());
        let ((own, top), files) = known.next()?;
        let ancestors = own.ancestors().take_while(|folder| folder.starts_with(top));
        let limits = ancestors.filter_map(|folder| {
            let bytes = number(folder, files.limit).filter(|bytes| *bytes < NO_LIMIT)?;
            Some((bytes, folder))
        });
        let tightest = limits.min_by_key(|(bytes, _)| *bytes);
        Some(Self {
            folder: tightest.map_or(own.as_path(), |(_, folder)| folder).into(),
            files,
            page_bytes: rustix::param::page_size() as u64,
        })
    }

    /// Hands over what the kernel tells.
    pub(super) fn read(&self, mut push: impl FnMut(&str, Option<u64>)) {
        let stat = read_file(&self.folder, "memory.stat");
        let of_stat = |name| field(stat.as_deref(), name);
        let limit = number(&self.folder, self.files.limit).filter(|bytes| *bytes < NO_LIMIT);
        let refaults = self.files.refaults.iter().find_map(|name| of_stat(name));
        push("memory_bytes", number(&self.folder, self.files.usage));
        push("memory_limit_bytes", limit);
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
        let found = read(&GroupMemory::find(None, Some(&(own.clone(), top))).unwrap());
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
        // Both hierarchies are mounted, and only one has the controller.
        let place = (own, top.path());
        let old = (top.path().to_path_buf(), top.path());
        let found = read(&GroupMemory::find(Some(&place), Some(&old)).unwrap());
        assert_eq!(found.get("memory_bytes"), Some(&600));
        assert_eq!(found.get("memory_anonymous_bytes"), Some(&200));
        assert_eq!(found.get("memory_limit_bytes"), None);
        assert_eq!(found.get("memory_file_bytes"), None);
        assert!(found.contains_key("memory_refault_bytes"));
        assert!(GroupMemory::find(None, Some(&old)).is_none());
    }
}
