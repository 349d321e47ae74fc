//! The result of a run as data.

use seekscope_run::OperationOutcome;
use serde::Serialize;

/// Operations completed in about a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Time between the readings of the counters, ns.
    pub elapsed_ns: u64,
    pub reads: u64,
    pub writes: u64,
}

impl Sample {
    /// Returns reads and writes per second, as whole operations.
    pub fn operations_per_s(&self) -> u64 {
        let operations = u128::from(self.reads + self.writes);
        let per_s = operations * 1_000_000_000 / u128::from(self.elapsed_ns.max(1));
        u64::try_from(per_s).unwrap_or(u64::MAX)
    }
}

/// What this number of threads did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    pub threads: u32,
    /// Time of the first reading of the counters, CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    /// The samples; the last one is shorter if the run was interrupted.
    pub samples: Vec<Sample>,
    /// Sums over the samples, and the latencies of the same time. With mmf the bytes are those of
    /// the pages touched, most of which may have been in memory.
    pub reads: OperationOutcome,
    /// Writes, each with its fdatasync, except with mmf.
    pub writes: OperationOutcome,
}

impl StepReport {
    /// Returns the time of all samples, ns.
    pub fn elapsed_ns(&self) -> u64 {
        self.samples.iter().map(|sample| sample.elapsed_ns).sum()
    }

    /// Returns the number of reads and writes.
    pub fn operations(&self) -> u64 {
        self.reads.operations + self.writes.operations
    }

    /// Returns `count` per second of all samples; 0 if they took no time.
    pub fn per_s(&self, count: u64) -> f64 {
        match self.elapsed_ns() {
            0 => 0.0,
            elapsed_ns => count as f64 * 1e9 / elapsed_ns as f64,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ending {
    Complete,
    /// The cancel flag was set; what had been measured by then is included.
    Interrupted,
    /// Something failed. Only the printed summary uses this variant; [`super::run`] returns the
    /// error.
    Failed,
}

/// The steps of a run, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    pub ending: Ending,
    pub file_bytes: u64,
    /// Bytes of one operation: recSizeKB, rounded up as direct I/O or pages require.
    pub operation_bytes: u64,
    /// "direct I/O", "through the page cache" or "through a mapping (page cache)".
    pub access: &'static str,
    /// Whether reads, and writes, were requested.
    pub reads: bool,
    pub writes: bool,
    /// Whether mmf is set: pages and not records are then touched, and no bytes per second are stated.
    pub mapped: bool,
    /// Seed that reproduces the same offsets and data (`fixed_seed`).
    pub seed: u64,
    /// The steps that began, in order.
    pub steps: Vec<StepReport>,
}
