//! `run.json`: what ran, where, on what, and how it ended.
//!
//! The schema version rises when a field changes its meaning; added fields do not raise it, and
//! readers fill fields that an older file lacks with their defaults.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AdviceRecord, BenchMeasurement, ClockOffset, CountedRequests, DeviceFacts, DiskMeasurement,
    ExaminationRecord, FilterSeen, HostFacts, LayoutMeasurement, OperationSeen, PrefetchForSync,
    PrefetchRecord, ReorderMeasurement, RequestCause, TuneRecord,
};

/// Schema name and version written by this build.
pub const SCHEMA: &str = "seekscope/run/1";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Everything asked for was measured.
    Ok,
    /// Interrupted, crashed or still running: what is there is true, but incomplete.
    #[default]
    Partial,
    /// The run could not be completed.
    Failed,
    /// Finished, but a check on the measurement itself failed.
    Invalid,
}

/// Something that seekscope could not do, so that readers do not mistake missing data for zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limitation {
    /// What is missing from the result, e.g. "system calls were not traced".
    pub what: String,
    /// Why, e.g. "bpf: Operation not permitted".
    pub why: String,
    /// What would remedy it, e.g. a command that grants a permission.
    pub remedy: String,
}

/// The server under study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct TargetFacts {
    /// Connection string without user name and password.
    pub uri: String,
    /// Whether the connection string has a user name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_user: bool,
    /// Whether it is the private server that seekscope started itself.
    pub local: bool,
    /// Version from `buildInfo`, e.g. "4.2.2".
    pub version: String,
    /// Name of the process's executable, if visible: "mongod", "secantusd-rs", …
    pub product: String,
    pub pid: Option<u32>,
    pub dbpath: Option<String>,
    /// The shards behind a router (mongos), each with its members; empty for other servers.
    pub shards: Vec<String>,
    /// Configured size of the WiredTiger cache, bytes.
    pub cache_bytes: Option<u64>,
}

/// What the data lay on during a phase.
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
    /// Returns "plain disk", or a text such as "emulated hdd (150 IOPS, 150 MB/s)", which is shown with every
    /// number of an emulated disk.
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

    /// Returns [`Disk::label`] without the figures, for headings that stand near them.
    pub fn name(&self) -> String {
        match self {
            Self::Plain => self.label(),
            Self::Emulated { name, .. } => format!("emulated {name}"),
        }
    }

    /// Returns whether reads were throttled.
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
    /// Nothing was evicted: reads may be served from a cache, where a cold disk would have had to serve them.
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
    /// Build time, ns, from sending the command to its reply.
    pub elapsed_ns: u64,
    /// Further builds of the same index, each from the same cold start; ns.
    #[serde(default)]
    pub repeats_ns: Vec<u64>,
}

impl IndexBuild {
    /// Returns the times of the build and its repetitions, ns.
    pub fn all_elapsed_ns(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.elapsed_ns).chain(self.repeats_ns.iter().copied())
    }
}

/// Kernel counters of the server process over a phase (`/proc/PID/io`), an instrument independent of the
/// tracer. They count sockets and pipes too, so `read_calls` is an upper bound.
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
    /// User and system CPU time of the process, ns (from `/proc/PID/stat`).
    pub cpu_ns: u64,
}

impl ProcessIo {
    /// Returns the sums of both processes.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let sum = |of: fn(&Self) -> u64| of(self).saturating_add(of(other));
        Self {
            read_calls: sum(|io| io.read_calls),
            write_calls: sum(|io| io.write_calls),
            read_call_bytes: sum(|io| io.read_call_bytes),
            write_call_bytes: sum(|io| io.write_call_bytes),
            device_read_bytes: sum(|io| io.device_read_bytes),
            device_write_bytes: sum(|io| io.device_write_bytes),
            cpu_ns: sum(|io| io.cpu_ns),
        }
    }
}

