//! Totals per file from traces that only count: lines while the run goes on, Parquet afterwards.

use std::path::PathBuf;

use super::RunDirectory;
use crate::lines::{JsonLinesWriter, read_json_lines};
use crate::parquet_file::{read_totals, write_totals};
use crate::{FileTotals, RunError};

pub(super) const TOTALS: &str = "totals.parquet";
const LATENCIES: &str = "totals_latency.parquet";
const SPOOL: &str = "totals.spool";

impl RunDirectory {
    /// Returns a writer for totals while the run goes on.
    pub fn totals_writer(&self) -> Result<TotalsWriter, RunError> {
        let path = self.path.join(SPOOL);
        Ok(TotalsWriter {
            lines: JsonLinesWriter::append_to(&path).map_err(RunError::io("open", &path))?,
            path,
        })
    }

    pub(super) fn finish_totals(&self) -> Result<(), RunError> {
        let spool = self.path.join(SPOOL);
        if !spool.exists() {
            return Ok(());
        }
        let rows: Vec<FileTotals> =
            read_json_lines(&spool).map_err(RunError::io("read", &spool))?;
        let path = self.path.join(TOTALS);
        let (totals, latencies) = (self.path_of_new(TOTALS), self.path_of_new(LATENCIES));
        write_totals(&totals, &latencies, &rows).map_err(RunError::write(&path))?;
        self.put_in_place(LATENCIES)?;
        self.put_in_place(TOTALS)?;
        self.remove(SPOOL)
    }

    /// Returns the totals of the run; empty unless its trace only counted.
    pub fn totals(&self) -> Result<Vec<FileTotals>, RunError> {
        let path = self.path.join(TOTALS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_totals(&path, &self.path.join(LATENCIES)).map_err(RunError::damaged(&path))
    }
}

/// Writes totals while a run goes on.
#[derive(Debug)]
pub struct TotalsWriter {
    lines: JsonLinesWriter,
    path: PathBuf,
}

impl TotalsWriter {
    /// Appends the totals of one file and operation over one interval.
    pub fn totals(&mut self, totals: &FileTotals) -> Result<(), RunError> {
        self.lines
            .write(totals)
            .map_err(RunError::io("write", &self.path))
    }
}
