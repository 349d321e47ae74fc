//! The figures of a layout run as JSON: `summary` of `run.json` and of `--json`. Names are stable;
//! see `docs/schema/layout.schema.json`.

use seekscope_run::{LayoutFile, LayoutMeasurement, ScanOrder};
use serde_json::{Value, json};

/// Builds it.
pub fn summary(layout: &LayoutMeasurement) -> Value {
    json!({
        "path": layout.path,
        "state": layout.state,
        "names": layout.names,
        "wiredtiger_version": layout.wiredtiger_version,
        "predicted_for": layout.predicted_for,
        "disk_measured": layout.disk_measured,
        "named": layout.named,
        "files": layout.files.iter().map(file).collect::<Vec<_>>(),
        "history": layout.history,
    })
}

/// One file. Figures that it lacks are null.
pub fn file(file: &LayoutFile) -> Value {
    let order = file.order.as_ref();
    let of_order = |figure: fn(&ScanOrder) -> Value| order.map(figure);
    json!({
        "file_id": file.file_id,
        "file": file.file,
        "namespace": file.namespace,
        "index": file.index,
        "not_measured": file.not_measured,
        "checkpoint": file.checkpoint,
        "checkpoint_time_s": file.checkpoint_time_s,
        "compressor": file.compressor,
        "file_bytes": file.file_bytes,
        "leaf_pages": file.leaf_pages,
        "leaf_bytes": file.leaf_bytes,
        "internal_pages": file.internal_pages,
        "internal_bytes": file.internal_bytes,
        "depth": file.depth,
        "deleted_leaf_pages": file.deleted_leaf_pages,
        "overflow_bytes": file.overflow_bytes,
        "free_bytes": file.free_bytes,
        "holes": file.holes,
        "largest_hole_bytes": file.largest_hole_bytes,
        "pinned_bytes": file.pinned_bytes,
        "bytes_read": file.bytes_read,
        "reads": file.reads,
        "restarts": file.restarts,
        "contiguous_share": of_order(|o| json!(o.contiguous_share)),
        "sequential_share": of_order(|o| json!(o.sequential_share)),
        "backward_share": of_order(|o| json!(o.backward_share)),
        "seeks": of_order(|o| json!(o.seeks)),
        "seeks_best": of_order(|o| json!(o.seeks_best)),
        "bytes_per_seek": of_order(|o| json!(o.bytes_per_seek)),
        "score": of_order(|o| json!(o.score)),
        "order": order,
        "predicted_scan_s": file.predicted_scan.as_ref().map(|scan| json!({
            "now": scan.now_s,
            "now_low": scan.now_low_s,
            "now_high": scan.now_high_s,
            "ordered": scan.ordered_s,
            "after_compact": scan.after_compact_s,
        })),
        "documents": file.documents,
        "document_bytes": file.document_bytes,
        "extents": file.extents,
        "decay": file.decay,
    })
}
