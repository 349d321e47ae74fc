//! Detects what sets a member or a shard apart from the others.

mod differs;
mod draining;
mod lagging;
mod moving;
mod unavailable;
mod uneven;

use super::Detector;

pub(super) const DETECTORS: &[Detector] = &[
    differs::DETECTOR,
    unavailable::DETECTOR,
    lagging::DETECTOR,
    uneven::DETECTOR,
    moving::DETECTOR,
    draining::DETECTOR,
];
