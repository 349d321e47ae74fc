//! Reports benchmarks: what a server did, how long it took, and at what cost.
//!
//! Read [`records`] first (the contents of a run directory), then `figures` (numbers derived from a step),
//! `tables` and `sentences` (what terminal and page both show). [`comparison`] compares runs.

mod caveats;
mod charts;
pub mod comparison;
mod comparison_table;
mod enough;
mod figures;
mod headline;
mod heat;
mod html;
pub mod index_builds;
mod labs;
mod lone_run;
mod lost_latencies;
mod marks;
pub mod records;
mod sentences;
mod shard_others;
mod shards;
mod tables;
mod terminal;
mod tracks;
mod variants;

use seekscope_run::{BenchMeasurement, BenchStep, RunDocument};

pub use caveats::caveats;
pub use comparison_table::{SIDES_MAX, comparison_terminal};
pub use enough::{FIGURES_OF_A_WORKLOAD, pairs_needed};
pub use html::html;
pub use lost_latencies::LostLatencies;
pub use records::BenchRecords;
pub use sentences::{arrivals, outcome_word, verdict};
pub use terminal::terminal;
pub use variants::variants_compared;

/// Everything the report of a benchmark is made from.
#[derive(Debug, Clone, Copy)]
pub struct BenchReportInput<'a> {
    pub document: &'a RunDocument,
    pub records: &'a BenchRecords,
}

impl<'a> BenchReportInput<'a> {
    /// Returns what was measured; `None` for a run that ended before anything was.
    pub(crate) fn measurement(&self) -> Option<&'a BenchMeasurement> {
        self.document.bench.as_ref()
    }

    pub(crate) fn steps(&self) -> &'a [BenchStep] {
        self.measurement().map_or(&[], |m| &m.steps)
    }
}
