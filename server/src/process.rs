//! Facts about processes of this host, from `/proc`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use seekscope_run::control_groups::ControlGroups;
use seekscope_run::{ProcessIo, proc_io_counter};
use serde::{Deserialize, Serialize};

/// A `/proc` tree: the host's own, or a made-up one in tests.
#[derive(Debug, Clone)]
pub struct ProcFs {
    pub(crate) root: PathBuf,
}

/// The reason why a fact about a process is unknown.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("process {pid} has ended")]
    Gone { pid: u32 },
    #[error(
        "{path}: permission denied; run seekscope as root or as the server's user, or grant its \
         binary cap_sys_ptrace"
    )]
    NotPermitted { path: PathBuf },
    #[error(
        "a process listens there, but its open files cannot be read: permission denied; run \
         seekscope as root or as the server's user, or grant its binary cap_sys_ptrace"
    )]
    HiddenListener,
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: unexpected content: {why}")]
    Malformed { path: PathBuf, why: String },
}

/// Distinguishes a process from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// Start time in clock ticks after boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The program, if it could be read.
    pub exe: Option<PathBuf>,
}

/// The fields of `/proc/PID/stat` that we use.
struct Stat {
    state: char,
    cpu_ticks: u64,
    start_ticks: u64,
}

impl ProcFs {
    /// Returns the running kernel's `/proc`.
    pub fn host() -> Self {
        Self::at(Path::new("/proc"))
    }

