//! What `doctor` gathered of a server and its fellows beside the trace and the counters.
//!
//! Facts only: what they mean is concluded from them anew each time a run is opened (crate `doctor`).
//! Nothing here holds a document's value: query shapes, plans and counts, never filters.
//! Whatever could not be asked is `None` or empty, and stands in the run's limitations.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DeviceModel, Gain, Surroundings, TargetFacts};

/// `source` of a counter sample that another member than the examined one gave: followed by its name.
pub const COUNTERS_OF_MEMBER: &str = "serverStatus@";
/// `source` of counters out of the server's own diagnostic files (FTDC).
pub const COUNTERS_OF_FTDC: &str = "ftdc";

/// What was gathered of a server beside trace and counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ExaminationRecord {
    /// What was asked for with `--for`, ns.
    pub asked_ns: u64,
    pub deployment: Deployment,
    /// The examined server's replica set, as it calls it itself.
    pub set: Option<String>,
    /// The examined one first; then every other that the server knows of, reached or not.
    pub members: Vec<MemberRecord>,
    /// What the disk under the data can do, as known before anything was watched: measured, or a typical
    /// disk's.
    pub disk: Option<DiskAbility>,
    /// … and what it does for this server, concluded from the whole run: limits of the server's control
    /// group, and what was seen, taken into account. Every answer and finding uses this one.
    pub disk_opinion: Option<DiskAbility>,
    /// Of the host that seekscope ran on, where the examined server runs there too.
    pub host: Option<HostSettings>,
    /// The server's diagnostic files, where they could be read.
    pub ftdc: Option<FtdcFacts>,
    /// What the run cost, measured by itself.
    pub cost: Option<ExaminationCost>,
    /// The earlier run that this one was compared with (`--since`), and what it had predicted.
    pub since: Option<EarlierRun>,
    /// Names were replaced by hashes.
    pub redacted: bool,
}

/// How servers stand to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Deployment {
    #[default]
    Standalone,
    ReplicaSet,
    Sharded,
}

/// What a member is to its set or cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    Standalone,
    Primary,
    Secondary,
    Arbiter,
    Router,
    /// Starting up, recovering, rolling back or unknown.
    #[default]
    Other,
}

impl MemberState {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Primary => "primary",
            Self::Secondary => "secondary",
            Self::Arbiter => "arbiter",
            Self::Router => "mongos",
            Self::Other => "other",
        }
    }
}

/// One server process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberRecord {
    /// `host:port` as the deployment names it, or as the connection string does. Never credentials.
    pub name: String,
    pub state: MemberState,
    /// The shard it belongs to, in a sharded cluster.
    pub shard: Option<String>,
    /// Why it could not be asked. `None`: it was.
    pub not_asked: Option<String>,
    pub target: TargetFacts,
    /// Behind the primary, s.
    pub lag_s: Option<f64>,
    pub oplog: Option<OplogFacts>,
    /// The feature compatibility version, e.g. "7.0".
    pub compatibility_version: Option<String>,
    /// Of `getCmdLineOpts`, flattened with dots ("storage.wiredTiger.engineConfig.cacheSizeGB"); no
    /// secrets, no paths of key files.
    pub options: Vec<NamedValue>,
    /// Of `getParameter`, those that bear on the disk.
    pub parameters: Vec<NamedValue>,
    /// The largest and the busiest.
    pub collections: Vec<CollectionFacts>,
    /// Collections beyond the limit, of which nothing was asked.
    pub collections_left_out: u64,
    /// What was seen running, the longest first.
    pub operations: Vec<OperationSeen>,
    /// Its start-up warnings, as it words them.
    pub warnings: Vec<String>,
}

/// A setting and its value as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct NamedValue {
    pub name: String,
    pub value: String,
}

/// The oplog of a member.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OplogFacts {
    /// Allowed, bytes.
    pub size_bytes: u64,
    pub used_bytes: u64,
    /// Between the first and the last entry, s.
    pub window_s: f64,
}

