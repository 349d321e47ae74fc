//! `trials.parquet`: one row per run of a tuning session.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use serde::{Serialize, de::DeserializeOwned};

use super::Result;
use super::read::{Columns, for_each_group};
use super::write::{ColumnType, bits32, bits64, write_column, write_optional, writer};
use crate::TuneTrial;
use crate::tune::Expected;

/// Values and figures are JSON objects: which there are differs from session to session.
const COLUMNS: [ColumnType; 20] = [
    ColumnType::u64("number"),
    ColumnType::text("purpose"),
    ColumnType::text("arm"),
    ColumnType::text("origin"),
    ColumnType::u32("block").optional(),
    ColumnType::u64("seed"),
    ColumnType::text("values_json"),
    ColumnType::text("status"),
    ColumnType::f64("value").optional(),
    ColumnType::f64("value_at_30_percent").optional(),
    ColumnType::f64("value_at_60_percent").optional(),
    ColumnType::f64("noise"),
    ColumnType::text("reason"),
    ColumnType::text("figures_json"),
    ColumnType::u64("started_unix_ms"),
    ColumnType::f64("prepare_s"),
    ColumnType::f64("measure_s"),
    ColumnType::f64("best_expected").optional(),
    ColumnType::f64("best_low").optional(),
    ColumnType::f64("best_high").optional(),
];

/// Writes `trials.parquet` whole.
pub(crate) fn write_trials(path: &Path, trials: &[TuneTrial]) -> Result<()> {
    let mut file = writer(path, "trials", &COLUMNS)?;
    let mut group = file.next_row_group()?;
    let u64s =
        |f: fn(&TuneTrial) -> u64| -> Vec<i64> { trials.iter().map(|t| bits64(f(t))).collect() };
    let f64s = |f: fn(&TuneTrial) -> f64| -> Vec<f64> { trials.iter().map(f).collect() };
    let texts = |f: fn(&TuneTrial) -> &str| -> Vec<ByteArray> {
        trials.iter().map(|t| ByteArray::from(f(t))).collect()
    };
    write_column::<Int64Type>(&mut group, &u64s(|t| t.number), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|t| t.purpose.name()), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|t| &t.arm), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|t| &t.origin), None)?;
    write_optional::<Int32Type>(&mut group, trials.iter().map(|t| t.block.map(bits32)))?;
    write_column::<Int64Type>(&mut group, &u64s(|t| t.seed), None)?;
    let values = trials.iter().map(|t| to_json(&t.values));
    write_column::<ByteArrayType>(&mut group, &values.collect::<Result<Vec<_>>>()?, None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|t| t.status.name()), None)?;
    write_optional::<DoubleType>(&mut group, trials.iter().map(|t| t.value))?;
    write_optional::<DoubleType>(&mut group, trials.iter().map(|t| t.partial[0]))?;
    write_optional::<DoubleType>(&mut group, trials.iter().map(|t| t.partial[1]))?;
    write_column::<DoubleType>(&mut group, &f64s(|t| t.noise), None)?;
    write_column::<ByteArrayType>(&mut group, &texts(|t| &t.reason), None)?;
    let figures = trials.iter().map(|t| to_json(&t.figures));
    write_column::<ByteArrayType>(&mut group, &figures.collect::<Result<Vec<_>>>()?, None)?;
    write_column::<Int64Type>(&mut group, &u64s(|t| t.started_unix_ms), None)?;
    write_column::<DoubleType>(&mut group, &f64s(|t| t.prepare_s), None)?;
    write_column::<DoubleType>(&mut group, &f64s(|t| t.measure_s), None)?;
    let ends: [fn(Expected) -> f64; 3] = [|b| b.value, |b| b.low, |b| b.high];
    for figure in ends {
        let best = trials.iter().map(|t| t.best_so_far.map(figure));
        write_optional::<DoubleType>(&mut group, best)?;
    }
    group.close()?;
    file.close().map(drop)
}

/// Reads `trials.parquet`.
pub(crate) fn read_trials(path: &Path) -> Result<Vec<TuneTrial>> {
    let mut trials = Vec::new();
    for_each_group(path, |columns| read_group(columns, &mut trials))?;
    Ok(trials)
}

fn read_group(columns: &Columns<'_>, trials: &mut Vec<TuneTrial>) -> Result<()> {
    let f64s = |name| columns.optional_f64(name);
    let (numbers, seeds) = (columns.u64("number")?, columns.u64("seed")?);
    let (purposes, statuses) = (columns.text("purpose")?, columns.text("status")?);
    let (arms, origins) = (columns.text("arm")?, columns.text("origin")?);
    let (blocks, reasons) = (columns.optional_u32("block")?, columns.text("reason")?);
    let (values, figures) = (columns.text("values_json")?, columns.text("figures_json")?);
    let partial = [f64s("value_at_30_percent")?, f64s("value_at_60_percent")?];
    let (value, noise) = (f64s("value")?, f64s("noise")?);
    let started = columns.u64("started_unix_ms")?;
    let (prepare, measure) = (f64s("prepare_s")?, f64s("measure_s")?);
    let best = [
        f64s("best_expected")?,
        f64s("best_low")?,
        f64s("best_high")?,
    ];
    for i in 0..columns.rows {
        let [expected, low, high] = best.each_ref().map(|column| column[i]);
        trials.push(TuneTrial {
            number: numbers[i],
            purpose: (purposes[i].parse()).map_err(|_| unknown("purpose", &purposes[i]))?,
            arm: arms[i].clone(),
            origin: origins[i].clone(),
            block: blocks[i],
            seed: seeds[i],
            values: from_json(&values[i])?,
            status: (statuses[i].parse()).map_err(|_| unknown("status", &statuses[i]))?,
            value: value[i],
            partial: partial.each_ref().map(|column| column[i]),
            noise: noise[i].unwrap_or(1.0),
            reason: reasons[i].clone(),
            figures: from_json(&figures[i])?,
            started_unix_ms: started[i],
            prepare_s: prepare[i].unwrap_or(0.0),
            measure_s: measure[i].unwrap_or(0.0),
            best_so_far: expected
                .zip(low.zip(high))
                .map(|(value, (low, high))| Expected { value, low, high }),
        });
    }
    Ok(())
}

fn unknown(column: &str, name: &str) -> ParquetError {
    ParquetError::General(format!("column `{column}` holds an unknown `{name}`"))
}

fn to_json(map: &impl Serialize) -> Result<ByteArray> {
    let text = serde_json::to_string(map).map_err(|e| ParquetError::External(Box::new(e)))?;
    Ok(ByteArray::from(text.as_str()))
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| ParquetError::External(Box::new(e)))
}
