//! What sets a member apart from its fellows.

mod differs;
mod lagging;

use super::Detector;

pub(super) const DETECTORS: &[Detector] = &[differs::DETECTOR, lagging::DETECTOR];
