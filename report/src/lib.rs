//! Findings and records, made readable: on the terminal and as an HTML report.
//!
//! Works from a run's records alone. Of traced phases it computes no statistic of its own beyond
//! reading quantiles off for a curve: what is shown is what `pattern` and the findings say. Of disk
//! runs ([`disk`]) it compares the steps with one another, and says what follows. Of benchmarks
//! ([`mod@bench`]) it shows what their records say, and compares whole runs. Of examinations ([`doctor`]) it
//! shows the findings, and the answers that they rest on.

pub mod bench;
mod comparison;
pub mod disk;
pub mod doctor;
mod escape;
mod facts;
pub mod html;
pub mod layout;
pub mod live;
mod numbers;
pub mod reorder;
mod table;
pub mod terminal;
mod text;
pub mod trace;
pub mod tune;
mod wording;

use seekscope_pattern::PhaseAnalysis;
use seekscope_run::{FileRecord, IoEvent, RunDocument};

/// Everything the report of traced phases is made from.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    pub document: &'a RunDocument,
    pub files: &'a [FileRecord],
    /// One per phase of the document, in its order.
    pub analyses: &'a [PhaseAnalysis],
    /// All events of the run, in order of time.
    pub events: &'a [IoEvent],
}

impl<'a> ReportInput<'a> {
    /// The file with this id, if the run knows it.
    pub(crate) fn file(&self, file_id: u32) -> Option<&'a FileRecord> {
        self.files.iter().find(|file| file.file_id == file_id)
    }
}
