//! What a benchmark's records say, derived anew from the run directory each time: by `bench` at its end
//! and by `report` later.

use anyhow::{Context, Result};
use seekscope_report::bench::{BenchRecords, BenchReportInput, html, terminal};

use crate::args::OutputArgs;
use crate::output;
use crate::progress::Progress;
use crate::session::Session;

/// See the module.
pub struct Results {
    records: BenchRecords,
}

impl Results {
    /// Reads the records, writes `report.html`. The document is saved as it is.
    pub fn derive(session: &mut Session) -> Result<Self> {
        let records = BenchRecords::read(&session.directory, &session.document)
            .context("while reading the records of the run")?;
        session.save()?;
        let results = Self { records };
        let page = html(&results.input(session));
        session.directory.save_report(&page)?;
        Ok(results)
    }

    fn input<'a>(&'a self, session: &'a Session) -> BenchReportInput<'a> {
        BenchReportInput {
            document: &session.document,
            records: &self.records,
        }
    }

    /// Prints tables, or JSON, on stdout.
    pub fn show(&self, session: &Session, args: &OutputArgs, progress: Progress) -> Result<()> {
        if args.json {
            let run_dir = session.directory.path().display().to_string();
            let document = output::run_document("seekscope/bench/1", &session.document, &run_dir);
            output::print_json(&document)?;
        } else {
            output::print(&terminal(&self.input(session), progress.width()))?;
        }
        progress.say(format!(
            "Report: {}",
            session.directory.report_path().display()
        ));
        Ok(())
    }
}
