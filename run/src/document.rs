//! `run.json`: what ran, where, on what, how it ended.
//!
//! The schema version rises when a field changes its meaning; added fields do not raise it, and
//! readers fill fields that an older file lacks with their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    BenchMeasurement, ClockOffset, CountedRequests, DeviceFacts, DiskMeasurement,
    ExaminationRecord, HostFacts, LayoutMeasurement, PrefetchRecord, ReorderMeasurement,
    RequestCause, TuneRecord,
};

/// Schema name and version written by this build.
pub const SCHEMA: &str = "seekscope/run/1";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything asked for was measured.
    Ok,
    /// Interrupted, crashed or still running: what is there is true, but not all of it is there.
    #[default]
    Partial,
    /// It could not be carried to its end.
    Failed,
    /// Finished, but a check on the measurement itself failed.
    Invalid,
}

/// Something seekscope could not do, so that a reader never takes silence for zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limitation {
    /// What is missing from the result, e.g. "system calls were not traced".
    pub what: String,
    /// Why, e.g. "bpf: Operation not permitted".
    pub why: String,
    /// What grants it, e.g. a command.
    pub remedy: String,
}

/// The server under study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct TargetFacts {
    /// Connection string without user and password.
    pub uri: String,
    /// True for the private server that seekscope started itself.
    pub local: bool,
    /// From `buildInfo`: e.g. "4.2.2".
    pub version: String,
    /// "mongod", "secantusd-rs", … from the process's executable where visible.
    pub product: String,
    pub pid: Option<u32>,
    pub dbpath: Option<String>,
    /// Of a router (mongos): the shards behind it, each with its members; empty of other servers.
    pub shards: Vec<String>,
    /// Configured WiredTiger cache, bytes.
    pub cache_bytes: Option<u64>,
}

/// What the data lay on while a phase ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Disk {
    /// The disk as it is.
    #[default]
    Plain,
    /// The server's reads were throttled by the kernel to resemble a slower disk.
    Emulated {
        /// e.g. "hdd".
        name: String,
        read_iops: u64,
        read_bytes_per_s: u64,
    },
}

impl Disk {
    /// "plain disk", or "emulated hdd (150 IOPS, 150 MB/s)": wherever a number of an emulated disk
    /// is shown, so are these words.
    pub fn label(&self) -> String {
        match self {
            Self::Plain => "plain disk".into(),
            Self::Emulated {
                name,
                read_iops,
                read_bytes_per_s,
            } => {
                format!(
                    "emulated {name} ({read_iops} IOPS, {} MB/s)",
                    read_bytes_per_s / 1_000_000
                )
            }
        }
    }

    /// [`Disk::label`] without the figures, for headings that stand near them.
    pub fn name(&self) -> String {
        match self {
            Self::Plain => self.label(),
            Self::Emulated { name, .. } => format!("emulated {name}"),
        }
    }

    /// True when reads were throttled.
    pub fn is_emulated(&self) -> bool {
        matches!(self, Self::Emulated { .. })
    }
}

/// What was done about cached data before a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum CacheState {
    /// The server was restarted and its files evicted from the page cache; `resident_bytes` of
    /// `total_bytes` were still cached when the phase began.
    Cold {
        resident_bytes: u64,
        total_bytes: u64,
    },
    /// Nothing was evicted: reads may be hits that a cold disk would have had to serve.
    AsFound { why: String },
}

/// The index that a phase built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexBuild {
    /// Key pattern as JSON text, e.g. `{"i":1}`.
    pub keys: String,
    pub name: String,
    /// Documents indexed.
    pub documents: u64,
    /// Build time, ns, from command sent to reply.
    pub elapsed_ns: u64,
    /// Further builds of the same index, each from the same cold start; ns.
    #[serde(default)]
    pub repeats_ns: Vec<u64>,
}

impl IndexBuild {
    /// The build and its repetitions, ns.
    pub fn all_elapsed_ns(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.elapsed_ns).chain(self.repeats_ns.iter().copied())
    }
}

/// Kernel counters of the server process over a phase (`/proc/PID/io`): an instrument independent
/// of the tracer. They count sockets and pipes too, so `read_calls` is an upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ProcessIo {
    /// Read-family system calls (`syscr`).
    pub read_calls: u64,
    pub write_calls: u64,
    /// Bytes returned by reads, cached or not (`rchar`).
    pub read_call_bytes: u64,
    pub write_call_bytes: u64,
    /// Bytes the process caused to be fetched from the block layer (`read_bytes`).
    pub device_read_bytes: u64,
    pub device_write_bytes: u64,
    /// User + system CPU time of the process, ns (from `/proc/PID/stat`).
    pub cpu_ns: u64,
}

