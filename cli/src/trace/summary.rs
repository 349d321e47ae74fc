//! The figures of a trace as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/trace.schema.json`.

use schemars::JsonSchema;
use seekscope_pattern::{
    CacheCounts, Direction, DirectionTrace, DiskTrace, FileTrace, PatternKind, QueueDepth,
    ReadsRecorded, RoleTrace, SyncCalls, ThreadRole, TraceAnalysis,
};
use seekscope_run::{CountedRequests, PathState, Phase, TraceCoverage, TraceFacts};
use serde::Serialize;

use crate::latency::LatencyUs;

/// Calls on files, and requests to their disks. Quantiles of latencies are within 0.8 %.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceSummary<'a> {
    /// Time from the first event to the end of the last, s.
    #[schemars(range(min = 0))]
    duration_s: f64,
    /// Number of events seen: `written` + `lost` + `overwritten`; null if unknown, as in a truncated trace.
    seen: Option<u64>,
    written: Option<u64>,
    /// Number of events lost; null if unknown, as in a truncated trace.
    lost: Option<u64>,
    /// Events of a flight recorder that were replaced by newer ones; null if unknown, as in a truncated trace.
    overwritten: Option<u64>,
    /// True if the run was killed before the trailer was written.
    truncated: Option<bool>,
    #[schemars(range(min = 0))]
    cost_ns_per_event: Option<f64>,
    /// What the kernel programs are attached to: tp_btf, tracepoint, …
    backend: Option<&'a str>,
    /// Filters and sampling in the kernel, for people. What they dropped is not in `seen`.
    filters: Option<&'a [String]>,
    /// What was traced, and what not and why.
    coverage: Option<&'a [TraceCoverage]>,
    /// All requests to the disks that hold the traced files, by cause, counted when issued; only those for the traced
    /// files are recorded as events. null if the whole disk was recorded, or no disk.
    requests_counted: Option<&'a [CountedRequests]>,
    /// Events recorded by an earlier version whose latency is a lower bound (4.29 s); if there are any, the longest
    /// latencies and the sums of latencies are lower bounds too.
    latencies_cut_off: u64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    syncs: u64,
    read_latency_us: Option<LatencyUs>,
    write_latency_us: Option<LatencyUs>,
    sync_latency_us: Option<LatencyUs>,
    cache: CacheCounts,
    queue_depth: QueueDepthSummary,
    /// Sorted by bytes read, then by bytes written, largest first.
    files: Vec<FileSummary<'a>>,
    roles: Vec<RoleSummary>,
    /// Recorded requests by disk, never added to the calls; empty if there were none.
    disks: Vec<DiskSummary>,
}

/// Calls or requests under way at once.
#[derive(Debug, Serialize, JsonSchema)]
struct QueueDepthSummary {
    /// Mean over the time with at least one under way; 0 if there was none.
    #[schemars(range(min = 0))]
    mean_while_busy: f64,
    max: u64,
    /// Time with at least one under way, s.
    #[schemars(range(min = 0))]
    busy_s: f64,
}

