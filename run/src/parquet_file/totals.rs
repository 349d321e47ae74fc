//! `totals.parquet`: one row per interval, file and operation; `totals_latency.parquet`: one row for
//! each bucket of its latency histogram that holds calls.

use std::collections::HashMap;
use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};

use super::Result;
use super::read::for_each_group;
use super::write::{ColumnType, bits32, bits64, write_column, writer};
use crate::{FileTotals, IoOp};

type Figure = fn(&FileTotals) -> u64;

/// Columns beside `file_id` and `op`, which come first.
const FIGURES: [(ColumnType, Figure); 11] = [
    (ColumnType::u64("t_ns"), |r| r.t_ns),
    (ColumnType::u64("duration_ns"), |r| r.duration_ns),
    (ColumnType::u64("calls"), |r| r.calls),
    (ColumnType::u64("errors"), |r| r.errors),
    (ColumnType::u64("bytes"), |r| r.bytes),
    (ColumnType::u64("device_read_bytes"), |r| {
        r.device_read_bytes
    }),
    (ColumnType::u64("hits"), |r| r.hits),
    (ColumnType::u64("misses"), |r| r.misses),
    (ColumnType::u64("waited_for_others"), |r| {
        r.waited_for_others
    }),
    (ColumnType::u64("direct"), |r| r.direct),
    (ColumnType::u64("latency_sum_ns"), |r| r.latency_sum_ns),
];

const KEYS: [ColumnType; 2] = [ColumnType::u32("file_id"), ColumnType::text("op")];
const BUCKETS: [ColumnType; 3] = [
    ColumnType::u64("t_ns"),
    ColumnType::u64("latency_from_ns"),
    ColumnType::u64("calls"),
];

/// Writes both tables whole: a week at ten seconds is some million rows at most.
pub(crate) fn write_totals(totals: &Path, latencies: &Path, rows: &[FileTotals]) -> Result<()> {
    let columns: Vec<ColumnType> = KEYS
        .into_iter()
        .chain(FIGURES.into_iter().map(|(column, _)| column))
        .collect();
    let mut file = writer(totals, "totals", &columns)?;
    let mut group = file.next_row_group()?;
    let ids: Vec<i32> = rows.iter().map(|r| bits32(r.file_id)).collect();
    let ops: Vec<ByteArray> = rows.iter().map(|r| ByteArray::from(r.op.name())).collect();
    write_column::<Int32Type>(&mut group, &ids, None)?;
    write_column::<ByteArrayType>(&mut group, &ops, None)?;
    for (_, figure) in FIGURES {
        let values: Vec<i64> = rows.iter().map(|r| bits64(figure(r))).collect();
        write_column::<Int64Type>(&mut group, &values, None)?;
    }
    group.close()?;
    file.close()?;
    write_latencies(latencies, rows)
}

fn write_latencies(path: &Path, rows: &[FileTotals]) -> Result<()> {
    let buckets: Vec<(&FileTotals, usize, u64)> = rows
        .iter()
        .flat_map(|row| {
            let counts = row.latency_counts.iter().enumerate();
            counts
                .filter(|(_, n)| **n > 0)
                .map(move |(i, n)| (row, i, *n))
        })
        .collect();
    let columns: Vec<ColumnType> = KEYS.into_iter().chain(BUCKETS).collect();
    let mut file = writer(path, "totals_latency", &columns)?;
    let mut group = file.next_row_group()?;
    let ids: Vec<i32> = buckets.iter().map(|(r, ..)| bits32(r.file_id)).collect();
    let ops: Vec<ByteArray> = buckets
        .iter()
        .map(|(r, ..)| ByteArray::from(r.op.name()))
        .collect();
    let times: Vec<i64> = buckets.iter().map(|(r, ..)| bits64(r.t_ns)).collect();
    let from: Vec<i64> = buckets
        .iter()
        .map(|(_, bucket, _)| bits64(1 << (*bucket).min(63)))
        .collect();
    let calls: Vec<i64> = buckets.iter().map(|(.., n)| bits64(*n)).collect();
    write_column::<Int32Type>(&mut group, &ids, None)?;
    write_column::<ByteArrayType>(&mut group, &ops, None)?;
    for values in [&times, &from, &calls] {
        write_column::<Int64Type>(&mut group, values, None)?;
    }
    group.close()?;
    file.close().map(drop)
}

/// Reads both tables. Rows with an operation that this build does not know are skipped.
pub(crate) fn read_totals(totals: &Path, latencies: &Path) -> Result<Vec<FileTotals>> {
    let mut rows = Vec::new();
    for_each_group(totals, |columns| {
        let (ids, ops) = (columns.u32("file_id")?, columns.text("op")?);
        let names = FIGURES.map(|(column, _)| column);
        let figures: Vec<Vec<u64>> = names
            .iter()
            .map(|column| columns.u64(column.name()))
            .collect::<Result<_>>()?;
        rows.extend((0..columns.rows).filter_map(|i| {
            Some(FileTotals {
                file_id: ids[i],
                op: IoOp::from_name(&ops[i])?,
                t_ns: figures[0][i],
                duration_ns: figures[1][i],
                calls: figures[2][i],
                errors: figures[3][i],
                bytes: figures[4][i],
                device_read_bytes: figures[5][i],
                hits: figures[6][i],
                misses: figures[7][i],
                waited_for_others: figures[8][i],
                direct: figures[9][i],
                latency_sum_ns: figures[10][i],
                latency_counts: vec![0; 64],
            })
        }));
        Ok(())
    })?;
    read_latencies(latencies, &mut rows)?;
    Ok(rows)
}

fn read_latencies(path: &Path, rows: &mut [FileTotals]) -> Result<()> {
    let place: HashMap<(u64, u32, &str), usize> = rows
        .iter()
        .enumerate()
        .map(|(i, r)| ((r.t_ns, r.file_id, r.op.name()), i))
        .collect();
    let mut counts = Vec::new();
    for_each_group(path, |columns| {
        let (times, ids) = (columns.u64("t_ns")?, columns.u32("file_id")?);
        let (ops, from) = (columns.text("op")?, columns.u64("latency_from_ns")?);
        let calls = columns.u64("calls")?;
        counts.extend((0..columns.rows).filter_map(|i| {
            let row = *place.get(&(times[i], ids[i], ops[i].as_str()))?;
            Some((row, from[i].max(1).ilog2() as usize, calls[i]))
        }));
        Ok(())
    })?;
    drop(place);
    for (row, bucket, calls) in counts {
        rows[row].latency_counts[bucket] = calls;
    }
    Ok(())
}
