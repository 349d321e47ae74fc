//! Figures per second and operation: a spool while the run goes on, `intervals.parquet` after it.

use std::path::PathBuf;

use super::RunDirectory;
use crate::lines::{JsonLinesWriter, read_json_lines};
use crate::parquet_file::{read_intervals, write_intervals};
use crate::{Interval, RunError};

const INTERVALS: &str = "intervals.parquet";
/// Intervals not yet turned into `intervals.parquet`: JSON lines, for they are few a second.
const INTERVALS_SPOOL: &str = "intervals.spool";

impl RunDirectory {
    /// Where intervals go while the run goes on. May be asked for again and again; later writers
    /// append.
    pub fn interval_writer(&self) -> Result<IntervalWriter, RunError> {
        let path = self.path.join(INTERVALS_SPOOL);
        Ok(IntervalWriter {
            lines: JsonLinesWriter::append_to(&path).map_err(RunError::io("open", &path))?,
            path,
        })
    }

    pub(super) fn finish_intervals(&self) -> Result<(), RunError> {
        let spool = self.path.join(INTERVALS_SPOOL);
        if !spool.exists() {
            return Ok(());
        }
        let path = self.path.join(INTERVALS);
        let intervals: Vec<Interval> =
            read_json_lines(&spool).map_err(RunError::io("read", &spool))?;
        write_intervals(&self.path_of_new(INTERVALS), &intervals)
            .map_err(RunError::write(&path))?;
        // The rows must be safe before their only other copy goes.
        self.put_in_place(INTERVALS)?;
        self.remove(INTERVALS_SPOOL)
    }

    /// The intervals of the run in the order in which they were recorded, once
    /// [`Self::finish_records`] has run (opening a run sees to that); empty when there are none.
    pub fn intervals(&self) -> Result<Vec<Interval>, RunError> {
        let path = self.path.join(INTERVALS);
        if !path.exists() {
            return Ok(Vec::new());
        }
        read_intervals(&path).map_err(RunError::damaged(&path))
    }
}

/// Takes intervals while a run goes on.
#[derive(Debug)]
pub struct IntervalWriter {
    lines: JsonLinesWriter,
    path: PathBuf,
}

impl IntervalWriter {
    /// Appends an interval, at once: it outlives a killed process.
    pub fn write(&mut self, interval: &Interval) -> Result<(), RunError> {
        self.lines
            .write(interval)
            .map_err(RunError::io("write", &self.path))
    }
}
