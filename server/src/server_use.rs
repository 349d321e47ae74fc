//! The CPU and disk use of the server's process over a stretch of work.

use crate::process::{ProcFs, ProcessIdentity, io_between};
use seekscope_run::ProcessIo;

/// The process's counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUse {
    process: ProcessIdentity,
    cpu_ns: u64,
    /// `None` if only root and the process's user may read it.
    io: Option<ProcessIo>,
}

/// The difference between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerUsed {
    pub cpu_ns: u64,
    /// Bytes that the process had the block layer read and write.
    pub read_bytes: Option<u64>,
    pub write_bytes: Option<u64>,
    /// The process's calls that read and write, including those on sockets.
    pub read_calls: Option<u64>,
    pub write_calls: Option<u64>,
}

impl ServerUse {
    /// Reads the counters; `None` if the process cannot be seen.
    pub fn read(proc_fs: &ProcFs, pid: u32) -> Option<Self> {
        Some(Self {
            process: proc_fs.identity(pid).ok()?,
            cpu_ns: proc_fs.cpu_ns(pid).ok()?,
            io: proc_fs.io(pid).ok(),
        })
    }

    /// Returns the difference; `None` if another process has the number now because the server was restarted.
    pub fn since(&self, earlier: &Self) -> Option<ServerUsed> {
        let is_same = self.process.pid == earlier.process.pid
            && self.process.start_ticks == earlier.process.start_ticks;
        let io = self.io.as_ref().zip(earlier.io.as_ref());
        let io = io.map(|(after, before)| io_between(before, after));
        is_same.then(|| ServerUsed {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            read_bytes: io.as_ref().map(|io| io.device_read_bytes),
            write_bytes: io.as_ref().map(|io| io.device_write_bytes),
            read_calls: io.as_ref().map(|io| io.read_calls),
            write_calls: io.as_ref().map(|io| io.write_calls),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_the_same_process_only() {
        let me = std::process::id();
        let before = ServerUse::read(&ProcFs::host(), me).unwrap();
        std::fs::read("/proc/self/stat").unwrap();
        let after = ServerUse::read(&ProcFs::host(), me).unwrap();
        let used = after.since(&before).unwrap();
        assert!(used.read_calls.unwrap() > 0);
        let mut other = before.clone();
        other.process.start_ticks += 1;
        assert_eq!(after.since(&other), None);
        let blind = ServerUse { io: None, ..before };
        assert_eq!(after.since(&blind).unwrap().read_bytes, None);
    }
}
