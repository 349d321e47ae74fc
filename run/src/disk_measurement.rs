//! What `seekscope disk` measured: one record per step, and what the steps show together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::{DeviceModel, Disk, LatencySummary, Surroundings};

/// Order and direction of a job's accesses, by fio's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AccessKind {
    Read,
    Write,
    /// Sequential, reads and writes mixed.
    Rw,
    RandRead,
    RandWrite,
    RandRw,
}

impl AccessKind {
    /// Returns fio's name, e.g. "randread".
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns whether the next offset has nothing to do with the last.
    pub fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    /// Returns whether some accesses are writes.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::RandRead)
    }
}

/// How accesses are submitted to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum EngineKind {
    /// io_uring, one ring per thread.
    Uring,
    /// pread and pwrite, one at a time per thread.
    Sync,
    /// Loads and stores on a shared mapping.
    Mmap,
    /// Nothing is submitted to the kernel: measures the load generator itself.
    Null,
}

impl EngineKind {
    pub const ALL: [Self; 4] = [Self::Uring, Self::Sync, Self::Mmap, Self::Null];

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What the kernel was told about the order of buffered and mapped accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ReadAdvice {
    /// Nothing: the device's read-ahead setting applies.
    #[default]
    Normal,
    /// No read-ahead.
    Random,
    Sequential,
}

/// What one group of identical threads did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobFacts {
    pub access: AccessKind,
    /// Share of reads, 0..=1; relevant only to mixed accesses.
    pub read_share: f64,
    pub block_bytes: u64,
    pub engine: EngineKind,
    /// The page cache was not to be used (O_DIRECT).
    pub direct: bool,
    /// Requests in flight per thread.
    pub depth: u32,
    pub threads: u32,
    /// The rate of all threads together, per second; `None` means as fast as possible.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Gaps between intended starts were exponentially distributed instead of even.
    #[serde(default)]
    pub poisson: bool,
    /// Each write was followed by fdatasync and counts as one operation together with it.
    #[serde(default)]
    pub sync_each_write: bool,
    /// Writes went to blocks that had never been written, so that each was allocated on the way.
    #[serde(default)]
    pub fresh_blocks: bool,
    /// Bytes of writes after which an fdatasync follows.
    #[serde(default)]
    pub sync_every_bytes: Option<u64>,
    #[serde(default)]
    pub advice: ReadAdvice,
    /// Bytes per window of read-ahead by explicit advice, with the kernel's own read-ahead off.
    #[serde(default)]
    pub window_bytes: Option<u64>,
    /// Number of adjacent blocks in each run of random accesses.
    #[serde(default)]
    pub run_blocks: Option<u64>,
}

impl JobFacts {
    /// Returns a job of one thread with one direct request of 4 KiB in flight, as fast as possible. Engines
    /// without direct requests use none, and mixed accesses are half reads.
    pub fn new(access: AccessKind, engine: EngineKind) -> Self {
        Self {
            access,
            read_share: match access {
                AccessKind::Read | AccessKind::RandRead => 1.0,
                AccessKind::Write | AccessKind::RandWrite => 0.0,
                AccessKind::Rw | AccessKind::RandRw => 0.5,
            },
            block_bytes: 4096,
            engine,
            direct: matches!(engine, EngineKind::Uring | EngineKind::Sync),
            depth: 1,
            threads: 1,
            rate_per_s: None,
            poisson: false,
            sync_each_write: false,
            fresh_blocks: false,
            sync_every_bytes: None,
            advice: ReadAdvice::Normal,
            window_bytes: None,
            run_blocks: None,
        }
    }
}

/// The results of a job's operations of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct OperationOutcome {
    /// Operations completed within the measured time.
    pub operations: u64,
    pub bytes: u64,
    /// Latency of all operations, including those still under way when the time was over; measured from the
    /// intended start if the job has a rate, otherwise from the call.
    pub latency: LatencySummary,
    /// Latency from the call, if the job has a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<LatencySummary>,
}

/// The results of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobOutcome {
    pub job: JobFacts,
    /// Measured time, ns.
    pub elapsed_ns: u64,
    pub reads: OperationOutcome,
    pub writes: OperationOutcome,
    /// The fdatasync calls alone; those of `sync_each_write` are part of the writes too.
    pub syncs: OperationOutcome,
    /// User and system time of the job's threads in the measured time, ns. Interrupts and kernel threads are
    /// not included.
    pub cpu_ns: u64,
    /// Operations whose intended start had passed but which were not issued when the time was over (jobs with a
    /// rate).
    #[serde(default)]
    pub behind: u64,
    /// What the engine could not use, e.g. "registered buffers: Cannot allocate memory".
    #[serde(default)]
    pub engine_notes: Vec<String>,
}

