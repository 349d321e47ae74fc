//! What a layout run's records say, derived from the run directory each time: by `layout` at its end and by
//! `report` later.

use std::collections::HashMap;

use anyhow::{Context, Result};
use seekscope_doctor::key_order;
use seekscope_layout::strip::Strip;
use seekscope_report::layout::{LayoutReportInput, TerminalOptions, detailed, html, terminal};
use seekscope_run::{LeafRecord, RunError};

use super::since::leaves_by_file;
use super::summary::LayoutSummary;
use crate::args::OutputArgs;
use crate::ending;
use crate::environment;
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::Session;

/// Width of the strip in the terminal, which fits 80 characters with its margin.
const STRIP_COLUMNS: usize = 64;
const STRIP_ROWS: usize = 12;
/// Number of files whose strip is drawn; the page shows more.
const STRIPS: usize = 6;

/// Maximum number of findings; more would not be useful advice.
const FINDINGS_MAX: usize = 10;

/// What the run's records say, and drawings of the files that gain most from order, by file id.
pub struct Results {
    strips: HashMap<u32, Vec<String>>,
}

impl Results {
    /// Reads the records, and fills in findings and summary.
    pub fn derive(session: &mut Session) -> Result<Self> {
        let mut strips = HashMap::new();
        if let Some(layout) = &session.document.layout {
            let drawn: Vec<_> = detailed(layout).take(STRIPS).collect();
            let is_drawn = |file_id| drawn.iter().any(|file| file.file_id == file_id);
            let leaves = leaves_by_file(&session.directory, is_drawn)?;
            for file in &drawn {
                let leaves = leaves.get(&file.file_id).map_or(&[][..], Vec::as_slice);
                let strip = Strip::of(leaves, file.file_bytes, STRIP_COLUMNS, STRIP_ROWS);
                strips.insert(file.file_id, strip.drawing());
            }
            session.document.summary = serde_json::to_value(LayoutSummary::of(layout))?;
            session.document.findings = key_order::of_layout(&session.document);
            session.document.findings.truncate(FINDINGS_MAX);
        }
        Ok(Self { strips })
    }

    fn with_input<T>(&self, session: &Session, show: impl FnOnce(LayoutReportInput<'_>) -> T) -> T {
        let leaves = |each: &mut dyn FnMut(&LeafRecord)| -> Result<(), RunError> {
            session.directory.for_each_leaf(|_| true, each)
        };
        show(LayoutReportInput {
            document: &session.document,
            strips: &self.strips,
            leaves: &leaves,
        })
    }

    /// Saves the run with its page, and prints tables or JSON on stdout, also if it cannot be saved.
    pub fn show(&self, session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
        let page = self
            .with_input(session, |input| html(&input))
            .context("while reading the leaves of the run")?;
        let saved = session.save_with_page(&page);
        let text = |width| {
            let options = TerminalOptions {
                width,
                unicode: environment::has_unicode(),
            };
            Ok(self.with_input(session, |input| terminal(&input, options)))
        };
        let document = &session.document;
        let json = |run_dir: &str| output::print_json(&RunOutput::of("layout", document, run_dir));
        ending::print(&session.directory, saved, args, progress, json, text)
    }
}
