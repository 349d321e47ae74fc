//! Converts paths and sizes to what the kernel programs compare: inodes, devices, nanoseconds.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use seekscope_run::units::nanoseconds;

use crate::decode::FileKey;
use crate::error::TraceError;
use crate::options::{Filter, Sampling};

/// `WANTED_MAX` and `DEVICE_FILTERS` in bpf/filter.h.
const PATHS_MAX: usize = 256;
const DEVICES_MAX: usize = 8;

/// Bytes of `struct file_key` in bpf/filter.h.
type KeyBytes = [u8; 16];

/// A filter in the kernel's terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KernelFilter {
    /// Inode and superblock device of each wanted file or folder.
    pub(crate) wanted: Vec<KeyBytes>,
    /// Superblock devices, `major << 20 | minor`.
    pub(crate) devices: Vec<u32>,
    pub(crate) latency_min_ns: u64,
    /// One region in this many is kept; 0: all.
    pub(crate) sample_one_in: u32,
    pub(crate) sample_region_shift: u32,
}

impl KernelFilter {
    /// Looks up the paths.
    ///
    /// # Errors
    /// [`TraceError::Filter`], [`TraceError::TooManyFilters`].
    pub(crate) fn new(filter: &Filter, sampling: Option<Sampling>) -> Result<Self, TraceError> {
        check("paths", filter.paths.len(), PATHS_MAX)?;
        let mut wanted = Vec::new();
        for path in &filter.paths {
            wanted.push(key_bytes(key_of(path)?));
        }
        let mut devices = Vec::new();
        for path in &filter.devices_of {
            devices.push(key_of(path)?.device);
        }
        devices.sort_unstable();
        devices.dedup();
        check("devices", devices.len(), DEVICES_MAX)?;
        Ok(Self {
            wanted,
            devices,
            latency_min_ns: nanoseconds(filter.latency_min),
            sample_one_in: sampling.map_or(0, |s| if s.one_in > 1 { s.one_in } else { 0 }),
            sample_region_shift: sampling.map_or(20, |s| s.region_bytes.max(1).ilog2()),
        })
    }
}

fn check(what: &'static str, count: usize, max: usize) -> Result<(), TraceError> {
    if count > max {
        return Err(TraceError::TooManyFilters { what, count, max });
    }
    Ok(())
}

/// Returns the file's inode and its superblock's device. On btrfs, `stat` shows another number than
/// the superblock's, which is in /proc/self/mountinfo.
fn key_of(path: &Path) -> Result<FileKey, TraceError> {
    let failed = |source| TraceError::Filter {
        path: path.display().to_string(),
        source,
    };
    let metadata = path.metadata().map_err(failed)?;
    let device = metadata.dev();
    let (major, minor) = seekscope_run::mounts::superblock_device(Path::new("/proc"), path)
        .unwrap_or((major(device), minor(device)));
    Ok(FileKey::new(major, minor, metadata.ino()))
}

pub(crate) fn key_bytes(key: FileKey) -> KeyBytes {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.inode.to_ne_bytes());
    bytes[8..].copy_from_slice(&u64::from(key.device).to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn paths_become_inodes_and_devices() {
        let folder = tempfile::tempdir().unwrap();
        let filter = Filter {
            paths: vec![folder.path().into()],
            devices_of: vec![folder.path().into(), folder.path().into()],
            latency_min: Duration::from_micros(5),
        };
        let sampling = Sampling {
            one_in: 10,
            region_bytes: 1 << 16,
        };
        let found = KernelFilter::new(&filter, Some(sampling)).unwrap();
        let inode = folder.path().metadata().unwrap().ino();
        assert_eq!(found.wanted[0][..8], inode.to_ne_bytes());
        assert_eq!((found.wanted.len(), found.devices.len()), (1, 1));
        assert_eq!(
            (
                found.latency_min_ns,
                found.sample_one_in,
                found.sample_region_shift
            ),
            (5000, 10, 16)
        );
    }

    #[test]
    fn what_is_not_there_and_too_much_is_refused() {
        let filter = |paths: Vec<std::path::PathBuf>| Filter {
            paths,
            ..Filter::default()
        };
        assert!(matches!(
            KernelFilter::new(&filter(vec!["/no/such/file".into()]), None),
            Err(TraceError::Filter { .. })
        ));
        assert!(matches!(
            KernelFilter::new(&filter(vec!["/".into(); 257]), None),
            Err(TraceError::TooManyFilters { count: 257, .. })
        ));
    }
}
