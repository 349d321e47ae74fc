//! Counters of the server and the host.

use super::RunDirectory;
use super::spooled_table::{SpoolLines, SpooledTable};
use crate::parquet_file::{read_counters, write_counters};
use crate::{CounterSample, RunError};

const COUNTERS: SpooledTable<CounterSample> = SpooledTable {
    parquet: "server.parquet",
    spool: "server.spool",
    write: write_counters,
    read: read_counters,
};

impl RunDirectory {
    /// Returns a writer for counters while the run goes on. May be called repeatedly; later writers append.
    pub fn counter_writer(&self) -> Result<CounterWriter, RunError> {
        Ok(CounterWriter(COUNTERS.writer(self)?))
    }

    pub(super) fn finish_counters(&self) -> Result<(), RunError> {
        COUNTERS.finish(self)
    }

    /// Returns the counters of the run in the order in which they were recorded, once [`Self::finish_records`]
    /// has run (opening a run does that); empty if there are none.
    pub fn counters(&self) -> Result<Vec<CounterSample>, RunError> {
        COUNTERS.rows(self)
    }
}

/// Writes counters while a run goes on.
#[derive(Debug)]
pub struct CounterWriter(SpoolLines);

impl CounterWriter {
    /// Appends the result of one sampling at once, so that it survives a killed process. Values that are not
    /// finite are lost.
    pub fn write(&mut self, samples: &[CounterSample]) -> Result<(), RunError> {
        self.0.write(samples)
    }
}
