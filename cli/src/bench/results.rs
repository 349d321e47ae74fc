//! What a benchmark's records say, derived from the run directory each time: by `bench` at its end and by
//! `report` later.

use std::borrow::Cow;

use anyhow::{Context, Result};
use seekscope_report::bench::{
    BenchRecords, BenchReportInput, LostLatencies, html, terminal, variants_compared,
};
use seekscope_run::{Outcome, RunDocument};

use super::summary::BenchSummary;
use super::ycsb_output;
use crate::args::OutputArgs;
use crate::ending;
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::{Session, limit};

/// What to print on stdout unless JSON is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    Tables,
    /// The lines that YCSB prints.
    YcsbLines,
}

/// Prints tables or JSON of a run, and writes its page.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    Results::derive(session)?.show(session, args, progress, Show::Tables)
}

/// A benchmark's records and the page made from them.
pub struct Results {
    records: BenchRecords,
    lost: Option<LostLatencies>,
}

impl Results {
    /// Reads the records, and fills in the summary.
    pub fn derive(session: &mut Session) -> Result<Self> {
        let bench = session.document.bench.as_ref();
        let (records, lost) = match BenchRecords::read(&session.directory, &session.document) {
            Ok(records) => {
                let lost = bench.and_then(|bench| records.lost_latencies(bench));
                (records, lost)
            }
            // The files end where the disk did.
            Err(_) if session.save().is_err() => (BenchRecords::default(), None),
            Err(error) => return Err(error).context("while reading the records of the run"),
        };
        if let Some(measurement) = &session.document.bench {
            let variants = variants_compared(&session.document, &records);
            let summary = BenchSummary::of(measurement, variants.as_ref());
            session.document.summary = serde_json::to_value(summary)?;
        }
        Ok(Self { records, lost })
    }

    fn save(&self, session: &Session) -> Result<()> {
        session.save_with_page(&html(&self.input(&self.shown(session))))
    }

    /// Returns the run's document, with what its files lack among the limitations. That is not saved: it is a fact of
    /// these files, and no longer true once the run was copied again.
    fn shown<'a>(&self, session: &'a Session) -> Cow<'a, RunDocument> {
        let Some(lost) = &self.lost else {
            return Cow::Borrowed(&session.document);
        };
        let mut document = session.document.clone();
        limit(&mut document, lost.limitation());
        Cow::Owned(document)
    }

    fn input<'a>(&'a self, document: &'a RunDocument) -> BenchReportInput<'a> {
        BenchReportInput {
            document,
            records: &self.records,
        }
    }

    /// Saves the run with its page, and prints tables, YCSB's lines or JSON, also if it cannot be saved. Unreliable results say so in their first line.
    pub fn show(
        &self,
        session: &Session,
        args: &OutputArgs,
        progress: Progress,
        show: Show,
    ) -> Result<()> {
        let saved = self.save(session);
        let shown = self.shown(session);
        let document: &RunDocument = &shown;
        // `bench`, or `merge`, which makes one run of several.
        let json = |run_dir: &str| {
            output::print_json(&RunOutput::of(&document.command, document, run_dir))
        };
        let text = |width| match show {
            Show::Tables => Ok(terminal(&self.input(document), width)),
            Show::YcsbLines => {
                Ok(warning(document) + &ycsb_output::lines(&session.directory, document)?)
            }
        };
        ending::print(&session.directory, saved, args, progress, json, text)
    }
}

/// Returns the first line for a run that did not go as asked.
fn warning(document: &RunDocument) -> String {
    let word = match document.outcome {
        Outcome::Ok => return String::new(),
        Outcome::Partial => "PARTIAL",
        Outcome::Failed => "FAILED",
        Outcome::Invalid => "INVALID",
    };
    let reason = document.outcome_reason.as_deref().unwrap_or_default();
    format!("{word}: {}\n", seekscope_report::terminal::visible(reason))
}
