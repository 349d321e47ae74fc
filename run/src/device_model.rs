//! A few measured numbers that predict what a list of I/Os costs on a disk. Made and used by the
//! `disk` crate; stored in `run.json` for every later command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::LatencySummary;

/// Direct random reads of one size, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizePoint {
    pub bytes: u64,
    /// Elapsed time per read, ns.
    pub mean_ns: f64,
    pub p50_ns: u64,
}

/// Direct random reads of one size at one depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DepthPoint {
    pub block_bytes: u64,
    pub depth: u32,
    pub iops: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
}

/// A small write with its fdatasync, by writers at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SyncPoint {
    pub block_bytes: u64,
    pub writers: u32,
    pub per_s: f64,
    pub latency: LatencySummary,
}

/// A limit with a burst balance, as clouds and cgroups have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenBucket {
    /// Tokens per second: requests or bytes.
    pub per_s: f64,
    /// Tokens that had been saved up when the measurement began; 0 when no burst was seen.
    pub burst: f64,
}

/// What a disk does for a request of any size, depth and order. Rates are per second, sizes bytes, times ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DeviceModel {
    /// What it was made from, e.g. "ext4 on vda" or "… emulated hdd".
    pub disk: String,
    /// False when the measured reads did not bypass the page cache: the model is then of the cache.
    pub direct: bool,
    /// L0 of L(s) = L0 + k s: elapsed time of one read of s bytes at depth 1.
    pub l0_ns: f64,
    /// k of the same.
    pub ns_per_byte: f64,
    /// Largest relative distance of a measured size from the line.
    pub fit_error: f64,
    pub sizes: Vec<SizePoint>,
    /// X(q), for each block size by rising depth.
    pub depths: Vec<DepthPoint>,
    /// Depth from which more gain less than a tenth (the knee), at the smallest block size.
    pub parallelism: u32,
    /// B, direct, 1 MiB requests, one at a time.
    pub sequential_bytes_per_s: f64,
    /// The most bytes per second that came from the device in any measurement.
    pub bytes_per_s_max: f64,
    /// B through the page cache, cold, 32 KiB calls.
    pub buffered_bytes_per_s: f64,
    /// Cost of reading a byte that is in the page cache, by calls of 32 KiB; 0 when not measured.
    pub cached_ns_per_byte: f64,
    /// What a read that misses the page cache takes beyond a direct read of its size and copying:
    /// pages to allocate, a reader to wake; 0 when not measured.
    pub miss_ns: f64,
    /// CPU time per byte of a long stream, which read-ahead caches in the largest folios, on top of
    /// `cached_ns_per_byte`; 0 when the device is slower than that. It is large in virtual machines
    /// that return free memory to their host: blocks of that size must be faulted in again.
    pub stream_ns_per_byte: f64,
    /// W, the kernel's read-ahead limit.
    pub read_ahead_bytes: u64,
    /// The largest request that the kernel sends.
    pub request_bytes_max: u64,
    pub sync: Vec<SyncPoint>,
    /// Requests, where they are limited.
    pub iops_bucket: Option<TokenBucket>,
    /// Bytes, where they are limited.
    pub bytes_bucket: Option<TokenBucket>,
}