/// The cost of the tracer itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
pub struct TracerCost {
    /// Runs of the eBPF programs, system-wide, and the ns spent in them, estimated from the kernel's run-time
    /// statistics, which are on for part of the time. Calls that are not traced are included with the
    /// additional time measured for one of them, times their number. 0 runs if the statistics could not be
    /// switched on.
    pub program_runs: u64,
    pub program_ns: u64,
    /// The part of `program_ns` that does not depend on the events recorded: runs at other processes' calls and
    /// requests.
    #[serde(default)]
    pub standing_ns: u64,
    /// CPU time of the thread that drains the ring buffer, ns.
    pub drain_cpu_ns: u64,
    /// (program_ns - standing_ns + drain_cpu_ns) / events written; 0 with fewer than 1,000 events, too few to
    /// draw conclusions from.
    pub ns_per_event: f64,
    /// Tracer CPU time as a share of the server's CPU time over the same phase; 0 if that is not known or the
    /// server did next to nothing (see [`TraceFacts::with_share_of`]).
    pub share_of_server_cpu: f64,
}

impl TracerCost {
    /// Returns the time spent in the programs, ns; `None` if the kernel's statistics could not be switched on, which
    /// takes CAP_SYS_ADMIN.
    pub fn known_program_ns(&self) -> Option<u64> {
        (self.program_runs > 0).then_some(self.program_ns)
    }

    /// Returns the cost of an event, ns; `None` if there were too few events.
    pub fn known_ns_per_event(&self) -> Option<f64> {
        (self.ns_per_event > 0.0).then_some(self.ns_per_event)
    }
}

/// The [`TraceCoverage::group`] of requests of disks.
pub const BLOCK_REQUESTS: &str = "block requests";

/// A kind of I/O, and whether the trace covers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceCoverage {
    /// The kind of I/O, e.g. "read and write calls", "io_uring", "block requests".
    pub group: String,
    pub covered: bool,
    /// How it is observed, or why it is not covered.
    pub how: String,
}

/// The trailer of a trace. Always `seen = written + lost + overwritten`; a trace for which this does not hold
/// is invalid.
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
    /// `seen` - `written` - `overwritten`: events that were lost, for the four causes below.
    pub lost: u64,
    /// Events lost because the ring buffer was full.
    pub lost_ring_full: u64,
    /// Events lost because the slot that held the call's start was taken over by another thread (in runs of earlier
    /// versions, this includes what is now `lost_end`).
    pub lost_start: u64,
    /// Events lost because the kernel ran no program at their end, so that their latency is not known. This concerns
    /// requests to disks; they are in `requests`.
    pub lost_end: u64,
    /// Events lost because a table of the kernel programs had no room.
    pub lost_table_full: u64,
    /// A flight recorder's events that were replaced by newer ones, on purpose.
    pub overwritten: u64,
    /// What was traced, and what not and why.
    pub coverage: Vec<TraceCoverage>,
    /// Filters and sampling that the kernel programs applied, for people. What they dropped is not in `seen`.
    pub filters: Vec<String>,
    /// Whether they are for some reads and not for others, or for none. Requests of disks are not filtered, so that what
    /// these read cannot be set against what was asked for.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reads_left_out: bool,
    /// Whether they are for some files and not for others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub files_chosen: bool,
    /// Whether the run was killed before the trailer was written: `seen` and `lost` are then unknown, and
    /// `written` is what was found.
    pub truncated: bool,
    /// The labels of the members whose processes ended before the trace did; an empty text stands for one without a
    /// label. Calls of processes started in their place are not in the trace, although disks' requests for the same
    /// files are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended_early: Vec<String>,
    /// Calls already in flight when tracing began (their start is unknown; not in `seen`).
    pub in_flight_at_start: u64,
    /// Calls still in flight when tracing ended (not in `seen`).
    pub in_flight_at_end: u64,
    /// All requests to the disks followed, by purpose. Empty if every request was recorded, or none.
    pub requests: Vec<CountedRequests>,
    pub cost: TracerCost,
}

/// The share of events lost below which no share, sum or percentile changes noticeably.
const LOSS_MATTERS_SHARE: f64 = 0.01;
/// The fewest lost events that change anything: of a few dozen, one is more than a hundredth.
const LOSS_MATTERS_MIN: u64 = 5;

/// The share of a phase for which a process must have used the CPU; below it, it did next to nothing.
const PROCESS_AT_WORK_SHARE: f64 = 0.01;

impl TraceFacts {
    /// Returns whether requests of disks were traced, even if none occurred.
    pub fn covers_requests(&self) -> bool {
        let mut groups = self.coverage.iter();
        groups.any(|group| group.covered && group.group == BLOCK_REQUESTS)
    }

