//! Makes the files in `docs/schema` from the types that `--json` prints. A test compares the files with the
//! types, and rewrites them with `UPDATE_SCHEMAS=1 cargo test -p seekscope-cli --bin seekscope schemas`.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use seekscope_report::live::top::TopOutput;
use seekscope_report::tune::TuneSummary;
use seekscope_run::{AdviceRecord, PrefetchSummary};
use serde_json::{Value, json};

use crate::bench::summary::BenchSummary;
use crate::collect::CollectOutput;
use crate::compare::CompareOutput;
use crate::disk::predict::PredictOutput;
use crate::disk::summary::DiskSummary;
use crate::doctor::conclusion::{DoctorOutput, ExaminedSummary};
use crate::layout::LayoutSummary;
use crate::output::{DiskRunOutput, ErrorOutput, RunOutput, versioned};
use crate::reorder::summary::ReorderSummary;
use crate::replay::summary::ReplaySummary;
use crate::trace::TraceSummary;
use crate::trace::export::ExportOutput;
use crate::trace::import::ImportOutput;
use crate::tune::apply::ApplyOutput;

/// Returns the schemas of all commands, by the names of their files.
fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        described::<RunOutput<Option<AdviceRecord>>>("advise"),
        described::<RunOutput<Option<BenchSummary>>>("bench"),
        described::<CollectOutput>("collect"),
        described::<CompareOutput>("compare"),
        described::<DiskRunOutput<DiskSummary>>("disk"),
        described::<PredictOutput>("disk-predict"),
        described::<DoctorOutput<ExaminedSummary>>("doctor"),
        described::<ErrorOutput>("error"),
        described::<RunOutput<LayoutSummary>>("layout"),
        described::<RunOutput<Option<BenchSummary>>>("merge"),
        described::<RunOutput<Option<PrefetchSummary>>>("prefetch"),
        described::<RunOutput<ReorderSummary>>("reorder"),
        described::<DiskRunOutput<ReplaySummary>>("replay"),
        described::<TopOutput>("top"),
        described::<RunOutput<TraceSummary>>("trace"),
        described::<ExportOutput>("trace-export"),
        described::<ImportOutput>("trace-import"),
        described::<RunOutput<TuneSummary>>("tune"),
        described::<ApplyOutput>("tune-apply"),
    ]
}

/// Returns the schema of the document that `T` is printed as. Fixes the values of its first fields, which the
/// types shared by commands do not contain.
fn described<T: JsonSchema>(name: &'static str) -> (&'static str, Schema) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<T>();
    RecursiveTransform(for_readers).transform(&mut schema);
    let command = name.replace('-', " ");
    schema.insert("$id".into(), versioned(name).into());
    let title = match name {
        "error" => "seekscope COMMAND --json, when it fails".into(),
        _ => format!("seekscope {command} --json"),
    };
    schema.insert("title".into(), title.into());
    let fields = schema.get_mut("properties").unwrap();
    fields["schema"]["const"] = json!(versioned(name));
    if let Some(field) = fields.get_mut("command") {
        field["const"] = json!(command);
    }
    (name, schema)
}

/// Removes what is specific to Rust, and rewrites descriptions taken from comments for readers of JSON.
fn for_readers(schema: &mut Schema) {
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ").replace("`None`", "null");
        // Links to other items.
        for (link, plain) in [
            ("[`", "`"),
            ("`]", "`"),
            ("crate::", ""),
            ("seekscope_run::", ""),
        ] {
            *text = text.replace(link, plain);
        }
    }
}

#[test]
fn they_are_as_the_types_are() {
    let folder = Path::new("../docs/schema");
    for (name, schema) in schemas() {
        let path = folder.join(format!("{name}.schema.json"));
        let made = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap();
        assert!(
            there == made,
            "{} is outdated; write it again with UPDATE_SCHEMAS=1 cargo test -p seekscope-cli \
             --bin seekscope schemas",
            path.display()
        );
    }
}
