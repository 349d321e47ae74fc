//! What `doctor` gathered about a server and the other members beyond the trace and the counters.
//!
//! Only facts are kept: their meaning is concluded afresh each time a run is opened (crate `doctor`). Nothing
//! here holds a document's value: query shapes, plans and counts, never filters. Whatever could not be asked is
//! `None` or empty, and is recorded in the run's limitations.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ClusterRecord, DeviceModel, Gain, OperationKind, OperationSeen, Surroundings, TargetFacts,
};

/// `source` of a counter sample from a member other than the examined one; followed by its name.
pub const COUNTERS_OF_MEMBER: &str = "serverStatus@";
/// `source` of counters from the server's own diagnostic files (FTDC).
pub const COUNTERS_OF_FTDC: &str = "ftdc";

/// What was gathered about a server besides the trace and the counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ExaminationRecord {
    /// Duration asked for with `--for`, ns.
    pub asked_ns: u64,
    /// Time after which the examined server was found to be gone, or to answer nobody any more, ns; `None` if it was
    /// there to the end.
    pub server_lost_after_ns: Option<u64>,
    /// The longest time in which the examined server answered nobody; `None` if it always answered within seconds.
    pub silence: Option<Silence>,
    pub deployment: Deployment,
    /// Name of the examined server's replica set, as the server gives it.
    pub set: Option<String>,
    /// The examined server first, then every other server that it knows, reached or not.
    pub members: Vec<MemberRecord>,
    /// How the data is spread over the shards; `None` unless a router was asked.
    pub cluster: Option<ClusterRecord>,
    /// In an examination of a whole deployment: the run of each member that was examined on this host. Each is a
    /// run of `doctor` of its own. Empty where one server was examined.
    pub member_runs: Vec<MemberRun>,
    /// What the disk under the data can do, as known before the server was watched: measured, or typical values.
    pub disk: Option<DiskAbility>,
    /// What the disk can do for this server, concluded from the whole run: takes into account the limits of the
    /// server's control group and what was seen. Every answer and finding uses this one.
    pub disk_opinion: Option<DiskAbility>,
    /// Settings of the host that seekscope ran on; `None` unless the examined server runs there too.
    pub host: Option<HostSettings>,
    /// The server's diagnostic files; `None` if they could not be read.
    pub ftdc: Option<FtdcFacts>,
    /// What the run itself cost, as it measured.
    pub cost: Option<ExaminationCost>,
    /// The earlier run that this one was compared with (`--since`), and what it had predicted.
    pub since: Option<EarlierRun>,
    /// Whether names were replaced by hashes.
    pub redacted: bool,
}

/// A time in which a server answered nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Silence {
    /// Time from the beginning of the watch, ns.
    pub after_ns: u64,
    pub duration_ns: u64,
}

/// How the servers are deployed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Deployment {
    #[default]
    Standalone,
    ReplicaSet,
    Sharded,
}

impl Deployment {
    /// Returns the name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone server",
            Self::ReplicaSet => "replica set",
            Self::Sharded => "sharded cluster",
        }
    }
}

/// The role of a member in its set or cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    Standalone,
    Primary,
    Secondary,
    Arbiter,
    Router,
    /// Reading its configuration (STARTUP).
    Startup,
    /// Copying all data from another member (STARTUP2).
    InitialSync,
    Recovering,
    Rollback,
    /// The others do not reach it.
    Down,
    /// No member of the set any more.
    Removed,
    /// Unknown.
    #[default]
    Other,
}

impl MemberState {
    /// Returns the name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Primary => "primary",
            Self::Secondary => "secondary",
            Self::Arbiter => "arbiter",
            Self::Router => "mongos",
            Self::Startup => "STARTUP",
            Self::InitialSync => "STARTUP2 (initial sync)",
            Self::Recovering => "RECOVERING",
            Self::Rollback => "ROLLBACK",
            Self::Down => "DOWN",
            Self::Removed => "REMOVED",
            Self::Other => "state unknown",
        }
    }
}

