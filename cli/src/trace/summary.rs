//! The figures of a trace as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/trace.schema.json`.

use seekscope_pattern::{
    DirectionTrace, DiskTrace, FileTrace, QueueDepth, RoleTrace, SyncCalls, TraceAnalysis,
};
use seekscope_run::{Phase, RunDocument};
use serde_json::{Value, json};

use crate::latency::LatencyUs;
use crate::output::run_document;

/// Builds it.
pub fn summary(phase: Option<&Phase>, analysis: &TraceAnalysis) -> Value {
    let trace = phase.and_then(|phase| phase.trace.as_ref());
    // Without a trailer these are unknown, which is not zero.
    let counted = trace.filter(|trace| !trace.truncated);
    let requests = !analysis.disks.is_empty();
    json!({
        "duration_s": seconds(analysis.ended_ns.saturating_sub(analysis.started_ns)),
        "seen": counted.map(|t| t.seen),
        "written": trace.map(|t| t.written),
        "lost": counted.map(|t| t.lost),
        "overwritten": counted.map(|t| t.overwritten),
        "truncated": trace.map(|t| t.truncated),
        "cost_ns_per_event": trace.and_then(|t| t.cost.known_ns_per_event()),
        "backend": trace.map(|t| &t.backend),
        "filters": trace.map(|t| &t.filters),
        "coverage": trace.map(|t| &t.coverage),
        "requests_counted": counted.filter(|t| !t.requests.is_empty()).map(|t| &t.requests),
        "latencies_cut_off": analysis.latencies_cut_off,
        "reads": analysis.reads.calls,
        "read_bytes": analysis.reads.bytes,
        "writes": analysis.writes.calls,
        "write_bytes": analysis.writes.bytes,
        "syncs": analysis.syncs.calls,
        "read_latency_us": LatencyUs::of_any(analysis.reads.latency_ns),
        "write_latency_us": LatencyUs::of_any(analysis.writes.latency_ns),
        "sync_latency_us": LatencyUs::of_any(analysis.syncs.latency_ns),
        "cache": analysis.cache,
        "queue_depth": queue_depth(&analysis.queue_depth),
        "files": analysis.files.iter().map(|f| file(f, requests)).collect::<Vec<_>>(),
        "roles": analysis.roles.iter().map(role).collect::<Vec<_>>(),
        "disks": analysis.disks.iter().map(disk).collect::<Vec<_>>(),
    })
}

/// The document printed by `--json`.
pub fn document(run: &RunDocument, run_dir: &str) -> Value {
    run_document("seekscope/trace/1", run, run_dir)
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn queue_depth(depth: &QueueDepth) -> Value {
    json!({ "mean_while_busy": depth.mean_while_busy, "max": depth.max, "busy_s": seconds(depth.busy_ns) })
}

/// Of disks nothing is known without `requests` in the trace.
fn file(file: &FileTrace, requests: bool) -> Value {
    let pattern = file.reads.pattern.as_ref().or(file.writes.pattern.as_ref());
    let source = &file.read_bytes_by_source;
    let outcome = &file.latency_by_outcome;
    json!({
        "path": file.file.path,
        "path_state": file.file.path_state,
        "role": file.file.role.name(),
        "namespace": file.file.namespace,
        "reads": file.reads.transfers.calls,
        "read_bytes": file.reads.transfers.bytes,
        "writes": file.writes.transfers.calls,
        "write_bytes": file.writes.transfers.bytes,
        "syncs": file.syncs.calls,
        "errors": file.reads.transfers.errors + file.writes.transfers.errors + file.syncs.errors,
        "pattern": pattern.map(|p| p.kind.name()),
        "direction": pattern.map(|p| p.direction),
        "sequential_share": pattern.map(|p| p.sequential_share),
        "contiguous_share": pattern.map(|p| p.contiguous_share),
        "reread_share": pattern.map(|p| p.reread_share),
        "interleaved_streams": pattern.map(|p| p.interleaved_streams),
        "distinct_bytes": pattern.map(|p| p.distinct_bytes),
        "write_pattern": file.writes.pattern.as_ref().map(|p| p.kind.name()),
        "cache": file.cache,
        "hit_share": hit_share(file),
        "read_latency_us": LatencyUs::of_any(file.reads.transfers.latency_ns),
        "hit_latency_us": LatencyUs::of_any(outcome.hit_ns),
        "miss_latency_us": LatencyUs::of_any(outcome.miss_ns),
        "write_latency_us": LatencyUs::of_any(file.writes.transfers.latency_ns),
        "sync_latency_us": LatencyUs::of_any(file.syncs.latency_ns),
        "device_read_bytes": source.device_read_bytes,
        "disk_read_bytes": requests.then_some(file.device.reads.bytes),
        "disk_write_bytes": requests.then_some(file.device.writes.bytes),
        "read_amplification": file.device.read_amplification,
    })
}

/// Of the reads that can tell.
fn hit_share(file: &FileTrace) -> Option<f64> {
    let cache = &file.cache;
    let known = cache.hits + cache.misses + cache.waited_for_others + cache.direct;
    (known > 0).then(|| cache.hits as f64 / known as f64)
}

fn role(role: &RoleTrace) -> Value {
    json!({
        "role": role.role.name(),
        "threads": role.threads,
        "reads": role.reads.calls,
        "read_bytes": role.reads.bytes,
        "read_latency_us": LatencyUs::of_any(role.reads.latency_ns),
        "writes": role.writes.calls,
        "write_bytes": role.writes.bytes,
        "write_latency_us": LatencyUs::of_any(role.writes.latency_ns),
        "syncs": role.syncs.calls,
    })
}

fn disk(disk: &DiskTrace) -> Value {
    let requests = |direction: &DirectionTrace| {
        json!({
            "requests": direction.transfers.calls,
            "bytes": direction.transfers.bytes,
            "latency_us": LatencyUs::of_any(direction.transfers.latency_ns),
            "sequential_share": direction.pattern.as_ref().map(|p| p.sequential_share),
        })
    };
    json!({
        "device": format!("{}:{}", disk.major, disk.minor),
        "reads": requests(&disk.reads),
        "writes": requests(&disk.writes),
        "flushes": syncs(&disk.flushes),
        "discards": disk.discards,
        "queue_depth": queue_depth(&disk.queue_depth),
    })
}

fn syncs(syncs: &SyncCalls) -> Value {
    json!({ "requests": syncs.calls, "latency_us": LatencyUs::of_any(syncs.latency_ns) })
}
