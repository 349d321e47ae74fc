//! Draws conclusions from the records of a run: why the server is slow on disk, how certain that is, what
//! would help and how much.
//!
//! Works from records alone, without clock, I/O or server, so that a run brought from elsewhere is judged as
//! it would be where it was made. [`Evidence`] is what is known, and [`disk_opinion`] what that says of the
//! disk; each file of `detectors` looks for one problem and reports nothing without evidence of it; `answers`
//! are the tables behind the findings; [`rank`] puts the findings in order; [`deployment`] joins what was
//! concluded of several members; [`thresholds`] says whether a
//! user's limits were kept, and [`since`] whether an earlier run's predictions came true.

pub mod answers;
pub mod claims;
pub mod deployment;
pub mod detectors;
pub mod evidence;
mod namespaces;
mod opinion;
pub mod ranking;
mod reading_ended;
pub mod since;
#[cfg(test)]
mod testing;
pub mod thresholds;
pub mod wording;

use seekscope_run::Finding;
use serde::{Deserialize, Serialize};

pub use answers::Answers;
pub use detectors::key_order;
pub use evidence::{Counters, Evidence, Scanning};
pub use namespaces::is_internal;
pub use opinion::{DIRECTLY, disk_opinion, limit_by_control_groups};
pub use ranking::rank;

/// Everything concluded from a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Ranked by importance, the first thing to look at first.
    pub findings: Vec<Finding>,
    pub answers: Answers,
}

/// Runs every detector on the evidence and ranks the findings.
pub fn diagnose(evidence: &Evidence<'_>) -> Diagnosis {
    let answers = Answers::of(evidence);
    let found = detectors::all()
        .flat_map(|detector| (detector.detect)(evidence, &answers))
        .collect();
    let mut findings = rank(evidence, found);
    reading_ended::qualify(evidence, &mut findings);
    Diagnosis { findings, answers }
}
