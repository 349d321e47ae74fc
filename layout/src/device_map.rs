//! Where a file's bytes lie on the device. File offset is not disk position: on a fragmented
//! filesystem leaves that follow one another in the file may be far apart on the disk.

use std::io;
use std::path::Path;

use seekscope_run::layout::DeviceExtents;
use seekscope_wiredtiger::{Leaf, LeafKind};

use crate::LayoutError;
use crate::data_file::DataFile;
use crate::fiemap::{self, RawExtent};

/// Extents kept after joining neighbours; enough for a terabyte in pieces of 256 KiB.
const EXTENTS_MAX: usize = 1 << 22;

/// A part of the file that is contiguous on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceExtent {
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Bytes from the start of the filesystem's device (volume, array).
    pub device_offset: u64,
    /// Length in the file, bytes.
    pub bytes: u64,
    /// Compressed or encrypted by the filesystem: it is read as a whole, and only its beginning has
    /// a known place.
    pub encoded: bool,
}

/// The map of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceMap {
    extents: Vec<DeviceExtent>,
    /// Bytes that have no place yet (just written) or none of their own (stored inside the inode).
    pub unplaced_bytes: u64,
}

impl DeviceMap {
    /// Asks the filesystem for the map, without making it write anything out.
    /// [`LayoutError::NoDeviceMap`] if it cannot say.
    pub fn read(path: &Path) -> Result<Self, LayoutError> {
        let file = DataFile::open(path)?;
        let mut map = Self {
            extents: Vec::new(),
            unplaced_bytes: 0,
        };
        let mut start = 0;
        loop {
            let batch = fiemap::extents_from(file.file(), start)
                .map_err(|source| refused(&file, source))?;
            for extent in &batch {
                map.add(extent);
            }
            let Some(last) = batch.last() else { break };
            let next = last.logical.saturating_add(last.length);
            // A filesystem that makes no progress would be asked for ever.
            if last.flags & fiemap::LAST != 0 || next <= start {
                break;
            }
            if map.extents.len() > EXTENTS_MAX {
                return Err(LayoutError::NoDeviceMap {
                    path: path.into(),
                    why: format!("it lies in more than {EXTENTS_MAX} pieces"),
                });
            }
            start = next;
        }
        Ok(map)
    }

    fn add(&mut self, raw: &RawExtent) {
        let placeless = fiemap::UNKNOWN | fiemap::DELALLOC | fiemap::INLINE | fiemap::TAIL;
        let encoded = raw.flags & fiemap::ENCODED != 0;
        // Encoded extents may also be flagged as unknown; they have a place all the same.
        if raw.flags & placeless != 0 && !(encoded && raw.physical != 0) {
            self.unplaced_bytes += raw.length;
            return;
        }
        let new = DeviceExtent {
            file_offset: raw.logical,
            device_offset: raw.physical,
            bytes: raw.length,
            encoded,
        };
        match self.extents.last_mut() {
            // Filesystems bound an extent's length (ext4: 128 MiB), so long stretches come in several.
            Some(last) if last.goes_on_in(&new) => last.bytes += new.bytes,
            Some(last) if new.file_offset < last.file_end() => {}
            _ => self.extents.push(new),
        }
    }

    /// Returns the extents, ascending by file offset, without overlaps; holes of a sparse file are
    /// in none.
    pub fn extents(&self) -> &[DeviceExtent] {
        &self.extents
    }

    /// Returns the number of steps from one extent to the next, in file order, that are not
    /// contiguous on the device.
    pub fn breaks(&self) -> u64 {
        let pairs = self.extents.windows(2);
        pairs
            .filter(|p| p[0].device_end() != p[1].device_offset)
            .count() as u64
    }

    /// Returns the place of a byte of the file on the device; `None` if it has none.
    pub fn device_offset(&self, file_offset: u64) -> Option<u64> {
        let after = self
            .extents
            .partition_point(|e| e.file_offset <= file_offset);
        let extent = self.extents.get(after.checked_sub(1)?)?;
        let inside = file_offset - extent.file_offset;
        match extent.encoded {
            _ if inside >= extent.bytes => None,
            true => Some(extent.device_offset),
            false => Some(extent.device_offset + inside),
        }
    }

    /// Returns the record for leaves in key order and a read-ahead window of `window_bytes`.
    /// Deleted leaves are skipped, as scans do.
    pub fn summary(&self, leaves: &[Leaf], window_bytes: u64) -> DeviceExtents {
        let count = self.extents.len() as u64;
        let placed_bytes: u64 = self.extents.iter().map(|e| e.bytes).sum();
        DeviceExtents {
            extents: count,
            mean_extent_bytes: placed_bytes as f64 / count.max(1) as f64,
            breaks: self.breaks(),
            broken_pairs_share: self.broken_pairs_share(leaves, window_bytes),
            used_for_prediction: false,
        }
    }