/// One collection, by the server's own statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct CollectionFacts {
    /// `database.collection`.
    pub namespace: String,
    pub documents: u64,
    /// Uncompressed, bytes.
    pub data_bytes: u64,
    /// Of its file, bytes, and of that free for reuse.
    pub storage_bytes: u64,
    pub reusable_bytes: Option<u64>,
    pub capped: bool,
    pub time_series: bool,
    pub clustered: bool,
    pub sharded: bool,
    /// "snappy", "zstd", …
    pub compressor: Option<String>,
    /// Moved between file and cache during the run, bytes.
    pub read_into_cache_bytes: Option<u64>,
    pub written_from_cache_bytes: Option<u64>,
    /// Of it in the cache at the end, bytes.
    pub in_cache_bytes: Option<u64>,
    /// Time that operations on it took during the run (`top`), ns.
    pub reading_ns: Option<u64>,
    pub writing_ns: Option<u64>,
    pub indexes: Vec<IndexFacts>,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct IndexFacts {
    pub name: String,
    /// Key pattern as JSON text, e.g. `{"customer":1}`.
    pub keys: String,
    /// Of its file, bytes, and of that free for reuse.
    pub bytes: u64,
    pub reusable_bytes: Option<u64>,
    /// Uses since the server counts (`$indexStats`), and since when, s before the run.
    pub uses: Option<u64>,
    pub counted_s: Option<f64>,
    pub building: bool,
}

/// An operation as `currentOp` showed it, in one or several looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct OperationSeen {
    /// "query", "getmore", "command find", "index build", "initial sync", "compact", …
    pub kind: String,
    pub namespace: Option<String>,
    /// e.g. "COLLSCAN", "IXSCAN { a: 1 }": key names only.
    pub plan: Option<String>,
    /// Longest that it was seen to have been running, µs.
    pub running_us: u64,
    /// Looks in which it, or one like it (same kind, namespace, plan and filter), was running; the most at
    /// once.
    pub looks: u32,
    pub at_once: u32,
    /// Looks in which one of them waited for a lock, or for a ticket or flow control.
    pub waiting_looks: u32,
    /// (done, total) as the server says, at the last look.
    pub progress: Option<(u64, u64)>,
    /// What it selects documents by; `None` where that is not known.
    pub filter: Option<FilterSeen>,
}

/// What an operation selects documents by: names of fields, never their values.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Default,
)]
#[serde(default)]
pub struct FilterSeen {
    /// Fields, and operators such as "$or" that stand in the place of one. Empty: it takes every document.
    pub fields: Vec<String>,
    /// What matches is grouped, counted or cut off before it is returned, so the number of documents
    /// returned says nothing about how many matched.
    pub reduced: bool,
}

/// A device model and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DiskAbility {
    pub model: DeviceModel,
    /// False: a typical disk that the data's disk looks like, or what `seen` says.
    pub measured: bool,
    /// Limits or latencies that were seen while the server was watched went into it.
    pub seen: bool,
    /// "probed during this run for 4 s", "seekscope-runs/disk-… of 3 days ago", "typical SSD".
    pub source: String,
}

/// Settings of the host that bear on a database's disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct HostSettings {
    /// Seen from the server's process and disk: its cgroup's limits and what distorts.
    pub surroundings: Surroundings,
    pub numa_nodes: u32,
    /// The server's memory policy interleaves nodes (`/proc/PID/numa_maps`); `None` where hidden.
    pub numa_interleaved: Option<bool>,
    pub numa_balancing: Option<bool>,
    pub zone_reclaim_mode: Option<u32>,
    pub swappiness: Option<u32>,
    pub swap_total_bytes: Option<u64>,
    /// Of the server's process, bytes.
    pub swapped_bytes: Option<u64>,
    pub dirty_ratio: Option<u32>,
    pub dirty_background_ratio: Option<u32>,
    pub transparent_huge_pages: Option<String>,
    pub transparent_huge_pages_defrag: Option<String>,
    /// Of the server's process.
    pub open_files_limit: Option<u64>,
    pub open_files: Option<u64>,
    pub memory_available_bytes: Option<u64>,
    /// The server runs in a container (other PID or mount namespace than ours).
    pub containerised: bool,
}

