//! `intervals.parquet`: one row per second, step and operation.

use std::path::Path;

use super::Result;
use super::column::{self, write_table};
use super::read::read_table;
use crate::{Interval, LatencySummary};

type Column = column::Column<Interval>;

type Get = fn(&LatencySummary) -> u64;
type Set = fn(&mut LatencySummary, u64);

/// Columns of one latency summary, after `service_` and `response_`; `mean_ns` follows.
const LATENCIES: [(&str, Get, Set); 7] = [
    ("count", |l| l.count, |l, v| l.count = v),
    ("min_ns", |l| l.min_ns, |l, v| l.min_ns = v),
    ("p50_ns", |l| l.p50_ns, |l, v| l.p50_ns = v),
    ("p90_ns", |l| l.p90_ns, |l, v| l.p90_ns = v),
    ("p99_ns", |l| l.p99_ns, |l, v| l.p99_ns = v),
    ("p999_ns", |l| l.p999_ns, |l, v| l.p999_ns = v),
    ("max_ns", |l| l.max_ns, |l, v| l.max_ns = v),
];

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::text("step", |i| &i.step, |i, v| i.step = v),
        Column::text("operation", |i| &i.operation, |i, v| i.operation = v),
        Column::u64("t_ns", |i| i.t_ns, |i, v| i.t_ns = v),
        Column::u64("duration_ns", |i| i.duration_ns, |i, v| i.duration_ns = v),
        Column::u64("count", |i| i.count, |i, v| i.count = v),
        Column::u64("errors", |i| i.errors, |i, v| i.errors = v),
        Column::u64("bytes", |i| i.bytes, |i, v| i.bytes = v),
    ];
    columns.extend(LATENCIES.map(|(name, get, set)| {
        let name = format!("service_{name}");
        Column::u64(
            name,
            move |i| get(&i.latency),
            move |i, v| set(&mut i.latency, v),
        )
    }));
    columns.push(Column::f64(
        "service_mean_ns",
        |i| i.latency.mean_ns,
        |i, v| i.latency.mean_ns = v,
    ));
    columns.extend(LATENCIES.map(|(name, get, set)| {
        let name = format!("response_{name}");
        Column::optional_u64(
            name,
            move |i| i.response.as_ref().map(get),
            move |i, v| set(i.response.get_or_insert_default(), v),
        )
    }));
    columns.push(Column::optional_f64(
        "response_mean_ns",
        |i| i.response.map(|l| l.mean_ns),
        |i, v| i.response.get_or_insert_default().mean_ns = v,
    ));
    columns
}

/// Writes the whole of `intervals.parquet`: an hour of them is a few thousand rows.
pub(crate) fn write_intervals(path: &Path, intervals: &[Interval]) -> Result<()> {
    write_table(path, "intervals", columns(), intervals)
}

/// Reads `intervals.parquet`.
pub(crate) fn read_intervals(path: &Path) -> Result<Vec<Interval>> {
    read_table(path, &columns(), &Interval::default())
}