/// What the tracer itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct TracerCost {
    /// Runs of the eBPF programs, system-wide, and the ns spent in them: estimates from the kernel's
    /// run-time statistics, which are on for a part of the time. Of calls that are not traced, what one
    /// was measured to take longer, times their number. 0 runs when the statistics could not be switched
    /// on.
    pub program_runs: u64,
    pub program_ns: u64,
    /// Of `program_ns`, what does not depend on the events recorded: runs at other processes' calls
    /// and requests.
    #[serde(default)]
    pub standing_ns: u64,
    /// CPU time of the thread that drains the ring buffer, ns.
    pub drain_cpu_ns: u64,
    /// (program_ns - standing_ns + drain_cpu_ns) / events written; 0 with fewer than
    /// 1,000 events, which tell nothing.
    pub ns_per_event: f64,
    /// Tracer CPU time as a share of the server's CPU time over the same phase; 0 where that is not
    /// known, and where the server did next to nothing (see [`TraceFacts::with_share_of`]).
    pub share_of_server_cpu: f64,
}

impl TracerCost {
    /// What an event cost, ns; `None` where there were too few to tell.
    pub fn known_ns_per_event(&self) -> Option<f64> {
        (self.ns_per_event > 0.0).then_some(self.ns_per_event)
    }
}

/// One kind of I/O, and whether the trace covers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCoverage {
    /// e.g. "read and write calls", "io_uring", "block requests".
    pub group: String,
    pub covered: bool,
    /// What it is seen through, or why it is not covered.
    pub how: String,
}

/// The trailer of a trace. Always `seen = written + lost + overwritten`; a trace where it does not
/// hold is invalid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TraceFacts {
    /// e.g. "tp_btf" or "tracepoint".
    pub backend: String,
    /// Why this backend and not a better one.
    pub backend_reason: String,
    /// Matching calls that the kernel programs saw completed.
    pub seen: u64,
    /// Events handed to the run directory.
    pub written: u64,
    /// seen - written, by cause:
    pub lost: u64,
    /// … the ring buffer was full,
    pub lost_ring_full: u64,
    /// … the slot holding the call's start was taken over by another thread (in runs of earlier
    /// versions also what is `lost_end` now),
    pub lost_start: u64,
    /// … the kernel ran no program at its end: its latency is not known. Of requests of disks; they
    /// are in `requests`.
    pub lost_end: u64,
    /// … a table of the kernel programs had no room.
    pub lost_table_full: u64,
    /// A flight recorder's events that gave way to newer ones, on purpose.
    pub overwritten: u64,
    /// What was traced, and what not and why.
    pub coverage: Vec<TraceCoverage>,
    /// Filters and sampling that the kernel programs applied, for people. What they let pass by is
    /// not in `seen`.
    pub filters: Vec<String>,
    /// The run was killed before the trailer was written: `seen` and `lost` are unknown, and
    /// `written` is what was found.
    pub truncated: bool,
    /// Calls already in flight when tracing began (their start is unknown; not in `seen`).
    pub in_flight_at_start: u64,
    /// Calls still in flight when tracing ended (not in `seen`).
    pub in_flight_at_end: u64,
    /// All requests of the disks followed, by what they were for. Empty where every request was
    /// recorded, or none.
    pub requests: Vec<CountedRequests>,
    pub cost: TracerCost,
}

/// Of events, lost: below this no share, sum or percentile changes by what could be read off it.
const LOSS_MATTERS_SHARE: f64 = 0.01;

/// Share of a phase's time for which a process must have computed, or it did next to nothing.
const PROCESS_AT_WORK_SHARE: f64 = 0.01;

impl TraceFacts {
    /// Does every call that was seen have its place?
    pub fn adds_up(&self) -> bool {
        self.truncated || self.seen == self.written + self.lost + self.overwritten
    }

    /// Share (0..=1) of what was seen and lost: of all events, or of the requests of disks for the
    /// traced files, whichever lost more.
    pub fn lost_share(&self) -> f64 {
        let of_files = |c: &&CountedRequests| c.cause == RequestCause::TracedFiles;
        let counted = self.requests.iter().filter(of_files);
        let requests: u64 = counted.map(CountedRequests::requests).sum();
        let share = |lost: u64, of: u64| lost as f64 / of.max(1) as f64;
        share(self.lost, self.seen).max(if requests > 0 {
            share(self.lost_end, requests)
        } else {
            0.0
        })
    }

    /// Is so much missing that conclusions from the trace may differ?
    pub fn loss_matters(&self) -> bool {
        self.lost_share() >= LOSS_MATTERS_SHARE
    }

    /// The tracer's CPU time, ns: programs in the kernel and the thread that reads.
    pub fn cpu_ns(&self) -> u64 {
        self.cost.program_ns + self.cost.drain_cpu_ns
    }

