//! `server.parquet`: one row per counter and second.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};

use super::Result;
use super::read::for_each_group;
use super::write::{ColumnType, bits64, write_column, writer};
use crate::CounterSample;

const COLUMNS: [ColumnType; 4] = [
    ColumnType::u64("t_ns"),
    ColumnType::text("source"),
    ColumnType::text("name"),
    ColumnType::f64("value"),
];

/// Writes `server.parquet` whole: an hour of it is half a million rows.
pub(crate) fn write_counters(path: &Path, samples: &[CounterSample]) -> Result<()> {
    let mut file = writer(path, "server", &COLUMNS)?;
    let mut group = file.next_row_group()?;
    let texts = |f: fn(&CounterSample) -> &str| {
        let values = samples.iter().map(|s| ByteArray::from(f(s)));
        values.collect::<Vec<_>>()
    };
    let times: Vec<i64> = samples.iter().map(|s| bits64(s.t_ns)).collect();
    let values: Vec<f64> = samples.iter().map(|s| s.value).collect();
    write_column::<Int64Type>(&mut group, &times, None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|s| &s.source), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|s| &s.name), None)?;
    write_column::<DoubleType>(&mut group, &values, None)?;
    group.close()?;
    file.close().map(drop)
}

/// Reads `server.parquet`. A null value, which only a foreign file can hold, is left out.
pub(crate) fn read_counters(path: &Path) -> Result<Vec<CounterSample>> {
    let mut samples = Vec::new();
    for_each_group(path, |columns| {
        let times = columns.u64("t_ns")?.into_iter();
        let sources = columns.text("source")?.into_iter();
        let names = columns.text("name")?.into_iter();
        let values = columns.optional_f64("value")?.into_iter();
        let rows = times.zip(sources.zip(names)).zip(values);
        samples.extend(rows.filter_map(|((t_ns, (source, name)), value)| {
            Some(CounterSample {
                t_ns,
                source,
                name,
                value: value?,
            })
        }));
        Ok(())
    })?;
    Ok(samples)
}