    /// Returns the share of the pairs of leaves whose gap is within the window in the file, but not on the device;
    /// 0 if there are none. A pair without a place counts as unbroken.
    fn broken_pairs_share(&self, leaves: &[Leaf], window_bytes: u64) -> f64 {
        let within = |end: u64, start: u64| start >= end && start - end <= window_bytes;
        let (mut sequential, mut broken) = (0u64, 0u64);
        let mut scanned = leaves.iter().filter(|l| l.kind != LeafKind::Deleted);
        let Some(mut before) = scanned.next() else {
            return 0.0;
        };
        for leaf in scanned {
            let end = before.offset + u64::from(before.length);
            if within(end, leaf.offset) {
                sequential += 1;
                let last = self.device_offset(end.saturating_sub(1));
                let places = last.zip(self.device_offset(leaf.offset));
                broken += u64::from(places.is_some_and(|(last, next)| {
                    // Inside one encoded extent, all bytes have the same place.
                    last != next && !within(last + 1, next)
                }));
            }
            before = leaf;
        }
        broken as f64 / sequential.max(1) as f64
    }
}

impl DeviceExtent {
    fn file_end(&self) -> u64 {
        self.file_offset.saturating_add(self.bytes)
    }

    fn device_end(&self) -> u64 {
        self.device_offset.saturating_add(self.bytes)
    }

    fn goes_on_in(&self, next: &Self) -> bool {
        !self.encoded
            && !next.encoded
            && self.file_end() == next.file_offset
            && self.device_end() == next.device_offset
    }
}

fn refused(file: &DataFile, source: io::Error) -> LayoutError {
    let why = match source.raw_os_error() {
        // ENOTTY is what FUSE and other filesystems answer to any ioctl they do not know.
        Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::ENOSYS | libc::EINVAL) => {
            "its filesystem does not report it (no FIEMAP)".to_owned()
        }
        _ => format!("the filesystem answered: {source}"),
    };
    LayoutError::NoDeviceMap {
        path: file.path().into(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn raw(logical: u64, physical: u64, length: u64, flags: u32) -> RawExtent {
        RawExtent {
            logical,
            physical,
            length,
            flags,
            ..RawExtent::default()
        }
    }

    fn map(extents: &[RawExtent]) -> DeviceMap {
        let mut map = DeviceMap {
            extents: Vec::new(),
            unplaced_bytes: 0,
        };
        extents.iter().for_each(|e| map.add(e));
        map
    }

    fn leaf(offset: u64) -> Leaf {
        Leaf {
            offset,
            length: 4096,
            kind: LeafKind::Plain,
        }
    }

    #[test]
    fn neighbours_are_joined_and_the_placeless_left_out() {
        let map = map(&[
            raw(0, 1 << 20, 8192, 0),
            raw(8192, (1 << 20) + 8192, 4096, 0x1000),
            raw(16384, 0, 4096, fiemap::UNKNOWN | fiemap::DELALLOC),
            raw(20480, 1 << 30, 131_072, fiemap::ENCODED),
            raw(151_552, 4096, 4096, 0),
        ]);
        assert_eq!(map.extents().len(), 3);
        assert_eq!((map.breaks(), map.unplaced_bytes), (2, 4096));
        assert_eq!(map.device_offset(0), Some(1 << 20));
        assert_eq!(map.device_offset(12_287), Some((1 << 20) + 12_287));
        assert_eq!(map.device_offset(12_288), None, "a hole");
        assert_eq!(map.device_offset(16_384), None, "no place yet");
        assert_eq!(map.device_offset(90_000), Some(1 << 30), "compressed");
        assert_eq!(map.device_offset(151_553), Some(4097));
        assert_eq!(map.device_offset(155_648), None, "behind the end");
    }

    #[test]
    fn pairs_in_sequence_are_broken_where_the_device_is() {
        let map = map(&[raw(4096, 1 << 20, 8192, 0), raw(12_288, 1 << 30, 8192, 0)]);
        // In the file: three steps in sequence and one back. On the device the second jumps.
        let leaves = [
            leaf(4096),
            leaf(8192),
            leaf(12_288),
            leaf(16_384),
            leaf(4096),
        ];
        let summary = map.summary(&leaves, 131_072);
        assert_eq!(summary.broken_pairs_share, 1.0 / 3.0);
        assert_eq!((summary.extents, summary.breaks), (2, 1));
        assert_eq!(summary.mean_extent_bytes, 8192.0);
        assert_eq!(map.summary(&[], 0).broken_pairs_share, 0.0);
    }

    #[test]
    fn a_filesystem_without_maps_says_so() {
        // tmpfs has none.
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("a.wt");
        fs::write(&path, "x").unwrap();
        let error = DeviceMap::read(&path).unwrap_err();
        assert!(error.to_string().contains("does not report"), "{error}");
    }
}
