//! The figures of a reordering as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/reorder.schema.json`.

use seekscope_run::{ReorderMeasurement, ReorderPlan};
use serde_json::{Value, json};

use crate::layout;

/// Builds it. What is not known is null.
pub fn summary(record: &ReorderMeasurement) -> Value {
    json!({
        "namespace": record.namespace,
        "by": record.by,
        "task": record.task,
        "plan": record.plan.as_ref().map(plan),
        "before": record.before.as_ref().map(layout::summary),
        "after": record.after.as_ref().map(layout::summary),
        "done": record.done,
        "elapsed_s": record.elapsed_s,
        "checkpoint_forced": record.checkpoint_forced,
        "recovered": record.recovered,
    })
}

fn plan(plan: &ReorderPlan) -> Value {
    let scan = plan.scan.as_ref();
    json!({
        "verdict": plan.verdict,
        "documents": plan.documents,
        "data_bytes": plan.data_bytes,
        "storage_bytes": plan.storage_bytes,
        "index_bytes": plan.index_bytes,
        "indexes": plan.indexes,
        "sequential_share": scan.map(|s| s.sequential_share),
        "seeks": scan.map(|s| s.seeks),
        "shared_table": scan.map(|s| s.shared_table),
        "cached_share": plan.cached_share,
        "predicted_scan_s": scan.map(|s| json!({
            "now": s.now_s,
            "now_low": s.now_low_s,
            "now_high": s.now_high_s,
            "ordered": s.ordered_s,
            "after_compact": s.after_compact_s,
        })),
        // An index build reads the same leaves in the same order.
        "gain_s": scan.map(|s| json!({ "scan": s.gain_s(), "index_build": s.gain_s() })),
        "gain_share": scan.map(|s| s.gain_share()),
        "compact_frees_bytes": scan.map(|s| s.free_bytes),
        "clustering": plan.clustering,
        "writes": plan.writes,
        "lasts": plan.lasts,
        "space": plan.space,
        "time_s": plan.time.as_ref().map(|t| json!({
            "copy": t.copy_s,
            "check": t.check_s,
            "indexes": t.indexes_s,
            "catch_up": t.catch_up_s,
            "catch_up_never_ends": t.catch_up_never_ends,
            "total": t.total_s(),
        })),
        "blocking": plan.blocking,
    })
}
