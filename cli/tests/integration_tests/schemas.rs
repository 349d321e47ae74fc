//! The documents that commands print, against what `docs/schema` promises of them.

use serde_json::Value;

/// `name` is that of a file in `docs/schema`, without `.schema.json`.
pub fn assert_valid(name: &str, document: &Value) {
    let text = match name {
        "advise" => include_str!("../../../docs/schema/advise.schema.json"),
        "doctor" => include_str!("../../../docs/schema/doctor.schema.json"),
        "error" => include_str!("../../../docs/schema/error.schema.json"),
        "collect" => include_str!("../../../docs/schema/collect.schema.json"),
        "disk" => include_str!("../../../docs/schema/disk.schema.json"),
        "disk-predict" => include_str!("../../../docs/schema/disk-predict.schema.json"),
        "bench" => include_str!("../../../docs/schema/bench.schema.json"),
        "merge" => include_str!("../../../docs/schema/merge.schema.json"),
        "top" => include_str!("../../../docs/schema/top.schema.json"),
        "trace" => include_str!("../../../docs/schema/trace.schema.json"),
        "replay" => include_str!("../../../docs/schema/replay.schema.json"),
        "reorder" => include_str!("../../../docs/schema/reorder.schema.json"),
        "layout" => include_str!("../../../docs/schema/layout.schema.json"),
        "prefetch" => include_str!("../../../docs/schema/prefetch.schema.json"),
        "tune" => include_str!("../../../docs/schema/tune.schema.json"),
        "tune-apply" => include_str!("../../../docs/schema/tune-apply.schema.json"),
        "compare" => include_str!("../../../docs/schema/compare.schema.json"),
        "trace-import" => include_str!("../../../docs/schema/trace-import.schema.json"),
        "trace-export" => include_str!("../../../docs/schema/trace-export.schema.json"),
        _ => panic!("no schema {name}"),
    };
    let validator = jsonschema::validator_for(&serde_json::from_str(text).unwrap()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
}
