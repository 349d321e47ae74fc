//! What a run's records say: by `reorder` at its end and by `report` later.

use anyhow::Result;
use seekscope_report::reorder::{html, terminal};

use super::summary::ReorderSummary;
use crate::args::OutputArgs;
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::Session;

/// Fills in the summary, writes `report.html`, and prints text, or JSON, on stdout.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    if let Some(record) = &session.document.reorder {
        session.document.summary = serde_json::to_value(ReorderSummary::of(record))?;
        session.save()?;
    }
    session.directory.save_report(&html(&session.document))?;
    if args.json {
        let run_dir = session.directory.path().display().to_string();
        output::print_json(&RunOutput::of("reorder", &session.document, &run_dir))?;
    } else {
        output::print(&terminal(&session.document, progress.width()))?;
    }
    progress.say(format!(
        "Report: {}",
        session.directory.report_path().display()
    ));
    Ok(())
}
