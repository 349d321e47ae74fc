//! Everything that is counted about one disk.

use seekscope_run::{BlockRequest, IoEvent, IoFlags, IoKind};

use super::calls::TransferCounter;
use super::depth::Depth;
use super::device::{BytesByPurpose, DiskTrace};
use super::direction::DirectionCounter;
use crate::access::Access;

const SECTOR_BYTES: u64 = 512;

/// The counters of one disk while the trace is read.
pub(crate) struct DiskCounter {
    reads: DirectionCounter,
    writes: DirectionCounter,
    flushes: TransferCounter,
    discards: TransferCounter,
    depth: Depth,
    read_purpose: BytesByPurpose,
    write_purpose: BytesByPurpose,
}

impl DiskCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            reads: DirectionCounter::new(exact_max),
            writes: DirectionCounter::new(exact_max),
            flushes: TransferCounter::new(exact_max),
            discards: TransferCounter::new(exact_max),
            depth: Depth::default(),
            read_purpose: BytesByPurpose::default(),
            write_purpose: BytesByPurpose::default(),
        }
    }

    pub(crate) fn add(&mut self, event: &IoEvent, request: BlockRequest) {
        self.depth.add(event.t_ns, event.latency_ns);
        let (direction, purpose) = match event.op.kind() {
            IoKind::Read => (&mut self.reads, &mut self.read_purpose),
            IoKind::Write => (&mut self.writes, &mut self.write_purpose),
            IoKind::Sync => return self.flushes.add(event),
            IoKind::Discard => return self.discards.add(event),
        };
        purpose.add(event);
        let (offset, bytes) = (request.sector.saturating_mul(SECTOR_BYTES), event.bytes());
        direction.add(event, (bytes > 0).then_some(Access { offset, bytes }));
    }

    pub(crate) fn finish(&self, major: u32, minor: u32) -> DiskTrace {
        DiskTrace {
            major,
            minor,
            reads: self.reads.finish(),
            writes: self.writes.finish(),
            flushes: self.flushes.sync_calls(),
            discards: self.discards.calls(),
            discard_bytes: self.discards.bytes(),
            queue_depth: self.depth.finish(),
            read_bytes_by_purpose: self.read_purpose,
            write_bytes_by_purpose: self.write_purpose,
        }
    }
}

impl BytesByPurpose {
    /// Counts a request. It has an offset in a file only if its file is known.
    fn add(&mut self, event: &IoEvent) {
        let bytes = event.bytes();
        *if event.flags.has(IoFlags::METADATA) {
            &mut self.metadata_bytes
        } else if event.offset.is_some() {
            &mut self.file_bytes
        } else {
            &mut self.unknown_bytes
        } += bytes;
        if event.flags.has(IoFlags::READ_AHEAD) {
            self.read_ahead_bytes += bytes;
        }
    }
}
