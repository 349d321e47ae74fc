//! The kind of a run.

use crate::RunDocument;

/// The command that made a run, which determines what its records are and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    Advise,
    /// Benchmarks, including several that were merged.
    Bench,
    Disk,
    Doctor,
    Layout,
    Prefetch,
    Reorder,
    Replay,
    Trace,
    Tune,
}

impl RunDocument {
    /// Returns the kind of the run; `None` for a command that this version does not know.
    pub fn kind(&self) -> Option<RunKind> {
        Some(match self.command.as_str() {
            "advise" => RunKind::Advise,
            "bench" | "merge" => RunKind::Bench,
            "disk" => RunKind::Disk,
            "doctor" => RunKind::Doctor,
            "layout" => RunKind::Layout,
            "prefetch" => RunKind::Prefetch,
            "reorder" => RunKind::Reorder,
            "replay" => RunKind::Replay,
            "trace" => RunKind::Trace,
            "tune" => RunKind::Tune,
            _ => return None,
        })
    }

    /// Returns whether its command left anything that can be shown.
    pub fn has_figures(&self) -> bool {
        match self.kind() {
            Some(RunKind::Advise) => self.advice.is_some(),
            Some(RunKind::Bench) => self.bench.as_ref().is_some_and(|bench| !bench.is_empty()),
            Some(RunKind::Disk) => self
                .disk
                .as_ref()
                .is_some_and(|disk| !disk.steps.is_empty()),
            Some(RunKind::Doctor | RunKind::Trace) => !self.phases.is_empty(),
            Some(RunKind::Layout) => self.layout.is_some(),
            Some(RunKind::Prefetch) => self.prefetch.is_some() || self.prefetch_for_sync.is_some(),
            Some(RunKind::Reorder) => self.reorder.is_some(),
            Some(RunKind::Replay) => !self.summary.is_null(),
            Some(RunKind::Tune) => self.tune.is_some(),
            None => false,
        }
    }
}
