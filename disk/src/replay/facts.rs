//! What is known about a plan before it is played: its size, and which parts of the recording it
//! leaves out or changes.

use schemars::JsonSchema;
use seekscope_run::{CacheOutcome, IoEvent};
use serde::{Deserialize, Serialize};

/// Events of the chosen files that are not played, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Skipped {
    /// Writes, on a target that is only read.
    pub writes: u64,
    /// Syncs, on a target that is only read.
    pub syncs: u64,
    /// Calls at an unknown offset.
    pub unknown_offset: u64,
    /// Reads and writes that moved no bytes, such as reads at the end of the file.
    pub empty: u64,
    /// Calls longer than 64 MiB.
    pub too_long: u64,
    /// Calls of `sync_file_range`.
    pub other: u64,
    /// Calls that had failed when they were recorded: reads, writes and syncs.
    pub failed: [u64; 3],
}

impl Skipped {
    /// Returns the number of all skipped events.
    pub fn total(&self) -> u64 {
        let counts = [
            self.writes,
            self.syncs,
            self.unknown_offset,
            self.empty,
            self.too_long,
            self.other,
        ];
        counts.iter().chain(&self.failed).sum()
    }
}

/// Operations that are not played exactly as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Adjusted {
    /// Operations beyond the target's end, played at an offset within it.
    pub wrapped: u64,
    /// Operations longer than the target.
    pub shortened: u64,
    /// Operations that should have been direct, but whose offset or length does not allow it:
    /// played through the page cache.
    pub unaligned: u64,
    /// Faults on mapped memory, played as reads.
    pub faults: u64,
}

/// Where the reads of the plan got their bytes when they were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RecordedCache {
    /// Reads that found their bytes in the page cache.
    pub hits: u64,
    pub misses: u64,
    /// Reads that waited for pages that another reader was already fetching.
    pub waited: u64,
    pub direct: u64,
    pub unknown: u64,
    /// Bytes that these reads requested from the disk, read-ahead included.
    pub device_read_bytes: u64,
}

impl RecordedCache {
    pub(super) fn add(&mut self, event: &IoEvent) {
        let count = match event.cache_outcome() {
            Some(CacheOutcome::Hit) => &mut self.hits,
            Some(CacheOutcome::Miss) => &mut self.misses,
            Some(CacheOutcome::WaitedForOthers) => &mut self.waited,
            Some(CacheOutcome::Direct) => &mut self.direct,
            None => &mut self.unknown,
        };
        *count += 1;
        self.device_read_bytes =
            (self.device_read_bytes).saturating_add(event.device_read_bytes.into());
    }
}

/// What is known of a plan before it is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanFacts {
    pub operations: u64,
    /// Bytes that these operations write.
    pub write_bytes: u64,
    pub recorded_threads: u64,
    /// Threads that play: one per recorded thread, or several for one that had several requests in
    /// flight (io_uring, libaio).
    #[schemars(range(min = 1, max = 256))]
    pub threads: u64,
    /// Recorded threads, or lanes of one, that had to share a playing thread with another that was
    /// busy at the same time.
    pub folded: u64,
    /// Recorded time from the first start to the last end.
    pub span_ns: u64,
    pub skipped: Skipped,
    pub adjusted: Adjusted,
    pub cache: RecordedCache,
}
