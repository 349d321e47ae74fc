//! The result of a trace analysis. Plain data, filled in by [`crate::TraceAnalyser`].

use seekscope_run::{FileRecord, ThreadRecord};
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

use super::device::DiskTrace;
use super::reuse::ReuseDistances;
use super::roles::ThreadRole;
use crate::{AccessPattern, CacheCounts, PatternKind, Transfers};

/// Everything about a trace. Times are CLOCK_MONOTONIC ns. Quantiles are exact up to
/// [`crate::EXACT_VALUES_MAX`] values and within 0.8 % beyond; counts, bytes and shares are exact.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TraceAnalysis {
    /// Start of the first event and end of the last; both 0 without events.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Events given, of both layers.
    pub events: u64,
    /// Events that came too late to be put in order of their start; they were analysed in order of
    /// arrival.
    pub late_events: u64,
    /// Events whose latency is a lower bound ([`seekscope_run::IoEvent::is_cut_off`]), which occur
    /// in runs of earlier versions. The longest latencies and the sums of latencies are then lower
    /// bounds too.
    #[serde(default)]
    pub latencies_cut_off: u64,
    /// Length of a slice. Slice i covers `started_ns + i * slice_ns` and the `slice_ns` after it.
    pub slice_ns: u64,
    /// All files together, file layer only.
    pub reads: Transfers,
    pub writes: Transfers,
    pub syncs: SyncCalls,
    pub cache: CacheCounts,
    pub queue_depth: QueueDepth,
    /// Re-use over the reads of all files: what a cache of a given size would have to hold.
    pub reuse: ReuseDistances,
    /// Files, those with the most bytes read first, then those with the most bytes written.
    pub files: Vec<FileTrace>,
    /// Files beyond [`crate::AnalysisOptions::files_max`], counted together.
    pub files_beyond: FilesBeyond,
    /// Threads, those with the most bytes read and written first.
    pub threads: Vec<ThreadTrace>,
    /// One row per role that occurs, in the order of [`ThreadRole::ALL`].
    pub roles: Vec<RoleTrace>,
    /// The device layer; empty when no block requests were recorded.
    pub disks: Vec<DiskTrace>,
}

/// One file: what processes requested of it, and what that made a disk do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileTrace {
    pub file: FileRecord,
    pub reads: DirectionTrace,
    pub writes: DirectionTrace,
    pub syncs: SyncCalls,
    pub cache: CacheCounts,
    pub read_bytes_by_source: BytesBySource,
    /// Latency of reads by cache outcome, ns.
    pub latency_by_outcome: LatencyByOutcome,
    /// How many reads and writes were in flight at once.
    pub queue_depth: QueueDepth,
    /// Re-use distances of the reads.
    pub reuse: ReuseDistances,
    /// What the disk was asked to do on behalf of this file; all zero without block requests.
    pub device: FileOnDevice,
    /// Slices with at least one call, in order of time.
    pub slices: Vec<FileSlice>,
}

/// Reads, or writes, of one file over the whole trace.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectionTrace {
    pub transfers: Transfers,
    /// `None` if no call transferred a byte at a known offset.
    pub pattern: Option<AccessPattern>,
    pub shape: Option<PatternShape>,
}

/// Details beyond [`AccessPattern`], which defines a step, its gap g and a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PatternShape {
    /// Accesses per run.
    pub run_accesses: Distribution,
    /// Bytes per run.
    pub run_bytes: Distribution,
    /// g of the steps with g > 0, bytes.
    pub forward_gap_bytes: Distribution,
    /// |g| of the steps with g < 0, bytes.
    pub backward_gap_bytes: Distribution,
    /// |g| of the steps that are not sequential, bytes.
    pub seek_distance_bytes: Distribution,
    /// Latency of the accesses that ended a sequential step, ns.
    pub sequential_latency_ns: Quantiles,
    /// Latency of the accesses that ended any other step, ns.
    pub seek_latency_ns: Quantiles,
    /// The shares by which the kind was chosen.
    pub evidence: Evidence,
    /// Threads that made at least 8 accesses, and those of them whose own steps, taken alone, are
    /// at least 80 % sequential.
    pub threads: u64,
    pub sequential_threads: u64,
    /// Share of sequential steps if a step leads from a thread's access to the same thread's next
    /// one.
    pub thread_sequential_share: f64,
}

/// Shares of accesses, each 0..=1, that distinguish the kinds even when other accesses come between
/// (see `classify.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Accesses that continue where one of the recent streams stopped, forwards.
    pub forward_stream_share: f64,
    /// Accesses that continue one of the recent streams backwards: they end where it began.
    pub backward_stream_share: f64,
    /// Accesses that start at the commonest distance from one of the last few.
    pub stride_share: f64,
    /// Accesses that start where one of the recent ones started.
    pub repeat_share: f64,
}

