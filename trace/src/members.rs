//! The set of processes that are followed, if there is more than one.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::TraceError;
use crate::options::Followed;
use crate::process::Target;

const PROCESSES: &str = "cgroup.procs";

/// The processes followed, as far as known.
#[derive(Debug)]
pub(crate) struct Members {
    proc_root: PathBuf,
    cgroup: Option<PathBuf>,
    /// Process ids as the caller sees them.
    pids: HashSet<u32>,
    /// The namespace that must number all of them: the first one's.
    namespace: Option<crate::process::Namespace>,
}

/// A process that is followed from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) pid: u32,
    /// Its id as the kernel programs know it.
    pub(crate) tgid: u32,
}

impl Members {
    /// Finds the processes that exist now. Also returns how the kernel programs recognise them.
    ///
    /// # Errors
    /// [`TraceError::NoSuchProcess`] and similar errors, [`TraceError::NoMembers`].
    pub(crate) fn find(
        proc_root: &Path,
        followed: &Followed,
    ) -> Result<(Self, Vec<Member>, Target), TraceError> {
        let (pids, cgroup) = match followed {
            Followed::Process(pid) => (vec![*pid], None),
            Followed::Processes { pids, .. } => (pids.clone(), None),
            Followed::Cgroup(folder) => (processes_of(folder)?, Some(folder.clone())),
        };
        let is_group = cgroup.is_some();
        let mut members = Self {
            proc_root: proc_root.into(),
            cgroup,
            pids: HashSet::new(),
            namespace: None,
        };
        let mut found: Option<(Vec<Member>, Target)> = None;
        for pid in pids {
            let target = match Target::find(proc_root, pid) {
                // Processes of a group come and go.
                Err(TraceError::NoSuchProcess { .. }) if is_group => continue,
                other => other?,
            };
            members.pids.insert(pid);
            let member = Member {
                pid,
                tgid: target.tgid,
            };
            match &mut found {
                None => {
                    members.namespace = target.namespace;
                    found = Some((vec![member], target));
                }
                Some((list, first)) if first.namespace == target.namespace => list.push(member),
                Some(_) => return Err(TraceError::SeveralNamespaces { pid }),
            }
        }
        let (list, target) = found.ok_or_else(|| TraceError::NoMembers {
            group: members.group_name(),
        })?;
        Ok((members, list, target))
    }

    /// Returns processes that have joined the control group since the last look.
    pub(crate) fn joined(&mut self) -> Vec<Member> {
        let Some(folder) = &self.cgroup else {
            return Vec::new();
        };
        let mut joined = Vec::new();
        for pid in processes_of(folder).unwrap_or_default() {
            if self.pids.contains(&pid) {
                continue;
            }
            if let Ok(target) = Target::find(&self.proc_root, pid)
                && target.namespace == self.namespace
            {
                self.pids.insert(pid);
                joined.push(Member {
                    pid,
                    tgid: target.tgid,
                });
            }
        }
        joined
    }

    fn group_name(&self) -> String {
        self.cgroup
            .as_ref()
            .map_or_else(String::new, |folder| folder.display().to_string())
    }
}

/// Returns the processes of a group and of the groups below it.
fn processes_of(folder: &Path) -> Result<Vec<u32>, TraceError> {
    let mut pids = Vec::new();
    collect(folder, &mut pids).map_err(|source| TraceError::Proc {
        path: folder.join(PROCESSES).display().to_string(),
        source,
    })?;
    Ok(pids)
}

fn collect(folder: &Path, pids: &mut Vec<u32>) -> io::Result<()> {
    let text = fs::read_to_string(folder.join(PROCESSES))?;
    // Processes that are invisible in our namespace are listed as 0.
    let numbers = text.lines().filter_map(|line| line.parse::<u32>().ok());
    pids.extend(numbers.filter(|pid| *pid != 0));
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // A subgroup that has disappeared since is no loss.
            let _ = collect(&entry.path(), pids);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_and_those_below_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join(PROCESSES), "5\n0\n").unwrap();
        fs::write(folder.path().join("below").join(PROCESSES), "7\nx\n").unwrap();
        assert_eq!(processes_of(folder.path()).unwrap(), [5, 7]);
        assert!(processes_of(&folder.path().join("none")).is_err());
    }

    #[test]
    fn an_empty_group_is_an_error_and_a_joining_process_is_found_once() {
        let proc_root = tempfile::tempdir().unwrap();
        for name in ["self", "5", "6"] {
            let ns = proc_root.path().join(name).join("ns");
            fs::create_dir_all(&ns).unwrap();
            // One file for all: one namespace.
            let pid_ns = proc_root.path().join("pid-namespace");
            fs::write(&pid_ns, "").unwrap();
            fs::hard_link(&pid_ns, ns.join("pid")).unwrap();
            let status = format!("Tgid:\t{name}\nNSpid:\t{name}\n");
            fs::write(proc_root.path().join(name).join("status"), status).unwrap();
        }
        let group = tempfile::tempdir().unwrap();
        let list = |text: &str| fs::write(group.path().join(PROCESSES), text).unwrap();
        let followed = Followed::Cgroup(group.path().into());
        list("99\n");
        assert!(matches!(
            Members::find(proc_root.path(), &followed),
            Err(TraceError::NoMembers { .. })
        ));
        list("5\n99\n");
        let (mut members, found, target) = Members::find(proc_root.path(), &followed).unwrap();
        assert_eq!((found, target.tgid), (vec![Member { pid: 5, tgid: 5 }], 5));
        list("5\n6\n");
        assert_eq!(members.joined(), [Member { pid: 6, tgid: 6 }]);
        assert!(members.joined().is_empty());
    }
}