    /// Returns whether every call that was seen is accounted for.
    pub fn adds_up(&self) -> bool {
        self.truncated || self.seen == self.written + self.lost + self.overwritten
    }

    /// Returns the share (0..=1) of what was seen that was lost: of all events, or of the requests to disks for
    /// the traced files, whichever lost more.
    pub fn lost_share(&self) -> f64 {
        let share = |lost: u64, of: u64| lost as f64 / of.max(1) as f64;
        share(self.lost, self.seen).max(match self.requests_of_files() {
            0 => 0.0,
            requests => share(self.lost_end, requests),
        })
    }

    /// Returns the number of requests to disks for the traced files.
    pub fn requests_of_files(&self) -> u64 {
        let of_files = |c: &&CountedRequests| c.cause == RequestCause::TracedFiles;
        let counted = self.requests.iter().filter(of_files);
        counted.map(CountedRequests::requests).sum()
    }

    /// Returns whether so much is missing that conclusions from the trace may differ.
    pub fn loss_matters(&self) -> bool {
        self.lost_share() >= LOSS_MATTERS_SHARE && self.lost.max(self.lost_end) >= LOSS_MATTERS_MIN
    }

    /// Returns the tracer's CPU time, ns: programs in the kernel and the thread that reads.
    pub fn cpu_ns(&self) -> u64 {
        self.cost.program_ns + self.cost.drain_cpu_ns
    }

    /// Sets the tracer's CPU time as a share of the traced process's over `duration_ns`. Compared with a
    /// process that used the CPU for less than a hundredth of the time, any cost is a multiple, which is
    /// meaningless: the tracer's cost is then caused by other processes.
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
    /// The `database.collection` concerned, if any.
    pub namespace: Option<String>,
    pub disk: Disk,
    pub cache: CacheState,
    /// CLOCK_MONOTONIC ns.
    pub started_ns: u64,
    pub ended_ns: u64,
    /// The index that was built, if the phase is a build. Builds on a server that was being watched lie within
    /// the watching phase, which has the trace.
    pub index_build: Option<IndexBuild>,
    /// `None` if nothing was traced; if tracing was impossible, the run's limitations say why.
    pub trace: Option<TraceFacts>,
    pub process_io: Option<ProcessIo>,
}

impl Phase {
    /// Returns how long the phase lasted, ns; 0 while it goes on.
    pub fn duration_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.started_ns)
    }
}

/// A named conclusion with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Finding {
    /// Stable identifier, e.g. "layout.key-order-lost".
    pub id: String,
    /// What it is about, if the same id can occur more than once: a collection, an index, a member.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The member that it was found on, `host:port`, if a whole deployment was examined; of several, the one that
    /// has most to gain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub member: String,
    pub title: String,
    /// Sentences of evidence, each with numbers recorded in the run.
    pub evidence: Vec<String>,
    pub gain: Option<Gain>,
    /// What findings are ordered by: waiting time saved per hour at the load that was seen, s. For a job that was
    /// not seen running (a scan, an index build), the time that one run of it would save, as if it ran hourly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saves_s_per_hour: Option<f64>,
    /// What acting on this finding alone would save, s of waiting per hour, where `saves_s_per_hour` is less because
    /// findings before it save the same waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_s_per_hour: Option<f64>,
    /// The kinds of operations whose time a finding about queries would save; empty for other findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationKind>,
    /// "high", "medium" or "low".
    #[schemars(extend("enum" = ["high", "medium", "low"]))]
    pub confidence: String,
    pub risk: String,
    /// The command that acts on it; empty if no single command does.
    pub command: String,
}

impl Finding {
    /// Returns the title, with the member in front if it is one of several.
    pub fn heading(&self) -> String {
        match self.member.as_str() {
            "" => self.title.clone(),
            member => format!("{member}: {}", self.title),
        }
    }
}

/// Operations that differ in their values alone, whichever plan serves them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OperationKind {
    /// "query", "getmore", "command aggregate", …
    pub kind: String,
    /// The collection that they are sent to.
    pub namespace: String,
    /// What they select documents by; `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterSeen>,
}

