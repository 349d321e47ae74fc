//! What a run's records say, shown by `reorder` at its end and by `report` later.

use anyhow::Result;
use seekscope_report::reorder::{html, terminal};

use super::summary::ReorderSummary;
use crate::args::OutputArgs;
use crate::ending;
use crate::progress::Progress;
use crate::session::Session;

/// Fills in the summary, writes `report.html`, and prints text or JSON on stdout.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    if let Some(record) = &session.document.reorder {
        session.document.summary = serde_json::to_value(ReorderSummary::of(record))?;
    }
    ending::show_page(session, "reorder", args, progress, html, terminal)
}
