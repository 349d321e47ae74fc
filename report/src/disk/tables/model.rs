//! Shows the device model: how well its line fits, and its other parameters.

use seekscope_run::units::format_ns;
use seekscope_run::{DeviceModel, TokenBucket};

use super::super::DiskReportInput;
use super::super::sentences::block;
use crate::facts::{Fact, known};
use crate::numbers::{format_mb, format_mean_ns, format_number, format_rate, format_share};
use crate::table::{Cell, Table};

/// Returns reads one at a time by size, beside the model's line.
pub(in super::super) fn sizes(input: &DiskReportInput<'_>) -> Option<Table> {
    let model = input.measurement()?.model.as_ref()?;
    let mut table = Table::new(
        1,
        &[
            "one read of",
            "measured, mean",
            "p50",
            "by the model",
            "error",
        ],
    );
    for size in &model.sizes {
        let predicted = model.l0_ns + model.ns_per_byte * size.bytes as f64;
        let error = predicted / size.mean_ns - 1.0;
        table.row([
            block(size.bytes).into(),
            format_mean_ns(size.mean_ns).into(),
            format_ns(size.p50_ns).into(),
            format_mean_ns(predicted).into(),
            Cell::or(
                error
                    .is_finite()
                    .then(|| format!("{:+.1} %", error * 100.0)),
                "unknown",
            ),
        ]);
    }
    table.or_nothing()
}

/// Returns the other parameters.
pub(in super::super) fn model_facts(model: &DeviceModel) -> Vec<Fact> {
    let rate =
        |bytes_per_s: f64| (bytes_per_s > 0.0).then(|| format!("{} MB/s", format_mb(bytes_per_s)));
    let size = |bytes: u64| (bytes > 0).then(|| block(bytes));
    let bucket = |bucket: &TokenBucket, unit: &str, scale: f64| {
        format!(
            "{} {unit}/s, burst of {}",
            format_rate(bucket.per_s / scale),
            format_number(bucket.burst / scale)
        )
    };
    let mut facts = vec![
        ("Model of", known(&model.disk)),
        ("Cost of a request, L0", Some(format_mean_ns(model.l0_ns))),
        (
            "Cost of each KiB, k",
            Some(format_mean_ns(model.ns_per_byte * 1024.0)),
        ),
        (
            "Largest error of the line",
            Some(format_share(model.fit_error)),
        ),
        (
            "Depth it can use",
            (model.parallelism > 0).then(|| model.parallelism.to_string()),
        ),
        ("In order, direct, B", rate(model.sequential_bytes_per_s)),
        ("In order, page cache", rate(model.buffered_bytes_per_s)),
        ("Read-ahead, W", size(model.read_ahead_bytes)),
        ("Largest request", size(model.request_bytes_max)),
    ];
    if let Some(limit) = &model.iops_bucket {
        facts.push(("Limit on requests", Some(bucket(limit, "requests", 1.0))));
    }
    if let Some(limit) = &model.bytes_bucket {
        facts.push(("Limit on bytes", Some(bucket(limit, "MB", 1e6))));
    }
    facts
}
