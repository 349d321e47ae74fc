//! Detects what sets a member apart from the others.

mod differs;
mod lagging;

use super::Detector;

pub(super) const DETECTORS: &[Detector] = &[differs::DETECTOR, lagging::DETECTOR];