/// One file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileSummary<'a> {
    path: &'a str,
    path_state: PathState,
    #[schemars(extend(
        "enum" = ["collection", "index", "journal", "history store", "metadata", "other"]
    ))]
    role: &'static str,
    /// `database.collection`, or `database.collection/index`.
    namespace: Option<&'a str>,
    /// The member that the file belongs to, where several were traced: the shard's name, `host:port` or
    /// `shard@host:port`. Absent of a single server's files.
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    syncs: u64,
    /// Calls that failed.
    errors: u64,
    /// Pattern of the reads, or of the writes for a file that is only written; null without a call at a known offset.
    pattern: Option<PatternKind>,
    direction: Option<Direction>,
    /// Share of steps that continue where the last access ended, or at most 128 KiB further.
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
    /// Share of steps that continue exactly where the last access ended.
    #[schemars(range(min = 0, max = 1))]
    contiguous_share: Option<f64>,
    /// Share of the bytes that had been transferred earlier in the trace.
    #[schemars(range(min = 0, max = 1))]
    reread_share: Option<f64>,
    /// Number of sequential streams that take turns; 1 if there is one, or none.
    interleaved_streams: Option<u64>,
    /// Number of different bytes of the file that were transferred.
    distinct_bytes: Option<u64>,
    /// Pattern of the writes; null without a write at a known offset.
    write_pattern: Option<PatternKind>,
    cache: CacheCounts,
    /// Share of the reads with known outcome that were in the page cache; null if there were none.
    #[schemars(range(min = 0, max = 1))]
    hit_share: Option<f64>,
    read_latency_us: Option<LatencyUs>,
    hit_latency_us: Option<LatencyUs>,
    miss_latency_us: Option<LatencyUs>,
    write_latency_us: Option<LatencyUs>,
    sync_latency_us: Option<LatencyUs>,
    /// Bytes that the reading threads sent to the block layer for reading, read-ahead included.
    device_read_bytes: u64,
    /// Bytes of block requests that read from the file; null if block requests were not traced.
    disk_read_bytes: Option<u64>,
    /// Bytes of block requests that wrote to the file; null if block requests were not traced.
    disk_write_bytes: Option<u64>,
    /// `disk_read_bytes` divided by `read_bytes`; null if either is unknown or nothing was read.
    #[schemars(range(min = 0))]
    read_amplification: Option<f64>,
}

/// The threads of one role.
#[derive(Debug, Serialize, JsonSchema)]
struct RoleSummary {
    role: ThreadRole,
    threads: u64,
    reads: u64,
    read_bytes: u64,
    read_latency_us: Option<LatencyUs>,
    writes: u64,
    write_bytes: u64,
    write_latency_us: Option<LatencyUs>,
    syncs: u64,
}

/// One disk.
#[derive(Debug, Serialize, JsonSchema)]
struct DiskSummary {
    /// Device number, as major:minor.
    device: String,
    reads: RequestsSummary,
    writes: RequestsSummary,
    flushes: FlushesSummary,
    discards: u64,
    queue_depth: QueueDepthSummary,
}

/// Requests of one direction.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestsSummary {
    requests: u64,
    bytes: u64,
    latency_us: Option<LatencyUs>,
    #[schemars(range(min = 0, max = 1))]
    sequential_share: Option<f64>,
}

/// Flushes of a disk's cache.
#[derive(Debug, Serialize, JsonSchema)]
struct FlushesSummary {
    requests: u64,
    latency_us: Option<LatencyUs>,
}

