//! `totals.parquet`: one row per interval, file and operation; `totals_latency.parquet`: one row for each
//! non-empty bucket of its latency histogram.

use std::collections::HashMap;
use std::path::Path;

use parquet::data_type::ByteArray;

use super::Result;
use super::column::{self, write_table};
use super::read::{for_each_group, read_table};
use crate::{FileTotals, IoOp};

type Column = column::Column<FileTotals>;
type BucketColumn = column::Column<Bucket>;

const OP: &str = "op";

fn columns() -> Vec<Column> {
    vec![
        Column::u32("file_id", |r| r.file_id, |r, v| r.file_id = v),
        Column::written(OP, |r| ByteArray::from(r.op.name())),
        Column::u64("t_ns", |r| r.t_ns, |r, v| r.t_ns = v),
        Column::u64("duration_ns", |r| r.duration_ns, |r, v| r.duration_ns = v),
        Column::u64("calls", |r| r.calls, |r, v| r.calls = v),
        Column::u64("errors", |r| r.errors, |r, v| r.errors = v),
        Column::u64("bytes", |r| r.bytes, |r, v| r.bytes = v),
        Column::u64(
            "device_read_bytes",
            |r| r.device_read_bytes,
            |r, v| r.device_read_bytes = v,
        ),
        Column::u64("hits", |r| r.hits, |r, v| r.hits = v),
        Column::u64("misses", |r| r.misses, |r, v| r.misses = v),
        Column::u64(
            "waited_for_others",
            |r| r.waited_for_others,
            |r, v| r.waited_for_others = v,
        ),
        Column::u64("direct", |r| r.direct, |r, v| r.direct = v),
        Column::u64(
            "latency_sum_ns",
            |r| r.latency_sum_ns,
            |r, v| r.latency_sum_ns = v,
        ),
    ]
}

/// A non-empty bucket of a histogram.
#[derive(Clone, Default)]
struct Bucket {
    file_id: u32,
    op: String,
    t_ns: u64,
    latency_from_ns: u64,
    calls: u64,
}

fn bucket_columns() -> Vec<BucketColumn> {
    vec![
        BucketColumn::u32("file_id", |b| b.file_id, |b, v| b.file_id = v),
        BucketColumn::text(OP, |b| &b.op, |b, v| b.op = v),
        BucketColumn::u64("t_ns", |b| b.t_ns, |b, v| b.t_ns = v),
        BucketColumn::u64(
            "latency_from_ns",
            |b| b.latency_from_ns,
            |b, v| b.latency_from_ns = v,
        ),
        BucketColumn::u64("calls", |b| b.calls, |b, v| b.calls = v),
    ]
}

/// Writes both tables in full: a week at ten seconds is a few million rows at most.
pub(crate) fn write_totals(totals: &Path, latencies: &Path, rows: &[FileTotals]) -> Result<()> {
    write_table(totals, "totals", columns(), rows)?;
    let buckets: Vec<Bucket> = rows.iter().flat_map(buckets).collect();
    write_table(latencies, "totals_latency", bucket_columns(), &buckets)
}

fn buckets(row: &FileTotals) -> impl Iterator<Item = Bucket> {
    let counts = row.latency_counts.iter().enumerate();
    counts
        .filter(|(_, calls)| **calls > 0)
        .map(|(bucket, calls)| Bucket {
            file_id: row.file_id,
            op: row.op.name().into(),
            t_ns: row.t_ns,
            latency_from_ns: 1 << bucket.min(63),
            calls: *calls,
        })
}

/// Reads both tables. Rows with an operation that this build does not know are skipped.
pub(crate) fn read_totals(totals: &Path, latencies: &Path) -> Result<Vec<FileTotals>> {
    let blank = FileTotals {
        t_ns: 0,
        duration_ns: 0,
        file_id: 0,
        op: IoOp::Read,
        calls: 0,
        errors: 0,
        bytes: 0,
        device_read_bytes: 0,
        hits: 0,
        misses: 0,
        waited_for_others: 0,
        direct: 0,
        latency_sum_ns: 0,
        latency_counts: vec![0; 64],
    };
    let rows = read_table(totals, &columns(), &blank)?;
    // The rows have been read, so there are as many as the file says.
    let mut ops = Vec::with_capacity(rows.len());
    for_each_group(totals, |group| {
        ops.extend(group.texts(OP)?);
        Ok(())
    })?;
    let rows = rows.into_iter().zip(ops);
    let mut rows: Vec<FileTotals> = rows
        .filter_map(|(row, op)| {
            let op = IoOp::from_name(&op)?;
            Some(FileTotals { op, ..row })
        })
        .collect();
    add_latencies(latencies, &mut rows)?;
    Ok(rows)
}

fn add_latencies(path: &Path, rows: &mut [FileTotals]) -> Result<()> {
    let keys = rows.iter().enumerate();
    let place: HashMap<(u64, u32, &'static str), usize> = keys
        .map(|(i, r)| ((r.t_ns, r.file_id, r.op.name()), i))
        .collect();
    for bucket in read_table(path, &bucket_columns(), &Bucket::default())? {
        let op = IoOp::from_name(&bucket.op);
        let row = op.and_then(|op| place.get(&(bucket.t_ns, bucket.file_id, op.name())));
        if let Some(row) = row {
            let power = bucket.latency_from_ns.max(1).ilog2() as usize;
            rows[*row].latency_counts[power] = bucket.calls;
        }
    }
    Ok(())
}
