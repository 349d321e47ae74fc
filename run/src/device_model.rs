//! A few measured numbers that predict the cost of a list of I/Os on a disk. The model is built and used by the
//! `disk` crate, and stored in `run.json` for later commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LatencySummary;

/// Result of direct random reads of one size, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizePoint {
    /// Size of a read, bytes.
    pub bytes: u64,
    /// Mean elapsed time per read, ns.
    pub mean_ns: f64,
    pub p50_ns: u64,
}

/// Result of direct random reads of one size at one depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthPoint {
    pub block_bytes: u64,
    /// Number of reads in flight.
    pub depth: u32,
    pub iops: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// Result of small writes, each followed by fdatasync, by one or several concurrent writers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncPoint {
    pub block_bytes: u64,
    pub writers: u32,
    pub per_s: f64,
    pub latency: LatencySummary,
}

/// A rate limit with a burst balance, as clouds and cgroups have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenBucket {
    /// Tokens per second: requests or bytes.
    pub per_s: f64,
    /// Tokens that had been saved up when the measurement began; 0 if no burst was seen.
    pub burst: f64,
}

/// How long a disk takes for requests of any size, depth and order. Rates are per second, sizes in bytes, times in
/// ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DeviceModel {
    /// The disk that the model was made from, e.g. "ext4 on vda" or "… emulated hdd".
    pub disk: String,
    /// Whether the measured reads bypassed the page cache; if false, the model describes the cache.
    pub direct: bool,
    /// L0 in L(s) = L0 + k s, the elapsed time of one read of s bytes at depth 1, ns.
    pub l0_ns: f64,
    /// k in the same formula, ns per byte.
    pub ns_per_byte: f64,
    /// Largest relative deviation of a measured size from the line.
    pub fit_error: f64,
    /// Times of single reads by size.
    pub sizes: Vec<SizePoint>,
    /// X(q): rates for each block size, by rising depth.
    pub depths: Vec<DepthPoint>,
    /// Depth beyond which more depth gains less than a tenth (the knee), at the smallest block size.
    pub parallelism: u32,
    /// B: rate of direct sequential reads, in requests of 1 MiB, one at a time.
    pub sequential_bytes_per_s: f64,
    /// The highest rate at which bytes came from the device in any measurement.
    pub bytes_per_s_max: f64,
    /// B through the cold page cache, in calls of 32 KiB.
    pub buffered_bytes_per_s: f64,
    /// Cost of reading a byte that is in the page cache, in calls of 32 KiB; 0 if not measured.
    pub cached_ns_per_byte: f64,
    /// Time that a read that misses the page cache takes beyond a direct read of its size and the copying: for
    /// allocating pages and waking the reader; 0 if not measured.
    pub miss_ns: f64,
    /// CPU time per byte of a long stream, which read-ahead caches in the largest folios, on top of
    /// `cached_ns_per_byte`; 0 if the device is slower than that. It is large in virtual machines that return free
    /// memory to their host, because blocks of that size must be faulted in again.
    pub stream_ns_per_byte: f64,
    /// W, the kernel's read-ahead limit.
    pub read_ahead_bytes: u64,
    /// The largest request that the kernel sends.
    pub request_bytes_max: u64,
    pub sync: Vec<SyncPoint>,
    /// Limit on requests; `None` if none was found.
    pub iops_bucket: Option<TokenBucket>,
    /// Limit on bytes; `None` if none was found.
    pub bytes_bucket: Option<TokenBucket>,
}
