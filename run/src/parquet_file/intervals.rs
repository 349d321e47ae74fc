//! `intervals.parquet`: one row per second, step and operation.

use std::fs::File;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::writer::SerializedRowGroupWriter;

use super::Result;
use super::read::{Columns, for_each_group};
use super::write::{ColumnType, bits64, write_column, write_optional, writer};
use crate::{Interval, LatencySummary};

/// Columns before the latencies.
const COLUMNS: [ColumnType; 7] = [
    ColumnType::text("step"),
    ColumnType::text("operation"),
    ColumnType::u64("t_ns"),
    ColumnType::u64("duration_ns"),
    ColumnType::u64("count"),
    ColumnType::u64("errors"),
    ColumnType::u64("bytes"),
];

type LatencyOf = fn(&LatencySummary) -> u64;

/// Columns of one latency summary, after `service_` and `response_`; then `mean_ns`.
const LATENCIES: [(ColumnType, LatencyOf); 7] = [
    (ColumnType::u64("count"), |l| l.count),
    (ColumnType::u64("min_ns"), |l| l.min_ns),
    (ColumnType::u64("p50_ns"), |l| l.p50_ns),
    (ColumnType::u64("p90_ns"), |l| l.p90_ns),
    (ColumnType::u64("p99_ns"), |l| l.p99_ns),
    (ColumnType::u64("p999_ns"), |l| l.p999_ns),
    (ColumnType::u64("max_ns"), |l| l.max_ns),
];
const MEAN: ColumnType = ColumnType::f64("mean_ns");

const SERVICE: &str = "service";
const RESPONSE: &str = "response";

fn columns() -> Vec<ColumnType> {
    let latencies = || {
        LATENCIES
            .into_iter()
            .map(|(column, _)| column)
            .chain([MEAN])
    };
    let service = latencies().map(|c| c.prefixed(SERVICE));
    let response = latencies().map(|c| c.prefixed(RESPONSE).optional());
    COLUMNS.into_iter().chain(service).chain(response).collect()
}

/// Writes `intervals.parquet` whole: an hour of them is a few thousand rows.
pub(crate) fn write_intervals(path: &Path, intervals: &[Interval]) -> Result<()> {
    let mut file = writer(path, "intervals", &columns())?;
    let mut group = file.next_row_group()?;
    let texts = |f: fn(&Interval) -> &str| {
        let values = intervals.iter().map(|i| ByteArray::from(f(i)));
        values.collect::<Vec<_>>()
    };
    let u64s = |f: fn(&Interval) -> u64| intervals.iter().map(|i| bits64(f(i))).collect::<Vec<_>>();
    write_column::<ByteArrayType>(&mut group, &texts(|i| &i.step), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|i| &i.operation), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|i| i.t_ns), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|i| i.duration_ns), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|i| i.count), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|i| i.errors), None)?;
    write_column::<Int64Type>(&mut group, &u64s(|i| i.bytes), None)?;
    write_latencies(&mut group, intervals, |i| Some(&i.latency))?;
    write_latencies(&mut group, intervals, |i| i.response.as_ref())?;
    group.close()?;
    file.close().map(drop)
}

fn write_latencies(
    group: &mut SerializedRowGroupWriter<'_, File>,
    intervals: &[Interval],
    latency: fn(&Interval) -> Option<&LatencySummary>,
) -> Result<()> {
    for (_, value) in LATENCIES {
        let values = intervals.iter().map(|i| latency(i).map(value).map(bits64));
        write_optional::<Int64Type>(group, values)?;
    }
    let means = intervals.iter().map(|i| latency(i).map(|l| l.mean_ns));
    write_optional::<DoubleType>(group, means)
}

/// Reads `intervals.parquet`.
pub(crate) fn read_intervals(path: &Path) -> Result<Vec<Interval>> {
    let mut intervals = Vec::new();
    for_each_group(path, |columns| {
        let (steps, operations) = (columns.text("step")?, columns.text("operation")?);
        let (t_ns, duration_ns) = (columns.u64("t_ns")?, columns.u64("duration_ns")?);
        let (counts, errors) = (columns.u64("count")?, columns.u64("errors")?);
        let bytes = columns.u64("bytes")?;
        let service = read_latencies(columns, SERVICE)?;
        let response = read_latencies(columns, RESPONSE)?;
        intervals.extend((0..columns.rows).map(|i| Interval {
            step: steps[i].clone(),
            operation: operations[i].clone(),
            t_ns: t_ns[i],
            duration_ns: duration_ns[i],
            count: counts[i],
            errors: errors[i],
            bytes: bytes[i],
            latency: service[i].unwrap_or_default(),
            response: response[i],
        }));
        Ok(())
    })?;
    Ok(intervals)
}

/// One summary per row; `None` where its columns are null.
fn read_latencies(columns: &Columns<'_>, prefix: &str) -> Result<Vec<Option<LatencySummary>>> {
    let column = |name: &str| columns.optional_u64(&format!("{prefix}_{name}"));
    let (count, min, max) = (column("count")?, column("min_ns")?, column("max_ns")?);
    let (p50, p90) = (column("p50_ns")?, column("p90_ns")?);
    let (p99, p999) = (column("p99_ns")?, column("p999_ns")?);
    let mean = columns.optional_f64(&format!("{prefix}_mean_ns"))?;
    let row = |i: usize| {
        Some(LatencySummary {
            count: count[i]?,
            min_ns: min[i]?,
            mean_ns: mean[i]?,
            p50_ns: p50[i]?,
            p90_ns: p90[i]?,
            p99_ns: p99[i]?,
            p999_ns: p999[i]?,
            max_ns: max[i]?,
        })
    };
    Ok((0..columns.rows).map(row).collect())
}