    /// Returns a tree laid out like `/proc` below `root`.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    pub(crate) fn path(&self, pid: u32, name: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(name)
    }

    /// Returns the control groups of the process.
    pub(crate) fn control_groups(&self, pid: u32) -> ControlGroups {
        ControlGroups::read(Path::new("/"), &self.root, Some(pid))
    }

    pub(crate) fn read(&self, pid: u32, name: &str) -> Result<String, ProcessError> {
        let path = self.path(pid, name);
        match fs::read(&path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(source) => Err(failed(pid, path, source)),
        }
    }

    /// Returns the counters of the process since its start; see [`io_between`] for a phase.
    pub fn io(&self, pid: u32) -> Result<ProcessIo, ProcessError> {
        self.io_and(pid, self.cpu_ns(pid)?)
    }

    /// Like [`Self::io`], if its CPU time is known already.
    pub(crate) fn io_and(&self, pid: u32, cpu_ns: u64) -> Result<ProcessIo, ProcessError> {
        let text = self.read(pid, "io")?;
        let field = |name: &str| -> Result<u64, ProcessError> {
            proc_io_counter(&text, name)
                .ok_or_else(|| self.malformed(pid, "io", format!("it has no number named {name}")))
        };
        Ok(ProcessIo {
            read_calls: field("syscr")?,
            write_calls: field("syscw")?,
            read_call_bytes: field("rchar")?,
            write_call_bytes: field("wchar")?,
            device_read_bytes: field("read_bytes")?,
            device_write_bytes: field("write_bytes")?,
            cpu_ns,
        })
    }

    /// Returns the CPU time since the start of the process, user and system; counted in clock ticks, mostly 10
    /// ms.
    pub fn cpu_ns(&self, pid: u32) -> Result<u64, ProcessError> {
        Ok(ticks_to_ns(self.stat(pid)?.cpu_ticks))
    }

    /// Returns the CPU time, as in [`Self::cpu_ns`], of the process that `identity` names, if it is still
    /// running. A zombie is not.
    pub fn cpu_ns_of(&self, identity: &ProcessIdentity) -> Option<u64> {
        let stat = self.stat(identity.pid).ok()?;
        let is_alive = stat.start_ticks == identity.start_ticks && !matches!(stat.state, 'Z' | 'X');
        is_alive.then(|| ticks_to_ns(stat.cpu_ticks))
    }

    /// Returns the resident memory.
    pub fn rss_bytes(&self, pid: u32) -> Result<u64, ProcessError> {
        self.status_bytes(pid, "VmRSS:")
    }

    /// Returns the host's memory, in total and as available without taking any from others, bytes.
    pub fn host_memory_bytes(&self) -> Option<(u64, u64)> {
        let text = fs::read_to_string(self.root.join("meminfo")).ok()?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib << 10)
        };
        Some((bytes("MemTotal:")?, bytes("MemAvailable:")?))
    }

    /// Returns the peak resident memory.
    pub fn rss_bytes_max(&self, pid: u32) -> Result<u64, ProcessError> {
        self.status_bytes(pid, "VmHWM:")
    }

    /// Reads a line such as `VmRSS:   1234 kB` of `/proc/PID/status`.
    fn status_bytes(&self, pid: u32, name: &str) -> Result<u64, ProcessError> {
        let text = self.read(pid, "status")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib.saturating_mul(1024))
            .ok_or_else(|| self.malformed(pid, "status", format!("it has no size named {name}")))
    }

    /// Returns the identity of the process, for recognising it later.
    pub fn identity(&self, pid: u32) -> Result<ProcessIdentity, ProcessError> {
        let start_ticks = self.stat(pid)?.start_ticks;
        Ok(ProcessIdentity {
            pid,
            start_ticks,
            exe: self.exe(pid).ok(),
        })
    }

    /// Returns whether the process that `identity` names is still running. A zombie is not.
    pub fn is_alive(&self, identity: &ProcessIdentity) -> bool {
        self.cpu_ns_of(identity).is_some()
    }

    /// Returns all processes that are seen, in rising order.
    pub fn pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        pids.sort_unstable();
        pids
    }

    /// Returns the program that the process runs. A replaced program's name ends in " (deleted)".
    pub fn exe(&self, pid: u32) -> Result<PathBuf, ProcessError> {
        let path = self.path(pid, "exe");
        fs::read_link(&path).map_err(|source| failed(pid, path, source))
    }

    /// Returns the file name of the program, e.g. "mongod"; if the link may not be read, the (truncated) name
    /// of the main thread.
    pub fn exe_name(&self, pid: u32) -> Result<String, ProcessError> {
        if let Ok(exe) = self.exe(pid) {
            let name = exe.file_name().unwrap_or_default().to_string_lossy();
            return Ok(name.trim_end_matches(" (deleted)").to_string());
        }
        Ok(self.read(pid, "comm")?.trim_end().to_string())
    }

    /// Returns the command-line arguments, including the program name.
    pub fn arguments(&self, pid: u32) -> Result<Vec<String>, ProcessError> {
        let text = self.read(pid, "cmdline")?;
        Ok(text.split_terminator('\0').map(String::from).collect())
    }

    /// Returns the number that the process has for itself, which is another one in a container.
    pub(crate) fn own_pid(&self, pid: u32) -> Result<u32, ProcessError> {
        let text = self.read(pid, "status")?;
        // One for each PID namespace, the innermost last.
        let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"));
        line.and_then(|pids| pids.split_ascii_whitespace().last()?.parse().ok())
            .ok_or_else(|| self.malformed(pid, "status", "it has no number named NSpid:".into()))
    }

    /// Returns a text that differs after every boot; empty if unknown.
    pub fn boot_id(&self) -> String {
        fs::read_to_string(self.root.join("sys/kernel/random/boot_id"))
            .map(|text| text.trim().to_string())
            .unwrap_or_default()
    }

    fn stat(&self, pid: u32) -> Result<Stat, ProcessError> {
        let text = self.read(pid, "stat")?;
        parse_stat(&text).ok_or_else(|| self.malformed(pid, "stat", "it has too few fields".into()))
    }

    fn malformed(&self, pid: u32, name: &str, why: String) -> ProcessError {
        ProcessError::Malformed {
            path: self.path(pid, name),
            why,
        }
    }
}

pub(crate) fn failed(pid: u32, path: PathBuf, source: io::Error) -> ProcessError {
    match source.kind() {
        io::ErrorKind::PermissionDenied => ProcessError::NotPermitted { path },
        io::ErrorKind::NotFound => ProcessError::Gone { pid },
        _ if source.raw_os_error() == Some(libc::ESRCH) => ProcessError::Gone { pid },
        _ => ProcessError::Io { path, source },
    }
}

