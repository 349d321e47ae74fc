//! Reports traces: what processes requested of their files, and what that meant for the disk.
//!
//! Works from a [`TraceAnalysis`] and one more pass over the run's events, which are never held in memory:
//! the figures count them into grids. Read `sections` first (what is shown, in which order); terminal and
//! HTML show the same tables and sentences.

mod charts;
pub(crate) mod figures;
pub(crate) mod html;
mod latencies;
mod names;
mod outcome;
mod sections;
mod standing_out;
pub(crate) mod tables;
mod terminal;
#[cfg(test)]
mod testing;

use seekscope_pattern::TraceAnalysis;
use seekscope_run::{IoEvent, Phase, RunDocument, RunError, TraceFacts};

pub use html::html;
pub(crate) use names::disk_name;
pub use terminal::terminal;

/// Passes every event of the run to the given function, in the order in which they were recorded.
pub type EventPass<'a> = dyn Fn(&mut dyn FnMut(&IoEvent)) -> Result<(), RunError> + 'a;

/// Everything the report of a trace is made from.
#[derive(Clone, Copy)]
pub struct TraceReportInput<'a> {
    pub document: &'a RunDocument,
    pub analysis: &'a TraceAnalysis,
    /// Called once, by [`html()`] only.
    pub events: &'a EventPass<'a>,
}

impl<'a> TraceReportInput<'a> {
    /// Returns the one phase of a trace.
    fn phase(&self) -> Option<&'a Phase> {
        self.document.phases.first()
    }

    /// Returns the trace's trailer.
    fn trace(&self) -> Option<&'a TraceFacts> {
        self.phase()?.trace.as_ref()
    }

    /// Returns the time that was watched, ns, in which nothing need have happened.
    fn watched_ns(&self) -> u64 {
        let watched_ns = self.phase().map_or(0, Phase::duration_ns);
        watched_ns.max(self.duration_ns())
    }

    /// Returns the time from the first event to the end of the last, ns.
    fn duration_ns(&self) -> u64 {
        self.analysis
            .ended_ns
            .saturating_sub(self.analysis.started_ns)
    }
}
