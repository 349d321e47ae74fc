//! `server.parquet`: one row per counter and second.

use std::path::Path;

use super::Result;
use super::column::{self, write_table};
use super::read::read_table;
use crate::CounterSample;

type Column = column::Column<CounterSample>;

fn columns() -> Vec<Column> {
    vec![
        Column::u64("t_ns", |s| s.t_ns, |s, v| s.t_ns = v),
        Column::text("source", |s| &s.source, |s, v| s.source = v),
        Column::text("name", |s| &s.name, |s, v| s.name = v),
        Column::f64("value", |s| s.value, |s, v| s.value = v),
    ]
}

/// Writes the whole of `server.parquet`: an hour of it is half a million rows.
pub(crate) fn write_counters(path: &Path, samples: &[CounterSample]) -> Result<()> {
    write_table(path, "server", columns(), samples)
}

/// Reads `server.parquet`. A null value, which only a foreign file can hold, is left out.
pub(crate) fn read_counters(path: &Path) -> Result<Vec<CounterSample>> {
    let blank = CounterSample {
        t_ns: 0,
        source: String::new(),
        name: String::new(),
        value: f64::NAN,
    };
    let mut samples = read_table(path, &columns(), &blank)?;
    samples.retain(|sample| !sample.value.is_nan());
    Ok(samples)
}
