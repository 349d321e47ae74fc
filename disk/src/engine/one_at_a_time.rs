//! The loop of engines with one request in flight: an access, a sync if the job wants one, and the
//! times of both.

use std::io;

use seekscope_run::{JobFacts, monotonic_ns};
use seekscope_stats::SplitMix64;

use super::{Engine, Worker, incomplete};
use crate::DiskError;
use crate::offsets::Access;
use crate::recorder::Operation;

/// A way of making a request and waiting for it.
pub(super) trait OneAtATime {
    /// Called before the time of a write counts: makes its contents different from all before.
    fn prepare_write(&mut self, _stamps: &mut SplitMix64) {}

    /// Makes the read or write.
    fn access(&mut self, access: Access) -> Result<(), DiskError>;

    /// Waits until the write, or all writes so far, are on the disk.
    fn sync(&mut self, extent: Extent) -> io::Result<()>;
}

/// What to sync.
#[derive(Debug, Clone, Copy)]
pub(super) enum Extent {
    /// The block at this offset.
    Block(u64),
    All,
}

/// Decides when the job wants a sync.
#[derive(Debug, Default)]
struct Syncs {
    unsynced_bytes: u64,
}

impl Syncs {
    /// Returns what to sync after a write at `offset`, if anything.
    fn due(&mut self, facts: &JobFacts, offset: u64) -> Option<Extent> {
        if facts.sync_each_write {
            return Some(Extent::Block(offset));
        }
        let every_bytes = facts.sync_every_bytes?;
        self.unsynced_bytes += facts.block_bytes;
        if self.unsynced_bytes < every_bytes {
            return None;
        }
        self.unsynced_bytes = 0;
        Some(Extent::All)
    }
}

impl<T: OneAtATime> Engine for T {
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<bool, DiskError> {
        let facts = &worker.job.facts;
        let mut syncs = Syncs::default();
        let mut now_ns = monotonic_ns();
        while let Some((due_ns, called_ns)) = worker.wait(now_ns) {
            let Some(access) = worker.offsets.next() else {
                return Ok(true);
            };
            if access.is_write {
                self.prepare_write(&mut worker.stamps);
            }
            self.access(access)?;
            now_ns = monotonic_ns();
            let recorder = &mut worker.recorder;
            if !access.is_write {
                recorder.record(Operation::Read, due_ns, called_ns, now_ns);
                continue;
            }
            let mut done_ns = now_ns;
            if let Some(extent) = syncs.due(facts, access.offset) {
                let synced = self.sync(extent);
                synced.map_err(|e| incomplete("sync", access.offset, Err(e)))?;
                let written_ns = now_ns;
                now_ns = monotonic_ns();
                recorder.record(Operation::Sync, written_ns, written_ns, now_ns);
                // A write together with its sync is one operation.
                if facts.sync_each_write {
                    done_ns = now_ns;
                }
            }
            recorder.record(Operation::Write, due_ns, called_ns, done_ns);
        }
        Ok(false)
    }
}