/// The server's diagnostic files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct FtdcFacts {
    pub folder: String,
    pub files: u32,
    pub samples: u64,
    /// Wall clock, ns since 1970, of the first and the last sample that was taken over.
    pub first_realtime_ns: u64,
    pub last_realtime_ns: u64,
    /// Chunks that were damaged and left out.
    pub damaged_chunks: u32,
}

/// What examining cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ExaminationCost {
    /// CPU time of seekscope's own process, ns, and of its programs in the kernel.
    pub client_cpu_ns: u64,
    pub kernel_cpu_ns: u64,
    pub client_peak_rss_bytes: u64,
    /// Commands sent to servers.
    pub commands: u64,
    /// Why it ended itself before its time (pressure, latency, space): its guard's words.
    pub ended_early: Option<String>,
}

/// An earlier run, and whether what it predicted came true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct EarlierRun {
    /// The folder's name.
    pub run: String,
    /// Wall clock of its start, ns since 1970.
    pub started_realtime_ns: u64,
    pub changes: Vec<FindingChange>,
}

/// A finding in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct FindingChange {
    /// [`crate::Finding::id`].
    pub id: String,
    /// What it is about: a collection, an index, a member; may be empty.
    pub subject: String,
    /// "gone", "new", "better", "worse", "same"; "unknown" where what it needs was not looked at again, or
    /// the server did not do as much work as then, so nothing can be told.
    #[schemars(extend("enum" = ["gone", "new", "better", "worse", "same", "unknown"]))]
    pub change: String,
    /// What was measured then, in the unit of the gain.
    pub before: Option<f64>,
    /// What was measured now, in the same unit; waiting is that of the earlier run's work.
    pub after: Option<f64>,
    /// The work that both were compared by; `None` where it has no part in the finding, or is not known.
    pub work: Option<WorkCompared>,
    /// What acting on it should have saved.
    pub predicted: Option<Gain>,
    /// Whether it did: inside the interval, less, more; begins with "cannot be told: " and the reason where nothing
    /// can be told.
    pub verdict: String,
}

/// Work done in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct WorkCompared {
    /// "operations" or "writes" of clients, "reads" past the server's cache, "calls" on the file that the finding
    /// is about.
    #[schemars(extend("enum" = ["operations", "writes", "reads", "calls"]))]
    pub unit: String,
    #[schemars(range(min = 0))]
    pub before_per_s: f64,
    #[schemars(range(min = 0))]
    pub after_per_s: f64,
}

impl CollectionFacts {
    /// Of its file and those of its indexes.
    pub fn stored_bytes(&self) -> u64 {
        let indexes = self.indexes.iter().map(|index| index.bytes);
        indexes.fold(self.storage_bytes, u64::saturating_add)
    }
}

impl DiskAbility {
    /// What it rests on, in a word or two, for sentences: "measured", "as seen in this run", "typical".
    pub fn basis(&self) -> &'static str {
        match (self.measured, self.seen) {
            (true, false) => "measured",
            (true, true) => "measured, with the limits that hold for the server",
            (false, true) => "as seen in this run",
            (false, false) => "of a typical disk",
        }
    }
}

impl ExaminationRecord {
    /// The examined server.
    pub fn examined(&self) -> Option<&MemberRecord> {
        self.members.first()
    }

    /// How long it was meant to take.
    pub fn asked(&self) -> Duration {
        Duration::from_nanos(self.asked_ns)
    }
}

impl MemberRecord {
    /// The value of an option of the command line or configuration file.
    pub fn option(&self, name: &str) -> Option<&str> {
        value_of(&self.options, name)
    }

    /// The value of a server parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        value_of(&self.parameters, name)
    }
}

fn value_of<'a>(values: &'a [NamedValue], name: &str) -> Option<&'a str> {
    let found = values.iter().find(|value| value.name == name)?;
    Some(&found.value)
}