/// One server process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberRecord {
    /// `host:port` as the deployment or the connection string gives it. Never contains credentials.
    pub name: String,
    pub state: MemberState,
    /// The first change of its state that was seen while it was watched; `None` if there was none.
    pub role_change: Option<RoleChange>,
    /// The shard it belongs to; `None` outside a sharded cluster.
    pub shard: Option<String>,
    /// Why it could not be queried; `None` if it was.
    pub not_asked: Option<String>,
    pub target: TargetFacts,
    /// How far it is behind the primary, s: at the end of the watch, else at its beginning.
    pub lag_s: Option<f64>,
    /// How far it was behind when the watch began, s, if both are known.
    pub lag_at_begin_s: Option<f64>,
    /// How far it is to be behind the primary, s: a delayed member. `None` for others.
    pub delay_s: Option<f64>,
    /// Whether it is hidden from users.
    pub hidden: bool,
    pub oplog: Option<OplogFacts>,
    /// The feature compatibility version, e.g. "7.0".
    pub compatibility_version: Option<String>,
    /// Options from `getCmdLineOpts`, flattened with dots ("storage.wiredTiger.engineConfig.cacheSizeGB"); without
    /// secrets and paths of key files.
    pub options: Vec<NamedValue>,
    /// Server parameters that affect the disk, from `getParameter`.
    pub parameters: Vec<NamedValue>,
    /// The largest and the busiest collections.
    pub collections: Vec<CollectionFacts>,
    /// Number of collections beyond the limit, which were not examined.
    pub collections_left_out: u64,
    /// Operations that were seen running, or that the log calls slow, the longest first.
    pub operations: Vec<OperationSeen>,
    /// How much of the watch the server's log tells of slow operations, s; `None` if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_log_s: Option<f64>,
    /// Number of samples of the running operations; 0 in records of versions that did not count them.
    pub operation_looks: u32,
    /// Number of those samples in which `db.fsyncLock()` kept all writes out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fsync_lock_looks: Option<u32>,
    /// The server's start-up warnings, verbatim.
    pub warnings: Vec<String>,
    /// What it did not tell because a login or a right is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Untold>,
    /// What was found out on its host; `None` unless this is a member of a deployment that was examined as a whole,
    /// and ran on a host where seekscope did.
    pub on_host: Option<MemberOnHost>,
}

/// Something that a server did not tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Untold {
    /// What is not known, e.g. "its parameters".
    pub what: String,
    pub lacking: Lacking,
}

/// What is missing where a server refuses a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Lacking {
    /// The connection string names no user, and the server wants one.
    Login,
    /// The user has not the right to run the command.
    #[default]
    Right,
}

/// A change of a member's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleChange {
    /// The new state.
    pub state: MemberState,
    /// When it was seen first, CLOCK_MONOTONIC ns.
    pub seen_ns: u64,
}

/// The run of one member in an examination of a whole deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberRun {
    /// The member's `host:port`.
    pub member: String,
    /// The shard it belongs to; `None` outside a sharded cluster.
    pub shard: Option<String>,
    /// Its folder in the folder of the deployment's run.
    pub folder: String,
}

impl MemberRun {
    /// Returns the name of the folder of the run with this number, from 1.
    pub fn folder_of(number: usize) -> String {
        format!("member-{number}")
    }

    /// Returns whether a name is that of such a folder, and thus leads nowhere else.
    pub fn is_folder(name: &str) -> bool {
        let number = name.strip_prefix("member-");
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    }
}

/// What an examination on a member's own host found out beyond what the member says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct MemberOnHost {
    /// The folder of its own run, in the folder of the deployment's run.
    pub run: String,
    /// The overall result of the member's run in one sentence.
    pub verdict: String,
    /// What its disk can do for it, as concluded from its run.
    pub disk: Option<DiskAbility>,
    /// The order of the leaves of the collections that all members have, 0 (random) to 1 (a scan reads straight on): the
    /// scores of the files that were read, weighted by their leaves' bytes on all members.
    pub leaf_order: Option<f64>,
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
    /// Maximum size, bytes.
    pub size_bytes: u64,
    /// Size in use, bytes.
    pub used_bytes: u64,
    /// Time between the first and the last entry, s.
    pub window_s: f64,
}

