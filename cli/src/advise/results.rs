//! What a run's records say, shown by `advise` at its end and by `report` later.

use anyhow::Result;
use seekscope_report::advise::{html, terminal};

use crate::args::OutputArgs;
use crate::ending;
use crate::progress::Progress;
use crate::session::Session;

/// Fills in the summary, writes `report.html`, and prints text or JSON on stdout.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    session.document.summary = serde_json::to_value(&session.document.advice)?;
    ending::show_page(session, "advise", args, progress, html, terminal)
}
