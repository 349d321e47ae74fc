//! What a recording contains, file by file, and where each chosen file goes on the target.

use std::collections::BTreeMap;

use seekscope_run::{IoEvent, IoLayer, IoOp};

/// Regions begin at multiples of this, so that aligned operations remain aligned.
const REGION_ALIGNMENT_BYTES: u64 = 4096;
/// The least that a fault reads.
const PAGE_BYTES: u64 = 4096;

/// What was done to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileTotals {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    /// End of the last byte read or written, bytes from the file's start.
    pub end_bytes: u64,
}

/// Totals of a recording by file id. It must be given all events.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    pub files: BTreeMap<u32, FileTotals>,
}

impl Recording {
    /// Takes an event; only reads and writes of files at known offsets count.
    pub fn add(&mut self, event: &IoEvent) {
        let Some(offset) = event.offset else { return };
        if event.op.layer() != IoLayer::File || event.result < 0 {
            return;
        }
        let is_read = event.op.is_read();
        if !is_read && !event.op.is_write() {
            return;
        }
        let totals = self.files.entry(event.file_id).or_default();
        let bytes = event.bytes();
        if is_read {
            totals.reads += 1;
            totals.read_bytes = totals.read_bytes.saturating_add(bytes);
        } else {
            totals.writes += 1;
            totals.write_bytes = totals.write_bytes.saturating_add(bytes);
        }
        // A read behind the end of the file moves nothing, and tells nothing of the file's size.
        let moved = moved_bytes(event);
        if moved > 0 {
            totals.end_bytes = totals.end_bytes.max(offset.saturating_add(moved));
        }
    }

    /// Returns the file ids, the most read first.
    pub fn by_read_bytes(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.files.keys().copied().collect();
        ids.sort_by_key(|id| std::cmp::Reverse((self.files[id].read_bytes, self.files[id].writes)));
        ids
    }
}

/// Returns the bytes that a read or write moved: a fault reads a page at least, whatever was recorded of it.
pub(super) fn moved_bytes(event: &IoEvent) -> u64 {
    match event.op {
        IoOp::MmapFault => event.bytes().max(PAGE_BYTES),
        _ => event.bytes(),
    }
}

/// Where the chosen files lie on the target: one after another, without overlap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Regions {
    /// Index among the chosen files and start of the region, by file id.
    places: BTreeMap<u32, (u16, u64)>,
    total_bytes: u64,
}

impl Regions {
    /// Lays out files, given with their sizes in bytes, in this order. If a file occurs twice the
    /// first counts; files beyond 65,536 are ignored.
    pub fn lay_out(files: impl IntoIterator<Item = (u32, u64)>) -> Self {
        let mut regions = Self::default();
        for (file_id, bytes) in files {
            let Ok(number) = u16::try_from(regions.places.len()) else {
                break;
            };
            let base = regions.total_bytes;
            if regions.places.contains_key(&file_id) {
                continue;
            }
            regions.places.insert(file_id, (number, base));
            let end = base.saturating_add(bytes);
            regions.total_bytes = end
                .checked_next_multiple_of(REGION_ALIGNMENT_BYTES)
                .unwrap_or(u64::MAX);
        }
        regions
    }

    /// Returns index and start of a file's region; `None` for files that were not chosen.
    pub fn place(&self, file_id: u32) -> Option<(u16, u64)> {
        self.places.get(&file_id).copied()
    }

    /// Returns the size of a target that holds all of them.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the number of chosen files.
    pub fn files(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::IoFlags;

    use super::*;

    #[test]
    fn what_moved_no_bytes_makes_no_file_larger() {
        let event = |op, offset, result| IoEvent {
            t_ns: 1,
            pid: 1,
            tid: 1,
            file_id: 5,
            op,
            flags: IoFlags(0),
            offset: Some(offset),
            length: 4096,
            latency_ns: 1,
            result,
            device_read_bytes: 0,
            request: None,
        };
        let end_of = |events: &[IoEvent]| {
            let mut recording = Recording::default();
            events.iter().for_each(|event| recording.add(event));
            recording.files[&5].end_bytes
        };
        let probe = event(IoOp::Pread, 1 << 30, 0);
        let end = event(IoOp::Pread, 8192, 100);
        assert_eq!(end_of(&[end, probe]), 8292);
        assert_eq!(end_of(&[probe]), 0);
        assert_eq!(end_of(&[event(IoOp::MmapFault, 8192, 0)]), 12_288);
    }

    #[test]
    fn regions_follow_one_another() {
        let regions = Regions::lay_out([(7, 10_000), (3, 4096), (7, 5), (9, 1)]);
        assert_eq!(regions.place(7), Some((0, 0)));
        assert_eq!(regions.place(3), Some((1, 12_288)));
        assert_eq!(regions.place(9), Some((2, 16_384)));
        assert_eq!(regions.place(1), None);
        assert_eq!((regions.total_bytes(), regions.files()), (20_480, 3));
        let absurd = Regions::lay_out([(1, u64::MAX), (2, u64::MAX)]);
        assert_eq!(absurd.total_bytes(), u64::MAX);
    }
}