/// Returns what the process did between two snapshots. A counter that fell counts as zero.
pub fn io_between(before: &ProcessIo, after: &ProcessIo) -> ProcessIo {
    ProcessIo {
        read_calls: after.read_calls.saturating_sub(before.read_calls),
        write_calls: after.write_calls.saturating_sub(before.write_calls),
        read_call_bytes: after.read_call_bytes.saturating_sub(before.read_call_bytes),
        write_call_bytes: after
            .write_call_bytes
            .saturating_sub(before.write_call_bytes),
        device_read_bytes: after
            .device_read_bytes
            .saturating_sub(before.device_read_bytes),
        device_write_bytes: after
            .device_write_bytes
            .saturating_sub(before.device_write_bytes),
        cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
    }
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The second field is the program's name in brackets and may hold blanks and brackets itself,
    // so fields are counted from the last bracket; the first after it is field 3.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        cpu_ticks: number(14)?.saturating_add(number(15)?),
        start_ticks: number(22)?,
    })
}

pub(crate) fn ticks_to_ns(ticks: u64) -> u64 {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    ticks.saturating_mul(1_000_000_000 / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake(pid: &str) -> (tempfile::TempDir, ProcFs) {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(pid);
        fs::create_dir(&folder).unwrap();
        fs::write(
            folder.join("io"),
            "rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n\
             cancelled_write_bytes: 1\n",
        )
        .unwrap();
        fs::write(
            folder.join("stat"),
            "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 12 0 987654 1 2 3\n",
        )
        .unwrap();
        fs::write(folder.join("cmdline"), "mongod\0--dbpath\0/data/my db\0").unwrap();
        fs::write(folder.join("comm"), "mongod\n").unwrap();
        let tree = ProcFs::at(root.path());
        (root, tree)
    }

    #[test]
    fn counters_and_identity_are_read() {
        let (_root, tree) = fake("7");
        let io = tree.io(7).unwrap();
        assert_eq!((io.read_calls, io.write_calls), (3, 4));
        assert_eq!((io.read_call_bytes, io.write_call_bytes), (10, 20));
        assert_eq!((io.device_read_bytes, io.device_write_bytes), (4096, 8192));
        assert_eq!(io.cpu_ns, ticks_to_ns(200));
        let identity = tree.identity(7).unwrap();
        assert_eq!((identity.pid, identity.start_ticks), (7, 987_654));
        assert!(tree.is_alive(&identity));
        assert_eq!(tree.cpu_ns_of(&identity), Some(ticks_to_ns(200)));
        assert!(!tree.is_alive(&ProcessIdentity {
            start_ticks: 1,
            ..identity
        }));
        assert_eq!(tree.exe_name(7).unwrap(), "mongod");
        assert_eq!(
            tree.arguments(7).unwrap(),
            ["mongod", "--dbpath", "/data/my db"]
        );
    }

    #[test]
    fn difference_never_underflows() {
        let before = ProcessIo {
            read_calls: 5,
            cpu_ns: 10,
            ..ProcessIo::default()
        };
        let after = ProcessIo {
            read_calls: 9,
            cpu_ns: 4,
            ..ProcessIo::default()
        };
        let between = io_between(&before, &after);
        assert_eq!((between.read_calls, between.cpu_ns), (4, 0));
    }

    #[test]
    fn missing_and_broken_files_are_told_apart() {
        let (root, tree) = fake("7");
        assert!(matches!(tree.io(8), Err(ProcessError::Gone { pid: 8 })));
        fs::write(root.path().join("7/io"), "rchar: x\n").unwrap();
        assert!(matches!(tree.io(7), Err(ProcessError::Malformed { .. })));
        fs::write(root.path().join("7/stat"), "7 (").unwrap();
        assert!(matches!(
            tree.identity(7),
            Err(ProcessError::Malformed { .. })
        ));
    }

    #[test]
    fn this_process_is_alive() {
        let me = ProcFs::host().identity(std::process::id()).unwrap();
        assert!(ProcFs::host().is_alive(&me));
        assert!(me.exe.is_some());
        assert!(ProcFs::host().io(me.pid).unwrap().read_calls > 0);
    }
}
