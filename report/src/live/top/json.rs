//! A frame for programs: one JSON object, described in `docs/schema/top.schema.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use seekscope_run::Limitation;
use serde::Serialize;

use super::super::snapshot::FileLine;
use super::super::vitals::{
    CacheVitals, CheckpointVitals, DiskVitals, Operations, ProcessVitals, Vitals,
};
use super::{MemberVitals, Order, TopControls, TopFrame, body};

const SCHEMA: &str = "seekscope/top/1";

/// One such object is printed per period, on one line. Names are stable; fields may be added. null means
/// unknown, which is not zero. Rates are means since the last period; times have their unit in the name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopOutput<'a> {
    /// Name and version of this format.
    schema: &'static str,
    unix_ms: u64,
    /// Time since watching began.
    elapsed_s: f64,
    /// What is watched, for people.
    subject: &'a str,
    /// Where several members of a set or cluster are watched, each of them; absent otherwise. What concerns one member
    /// (`operations`, `cache`, `checkpoint`, `process`) is then null outside, and `disk` if their data lies on several.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberShown<'a>>>,
    operations: OperationsShown<'a>,
    disk: DiskShown<'a>,
    cache: &'a CacheVitals,
    checkpoint: &'a CheckpointVitals,
    process: &'a ProcessVitals,
    #[serde(rename = "self")]
    own: OwnCost,
    /// Share of the time, 0 to 1, in which some task of the host waited for I/O.
    io_pressure: Option<f64>,
    /// null if nothing is traced.
    trace: Option<TraceCounts>,
    /// In the requested order; null if nothing is traced.
    files: Option<Vec<FileShown<'a>>>,
    limitations: &'a [Limitation],
}

/// One of several members.
#[derive(Debug, Serialize, JsonSchema)]
struct MemberShown<'a> {
    /// The name of its shard, `host:port`, or `shard@host:port`: as in `files`.
    member: &'a str,
    /// Whether its process runs on this host; of others only their own counters are known.
    is_here: bool,
    operations: OperationsShown<'a>,
    /// The disk under its data.
    disk: DiskShown<'a>,
    cache: &'a CacheVitals,
    checkpoint: &'a CheckpointVitals,
    process: &'a ProcessVitals,
}

/// The clients' load.
#[derive(Debug, Serialize, JsonSchema)]
struct OperationsShown<'a> {
    /// Time since serverStatus was last answered; null without a login.
    answered_s_ago: Option<f64>,
    /// Rates by kind of operation, named as in serverStatus.
    per_s: BTreeMap<&'a str, f64>,
    /// Mean time that the server took for reads.
    read_ms: Option<f64>,
    write_ms: Option<f64>,
    command_ms: Option<f64>,
    queued: Option<f64>,
    active: Option<f64>,
}

/// The whole disk under the data, whatever uses it.
#[derive(Debug, Serialize, JsonSchema)]
struct DiskShown<'a> {
    #[serde(flatten)]
    vitals: &'a DiskVitals,
    name: Option<&'a str>,
}

/// The cost of watching.
#[derive(Debug, Serialize, JsonSchema)]
struct OwnCost {
    /// Mean number of processors in use.
    cpus: Option<f64>,
    memory_bytes: Option<f64>,
}

/// Events of the trace.
#[derive(Debug, Serialize, JsonSchema)]
struct TraceCounts {
    events: u64,
    lost: u64,
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileShown<'a> {
    path: Option<&'a str>,
    #[schemars(extend(
        "enum" = ["collection", "index", "journal", "history store", "metadata", "other"]
    ))]
    role: &'static str,
    /// `database.collection`, or `database.collection/index`.
    namespace: Option<&'a str>,
    /// The member that the file belongs to, where several are watched; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    /// Time that threads spent in calls on the file, per second of the clock.
    waited_s_per_s: f64,
    reads_per_s: f64,
    writes_per_s: f64,
    syncs_per_s: f64,
    read_bytes_per_s: f64,
    write_bytes_per_s: f64,
    /// Median of all calls on the file in the last period.
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    /// 0 to 1, among the reads with known outcome.
    page_cache_hit_share: Option<f64>,
    misses_per_s: Option<f64>,
    #[schemars(extend(
        "enum" = ["-", "few", "re-read", "sequential", "backward", "strided", "random", "mixed"]
    ))]
    pattern: &'static str,
}

impl<'a> TopOutput<'a> {
    /// Returns the frame with at most `files_max` files in that order.
    pub fn of(shown: &'a TopFrame, order: Order, files_max: u16) -> Self {
        let controls = TopControls::sorted_by(order);
        let files = shown.files.as_ref().map(|_| {
            let lines = body::lines(shown, &controls).into_iter();
            lines
                .take(usize::from(files_max))
                .map(FileShown::of)
                .collect()
        });
        let trace = shown.files.as_ref().map(|files| TraceCounts {
            events: files.events,
            lost: files.lost,
        });
        let Vitals {
            operations,
            disk,
            cache,
            checkpoint,
            process,
            own_cpus,
            own_memory_bytes,
            io_pressure,
        } = &shown.vitals;
        Self {
            schema: SCHEMA,
            unix_ms: shown.unix_ms,
            elapsed_s: shown.elapsed_s,
            subject: &shown.subject,
            members: (!shown.members.is_empty())
                .then(|| shown.members.iter().map(MemberShown::of).collect()),
            operations: OperationsShown::of(operations),
            disk: DiskShown {
                vitals: disk,
                name: shown.disk.as_deref(),
            },
            cache,
            checkpoint,
            process,
            own: OwnCost {
                cpus: *own_cpus,
                memory_bytes: *own_memory_bytes,
            },
            io_pressure: *io_pressure,
            trace,
            files,
            limitations: &shown.limitations,
        }
    }
}

impl<'a> MemberShown<'a> {
    fn of(member: &'a MemberVitals) -> Self {
        let vitals = &member.vitals;
        Self {
            member: &member.label,
            is_here: member.is_here,
            operations: OperationsShown::of(&vitals.operations),
            disk: DiskShown {
                vitals: &vitals.disk,
                name: member.disk.as_deref(),
            },
            cache: &vitals.cache,
            checkpoint: &vitals.checkpoint,
            process: &vitals.process,
        }
    }
}

impl<'a> OperationsShown<'a> {
    fn of(operations: &'a Operations) -> Self {
        Self {
            answered_s_ago: operations.answered_s_ago,
            per_s: operations.per_s.iter().copied().collect(),
            read_ms: operations.read_ms,
            write_ms: operations.write_ms,
            command_ms: operations.command_ms,
            queued: operations.queued,
            active: operations.active,
        }
    }
}

impl<'a> FileShown<'a> {
    fn of(line: &'a FileLine) -> Self {
        let record = line.record.as_ref();
        Self {
            path: record.map(|record| record.path.as_str()),
            role: line.role(),
            namespace: record.and_then(|record| record.namespace.as_deref()),
            member: record.and_then(|record| record.member.as_deref()),
            waited_s_per_s: line.rates.in_flight,
            reads_per_s: line.rates.reads,
            writes_per_s: line.rates.writes,
            syncs_per_s: line.rates.syncs,
            read_bytes_per_s: line.rates.read_bytes,
            write_bytes_per_s: line.rates.write_bytes,
            p50_ns: line.latency_ns.map(|(p50, _)| p50),
            p99_ns: line.latency_ns.map(|(_, p99)| p99),
            page_cache_hit_share: line.rates.hit_share,
            misses_per_s: line.rates.misses,
            pattern: line.pattern,
        }
    }
}
