//! Detects what sets a member or a shard apart from the others.

mod broadcast;
mod differs;
mod draining;
mod hot;
mod lagging;
mod moving;
mod unavailable;
mod uneven;

use super::Detector;
use crate::Answers;
use crate::wording::percent;

pub(super) const DETECTORS: &[Detector] = &[
    differs::DETECTOR,
    unavailable::DETECTOR,
    lagging::DETECTOR,
    uneven::DETECTOR,
    hot::DETECTOR,
    broadcast::DETECTOR,
    moving::DETECTOR,
    draining::DETECTOR,
];

/// Says what a shard had to do in the time observed.
fn time_on(answers: &Answers, shard: &str) -> Option<String> {
    let mut shards = answers.shards.iter();
    let share = shards.find(|answer| answer.shard == shard)?.time_share?;
    Some(format!(
        "Of the time that reads and writes took on all shards, {} passed on this one (opLatencies).",
        percent(share)
    ))
}
