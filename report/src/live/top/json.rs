//! A frame for programs: one JSON object, described in `docs/schema/top.schema.json`.

use serde_json::{Map, Value, json};

use super::super::snapshot::FileLine;
use super::super::vitals::{DiskVitals, Operations, Vitals};
use super::{Order, TopControls, TopFrame, body};

const SCHEMA: &str = "seekscope/top/1";

/// The frame with at most `files_max` files in that order.
pub fn json(shown: &TopFrame, order: Order, files_max: u16) -> Value {
    let controls = TopControls::sorted_by(order);
    let files: Option<Vec<Value>> = shown.files.as_ref().map(|_| {
        let lines = body::lines(shown, &controls);
        let lines = lines.iter().take(usize::from(files_max));
        lines.map(|line| file(line)).collect()
    });
    let trace = shown
        .files
        .as_ref()
        .map(|files| json!({ "events": files.events, "lost": files.lost }));
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
    json!({
        "schema": SCHEMA,
        "unix_ms": shown.unix_ms,
        "elapsed_s": shown.elapsed_s,
        "subject": shown.subject,
        "operations": self::operations(operations),
        "disk": self::disk(shown.disk.as_deref(), disk),
        "cache": cache,
        "checkpoint": checkpoint,
        "process": process,
        "self": { "cpus": own_cpus, "memory_bytes": own_memory_bytes },
        "io_pressure": io_pressure,
        "trace": trace,
        "files": files,
        "limitations": shown.limitations,
    })
}

fn disk(name: Option<&str>, disk: &DiskVitals) -> Value {
    let mut value = json!(disk);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("name".into(), json!(name));
    }
    value
}

fn operations(operations: &Operations) -> Value {
    let per_s: Map<String, Value> = operations
        .per_s
        .iter()
        .map(|(kind, rate)| ((*kind).to_string(), json!(rate)))
        .collect();
    json!({
        "answered_s_ago": operations.answered_s_ago,
        "per_s": per_s,
        "read_ms": operations.read_ms,
        "write_ms": operations.write_ms,
        "command_ms": operations.command_ms,
        "queued": operations.queued,
        "active": operations.active,
    })
}

fn file(line: &FileLine) -> Value {
    let record = line.record.as_ref();
    json!({
        "path": record.map(|record| &record.path),
        "role": line.role(),
        "namespace": record.and_then(|record| record.namespace.as_ref()),
        "waited_s_per_s": line.rates.in_flight,
        "reads_per_s": line.rates.reads,
        "writes_per_s": line.rates.writes,
        "syncs_per_s": line.rates.syncs,
        "read_bytes_per_s": line.rates.read_bytes,
        "write_bytes_per_s": line.rates.write_bytes,
        "p50_ns": line.latency_ns.map(|(p50, _)| p50),
        "p99_ns": line.latency_ns.map(|(_, p99)| p99),
        "page_cache_hit_share": line.rates.hit_share,
        "misses_per_s": line.rates.misses,
        "pattern": line.pattern,
    })
}
