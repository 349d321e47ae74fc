//! What can be wrong. Each file looks for one illness and returns nothing where it is not, or where
//! what it would need was not measured.

mod host;
mod io;
mod members;
mod server;

use seekscope_run::Finding;

pub use io::key_order;

use crate::{Answers, Evidence};

/// Looks for one illness.
#[derive(Debug, Clone, Copy)]
pub struct Detector {
    /// Ids of the findings it can give.
    pub ids: &'static [&'static str],
    /// One finding for each thing that has it.
    pub detect: fn(&Evidence<'_>, &Answers) -> Vec<Finding>,
}

/// By where they look, a room each.
const GROUPS: &[&[Detector]] = &[
    io::DETECTORS,
    host::DETECTORS,
    server::DETECTORS,
    members::DETECTORS,
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Detector> {
    GROUPS.iter().copied().flatten()
}
