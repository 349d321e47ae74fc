//! What a run's records say, derived anew from the run directory each time: by `doctor` at its end
//! and by `report` later, so that both always agree.

use anyhow::Result;
use seekscope_pattern::{PhaseAnalysis, analyse};
use seekscope_report::{ReportInput, html, terminal};

use super::comparison::{Analysed, compare};
use super::{findings, summary};
use crate::args::OutputArgs;
use crate::output;
use crate::progress::Progress;
use crate::session::{Records, Session};

/// See the module.
pub struct Results {
    records: Records,
    analyses: Vec<PhaseAnalysis>,
}

impl Results {
    /// Reads the records, fills in findings and summary, writes `report.html`.
    pub fn derive(session: &mut Session) -> Result<Self> {
        let records = Records::read(&session.directory)?;
        session.close_abandoned_phases(&records.events);
        let analyses = analyse(&session.document.phases, &records.events);
        let phases: Vec<Analysed<'_>> = session
            .document
            .phases
            .iter()
            .zip(&analyses)
            .map(|(phase, analysis)| Analysed {
                phase,
                analysis,
                files: &records.files,
            })
            .collect();
        let comparisons = compare(&phases);
        let found = findings::find(&phases, &comparisons, session.document.device.as_ref());
        let figures = summary::summary(&phases, &comparisons);
        session.document.findings = found;
        session.document.summary = figures;
        session.save()?;
        let results = Self { records, analyses };
        session
            .directory
            .save_report(&html::render(&results.input(session)))?;
        Ok(results)
    }

    fn input<'a>(&'a self, session: &'a Session) -> ReportInput<'a> {
        ReportInput {
            document: &session.document,
            files: &self.records.files,
            analyses: &self.analyses,
            events: &self.records.events,
        }
    }

    /// Prints tables, or JSON, on stdout.
    pub fn show(&self, session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
        let report = session.directory.report_path();
        if args.json {
            let run_dir = session.directory.path().display().to_string();
            output::print_json(&summary::document(&session.document, &run_dir))?;
        } else {
            output::print(&terminal::render(&self.input(session), progress.width()))?;
        }
        progress.say(format!("Report: {}", report.display()));
        Ok(())
    }
}