/// One collection, from the server's own statistics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct CollectionFacts {
    /// `database.collection`.
    pub namespace: String,
    pub documents: u64,
    /// Uncompressed size of the documents, bytes.
    pub data_bytes: u64,
    /// File size, bytes.
    pub storage_bytes: u64,
    /// Bytes of the file that are free for reuse.
    pub reusable_bytes: Option<u64>,
    pub capped: bool,
    pub time_series: bool,
    pub clustered: bool,
    pub sharded: bool,
    /// Name of the block compressor: "snappy", "zstd", …
    pub compressor: Option<String>,
    /// Bytes read from the file into the cache during the run.
    pub read_into_cache_bytes: Option<u64>,
    /// Bytes written from the cache to the file during the run.
    pub written_from_cache_bytes: Option<u64>,
    /// Bytes of the collection in the cache at the end of the run.
    pub in_cache_bytes: Option<u64>,
    /// Time that reading operations on it took during the run (`top`), ns.
    pub reading_ns: Option<u64>,
    /// Time that writing operations on it took during the run (`top`), ns.
    pub writing_ns: Option<u64>,
    /// Number of operations on it during the run (`top`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<u64>,
    pub indexes: Vec<IndexFacts>,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct IndexFacts {
    pub name: String,
    /// Key pattern as JSON text, e.g. `{"customer":1}`.
    pub keys: String,
    /// File size, bytes.
    pub bytes: u64,
    /// Bytes of the file that are free for reuse.
    pub reusable_bytes: Option<u64>,
    /// Number of uses that the server has counted (`$indexStats`).
    pub uses: Option<u64>,
    /// How long the server has counted uses, s; the shortest time of several members.
    pub counted_s: Option<f64>,
    /// Whether it is still being built.
    pub building: bool,
    /// What it is besides its keys, as far as known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<IndexOption>,
    /// The collation by which it orders texts, as [`crate::FilterSeen::collation`]; `None` if it orders their bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collation: Option<String>,
}

/// An option of an index that decides what it can be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexOption {
    /// No two documents may have the same keys.
    Unique,
    /// The server deletes documents by it (TTL).
    Expiring,
    /// It has only documents that have the field.
    Sparse,
    /// It has only documents that match a filter.
    Partial,
    /// Queries do not use it.
    Hidden,
}

impl IndexFacts {
    /// Returns whether it is needed even if no query uses it.
    pub fn has_a_duty(&self) -> bool {
        let duties = [IndexOption::Unique, IndexOption::Expiring];
        duties.iter().any(|duty| self.options.contains(duty))
    }
}

/// A device model and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct DiskAbility {
    pub model: DeviceModel,
    /// Whether the model was measured. If false, it is that of a typical disk of the same kind, or what `seen`
    /// says.
    pub measured: bool,
    /// Whether limits or latencies seen while the server was watched were taken into account.
    pub seen: bool,
    /// Whether the server reads its data past the page cache (O_DIRECT), so that the kernel reads nothing ahead of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_directly: bool,
    /// Where the model comes from: "probed during this run for 4 s", "seekscope-runs/disk-… of 3 days ago",
    /// "typical SSD".
    pub source: String,
}

/// Settings of the host that affect a database's disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct HostSettings {
    /// Limits of the server's cgroup, and what distorts measurements, for the server's process and disk.
    pub surroundings: Surroundings,
    pub numa_nodes: u32,
    /// Whether the server's memory policy interleaves NUMA nodes (`/proc/PID/numa_maps`); `None` if that is hidden.
    pub numa_interleaved: Option<bool>,
    pub numa_balancing: Option<bool>,
    pub zone_reclaim_mode: Option<u32>,
    pub swappiness: Option<u32>,
    pub swap_total_bytes: Option<u64>,
    /// Memory of the server's process that is swapped out, bytes.
    pub swapped_bytes: Option<u64>,
    pub dirty_ratio: Option<u32>,
    pub dirty_background_ratio: Option<u32>,
    pub transparent_huge_pages: Option<String>,
    pub transparent_huge_pages_defrag: Option<String>,
    /// Maximum number of open files of the server's process.
    pub open_files_limit: Option<u64>,
    /// Number of files that the server's process has open.
    pub open_files: Option<u64>,
    pub memory_available_bytes: Option<u64>,
    /// Whether the server runs in a container (its PID or mount namespace is not seekscope's).
    pub containerised: bool,
}

/// The server's diagnostic files (FTDC).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct FtdcFacts {
    pub folder: String,
    pub files: u32,
    pub samples: u64,
    /// Wall-clock time of the first sample included in the run, ns since 1970.
    pub first_realtime_ns: u64,
    /// Wall-clock time of the last sample included in the run, ns since 1970.
    pub last_realtime_ns: u64,
    /// Number of chunks that were damaged and left out.
    pub damaged_chunks: u32,
}

/// The cost of the examination itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct ExaminationCost {
    /// CPU time of seekscope's own process, ns.
    pub client_cpu_ns: u64,
    /// CPU time of seekscope's programs in the kernel, ns; 0 without a trace, and `None` where it could not be
    /// measured, which takes CAP_SYS_ADMIN.
    pub kernel_cpu_ns: Option<u64>,
    pub client_peak_rss_bytes: u64,
    /// Number of commands sent to servers.
    pub commands: u64,
    /// Why it ended before its time (pressure, latency, space); `None` if it did not.
    pub ended_early: Option<String>,
}

