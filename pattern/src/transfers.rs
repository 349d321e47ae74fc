//! Calls in one direction, and where the bytes of reads came from.

use schemars::JsonSchema;
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

/// Calls in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Transfers {
    pub calls: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Calls that returned an error.
    pub errors: u64,
    /// System-call latency, ns.
    pub latency_ns: Quantiles,
}

/// Reads by where their bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CacheCounts {
    /// Reads that found their bytes in the page cache.
    pub hits: u64,
    /// Reads from the device that were waited for.
    pub misses: u64,
    /// Reads that waited for pages already on their way.
    pub waited_for_others: u64,
    /// Reads with O_DIRECT.
    pub direct: u64,
    /// Bytes that these reads sent to the block layer, read-ahead included.
    pub device_read_bytes: u64,
}
