//! Everything that is counted about one file.

use seekscope_run::{FileRecord, IoEvent, IoFlags, IoKind};

use super::calls::TransferCounter;
use super::depth::Depth;
use super::direction::DirectionCounter;
use super::hash::page_hash;
use super::result::{BytesBySource, FileOnDevice, FileTrace};
use super::reuse::ReuseTracker;
use super::slices::Slices;
use super::touched::{PAGE_BYTES, Touched};
use crate::CacheCounts;
use crate::access::Access;

/// The most pages that are followed for the re-use distances of one file.
const REUSE_PAGES_MAX: usize = 2048;

/// The number of files for which every page is followed at first; for later files it is one page in
/// eight.
const FULL_RATE_FILES: usize = 64;

/// The most pages of one call that count as touched in slices and as re-used: 16 MiB. A longer call
/// is counted as if it ended there, so that the time per event is bounded.
const PAGES_PER_CALL_MAX: u64 = 4096;

/// The counters of one file while the trace is read.
pub(crate) struct FileCounter {
    reads: DirectionCounter,
    writes: DirectionCounter,
    syncs: TransferCounter,
    cache: CacheCounts,
    by_source: BytesBySource,
    depth: Depth,
    reuse: ReuseTracker,
    device: DeviceCounter,
    slices: Slices,
}

impl FileCounter {
    /// `rank` is the number of files that came before this one.
    pub(crate) fn new(exact_max: usize, rank: usize) -> Self {
        let rate_log2 = if rank < FULL_RATE_FILES { 0 } else { 3 };
        Self {
            reads: DirectionCounter::new(exact_max),
            writes: DirectionCounter::new(exact_max),
            syncs: TransferCounter::new(exact_max),
            cache: CacheCounts::default(),
            by_source: BytesBySource::default(),
            depth: Depth::default(),
            reuse: ReuseTracker::new(REUSE_PAGES_MAX, rate_log2),
            device: DeviceCounter {
                reads: TransferCounter::new(exact_max),
                writes: TransferCounter::new(exact_max),
                read_ahead_bytes: 0,
                read: Touched::default(),
            },
            slices: Slices::default(),
        }
    }

    /// Counts an event of the file layer in its slice of time.
    pub(crate) fn add_call(&mut self, event: &IoEvent, slice: u64) {
        let (direction, reads) = match event.op.kind() {
            IoKind::Read => (&mut self.reads, true),
            IoKind::Write => (&mut self.writes, false),
            IoKind::Sync | IoKind::Discard => {
                self.syncs.add(event);
                self.slices.at(slice).syncs += 1;
                return;
            }
        };
        self.depth.add(event.t_ns, event.latency_ns);
        let slice = self.slices.at(slice);
        let slice = if reads {
            &mut slice.reads
        } else {
            &mut slice.writes
        };
        let slice = slice.get_or_insert_default();
        slice.add_call(event);
        if reads {
            self.cache.add(event);
            self.by_source.add(event);
        }
        let access = Access::of(event);
        let noted = direction.add(event, access);
        let (Some(access), Some(noted)) = (access, noted) else {
            return;
        };
        slice.add_access(access, &noted);
        for page in pages(access) {
            let hash = page_hash(event.file_id, page);
            slice.distinct.add(hash);
            if reads {
                self.reuse.reference(hash);
            }
        }
    }

    /// Counts a disk request on behalf of this file.
    pub(crate) fn add_request(&mut self, event: &IoEvent) {
        let device = &mut self.device;
        match event.op.kind() {
            IoKind::Read => {
                device.reads.add(event);
                if event.flags.has(IoFlags::READ_AHEAD) {
                    device.read_ahead_bytes += event.bytes();
                }
                if let Some(access) = Access::of(event) {
                    device.read.add(access.offset, access.end());
                }
            }
            IoKind::Write => device.writes.add(event),
            IoKind::Sync | IoKind::Discard => {}
        }
    }

    pub(crate) fn slices(&self) -> &Slices {
        &self.slices
    }

    pub(crate) fn slices_mut(&mut self) -> &mut Slices {
        &mut self.slices
    }

    /// Returns the figures. `requests_recorded`: whether no request on behalf of this file means
    /// that there was none.
    pub(crate) fn finish(
        &self,
        file: FileRecord,
        started_ns: u64,
        slice_ns: u64,
        requests_recorded: bool,
    ) -> FileTrace {
        FileTrace {
            file,
            reads: self.reads.finish(),
            writes: self.writes.finish(),
            syncs: self.syncs.sync_calls(),
            cache: self.cache,
            read_bytes_by_source: self.by_source,
            latency_by_outcome: self.reads.latency_by_outcome(),
            queue_depth: self.depth.finish(),
            reuse: self.reuse.finish(),
            device: self.on_device(requests_recorded),
            slices: self.slices.finish(started_ns, slice_ns),
        }
    }

    fn on_device(&self, requests_recorded: bool) -> FileOnDevice {
        let nothing = Touched::default();
        let asked = self.reads.pattern.as_ref();
        let asked = asked.map_or(&nothing, |pattern| pattern.touched());
        let asked_bytes = self.reads.bytes();
        let requested_bytes = self.device.reads.bytes();
        FileOnDevice {
            reads: self.device.reads.transfers(),
            writes: self.device.writes.transfers(),
            read_ahead_bytes: self.device.read_ahead_bytes,
            never_asked_bytes: self.device.read.bytes_outside(asked),
            read_amplification: (requests_recorded && asked_bytes > 0)
                .then(|| requested_bytes as f64 / asked_bytes as f64),
        }
    }
}

/// Counter of requests on behalf of one file.
struct DeviceCounter {
    reads: TransferCounter,
    writes: TransferCounter,
    read_ahead_bytes: u64,
    read: Touched,
}

/// Returns the pages of an access, up to a bound.
pub(crate) fn pages(access: Access) -> impl Iterator<Item = u64> {
    let first = access.offset / PAGE_BYTES;
    let last = (access.end() - 1) / PAGE_BYTES;
    first..=last.min(first + PAGES_PER_CALL_MAX - 1)
}
