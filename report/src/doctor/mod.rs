//! Reports examinations: why a server is slow on disk, and the evidence for it.
//!
//! Works from a run's records and the [`Diagnosis`] that was derived from them; nothing is concluded here.
//! Read `html` first (the contents and order of a page). The terminal has the same first screen: the verdict,
//! the first findings, and what was not measured.

mod caveats;
mod charts;
mod html;
mod index_builds;
mod memory;
mod sections;
mod tables;
mod terminal;
mod tracks;
mod verdict;

use seekscope_doctor::evidence::{COUNTERS, Counters};
use seekscope_doctor::{Answers, Diagnosis};
use seekscope_pattern::TraceAnalysis;
use seekscope_run::{COUNTERS_OF_MEMBER, ExaminationRecord, Finding, Phase, RunDocument};

use crate::layout::LeafPass;
use crate::trace::EventPass;

pub use html::html;
pub use tables::change_line;
pub use terminal::first_screen;
pub use verdict::{verdict, verdict_of_member};

/// Everything the report of an examination is made from.
#[derive(Clone, Copy)]
pub struct DoctorReportInput<'a> {
    pub document: &'a RunDocument,
    pub diagnosis: &'a Diagnosis,
    /// `None` where nothing was traced.
    pub trace: Option<&'a TraceAnalysis>,
    pub counters: &'a Counters,
    /// Called once, by [`html()`] only, and only with a trace.
    pub events: &'a EventPass<'a>,
    /// Called once, by [`html()`] only, and only with a layout.
    pub leaves: &'a LeafPass<'a>,
}

impl<'a> DoctorReportInput<'a> {
    fn answers(&self) -> &'a Answers {
        &self.diagnosis.answers
    }

    /// Says what the printed commands lack, where the server was given with a user: they name none.
    fn missing_user(&self) -> Option<&'static str> {
        let findings = &self.diagnosis.findings;
        let has_user = self.document.target.as_ref().is_some_and(|t| t.has_user);
        let connects = has_user && findings.iter().any(|f| f.command.contains("mongodb://"));
        connects.then_some(
            "The commands name no user: add -u USER to mongosh, which then asks for the password, and to seekscope give \
             the connection string with both.",
        )
    }

    fn examination(&self) -> Option<&'a ExaminationRecord> {
        self.document.examination.as_ref()
    }

    /// Returns whether anything was seen of what the server does, or any member of the deployment.
    fn sees_server(&self) -> bool {
        let of_deployment = self.document.is_of_deployment();
        let sources = self.counters.sources();
        let is_counted = sources.into_iter().any(|source| match of_deployment {
            true => source.starts_with(COUNTERS_OF_MEMBER),
            false => source == COUNTERS,
        });
        self.trace.is_some() || is_counted
    }

    /// Returns the phase that was observed.
    fn phase(&self) -> Option<&'a Phase> {
        self.document.phases.first()
    }

    /// Returns the findings for the first screen, and the rest.
    fn findings(&self) -> (&'a [Finding], &'a [Finding]) {
        let all = &self.diagnosis.findings;
        all.split_at(all.len().min(seekscope_doctor::ranking::FIRST_SCREEN))
    }

    /// Returns seconds since the run began; negative before that.
    fn seconds(&self, t_ns: u64) -> f64 {
        (t_ns as f64 - self.document.started.monotonic_ns as f64) / 1e9
    }
}