impl JobOutcome {
    /// Returns the number of reads and writes.
    pub fn operations(&self) -> u64 {
        self.reads.operations.saturating_add(self.writes.operations)
    }

    /// Returns reads and writes per second.
    pub fn iops(&self) -> f64 {
        self.per_s(self.operations())
    }

    /// Returns bytes read and written per second.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_s(self.reads.bytes.saturating_add(self.writes.bytes))
    }

    /// Returns the CPU time per read or write, µs; `None` if there were none.
    pub fn cpu_us_per_io(&self) -> Option<f64> {
        let operations = self.operations();
        (operations > 0).then(|| self.cpu_ns as f64 / 1000.0 / operations as f64)
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        count as f64 * 1e9 / self.elapsed_ns as f64
    }
}

/// The question that a step answers. Stored: names never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepGroup {
    /// The job that the user described.
    Job,
    /// Direct random reads of one size, by depth.
    Ramp,
    /// Direct random reads at depth 1, by size (for the model).
    Size,
    /// Direct sequential reads of 1 MiB.
    SequentialDirect,
    /// Cold buffered reads of 32 KiB: in order, shuffled, in runs.
    Order,
    /// Buffered reads of data in the page cache: the CPU's part of the cost.
    Cached,
    /// Cold buffered reads, by read-ahead window.
    ReadAhead,
    /// Small writes, each followed by fdatasync.
    Journal,
    /// Small writes, each followed by fdatasync, beside a checkpoint-like burst of large writes.
    Checkpoint,
    /// 70 % reads and 30 % writes at the knee.
    Mixed,
    /// Page faults on a mapping.
    Mmap,
    /// The load generator without a disk.
    Generator,
    /// Random reads for minutes.
    Sustained,
}

/// One measured step: one job, or several at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskStep {
    pub group: StepGroup,
    /// Unique in the run; the tag in `latency.hlog` and the step in `intervals.parquet`.
    pub name: String,
    /// Start of the measured time, CLOCK_MONOTONIC ns, with the warm-up left out.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// The jobs in the order of their start; the first is the main job of the step.
    pub jobs: Vec<JobOutcome>,
    /// What this process had the block layer fetch in the measured time (`/proc/self/io`);
    /// `None` where the kernel does not count it.
    pub device_read_bytes: Option<u64>,
    /// Share (0..=1) of the measured time in which some task waited for I/O, on the whole host
    /// (PSI "some"); `None` without PSI.
    pub io_pressure: Option<f64>,
    /// Load average over one minute at the end of the step.
    pub load_1m: f64,
}

impl DiskStep {
    /// Returns the main job of the step.
    pub fn main(&self) -> Option<&JobOutcome> {
        self.jobs.first()
    }
}

/// Whether direct I/O really bypasses the page cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DirectFacts {
    /// Whether direct reads were made and left nothing in the page cache.
    pub real: bool,
    /// Required alignment of offsets, lengths and memory, bytes; 0 if unknown.
    pub alignment_bytes: u64,
    /// How this was determined, for people.
    pub evidence: String,
}

/// The disk part of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct DiskMeasurement {
    /// "quick", "full", "sustained" or "job".
    pub profile: String,
    /// The file read from, when it is not seekscope's own.
    pub existing_file: Option<String>,
    pub file_bytes: u64,
    /// The disk as it is, or the throttled one.
    pub disk: Disk,
    /// Bytes written to the disk by this run, as the kernel counts them: the file, what steps wrote, and about
    /// 100 KiB of the run's own records. 0 if only an existing file was read.
    pub written_bytes: u64,
    pub direct: DirectFacts,
    /// Cost of one clock reading, ns. There is one reading per operation at depth 1; at greater depths, one per
    /// batch that completes and one per submission; and one more where a sync follows.
    pub clock_read_ns: f64,
    pub surroundings: Surroundings,
    pub steps: Vec<DiskStep>,
    /// The model made from the steps; `None` if there were too few of them.
    pub model: Option<DeviceModel>,
}
