//! The kernel's own count of what a process read and wrote: `/proc/PID/io` (proc_pid_io(5)).

use std::path::Path;

use crate::kernel_files::read_trimmed;

/// Returns one counter from the text of `/proc/PID/io`, e.g. "syscr"; `None` if it is not there.
pub fn proc_io_counter(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix(':')?;
        value.trim().parse().ok()
    })
}

/// Bytes that this process, with all its threads, has had the block layer read and write since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessDeviceIo {
    pub read_bytes: u64,
    /// Dirtied pages, whether or not they have reached the disk yet, and direct writes.
    pub write_bytes: u64,
}

impl ProcessDeviceIo {
    /// Reads the counters below `root` ("/" outside of tests); `None` if the kernel does not count them.
    pub fn read(root: &Path) -> Option<Self> {
        let text = read_trimmed(root.join("proc/self/io"))?;
        Some(Self {
            read_bytes: proc_io_counter(&text, "read_bytes")?,
            write_bytes: proc_io_counter(&text, "write_bytes")?,
        })
    }

    /// Returns the difference from `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(earlier.write_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_told_apart() {
        let text = "rchar: 10\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(proc_io_counter(text, "write_bytes"), Some(8192));
        assert_eq!(proc_io_counter(text, "bytes"), None);
        assert_eq!(proc_io_counter("rchar: x", "rchar"), None);
        let root = tempfile::tempdir().unwrap();
        assert_eq!(ProcessDeviceIo::read(root.path()), None);
        let folder = root.path().join("proc/self");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("io"), text).unwrap();
        let read = ProcessDeviceIo::read(root.path()).unwrap();
        assert_eq!((read.read_bytes, read.write_bytes), (4096, 8192));
        assert_eq!(read.since(&read), ProcessDeviceIo::default());
    }
}