impl OperationKind {
    /// Returns the kinds of these operations, each once.
    pub fn of_all<'a>(operations: impl IntoIterator<Item = &'a OperationSeen>) -> Vec<Self> {
        let mut kinds: Vec<Self> = Vec::new();
        for operation in operations {
            if !kinds.iter().any(|kind| kind.includes(operation)) {
                kinds.push(Self {
                    kind: operation.kind.clone(),
                    namespace: operation.namespace.clone().unwrap_or_default(),
                    filter: operation.filter.clone(),
                });
            }
        }
        kinds
    }

    /// Returns words like "query by status in the order of day".
    pub fn in_words(&self) -> String {
        let Some(filter) = &self.filter else {
            return self.kind.clone();
        };
        let keys: Vec<&str> = filter.keys.iter().map(|key| key.field.as_str()).collect();
        let list = |before: &str, names: &[&str]| match names {
            [] => String::new(),
            names => format!(" {before} {}", names.join(", ")),
        };
        let fields: Vec<&str> = filter.fields.iter().map(String::as_str).collect();
        let joined: Vec<&str> = filter
            .joins
            .iter()
            .map(|join| join.collection.as_str())
            .collect();
        let of_keys = if filter.distinct {
            "of"
        } else {
            "in the order of"
        };
        [
            self.kind.clone(),
            list("by", &fields),
            list(of_keys, &keys),
            list("with", &joined),
        ]
        .concat()
    }

    /// Returns whether an operation is of this kind.
    pub fn includes(&self, operation: &OperationSeen) -> bool {
        let namespace = operation.namespace.as_deref().unwrap_or_default();
        self.kind == operation.kind
            && self.namespace == namespace
            && self.filter == operation.filter
    }
}

/// The gain expected from acting on a finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// Unit of the three values, e.g. "s per index build".
    pub unit: String,
}

/// The whole of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    pub schema: String,
    pub seekscope_version: String,
    /// The command, e.g. "doctor".
    pub command: String,
    /// Arguments as typed, passwords removed.
    pub arguments: Vec<String>,
    pub outcome: Outcome,
    /// Why the outcome is not `ok`, for people.
    #[serde(default)]
    pub outcome_reason: Option<String>,
    /// Both clocks at the start of the run.
    pub started: ClockOffset,
    /// End of the run, CLOCK_MONOTONIC ns; `None` while running or after a crash.
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
    /// What `prefetch` did for an initial sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefetch_for_sync: Option<PrefetchForSync>,
    /// What `tune` tried and proved.
    #[serde(default)]
    pub tune: Option<TuneRecord>,
    /// What `advise` found.
    #[serde(default)]
    pub advice: Option<AdviceRecord>,
    /// What `doctor` gathered about a server that is not ours.
    #[serde(default)]
    pub examination: Option<ExaminationRecord>,
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// The command's own figures, derived from the records (see `docs/schema/`).
    #[serde(default)]
    pub summary: serde_json::Value,
}

impl RunDocument {
    /// Returns whether this is the examination of a whole deployment, each member of which has a run of its own.
    pub fn is_of_deployment(&self) -> bool {
        let examination = self.examination.as_ref();
        examination.is_some_and(|examination| !examination.member_runs.is_empty())
    }

    /// Returns the filters by which its traces left out some calls of a kind and not others, in words; `None` if there are
    /// none. What is counted of such calls is not what the processes did.
    pub fn calls_left_out(&self) -> Option<String> {
        let traces = self.phases.iter().filter_map(|phase| phase.trace.as_ref());
        let filters = traces.flat_map(|trace| &trace.filters);
        let is_of_calls =
            |text: &&String| text.starts_with("one in ") || text.ends_with(" or longer");
        let of_calls: Vec<&str> = filters.filter(is_of_calls).map(String::as_str).collect();
        (!of_calls.is_empty()).then(|| of_calls.join(" and "))
    }

    /// Returns a document for a run that starts now. Its outcome is `partial` until the end is written.
    pub fn begin(command: &str, arguments: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.into(),
            seekscope_version: env!("CARGO_PKG_VERSION").into(),
            command: command.into(),
            arguments,
            outcome: Outcome::Partial,
            outcome_reason: Some("it is still running, or it was killed".into()),
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
            prefetch_for_sync: None,
            tune: None,
            advice: None,
            examination: None,
            findings: Vec::new(),
            summary: serde_json::Value::Null,
        }
    }
}
