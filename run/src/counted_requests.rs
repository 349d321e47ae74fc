//! Requests to a disk that were counted, not recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What requests to a disk are for.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RequestCause {
    /// Files that the trace follows; these requests were recorded too.
    TracedFiles,
    /// Files that no traced process had opened, or that a filter left out.
    OtherFiles,
    /// The filesystem's own data, including its journal. It is not known who caused these requests.
    Filesystem,
    /// Not known: direct I/O of other processes, swap, flushes, discards.
    Unknown,
}

impl RequestCause {
    /// All causes, in the order of the kernel programs' table (`trace/bpf/block.h`).
    pub const ALL: [Self; 4] = [
        Self::TracedFiles,
        Self::OtherFiles,
        Self::Filesystem,
        Self::Unknown,
    ];

    /// Returns the name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::TracedFiles => "files traced",
            Self::OtherFiles => "other files",
            Self::Filesystem => "filesystem metadata",
            Self::Unknown => "not known",
        }
    }
}

/// Requests issued to one disk during a trace for one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CountedRequests {
    /// Major device number of the disk, as in /proc/diskstats.
    pub disk_major: u32,
    /// Minor device number of the disk, as in /proc/diskstats.
    pub disk_minor: u32,
    pub cause: RequestCause,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub discard_bytes: u64,
}

impl CountedRequests {
    /// Returns the number of requests of all kinds.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes + self.discards
    }
}
