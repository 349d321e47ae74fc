//! A limit to the memory, page cache included, of some processes: cgroup v1's memory controller.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

const CONTROLLER: &str = "/sys/fs/cgroup/memory";

/// Page cache, and memory that processes have allocated, for themselves and in the kernel (tracing
/// programs, page tables).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Charged {
    pub cache_bytes: u64,
    pub own_bytes: u64,
}

impl Charged {
    /// The greater of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            cache_bytes: self.cache_bytes.max(other.cache_bytes),
            own_bytes: self.own_bytes.max(other.own_bytes),
        }
    }
}

/// Removed on drop; its processes go back to the root.
#[derive(Debug)]
pub struct MemoryGroup {
    group: PathBuf,
}

impl MemoryGroup {
    /// Pages that were read before a process joined are not charged to it: evict them first.
    pub fn create(name: &str, limit_bytes: u64) -> Result<Self> {
        let group = Path::new(CONTROLLER).join(name);
        let why = || {
            format!(
                "{}: as root, with cgroup v1's memory controller",
                group.display()
            )
        };
        fs::create_dir(&group).with_context(why)?;
        fs::write(group.join("memory.limit_in_bytes"), limit_bytes.to_string())
            .with_context(why)?;
        Ok(Self { group })
    }

    /// All threads; later children are in it from their start.
    pub fn add(&self, pid: u32) -> Result<()> {
        Ok(fs::write(self.group.join("cgroup.procs"), pid.to_string())?)
    }

    /// The file that a process writes its number into, to join.
    pub fn members(&self) -> PathBuf {
        self.group.join("cgroup.procs")
    }

    /// What is charged to it now.
    pub fn charged(&self) -> Result<Charged> {
        let text = fs::read_to_string(self.group.join("memory.stat"))?;
        let kernel = fs::read_to_string(self.group.join("memory.kmem.usage_in_bytes"))?;
        let kernel_bytes: u64 = kernel.trim().parse()?;
        let bytes = |name: &str| -> Result<u64> {
            let value = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(value
                .with_context(|| format!("memory.stat without {name}"))?
                .parse()?)
        };
        Ok(Charged {
            cache_bytes: bytes("cache")?,
            own_bytes: bytes("rss")? + kernel_bytes,
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let members = fs::read_to_string(self.members()).unwrap_or_default();
        for pid in members.lines() {
            let _ = fs::write(Path::new(CONTROLLER).join("cgroup.procs"), pid);
        }
        for _ in 0..50 {
            // Ending processes count as members for a moment longer.
            match fs::remove_dir(&self.group) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                _ => break,
            }
        }
    }
}
