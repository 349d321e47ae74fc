//! Detects what sets a member or a shard apart from the others.

mod broadcast;
mod differs;
mod draining;
mod hot;
mod lagging;
mod moving;
mod unavailable;
mod uneven;

use seekscope_run::SpreadCollection;

use super::Detector;
use crate::Answers;
use crate::wording::{mongosh_collection, percent};

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

/// Returns the share of the time that reads and writes took on all shards that passed on this one, 0 to 1.
fn time_share(answers: &Answers, shard: &str) -> Option<f64> {
    let mut shards = answers.shards.iter();
    shards.find(|answer| answer.shard == shard)?.time_share
}

/// Says what a shard had to do in the time observed.
fn time_on(answers: &Answers, shard: &str) -> Option<String> {
    Some(format!(
        "Of the time that reads and writes took on all shards, {} passed on this one (opLatencies).",
        percent(time_share(answers, shard)?)
    ))
}

/// Says that somebody ordered where the collection's documents belong.
fn zoned(collection: &SpreadCollection) -> String {
    format!(
        "Zones tie ranges of the shard key to shards ({}), so this may be what was ordered.",
        collection.zones.join(", ")
    )
}

/// Returns the script that shows how a collection is spread.
fn distribution_of(namespace: &str) -> String {
    format!("{}.getShardDistribution()", mongosh_collection(namespace))
}
