//! What `seekscope prefetch` did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the scan was followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PrefetchPace {
    /// By the server's reads of the file.
    Traced,
    /// By how many bytes the server has read, of all files together.
    Counted,
    /// Nothing is known of the scan: as fast as an engine can take what is in memory.
    #[default]
    Own,
}

/// Pauses in which the scan passed leaves alone, against the whole scan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PrefetchGain {
    /// Pauses.
    pub slices: u64,
    pub leaves_left_out: u64,
    /// Time of the scan per leaf, everything included.
    pub ns_per_leaf: f64,
    /// Likewise in pauses.
    pub ns_per_leaf_left_out: f64,
    /// How many times as fast the scan was as all of it at the pace of the pauses; `None` where too little was
    /// measured.
    pub ratio: Option<f64>,
    /// Of its 95 % interval.
    pub ratio_low: Option<f64>,
    pub ratio_high: Option<f64>,
}

/// What one run read ahead, and what came of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrefetchRecord {
    /// The file, relative to its data directory.
    pub file: String,
    /// What was asked for.
    pub named: String,
    /// The data directory.
    pub path: String,
    pub leaf_pages: u64,
    pub leaf_bytes: u64,
    pub file_bytes: u64,
    /// Of the leaves, in memory before anything was read.
    pub cached_bytes_before: u64,
    /// Memory for what is read ahead, at the end.
    pub window_bytes: u64,
    /// All leaves fit into it.
    pub fits: bool,
    /// Gaps up to this were read through.
    pub gap_bytes: u64,
    /// Reads in flight at most.
    pub depth: u32,
    /// Of one more request: measured, or of the device model. `None` where neither is known, as long as the disk
    /// was not tried.
    pub request_ns: Option<f64>,
    /// Of a long stretch, likewise.
    pub bytes_per_s: Option<f64>,
    /// At least one of them was measured, now or for the device model; false: of a typical disk, or not tried.
    pub disk_measured: bool,
    pub pace: PrefetchPace,
    /// Time spent before the scan was to begin: walking the tree, trying the disk.
    pub preparation_ns: u64,
    /// Of `elapsed_ns`, how long the user's scan was kept waiting until its leaves were in memory.
    pub scan_waited_ns: u64,
    pub elapsed_ns: u64,
    /// Ordinal of the leaf that the scan had come to, of `leaf_pages`.
    pub position: u64,
    /// Reads, of one or several leaf pages and what lies between.
    pub stretches: u64,
    pub leaves_read: u64,
    /// Of the file, what lay between leaves included.
    pub bytes_read: u64,
    /// Lay between, and was given back.
    pub bridged_bytes: u64,
    /// Given back after the scan had passed, bytes.
    pub released_bytes: u64,
    /// Rounds of the head over the file.
    pub rounds: u64,
    /// Reads of the file by the server; `None` without a trace.
    pub server_reads: Option<u64>,
    /// How many of them had to wait for the disk.
    pub server_misses: Option<u64>,
    /// Time the server spent in these reads, as a share of the time from its first to its last.
    pub server_read_share: Option<f64>,
    /// Times that we gave way to other reads of the server.
    pub gave_way: u64,
    /// How many times as long other reads took at the end as in peace (95th percentiles).
    pub others_wait: Option<f64>,
    /// Times that the window was made smaller because the kernel took pages before they were used.
    pub shrunk: u64,
    /// Checkpoints that moved the tree meanwhile.
    pub trees: u64,
    pub gain: Option<PrefetchGain>,
    /// Why reading ahead cannot help here; empty where it can.
    pub cannot_help: Vec<String>,
}
