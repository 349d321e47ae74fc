//! What a trace's records say, derived from the run directory each time: by `trace` and `trace import` at their
//! end and by `report` later.

use anyhow::{Context, Result};
use seekscope_pattern::{AnalysisOptions, TraceAnalyser, TraceAnalysis};
use seekscope_report::trace::{TraceReportInput, html, terminal};
use seekscope_run::{IoEvent, RunDirectory, RunDocument};

use super::summary::TraceSummary;
use crate::args::OutputArgs;
use crate::ending;
use crate::output::{self, RunOutput};
use crate::progress::Progress;
use crate::session::{Session, limit, no_trailer, truncated_trace};

/// Analyses the finished run, fills in the summary, writes `run.json` and `report.html`, and prints tables or
/// JSON on stdout.
pub fn show(session: &mut Session, args: &OutputArgs, progress: Progress) -> Result<()> {
    let analysis = analyse(&session.directory)?;
    close_abandoned_phase(&mut session.document, &analysis);
    let summary = TraceSummary::of(session.document.phases.first(), &analysis);
    session.document.summary = serde_json::to_value(summary)?;
    let (directory, document) = (&session.directory, &session.document);
    let pass = |each: &mut dyn FnMut(&IoEvent)| directory.for_each_event(each);
    let input = TraceReportInput {
        document,
        analysis: &analysis,
        events: &pass,
    };
    let page = html(&input).context(READING)?;
    let saved = session.save_with_page(&page);
    ending::print(
        directory,
        saved,
        args,
        progress,
        |run_dir| output::print_json(&RunOutput::of("trace", document, run_dir)),
        |width| Ok(terminal(&input, width)),
    )
}

const READING: &str = "while reading the events of the run";

/// Analyses the run. Events are streamed, never held: there may be more of them than memory.
pub fn analyse(directory: &RunDirectory) -> Result<TraceAnalysis> {
    let totals = directory.totals()?;
    if !totals.is_empty() {
        return Ok(TraceAnalysis::of_totals(&totals, &directory.files()?));
    }
    let files = directory.files()?;
    let mut analyser = TraceAnalyser::new(AnalysisOptions::default()).with_files(&files);
    directory
        .for_each_event(|event| analyser.push(event))
        .context(READING)?;
    Ok(analyser.finish(&files, &directory.threads()?))
}

/// Closes the phase that a killed run left open: it ends with its last event, and has no trailer.
pub fn close_abandoned_phase(document: &mut RunDocument, analysis: &TraceAnalysis) {
    let open = document.phases.iter_mut().find(|phase| phase.ended_ns == 0);
    let Some(phase) = open else { return };
    phase.ended_ns = analysis.ended_ns.max(phase.started_ns);
    phase.trace = Some(truncated_trace(analysis.events));
    let limitation = no_trailer(&phase.name);
    limit(document, limitation);
}
