//! Finds the control groups of a process, in both versions of the interface (cgroups(7),
//! Documentation/admin-guide/cgroup-v2.rst).

use std::path::{Component, Path, PathBuf};

use crate::kernel_files::{below, read_trimmed};
use crate::mounts::{Mount, mounts};

/// A tree of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    /// The hierarchy of version 1 that this controller is bound to.
    V1(&'static str),
    /// The single hierarchy of version 2.
    V2,
}

/// A control group that a process is in, or one above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    /// The name below the topmost visible group, e.g. "/system.slice/mongod.service".
    pub name: String,
    /// The directory where the kernel shows it.
    pub folder: PathBuf,
}

/// The position of a process in the hierarchies.
#[derive(Debug)]
pub struct ControlGroups {
    host_root: PathBuf,
    /// The mounts as we see them: the process's own view could lead elsewhere.
    mounts: Vec<Mount>,
    is_ours: bool,
    own: String,
}

impl Hierarchy {
    /// Returns where the hierarchy is mounted; the last mount, if there are several.
    pub fn mount(self, mounts: &[Mount]) -> Option<&Mount> {
        mounts.iter().rev().find(|mount| match self {
            Self::V1(_) => mount.filesystem == "cgroup" && self.is_of(&mount.filesystem_options),
            Self::V2 => mount.filesystem == "cgroup2",
        })
    }

    /// Returns the path of the group from the text of `/proc/PID/cgroup`: a line `id:controllers:path` per
    /// hierarchy, without controllers for version 2.
    pub fn path(self, text: &str) -> Option<&Path> {
        text.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            self.is_of(controllers).then(|| Path::new(path))
        })
    }

    fn is_of(self, controllers: &str) -> bool {
        match self {
            Self::V1(controller) => controllers.split(',').any(|word| word == controller),
            Self::V2 => controllers.is_empty(),
        }
    }
}

impl ControlGroups {
    /// Reads the groups of the process `pid`, or of this process; `host_root` and `proc_root` are "/" and
    /// "/proc" outside of tests.
    pub fn read(host_root: &Path, proc_root: &Path, pid: Option<u32>) -> Self {
        let process = pid.map_or("self".into(), |pid| pid.to_string());
        Self {
            host_root: host_root.into(),
            mounts: mounts(proc_root),
            is_ours: pid.is_none(),
            own: read_trimmed(proc_root.join(process).join("cgroup")).unwrap_or_default(),
        }
    }

    /// Returns the hierarchy that a controller belongs to, as named on the process's own line.
    pub fn hierarchy_of(&self, controller: &'static str) -> Hierarchy {
        let old = Hierarchy::V1(controller);
        old.path(&self.own).map_or(Hierarchy::V2, |_| old)
    }

    /// Returns the process's own group and all visible groups above it, its own first.
    pub fn own_to_top(&self, hierarchy: Hierarchy) -> Vec<ControlGroup> {
        let Some(mount) = hierarchy.mount(&self.mounts) else {
            return Vec::new();
        };
        // A container may see a path of the host that does not lie below what is mounted here.
        let own = hierarchy.path(&self.own);
        let own = own.and_then(|path| path.strip_prefix(&mount.root).ok());
        let is_plain = |path: &&Path| path.components().all(|c| matches!(c, Component::Normal(_)));
        let own = match own.filter(is_plain) {
            Some(own) => own,
            // This process is at least in the topmost visible group; another process need not be.
            None if self.is_ours => Path::new(""),
            None => return Vec::new(),
        };
        let top = below(&self.host_root, &mount.point);
        own.ancestors()
            .map(|path| ControlGroup {
                name: format!("/{}", path.display()),
                folder: top.join(path),
            })
            .collect()
    }
}
