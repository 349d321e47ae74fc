//! `trials.parquet`: one row per run of a tuning session.

use std::collections::BTreeMap;
use std::path::Path;

use parquet::errors::ParquetError;
use serde::{Serialize, de::DeserializeOwned};

use super::Result;
use super::column::{self, write_table};
use super::read::read_table;
use crate::tune::{TrialPurpose, TrialStatus};
use crate::{KnobValues, TuneTrial};

type Column = column::Column<TuneTrial>;

/// Returns the columns. Values and figures are JSON objects, because their names differ from session to
/// session.
fn columns() -> Vec<Column> {
    vec![
        Column::u64("number", |t| t.number, |t, v| t.number = v),
        Column::parsed_text(
            "purpose",
            |t| t.purpose.name(),
            |v| v.parse().map_err(|_| unknown("purpose", v)),
            |t, v| t.purpose = v,
        ),
        Column::text("arm", |t| &t.arm, |t, v| t.arm = v),
        Column::text("origin", |t| &t.origin, |t, v| t.origin = v),
        Column::optional_u32("block", |t| t.block, |t, v| t.block = Some(v)),
        Column::u64("seed", |t| t.seed, |t, v| t.seed = v),
        Column::parsed_text(
            "values_json",
            |t| to_json(&t.values),
            from_json,
            |t, v| t.values = v,
        ),
        Column::parsed_text(
            "status",
            |t| t.status.name(),
            |v| v.parse().map_err(|_| unknown("status", v)),
            |t, v| t.status = v,
        ),
        Column::optional_f64("value", |t| t.value, |t, v| t.value = Some(v)),
        Column::optional_f64(
            "value_at_30_percent",
            |t| t.partial[0],
            |t, v| t.partial[0] = Some(v),
        ),
        Column::optional_f64(
            "value_at_60_percent",
            |t| t.partial[1],
            |t, v| t.partial[1] = Some(v),
        ),
        Column::f64("noise", |t| t.noise, |t, v| t.noise = v),
        Column::text("reason", |t| &t.reason, |t, v| t.reason = v),
        Column::parsed_text(
            "figures_json",
            |t| to_json(&t.figures),
            from_json,
            |t, v| t.figures = v,
        ),
        Column::u64(
            "started_unix_ms",
            |t| t.started_unix_ms,
            |t, v| t.started_unix_ms = v,
        ),
        Column::f64("prepare_s", |t| t.prepare_s, |t, v| t.prepare_s = v),
        Column::f64("measure_s", |t| t.measure_s, |t, v| t.measure_s = v),
        Column::optional_f64(
            "best_expected",
            |t| t.best_so_far.map(|best| best.value),
            |t, v| t.best_so_far.get_or_insert_default().value = v,
        ),
        Column::optional_f64(
            "best_low",
            |t| t.best_so_far.map(|best| best.low),
            |t, v| t.best_so_far.get_or_insert_default().low = v,
        ),
        Column::optional_f64(
            "best_high",
            |t| t.best_so_far.map(|best| best.high),
            |t, v| t.best_so_far.get_or_insert_default().high = v,
        ),
    ]
}

/// Writes the whole of `trials.parquet`.
pub(crate) fn write_trials(path: &Path, trials: &[TuneTrial]) -> Result<()> {
    write_table(path, "trials", columns(), trials)
}

/// Reads `trials.parquet`.
pub(crate) fn read_trials(path: &Path) -> Result<Vec<TuneTrial>> {
    let blank = TuneTrial {
        number: 0,
        purpose: TrialPurpose::Search,
        arm: String::new(),
        origin: String::new(),
        block: None,
        seed: 0,
        values: KnobValues::new(),
        status: TrialStatus::Failed,
        value: None,
        partial: [None; 2],
        noise: 1.0,
        reason: String::new(),
        figures: BTreeMap::new(),
        started_unix_ms: 0,
        prepare_s: 0.0,
        measure_s: 0.0,
        best_so_far: None,
    };
    read_table(path, &columns(), &blank)
}

fn unknown(column: &str, name: &str) -> ParquetError {
    ParquetError::General(format!("column `{column}` holds an unknown `{name}`"))
}

/// Returns the map as JSON. The text is empty, and so refused when it is read, if the map has no JSON form: our
/// keys and values always do.
fn to_json(map: &impl Serialize) -> String {
    serde_json::to_string(map).unwrap_or_default()
}

fn from_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| ParquetError::External(Box::new(e)))
}
