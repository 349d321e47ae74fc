//! A counter or gauge of the server or the host at one moment: a row of `server.parquet`.

use serde::{Deserialize, Serialize};

/// A counter or gauge at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterSample {
    /// CLOCK_MONOTONIC ns.
    pub t_ns: u64,
    /// The source: "serverStatus", "process", "client", "diskstats", "pressure", "cgroup".
    pub source: String,
    /// Its name in the source, with dots, and its unit where the source does not settle it:
    /// "wiredTiger.cache.bytes currently in the cache", "cpu_ns", "rss_bytes".
    pub name: String,
    /// The value as read: counters are not differenced.
    pub value: f64,
}
