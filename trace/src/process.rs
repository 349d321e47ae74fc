//! The process to trace, and what the caller is allowed to do.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use crate::error::TraceError;

/// Inode of the first PID namespace; the kernel fixes it (PROC_PID_INIT_INO).
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// How to grant what tracing needs: two capabilities to load the programs, two to read the names of
/// another user's open files.
pub(crate) const GRANT: &str = "Run seekscope with sudo, or grant it the capabilities: \
    setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search+ep ./seekscope; in a systemd unit \
    AmbientCapabilities=CAP_BPF CAP_PERFMON CAP_SYS_PTRACE CAP_DAC_READ_SEARCH; in Docker --cap-add BPF \
    --cap-add PERFMON --cap-add SYS_PTRACE --cap-add DAC_READ_SEARCH (before Linux 5.8: CAP_SYS_ADMIN)";

/// How the kernel programs recognise the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Process id in the namespace below.
    pub(crate) tgid: u32,
    /// `None`: the first PID namespace, whose ids the kernel programs get for free.
    pub(crate) namespace: Option<Namespace>,
}

/// A PID namespace, identified by its file: device in the kernel's encoding, and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl Target {
    /// Finds process `pid` of the caller's PID namespace.
    pub(crate) fn find(proc_root: &Path, pid: u32) -> Result<Self, TraceError> {
        let status = read_status(proc_root, pid)?;
        match number(&status, "Tgid:") {
            Some(process) if process != pid => {
                return Err(TraceError::NotAProcess { pid, process });
            }
            _ => {}
        }
        let ours = namespace_of(proc_root, "self")?;
        if ours.inode == FIRST_PID_NAMESPACE {
            return Ok(Self {
                tgid: pid,
                namespace: None,
            });
        }
        // In a container the id known to us is not the one the kernel uses. Both know the process's
        // innermost namespace and its id there.
        let namespace = namespace_of(proc_root, &pid.to_string())?;
        Ok(Self {
            tgid: last_number(&status, "NSpid:").unwrap_or(pid),
            namespace: Some(namespace),
        })
    }
}

fn read_status(proc_root: &Path, pid: u32) -> Result<String, TraceError> {
    let path = proc_root.join(pid.to_string()).join("status");
    fs::read_to_string(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => TraceError::NoSuchProcess { pid },
        // The process ended while we read (ESRCH).
        _ if source.raw_os_error() == Some(libc::ESRCH) => TraceError::NoSuchProcess { pid },
        _ => TraceError::Proc {
            path: path.display().to_string(),
            source,
        },
    })
}

fn namespace_of(proc_root: &Path, process: &str) -> Result<Namespace, TraceError> {
    let path = proc_root.join(process).join("ns/pid");
    let file = fs::metadata(&path).map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => not_ours(process),
        _ => TraceError::Proc {
            path: path.display().to_string(),
            source,
        },
    })?;
    let device = u64::from(major(file.dev())) << 20 | u64::from(minor(file.dev()));
    Ok(Namespace {
        device,
        inode: file.ino(),
    })
}

/// Returns the error for a process whose `/proc` folder we may not read.
pub(crate) fn not_ours(process: &str) -> TraceError {
    TraceError::NoPermission {
        what: format!("read the list of open files of process {process}"),
        why: "it belongs to another user, and CAP_SYS_PTRACE or CAP_DAC_READ_SEARCH is missing"
            .into(),
        remedy: GRANT.into(),
    }
}

/// Fails unless the calling process may load tracing programs, as far as its capabilities tell.
pub(crate) fn check_capabilities(proc_root: &Path) -> Result<(), TraceError> {
    let path = proc_root.join("self/status");
    let status = fs::read_to_string(&path).map_err(|source| TraceError::Proc {
        path: path.display().to_string(),
        source,
    })?;
    let missing = missing_capabilities(&status);
    if missing.is_empty() {
        return Ok(());
    }
    Err(TraceError::NoPermission {
        what: "trace system calls with eBPF".into(),
        why: format!("this process lacks {}", missing.join(" and ")),
        remedy: GRANT.into(),
    })
}

fn missing_capabilities(status: &str) -> Vec<&'static str> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        // Unknown, so the kernel decides.
        .unwrap_or(u64::MAX);
    let has = |capability: u32| effective >> capability & 1 == 1;
    if has(CAP_SYS_ADMIN) {
        return Vec::new();
    }
    [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(capability, _)| !has(*capability))
        .map(|(_, name)| name)
        .collect()
}

fn number(status: &str, key: &str) -> Option<u32> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn last_number(status: &str, key: &str) -> Option<u32> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key))?
        .split_whitespace()
        .next_back()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_named_when_missing() {
        let with = |mask: u64| format!("Name:\tx\nCapEff:\t{mask:016x}\n");
        assert_eq!(missing_capabilities(&with(0)), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(missing_capabilities(&with(1 << CAP_BPF)), ["CAP_PERFMON"]);
        assert!(missing_capabilities(&with(1 << CAP_BPF | 1 << CAP_PERFMON)).is_empty());
        assert!(missing_capabilities(&with(1 << CAP_SYS_ADMIN)).is_empty());
        assert!(missing_capabilities("no such line").is_empty());
    }

    #[test]
    fn the_innermost_number_counts_in_containers() {
        let status = "Tgid:\t700\nNSpid:\t700\t31\t1\n";
        assert_eq!(
            (number(status, "Tgid:"), last_number(status, "NSpid:")),
            (Some(700), Some(1))
        );
    }

    #[test]
    fn a_missing_process_and_a_thread_are_told_apart() {
        let fake = tempfile::tempdir().unwrap();
        fs::create_dir_all(fake.path().join("8")).unwrap();
        fs::write(fake.path().join("8/status"), "Tgid:\t7\n").unwrap();
        let find = |pid| Target::find(fake.path(), pid).unwrap_err();
        assert!(matches!(
            find(8),
            TraceError::NotAProcess { pid: 8, process: 7 }
        ));
        assert!(matches!(find(9), TraceError::NoSuchProcess { pid: 9 }));
    }
}