    /// With the tracer's CPU time as a share of the traced process's over `duration_ns`. Beside a
    /// process that computed for less than a hundredth of the time any cost is a multiple, which says
    /// nothing: the tracer's cost then is what other processes make it.
    pub fn with_share_of(mut self, process: Option<ProcessIo>, duration_ns: u64) -> Self {
        let process_cpu_ns = process.map_or(0, |io| io.cpu_ns);
        if process_cpu_ns as f64 >= PROCESS_AT_WORK_SHARE * duration_ns.max(1) as f64 {
            self.cost.share_of_server_cpu = self.cpu_ns() as f64 / process_cpu_ns as f64;
        }
        self
    }
}

/// A stretch of time that was traced, or in which an index was built. Its events are those of `io.parquet` with
/// `started_ns <= t_ns < ended_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Unique in the run, e.g. "observed" or "sdu.aged, emulated hdd".
    pub name: String,
    /// What the server did, for people: "index build {\"i\":1}" or "its own work for 30 s".
    pub activity: String,
    /// `database.collection` concerned, if one was.
    pub namespace: Option<String>,
    pub disk: Disk,
    pub cache: CacheState,
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// The index that was built, where the phase is a build. Builds of a server that was watched meanwhile
    /// lie within the phase of the watching, which has the trace.
    pub index_build: Option<IndexBuild>,
    /// `None` where nothing was traced; where that was impossible the run's limitations say why.
    pub trace: Option<TraceFacts>,
    pub process_io: Option<ProcessIo>,
}

impl Phase {
    /// How long it lasted, ns; 0 while it goes on.
    pub fn duration_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.started_ns)
    }
}

/// A named conclusion with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Finding {
    /// Stable identifier, e.g. "layout.key-order-lost".
    pub id: String,
    /// What it is about where an id can be found more than once: a collection, an index, a member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    pub title: String,
    /// Sentences, each with numbers that stand in the run.
    pub evidence: Vec<String>,
    pub gain: Option<Gain>,
    /// What findings are ordered by: waiting saved per hour at the load that was seen, s. Of a job that
    /// was not seen running (a scan, an index build), what one run of it saves, as if it ran hourly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saves_s_per_hour: Option<f64>,
    /// "high", "medium" or "low".
    #[schemars(extend("enum" = ["high", "medium", "low"]))]
    pub confidence: String,
    pub risk: String,
    /// The command that acts on it; empty where no single command does.
    pub command: String,
}

/// Expected gain of acting on a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// e.g. "s per index build".
    pub unit: String,
}

/// The whole of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    pub schema: String,
    pub seekscope_version: String,
    /// The noun, e.g. "doctor".
    pub command: String,
    /// Arguments as typed, passwords removed.
    pub arguments: Vec<String>,
    pub outcome: Outcome,
    /// Why the outcome is not `ok`, for people.
    #[serde(default)]
    pub outcome_reason: Option<String>,
    /// Both clocks at the start.
    pub started: ClockOffset,
    /// CLOCK_MONOTONIC ns; `None` while running or after a crash.
    #[serde(default)]
    pub ended_ns: Option<u64>,
    #[serde(default)]
    pub seed: Option<u64>,
    #[serde(default)]
    pub host: Option<HostFacts>,
    /// The disk under the data.
    #[serde(default)]
    pub device: Option<DeviceFacts>,
    #[serde(default)]
    pub target: Option<TargetFacts>,
    #[serde(default)]
    pub limitations: Vec<Limitation>,
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// What `disk` measured.
    #[serde(default)]
    pub disk: Option<DiskMeasurement>,
    /// What `bench` measured.
    #[serde(default)]
    pub bench: Option<BenchMeasurement>,
    /// What `layout` found.
    #[serde(default)]
    pub layout: Option<LayoutMeasurement>,
    /// What `reorder` planned and did.
    #[serde(default)]
    pub reorder: Option<ReorderMeasurement>,
    /// What `prefetch` did.
    #[serde(default)]
    pub prefetch: Option<PrefetchRecord>,
    /// What `tune` tried and proved.
    #[serde(default)]
    pub tune: Option<TuneRecord>,
    /// What `doctor` gathered of a server that is not ours.
    #[serde(default)]
    pub examination: Option<ExaminationRecord>,
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The command's own figures, derived from the records (see `docs/schema/`).
    #[serde(default)]
    pub summary: serde_json::Value,
}

impl RunDocument {
    /// A document for a run that starts now. Its outcome is `partial` until the end is written.
    pub fn begin(command: &str, arguments: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.into(),
            seekscope_version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            arguments,
            outcome: Outcome::Partial,
            outcome_reason: Some("the run has not ended".into()),
            started: ClockOffset::now(),
            ended_ns: None,
            seed: None,
            host: None,
            device: None,
            target: None,
            limitations: Vec::new(),
            phases: Vec::new(),
            disk: None,
            bench: None,
            layout: None,
            reorder: None,
            prefetch: None,
            tune: None,
            examination: None,
            findings: Vec::new(),
            summary: serde_json::Value::Null,
        }
    }
}