/// Quantiles and a histogram in octaves.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Distribution {
    pub quantiles: Quantiles,
    /// Octaves that occur, ascending.
    pub octaves: Vec<Octave>,
}

/// The number of values in `low..=high`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Octave {
    /// 0, or a power of two.
    pub low: u64,
    /// 0, or the next power of two minus one.
    pub high: u64,
    pub count: u64,
}

/// Calls that wait until data is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SyncCalls {
    pub calls: u64,
    pub errors: u64,
    pub latency_ns: Quantiles,
}

/// Bytes returned by reads, by cache outcome of the read, and what they cost the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BytesBySource {
    /// Bytes returned; the sum of the next five.
    pub asked_bytes: u64,
    pub hit_bytes: u64,
    pub miss_bytes: u64,
    /// Bytes of reads that waited for pages already on their way.
    pub waited_bytes: u64,
    pub direct_bytes: u64,
    /// Bytes of reads whose outcome is unknown.
    pub unknown_bytes: u64,
    /// Bytes that the reading threads sent to the block layer, read-ahead included.
    pub device_read_bytes: u64,
}

impl BytesBySource {
    /// Returns the bytes that the reading threads made the device read, divided by the bytes they
    /// requested, with read-ahead included: below 1 thanks to the cache, above 1 through read-ahead
    /// that was not wanted, or not yet. `None` if nothing was requested.
    pub fn read_amplification(&self) -> Option<f64> {
        (self.asked_bytes > 0).then(|| self.device_read_bytes as f64 / self.asked_bytes as f64)
    }
}

/// Latency of reads by cache outcome, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyByOutcome {
    pub hit_ns: Quantiles,
    pub miss_ns: Quantiles,
    pub waited_ns: Quantiles,
    pub direct_ns: Quantiles,
}

/// How many operations were in flight at once.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct QueueDepth {
    /// Time with at least one operation in flight, ns.
    pub busy_ns: u64,
    /// Sum of latencies over `busy_ns` (Little's law): the mean while busy; 0 when never busy.
    pub mean_while_busy: f64,
    /// The deepest queue, counted up to [`crate::QUEUE_DEPTH_MAX`].
    pub max: u64,
}

/// A file as seen from the disk.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct FileOnDevice {
    /// Requests and their latency (issue to completion).
    pub reads: Transfers,
    pub writes: Transfers,
    /// Bytes of read requests that nobody waited for when they were issued.
    pub read_ahead_bytes: u64,
    /// Different bytes that were requested for reading but never asked for by a read of the trace.
    /// Exact to a page. Reads of mapped memory are not seen, so a mapped file looks wasteful.
    pub never_asked_bytes: u64,
    /// Bytes requested from the disk divided by bytes asked for by processes. `None` if nothing was
    /// asked for, or no block requests were recorded.
    pub read_amplification: Option<f64>,
}

/// One file in one slice of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileSlice {
    /// Start of the slice, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub reads: Option<SliceDirection>,
    pub writes: Option<SliceDirection>,
    pub syncs: u64,
}

/// Reads, or writes, of one file in one slice. A step belongs to the slice in which its second
/// access started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SliceDirection {
    pub calls: u64,
    pub bytes: u64,
    pub errors: u64,
    /// Latency of the calls, ns, within 7 %; `max` and `mean` are exact.
    pub latency_ns: Quantiles,
    pub kind: PatternKind,
    pub contiguous_share: f64,
    pub sequential_share: f64,
    pub backward_share: f64,
    pub evidence: Evidence,
    pub first_byte: u64,
    pub last_byte: u64,
    /// Working set: different bytes touched in this slice, whole pages, within about 7 % (standard
    /// error of a HyperLogLog with 256 registers).
    pub distinct_bytes: u64,
    /// Bytes not touched before in the trace; their running sum is the growth of the file's working
    /// set.
    pub new_bytes: u64,
    /// Cache outcomes, for reads only.
    pub cache: CacheCounts,
}

/// Totals of the files for which there was no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesBeyond {
    pub calls: u64,
    pub bytes: u64,
}

/// One thread, file layer only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadTrace {
    pub thread: ThreadRecord,
    pub role: ThreadRole,
    /// Whether the role was determined by the name, not by behaviour.
    pub role_from_name: bool,
    pub reads: Transfers,
    pub writes: Transfers,
    pub syncs: SyncCalls,
}

/// All threads of one role together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleTrace {
    pub role: ThreadRole,
    pub threads: u64,
    pub reads: Transfers,
    pub writes: Transfers,
    pub syncs: SyncCalls,
}
