//! Finds where the kernel's control groups are mounted and which of them limits I/O.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use seekscope_run::control_groups::Hierarchy;
use seekscope_run::mounts::{Mount, mounts};

/// The host's control-group mounts, or a made-up tree in tests.
#[derive(Debug, Clone)]
pub struct CgroupTree {
    mounts: Vec<Mount>,
    proc_root: PathBuf,
}

/// The hierarchy that limits I/O.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    pub(crate) hierarchy: Hierarchy,
    mount: Mount,
    proc_root: PathBuf,
}

impl CgroupTree {
    /// Reads what is mounted, from `PROC_ROOT/self/mountinfo` (`/proc` outside of tests).
    pub fn discover(proc_root: &Path) -> Self {
        Self {
            mounts: mounts(proc_root),
            proc_root: proc_root.to_path_buf(),
        }
    }

    /// Creates a tree with one mount, of the kind `cgroup` or `cgroup2`.
    #[cfg(test)]
    pub(crate) fn made_up(filesystem: &str, point: &Path) -> Self {
        Self {
            mounts: vec![Mount {
                device: String::new(),
                root: "/".into(),
                point: point.into(),
                options: String::new(),
                filesystem: filesystem.into(),
                source: String::new(),
                filesystem_options: "rw,blkio".into(),
            }],
            proc_root: "/proc".into(),
        }
    }

    /// Returns the hierarchy that limits I/O. A controller is bound to one hierarchy at a time; v2 is preferred
    /// if it has `io`.
    pub(crate) fn io_controller(&self) -> Option<Controller> {
        let controller = |hierarchy: Hierarchy| {
            Some(Controller {
                hierarchy,
                mount: hierarchy.mount(&self.mounts)?.clone(),
                proc_root: self.proc_root.clone(),
            })
        };
        controller(Hierarchy::V2)
            .filter(|unified| has_word(&unified.top().join("cgroup.controllers"), "io"))
            .or_else(|| controller(Hierarchy::V1("blkio")))
    }
}

impl Controller {
    /// Returns the directory of the topmost visible group.
    pub(crate) fn top(&self) -> &Path {
        &self.mount.point
    }

    /// Makes the controller's files appear in new groups. It stays enabled for the whole hierarchy, since
    /// another program may have come to rely on it before we end.
    pub(crate) fn enable(&self) -> io::Result<()> {
        let file = self.top().join("cgroup.subtree_control");
        if self.hierarchy != Hierarchy::V2 || has_word(&file, "io") {
            Ok(())
        } else {
            fs::write(file, "+io")
        }
    }

    /// Returns the directory of the group that a process is in now.
    pub(crate) fn group_of(&self, pid: u32) -> io::Result<PathBuf> {
        let text = fs::read_to_string(self.proc_root.join(pid.to_string()).join("cgroup"))?;
        let path = self.hierarchy.path(&text);
        let path = path.ok_or_else(|| {
            io::Error::other("the process is not in any control group of this hierarchy")
        })?;
        let below = path
            .strip_prefix(&self.mount.root)
            .or_else(|_| path.strip_prefix("/"))
            .unwrap_or(path);
        Ok(self.top().join(below))
    }
}

/// Moves all threads of a process to the group.
pub(crate) fn join_group(group: &Path, pid: u32) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(group.join("cgroup.procs"))
        .and_then(|mut file| io::Write::write_all(&mut file, pid.to_string().as_bytes()))
}

/// Returns whether this directory is a control group of the running kernel.
pub(crate) fn is_cgroup(directory: &Path) -> bool {
    const CGROUP_MAGICS: [u64; 2] = [0x0027_e0eb, 0x6367_7270];
    let kind = rustix::fs::statfs(directory)
        .ok()
        .and_then(|s| u64::try_from(s.f_type).ok());
    kind.is_some_and(|kind| CGROUP_MAGICS.contains(&kind))
        && directory.join("cgroup.procs").is_file()
}

fn has_word(file: &Path, word: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.split_ascii_whitespace().any(|w| w == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(mountinfo: &str, cgroup: &str) -> (tempfile::TempDir, CgroupTree) {
        let proc_root = tempfile::tempdir().unwrap();
        for folder in ["self", "12"] {
            fs::create_dir(proc_root.path().join(folder)).unwrap();
        }
        fs::write(proc_root.path().join("self/mountinfo"), mountinfo).unwrap();
        fs::write(proc_root.path().join("12/cgroup"), cgroup).unwrap();
        let tree = CgroupTree::discover(proc_root.path());
        (proc_root, tree)
    }

    #[test]
    fn v1_is_found_with_the_group_of_a_process() {
        let (_root, tree) = tree(
            "30 23 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
             31 23 0:28 / /sys/fs/cgroup/blkio rw,relatime shared:9 - cgroup cgroup rw,blkio\n\
             32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            "7:blkio:/system.slice/mongod\n0::/\n",
        );
        let controller = tree.io_controller().unwrap();
        assert_eq!(controller.hierarchy, Hierarchy::V1("blkio"));
        assert_eq!(controller.top(), Path::new("/sys/fs/cgroup/blkio"));
        let group = controller.group_of(12).unwrap();
        assert_eq!(group, Path::new("/sys/fs/cgroup/blkio/system.slice/mongod"));
    }

    #[test]
    fn v2_in_a_container() {
        let unified = tempfile::tempdir().unwrap();
        fs::write(unified.path().join("cgroup.controllers"), "io\n").unwrap();
        let line = format!(
            "32 23 0:29 /docker/a {} rw - cgroup2 cgroup2 rw\n",
            unified.path().display()
        );
        let (_root, tree) = tree(&line, "0::/docker/a/inner\n");
        let controller = tree.io_controller().unwrap();
        assert_eq!(controller.hierarchy, Hierarchy::V2);
        assert_eq!(
            controller.group_of(12).unwrap(),
            unified.path().join("inner")
        );
        let (_root, nothing) = self::tree("", "");
        assert!(nothing.io_controller().is_none());
    }
}
