//! What a server may use of disk and memory: control groups that it is put into after its start.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seekscope_run::DeviceFacts;
use seekscope_server::Workspace;
use seekscope_server::slow_disk::{CgroupTree, SlowDisk};

use super::cold_server::Conditions;
use super::memory_group::MemoryGroup;

/// The groups. Dropping it removes them.
#[derive(Debug)]
pub struct Confinement {
    pub memory: Option<MemoryGroup>,
    slow_disk: Option<SlowDisk>,
}

impl Confinement {
    /// Confines the process whose data lie in the folder.
    pub fn begin(
        workspace: &mut Workspace,
        pid: u32,
        data: &Path,
        conditions: &Conditions,
    ) -> Result<Self> {
        let name = workspace.unique_name().to_owned();
        let memory = match conditions.memory_bytes {
            Some(bytes) => {
                let group = MemoryGroup::create(&name, bytes)?;
                group.add(pid)?;
                Some(group)
            }
            None => None,
        };
        let slow_disk = match conditions.disk.spec() {
            Some(spec) => {
                let device = DeviceFacts::of_path(Path::new("/"), data)?;
                let tree = CgroupTree::discover(Path::new("/proc"));
                let mut slow = SlowDisk::create(&tree, &spec, &device, &name)?;
                workspace.record_cgroup(Some(slow.group()))?;
                conditions.disk.limit_writes(slow.group(), &device)?;
                slow.add_process(pid)?;
                Some(slow)
            }
            None => None,
        };
        Ok(Self { memory, slow_disk })
    }

    /// Lets the process go.
    pub fn end(self, workspace: &mut Workspace) -> Result<()> {
        if let Some(slow_disk) = self.slow_disk {
            slow_disk.remove()?;
            workspace.record_cgroup(None)?;
        }
        Ok(())
    }

    /// The files that a process writes its number into, to be slowed down and limited as the server is.
    pub fn groups(&self) -> Vec<PathBuf> {
        let slow = self
            .slow_disk
            .as_ref()
            .map(|slow| slow.group().join("cgroup.procs"));
        let memory = self.memory.as_ref().map(MemoryGroup::members);
        slow.into_iter().chain(memory).collect()
    }
}
