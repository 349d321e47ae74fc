//! Figures per second and operation.

use std::slice;

use super::RunDirectory;
use super::spooled_table::{SpoolLines, SpooledTable};
use crate::parquet_file::{read_intervals, write_intervals};
use crate::{Interval, RunError};

const INTERVALS: SpooledTable<Interval> = SpooledTable {
    parquet: "intervals.parquet",
    spool: "intervals.spool",
    write: write_intervals,
    read: read_intervals,
};

impl RunDirectory {
    /// Returns a writer for intervals while the run goes on. May be called repeatedly; later writers append.
    pub fn interval_writer(&self) -> Result<IntervalWriter, RunError> {
        Ok(IntervalWriter(INTERVALS.writer(self)?))
    }

    pub(super) fn finish_intervals(&self) -> Result<(), RunError> {
        INTERVALS.finish(self)
    }

    /// Returns the intervals of the run in the order in which they were recorded, once [`Self::finish_records`]
    /// has run (opening a run does that); empty if there are none.
    pub fn intervals(&self) -> Result<Vec<Interval>, RunError> {
        INTERVALS.rows(self)
    }
}

/// Writes intervals while a run goes on.
#[derive(Debug)]
pub struct IntervalWriter(SpoolLines);

impl IntervalWriter {
    /// Appends an interval at once, so that it survives a killed process.
    pub fn write(&mut self, interval: &Interval) -> Result<(), RunError> {
        self.0.write(slice::from_ref(interval))
    }
}
