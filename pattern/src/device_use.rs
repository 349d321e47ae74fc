//! Who used the disk and when: a second pass over a trace, after the first has determined the
//! threads' roles.
//!
//! Waiting is the sum of the latencies of calls: if two threads wait at once, both count.
//!
//! A checkpoint shows as writes and syncs by the threads whose role is to make checkpoints; pauses
//! of up to [`PAUSE_NS`] belong to it. Everything else that happened during it is found by slots of
//! time (`slots.rs`), because a checkpoint's first call may end long after other calls.

mod finder;
mod slots;

use schemars::JsonSchema;
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

use crate::ThreadRole;

pub use finder::DeviceUseFinder;

/// Longest pause inside a checkpoint, ns: it walks trees that have not changed, or compresses. The
/// pause between two checkpoints is a minute by MongoDB's default.
pub const PAUSE_NS: u64 = 1_000_000_000;

/// Who used the disk, and when. Times are CLOCK_MONOTONIC ns.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceUse {
    /// Users of files, those with the most waiting first.
    pub users: Vec<FileUse>,
    /// Checkpoints in order of time.
    pub checkpoints: Vec<Checkpoint>,
    /// Latencies of journal syncs while a checkpoint ran, and otherwise, ns.
    pub journal_during_ns: Quantiles,
    pub journal_otherwise_ns: Quantiles,
    /// Latencies of reads by application threads, likewise.
    pub reads_during_ns: Quantiles,
    pub reads_otherwise_ns: Quantiles,
}

/// One file as the threads of one role use it in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileUse {
    pub file_id: u32,
    pub role: ThreadRole,
    /// Whether the calls are writes, not reads. Syncs count with the writes as waiting, not as
    /// calls.
    pub writes: bool,
    pub calls: u64,
    pub bytes: u64,
    /// Bytes that these calls made the device read.
    pub device_read_bytes: u64,
    pub waiting_ns: u64,
    /// Latency of the calls, within 3 %; `max` and `mean` are exact.
    pub latency_ns: Quantiles,
    /// Calls that had to wait for the device (misses, waits for others, direct reads).
    pub waited_calls: u64,
}

/// A stretch of time in which a checkpoint was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Checkpoint {
    /// When it started, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub ended_ns: u64,
    /// Bytes written by the checkpoint's own threads.
    pub written_bytes: u64,
    pub files: u32,
    pub syncs: u32,
    /// Total time of its syncs.
    pub sync_ns: u64,
    /// Time of its longest sync.
    pub longest_sync_ns: u64,
    /// Whether the latency of one of its writes or syncs is only a lower bound
    /// ([`seekscope_run::IoEvent::is_cut_off`]): it took at least as long as the times here say.
    pub is_cut_off: bool,
    /// Longest sync of the journal during the checkpoint.
    pub longest_journal_sync_ns: u64,
    /// Longest read by an application thread during the checkpoint.
    pub longest_read_ns: u64,
}
