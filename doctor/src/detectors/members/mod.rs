//! Detects what sets a member or a shard apart from the others.

mod differs;
mod draining;
mod lagging;
mod moving;
mod uneven;

use super::Detector;

pub(super) const DETECTORS: &[Detector] = &[
    differs::DETECTOR,
    lagging::DETECTOR,
    uneven::DETECTOR,
    moving::DETECTOR,
    draining::DETECTOR,
];