/// An earlier run, and whether its predictions came true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct EarlierRun {
    /// Name of the run's folder.
    pub run: String,
    /// Wall-clock time of the start, ns since 1970.
    pub started_realtime_ns: u64,
    /// Which servers the two runs are of, if they are different ones: what differs need not have changed then. `None` if
    /// they are of the same one as far as is known.
    pub other_server: Option<String>,
    pub changes: Vec<FindingChange>,
}

impl EarlierRun {
    /// Returns a warning where the two runs are of different servers.
    pub fn caution(&self) -> Option<String> {
        let servers = self.other_server.as_ref()?;
        Some(format!(
            "The earlier run examined another server: {servers}. A difference between the two runs \
             is therefore not necessarily a change."
        ))
    }
}

/// A finding compared between two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct FindingChange {
    /// The finding's `id`.
    pub id: String,
    /// What the finding is about: a collection, an index, a member; may be empty.
    pub subject: String,
    /// The kinds of operations that it is about; empty for findings that name none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationKind>,
    /// "gone", "new", "better", "worse", "same"; "unknown" if the facts it needs were not examined again, or if the
    /// server did less work than in the earlier run, so that nothing can be concluded.
    #[schemars(extend("enum" = ["gone", "new", "better", "worse", "same", "unknown"]))]
    pub change: String,
    /// The value of the earlier run, in the unit of the gain: the gain that its report prints or, if there is none, the measured value.
    pub before: Option<f64>,
    /// The value of this run, told in the same way. Where it is given for the earlier run's amount of work, the verdict
    /// says so.
    pub after: Option<f64>,
    /// The work by which the two were compared; `None` if it does not matter to the finding, or is not known.
    pub work: Option<WorkCompared>,
    /// The saving predicted for acting on the finding.
    pub predicted: Option<Gain>,
    /// Whether the prediction came true: inside the interval, less or more; begins with "cannot be told: " and the
    /// reason if nothing can be concluded.
    pub verdict: String,
}

/// The rate of work in two runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct WorkCompared {
    /// What is counted: "operations" or "writes" of clients, "reads" that missed the server's cache, "calls" on the
    /// file that the finding is about, "operations-on-it" for those on its collection, or "its-operations" for those of
    /// them that it names, as far as the log tells of them.
    #[schemars(extend("enum" = ["operations", "writes", "reads", "calls", "operations-on-it", "its-operations"]))]
    pub unit: String,
    /// Rate in the earlier run, per second.
    #[schemars(range(min = 0))]
    pub before_per_s: f64,
    /// Rate in this run, per second.
    #[schemars(range(min = 0))]
    pub after_per_s: f64,
}

impl CollectionFacts {
    /// Returns the bytes of its file and those of its indexes.
    pub fn stored_bytes(&self) -> u64 {
        let indexes = self.indexes.iter().map(|index| index.bytes);
        indexes.fold(self.storage_bytes, u64::saturating_add)
    }
}

impl DiskAbility {
    /// Returns what it rests on, in a word or two, for sentences: "measured", "as seen in this run", "typical".
    pub fn basis(&self) -> &'static str {
        match (self.measured, self.seen) {
            (true, false) => "measured",
            (true, true) => "measured, within the limits that apply to the server",
            (false, true) => "as seen in this run",
            (false, false) => "of a typical disk",
        }
    }
}

impl ExaminationRecord {
    /// Returns the examined server.
    pub fn examined(&self) -> Option<&MemberRecord> {
        self.members.first()
    }

    /// Returns the names of all members, in their order.
    pub fn member_names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    /// Returns how long the examination was meant to take.
    pub fn asked(&self) -> Duration {
        Duration::from_nanos(self.asked_ns)
    }
}

impl MemberRecord {
    /// Returns its state when it was last looked at: what it became while it was watched, if it changed.
    pub fn state_at_end(&self) -> MemberState {
        self.role_change.map_or(self.state, |change| change.state)
    }

    /// Returns the value of an option of the command line or configuration file.
    pub fn option(&self, name: &str) -> Option<&str> {
        value_of(&self.options, name)
    }

    /// Returns the value of a server parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        value_of(&self.parameters, name)
    }

    /// Returns what was told of a collection.
    pub fn collection(&self, namespace: &str) -> Option<&CollectionFacts> {
        let mut collections = self.collections.iter();
        collections.find(|collection| collection.namespace == namespace)
    }
}

fn value_of<'a>(values: &'a [NamedValue], name: &str) -> Option<&'a str> {
    let found = values.iter().find(|value| value.name == name)?;
    Some(&found.value)
}
