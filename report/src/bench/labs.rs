//! Shows schema labs as tables.

use seekscope_run::SchemaShape;
use seekscope_run::units::{format_bytes, format_count, format_ns, whole};
use seekscope_stats::median;

use super::BenchReportInput;
use crate::numbers::{format_rate, format_times};
use crate::table::{Cell, Table};

const NOTHING: &str = "–";

/// Returns a name like `one document per sample, {"metric":1}, pre-allocated`.
pub(super) fn shape_name(shape: &SchemaShape) -> String {
    let index = match shape.index.as_str() {
        "" => String::new(),
        index => format!(", {index}"),
    };
    let allocated = if shape.preallocated {
        ", pre-allocated"
    } else {
        ""
    };
    format!("{}{index}{allocated}", shape.name)
}

/// Returns how fast the shapes of a schema lab are written and read.
pub(super) fn shapes(input: &BenchReportInput<'_>) -> Option<Table> {
    // Caches of somebody's server are left as they are.
    let is_private = input
        .document
        .target
        .as_ref()
        .is_some_and(|target| target.local);
    let series = if is_private { "cold series" } else { "series" };
    let mut table = Table::new(
        1,
        &["shape", "insert/s", series, "reads/query", "bytes/query"],
    );
    for shape in &input.measurement()?.shapes {
        let year: Vec<f64> = shape.year_read_ns.iter().map(|&ns| ns as f64).collect();
        table.row([
            shape_name(shape).into(),
            Cell::or(insert_per_s(shape).map(format_rate), NOTHING),
            Cell::or(median(&year).map(|ns| format_ns(whole(ns))), NOTHING),
            Cell::or(shape.reads_per_query.map(format_rate), NOTHING),
            Cell::or(
                shape.read_bytes_per_query.map(|b| format_bytes(whole(b))),
                NOTHING,
            ),
        ]);
    }
    table.or_nothing()
}

/// Returns the disk space of the shapes of a schema lab.
pub(super) fn shape_storage(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        1,
        &[
            "shape",
            "samples",
            "documents",
            "data files",
            "indexes",
            "B/sample",
        ],
    );
    for shape in &input.measurement()?.shapes {
        let Some(storage) = &shape.storage else {
            continue;
        };
        // What the columns beside it say, where the server tells: a directory holds files of the server itself, too.
        let files = storage.data_file_bytes();
        let files = files.map(|data| data.saturating_add(storage.index_bytes));
        let on_disk = files.or(storage.directory_bytes);
        let on_disk = on_disk.filter(|_| shape.samples > 0);
        let per_sample = on_disk.map(|bytes| bytes as f64 / shape.samples as f64);
        table.row([
            shape_name(shape).into(),
            format_count(shape.samples).into(),
            format_count(storage.documents).into(),
            Cell::or(storage.data_file_bytes().map(format_bytes), NOTHING),
            format_bytes(storage.index_bytes).into(),
            Cell::or(per_sample.map(format_rate), NOTHING),
        ]);
    }
    table.or_nothing()
}

/// Returns samples per second over the whole growth: samples divided by their time.
pub(super) fn insert_per_s(shape: &SchemaShape) -> Option<f64> {
    let mut seconds = 0.0;
    let mut before = 0;
    for &(samples, per_s) in &shape.insert_per_s {
        if per_s > 0.0 {
            seconds += samples.saturating_sub(before) as f64 / per_s;
        }
        before = samples;
    }
    (seconds > 0.0).then(|| before as f64 / seconds)
}

/// Returns the insert rate while the data grew: first, middle and last part.
pub(super) fn growth(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(1, &["insert rate over growth", "first", "middle", "last"]);
    for shape in &input.measurement()?.shapes {
        let rates = &shape.insert_per_s;
        if rates.len() >= 3 {
            let at = |i: usize| format_rate(rates[i].1).into();
            table.row([
                shape_name(shape).into(),
                at(0),
                at(rates.len() / 2),
                at(rates.len() - 1),
            ]);
        }
    }
    table.or_nothing()
}

/// Returns the results of published experiments, beside those found here.
pub(super) fn experiments(input: &BenchReportInput<'_>) -> Option<Table> {
    let mut table = Table::new(
        2,
        &[
            "experiment",
            "compared",
            "before",
            "after",
            "ratio",
            "published",
        ],
    );
    for experiment in &input.measurement()?.experiments {
        let value = |value: f64| match experiment.unit.as_str() {
            "ns" => format_ns(whole(value)),
            unit => format!("{} {unit}", format_rate(value)),
        };
        let name = match experiment.disk.as_str() {
            "" => experiment.name.clone(),
            disk => format!("{} ({disk})", experiment.name),
        };
        table.row([
            name.into(),
            experiment.compared.as_str().into(),
            value(experiment.before).into(),
            value(experiment.after).into(),
            format_times(experiment.ratio).into(),
            format_times(experiment.published_ratio).into(),
        ]);
    }
    table.or_nothing()
}