impl<'a> TraceSummary<'a> {
    /// Makes the summary of a phase.
    pub fn of(phase: Option<&'a Phase>, analysis: &'a TraceAnalysis) -> Self {
        let trace = phase.and_then(|phase| phase.trace.as_ref());
        // Without a trailer these are unknown, which is not zero.
        let counted = trace.filter(|trace| !trace.truncated);
        let requests = !analysis.disks.is_empty() || trace.is_some_and(TraceFacts::covers_requests);
        let reads = ReadsRecorded::of(trace);
        let files = analysis.files.iter();
        Self {
            duration_s: seconds(analysis.ended_ns.saturating_sub(analysis.started_ns)),
            seen: counted.map(|t| t.seen),
            written: trace.map(|t| t.written),
            lost: counted.map(|t| t.lost),
            overwritten: counted.map(|t| t.overwritten),
            truncated: trace.map(|t| t.truncated),
            cost_ns_per_event: trace.and_then(|t| t.cost.known_ns_per_event()),
            backend: trace.map(|t| t.backend.as_str()),
            filters: trace.map(|t| t.filters.as_slice()),
            coverage: trace.map(|t| t.coverage.as_slice()),
            requests_counted: counted
                .filter(|t| !t.requests.is_empty())
                .map(|t| t.requests.as_slice()),
            latencies_cut_off: analysis.latencies_cut_off,
            reads: analysis.reads.calls,
            read_bytes: analysis.reads.bytes,
            writes: analysis.writes.calls,
            write_bytes: analysis.writes.bytes,
            syncs: analysis.syncs.calls,
            read_latency_us: LatencyUs::of_any(analysis.reads.latency_ns),
            write_latency_us: LatencyUs::of_any(analysis.writes.latency_ns),
            sync_latency_us: LatencyUs::of_any(analysis.syncs.latency_ns),
            cache: analysis.cache,
            queue_depth: QueueDepthSummary::of(&analysis.queue_depth),
            files: files
                .map(|file| FileSummary::of(file, requests, reads.are_all_of(file)))
                .collect(),
            roles: analysis.roles.iter().map(RoleSummary::of).collect(),
            disks: analysis.disks.iter().map(DiskSummary::of).collect(),
        }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl QueueDepthSummary {
    fn of(depth: &QueueDepth) -> Self {
        Self {
            mean_while_busy: depth.mean_while_busy,
            max: depth.max,
            busy_s: seconds(depth.busy_ns),
        }
    }
}

impl<'a> FileSummary<'a> {
    /// Makes the summary of a file. Unless `requests` were traced, nothing is known of disks; unless `all_reads` were,
    /// nothing of how much more a disk read than was asked for.
    fn of(file: &'a FileTrace, requests: bool, all_reads: bool) -> Self {
        let pattern = file.reads.pattern.as_ref().or(file.writes.pattern.as_ref());
        let outcome = &file.latency_by_outcome;
        // The analysis does not know whether requests that it did not see would have been traced.
        let none_of_disks = (requests && file.reads.transfers.bytes > 0).then_some(0.0);
        Self {
            path: &file.file.path,
            path_state: file.file.path_state,
            role: file.file.role.name(),
            namespace: file.file.namespace.as_deref(),
            member: file.file.member.as_deref(),
            reads: file.reads.transfers.calls,
            read_bytes: file.reads.transfers.bytes,
            writes: file.writes.transfers.calls,
            write_bytes: file.writes.transfers.bytes,
            syncs: file.syncs.calls,
            errors: file.reads.transfers.errors + file.writes.transfers.errors + file.syncs.errors,
            pattern: pattern.map(|p| p.kind),
            direction: pattern.map(|p| p.direction),
            sequential_share: pattern.map(|p| p.sequential_share),
            contiguous_share: pattern.map(|p| p.contiguous_share),
            reread_share: pattern.map(|p| p.reread_share),
            interleaved_streams: pattern.map(|p| p.interleaved_streams),
            distinct_bytes: pattern.map(|p| p.distinct_bytes),
            write_pattern: file.writes.pattern.as_ref().map(|p| p.kind),
            cache: file.cache,
            hit_share: hit_share(file),
            read_latency_us: LatencyUs::of_any(file.reads.transfers.latency_ns),
            hit_latency_us: LatencyUs::of_any(outcome.hit_ns),
            miss_latency_us: LatencyUs::of_any(outcome.miss_ns),
            write_latency_us: LatencyUs::of_any(file.writes.transfers.latency_ns),
            sync_latency_us: LatencyUs::of_any(file.syncs.latency_ns),
            device_read_bytes: file.read_bytes_by_source.device_read_bytes,
            disk_read_bytes: requests.then_some(file.device.reads.bytes),
            disk_write_bytes: requests.then_some(file.device.writes.bytes),
            read_amplification: file
                .device
                .read_amplification
                .or(none_of_disks)
                .filter(|_| all_reads),
        }
    }
}

fn hit_share(file: &FileTrace) -> Option<f64> {
    let cache = &file.cache;
    let known = cache.hits + cache.misses + cache.waited_for_others + cache.direct;
    (known > 0).then(|| cache.hits as f64 / known as f64)
}

impl RoleSummary {
    fn of(role: &RoleTrace) -> Self {
        Self {
            role: role.role,
            threads: role.threads,
            reads: role.reads.calls,
            read_bytes: role.reads.bytes,
            read_latency_us: LatencyUs::of_any(role.reads.latency_ns),
            writes: role.writes.calls,
            write_bytes: role.writes.bytes,
            write_latency_us: LatencyUs::of_any(role.writes.latency_ns),
            syncs: role.syncs.calls,
        }
    }
}

impl DiskSummary {
    fn of(disk: &DiskTrace) -> Self {
        Self {
            device: format!("{}:{}", disk.major, disk.minor),
            reads: RequestsSummary::of(&disk.reads),
            writes: RequestsSummary::of(&disk.writes),
            flushes: FlushesSummary::of(&disk.flushes),
            discards: disk.discards,
            queue_depth: QueueDepthSummary::of(&disk.queue_depth),
        }
    }
}

impl RequestsSummary {
    fn of(direction: &DirectionTrace) -> Self {
        Self {
            requests: direction.transfers.calls,
            bytes: direction.transfers.bytes,
            latency_us: LatencyUs::of_any(direction.transfers.latency_ns),
            sequential_share: direction.pattern.as_ref().map(|p| p.sequential_share),
        }
    }
}

impl FlushesSummary {
    fn of(flushes: &SyncCalls) -> Self {
        Self {
            requests: flushes.calls,
            latency_us: LatencyUs::of_any(flushes.latency_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_pattern::{AnalysisOptions, TraceAnalyser};
    use seekscope_run::{
        BlockRequest, CacheState, Disk, FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState,
    };

    use super::*;

    fn phase(reads_left_out: bool) -> Phase {
        Phase {
            name: "trace".into(),
            activity: "process 77".into(),
            namespace: None,
            disk: Disk::Plain,
            cache: CacheState::AsFound {
                why: "it ran".into(),
            },
            started_ns: 0,
            ended_ns: 1_000_000,
            index_build: None,
            trace: Some(TraceFacts {
                reads_left_out,
                ..TraceFacts::default()
            }),
            process_io: None,
        }
    }

    /// A read of 4 KiB, for which the disk read 8 KiB.
    fn analysis() -> TraceAnalysis {
        let call = IoEvent {
            t_ns: 1_000,
            pid: 77,
            tid: 78,
            file_id: 1,
            op: IoOp::Pread,
            flags: IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ),
            offset: Some(0),
            length: 4096,
            latency_ns: 200_000,
            result: 4096,
            device_read_bytes: 8192,
            request: None,
        };
        let request = IoEvent {
            op: IoOp::BlockRead,
            flags: IoFlags::default(),
            length: 8192,
            latency_ns: 150_000,
            result: 8192,
            device_read_bytes: 0,
            request: Some(BlockRequest {
                disk_major: 8,
                disk_minor: 0,
                sector: 64,
            }),
            ..call
        };
        let file = FileRecord {
            file_id: 1,
            path: "/data/collection-7.wt".into(),
            path_state: PathState::Known,
            device_major: 8,
            device_minor: 0,
            inode: 3,
            size_bytes: 0,
            role: FileRole::Collection,
            namespace: None,
            member: None,
        };
        let mut analyser = TraceAnalyser::new(AnalysisOptions::default());
        [request, call]
            .iter()
            .for_each(|event| analyser.push(event));
        analyser.finish(&[file], &[])
    }

    #[test]
    fn what_the_disk_read_per_byte_is_unknown_where_reads_were_left_out() {
        let analysis = analysis();
        for (reads_left_out, expected) in [(false, Some(2.0)), (true, None)] {
            let phase = phase(reads_left_out);
            let summary = TraceSummary::of(Some(&phase), &analysis);
            let file = &summary.files[0];
            assert_eq!(file.read_amplification, expected);
            assert_eq!(file.disk_read_bytes, Some(8192));
        }
    }
}
