//! Detects problems in the server: its queues and plans, running jobs, space, indexes and settings.

mod collection_scan;
mod connections;
mod expiry;
mod flow_control;
mod incomplete;
mod large_documents;
pub(super) mod locks;
mod nearly_full;
mod oplog;
mod reusable_space;
mod running_jobs;
mod settings;
mod small_batches;
mod spills;
mod tickets;
mod tuning;
mod unacknowledged;
pub(super) mod unresponsive;
mod unused_index;
mod warnings;

use super::Detector;

pub(super) const DETECTORS: &[Detector] = &[
    unresponsive::DETECTOR,
    tickets::DETECTOR,
    unacknowledged::DETECTOR,
    flow_control::DETECTOR,
    locks::DETECTOR,
    collection_scan::DETECTOR,
    small_batches::DETECTOR,
    large_documents::DETECTOR,
    connections::DETECTOR,
    spills::DETECTOR,
    running_jobs::DETECTOR,
    expiry::DETECTOR,
    reusable_space::DETECTOR,
    nearly_full::DETECTOR,
    oplog::DETECTOR,
    unused_index::DETECTOR,
    tuning::DETECTOR,
    settings::DETECTOR,
    warnings::DETECTOR,
    incomplete::DETECTOR,
];
