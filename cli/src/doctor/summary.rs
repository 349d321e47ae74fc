//! The figures of a run as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/doctor.schema.json`.

use seekscope_pattern::FileAnalysis;
use seekscope_run::units::format_bytes;
use seekscope_run::{CacheState, RunDocument};
use serde_json::{Value, json};

use crate::latency::LatencyUs;
use crate::output::run_document;

use super::comparison::{Analysed, Comparison};

/// Builds it.
pub fn summary(phases: &[Analysed<'_>], comparisons: &[Comparison]) -> Value {
    json!({
        "phases": phases.iter().map(phase).collect::<Vec<_>>(),
        "comparisons": comparisons,
    })
}

/// The document printed by `--json`.
pub fn document(run: &RunDocument, run_dir: &str) -> Value {
    run_document("seekscope/doctor/1", run, run_dir)
}

fn phase(phase: &Analysed<'_>) -> Value {
    let trace = phase.phase.trace.as_ref();
    json!({
        "name": phase.phase.name,
        "variant": phase.phase.variant,
        "activity": phase.phase.activity,
        "namespace": phase.phase.namespace,
        "disk": phase.phase.disk.label(),
        "emulated": phase.phase.disk.is_emulated(),
        "page_cache_before": match &phase.phase.cache {
            CacheState::Cold { resident_bytes, .. } => format!("cold ({} resident)", format_bytes(*resident_bytes)),
            CacheState::AsFound { why } => format!("as found: {why}"),
        },
        "build_s": phase.build_seconds(),
        // Without a trace these are unknown, which is not zero.
        "seen": trace.filter(|t| !t.truncated).map(|t| t.seen),
        "written": trace.map(|t| t.written),
        "lost": trace.filter(|t| !t.truncated).map(|t| t.lost),
        "cost_ns_per_event": trace.and_then(|t| t.cost.known_ns_per_event()),
        "reads": trace.map(|_| phase.analysis.reads.calls),
        "read_bytes": trace.map(|_| phase.analysis.reads.bytes),
        "writes": trace.map(|_| phase.analysis.writes.calls),
        "write_bytes": trace.map(|_| phase.analysis.writes.bytes),
        "read_latency_us": trace.and_then(|_| LatencyUs::of_any(phase.analysis.reads.latency_ns)),
        "cache": trace.map(|_| phase.analysis.cache),
        "process_io": phase.phase.process_io,
        "files": phase.analysis.files.iter().map(|f| file(phase, f)).collect::<Vec<_>>(),
    })
}

fn file(phase: &Analysed<'_>, file: &FileAnalysis) -> Value {
    let record = phase.files.iter().find(|r| r.file_id == file.file_id);
    let pattern = file.read_pattern.as_ref().or(file.write_pattern.as_ref());
    json!({
        "path": record.map(|r| &r.path),
        "role": record.map(|r| r.role.name()),
        "namespace": record.and_then(|r| r.namespace.as_deref()),
        "reads": file.reads.calls,
        "read_bytes": file.reads.bytes,
        "writes": file.writes.calls,
        "write_bytes": file.writes.bytes,
        "pattern": pattern.map(|p| p.kind),
        "direction": pattern.map(|p| p.direction),
        "contiguous_share": pattern.map(|p| p.contiguous_share),
        "sequential_share": pattern.map(|p| p.sequential_share),
        "seeks": pattern.map(|p| p.seeks),
        "run_bytes_p50": pattern.map(|p| p.run_bytes.p50),
        "seek_bytes_p50": pattern.map(|p| p.seek_bytes.p50),
        "device_read_bytes": file.cache.device_read_bytes,
        "read_latency_us": LatencyUs::of_any(file.reads.latency_ns),
    })
}
