//! The detectors. Each file looks for one problem and returns nothing where it is absent, or where the
//! necessary measurements are missing.

mod host;
mod io;
mod members;
mod server;

use seekscope_run::Finding;

pub use io::key_order;
pub(crate) use server::locks::queued_for_locks;
pub(crate) use server::unresponsive::unresponsive;

use crate::{Answers, Evidence};

/// A detector of one problem.
#[derive(Debug, Clone, Copy)]
pub struct Detector {
    /// Ids of the findings it can report.
    pub ids: &'static [&'static str],
    /// Returns one finding for each thing affected.
    pub detect: fn(&Evidence<'_>, &Answers) -> Vec<Finding>,
}

/// Detectors by the module they are in.
const GROUPS: &[&[Detector]] = &[
    io::DETECTORS,
    host::DETECTORS,
    server::DETECTORS,
    members::DETECTORS,
];

/// Returns the detectors of what sets one member apart from the others.
pub(crate) fn of_members() -> impl Iterator<Item = &'static Detector> {
    members::DETECTORS.iter()
}

/// Returns all detectors.
pub fn all() -> impl Iterator<Item = &'static Detector> {
    GROUPS.iter().copied().flatten()
}
