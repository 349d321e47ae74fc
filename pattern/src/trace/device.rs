//! The disks' view: requests, not calls.

use serde::{Deserialize, Serialize};

use super::result::{DirectionTrace, QueueDepth, SyncCalls};

/// One disk, device layer only. Offsets are byte offsets on the disk (sector × 512).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskTrace {
    /// The device's numbers as in /proc/diskstats.
    pub major: u32,
    pub minor: u32,
    pub reads: DirectionTrace,
    pub writes: DirectionTrace,
    pub flushes: SyncCalls,
    pub discards: u64,
    pub discard_bytes: u64,
    /// How many requests of every kind were in flight at once.
    pub queue_depth: QueueDepth,
    /// Bytes of reads and writes by what they were for.
    pub read_bytes_by_purpose: BytesByPurpose,
    pub write_bytes_by_purpose: BytesByPurpose,
}

/// Bytes of requests by purpose; the first three add up to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BytesByPurpose {
    /// Contents of a known file.
    pub file_bytes: u64,
    /// The filesystem's own data.
    pub metadata_bytes: u64,
    pub unknown_bytes: u64,
    /// Bytes, among all of these, that nobody was waiting for when they were requested.
    pub read_ahead_bytes: u64,
}
