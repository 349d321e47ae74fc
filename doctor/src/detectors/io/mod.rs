//! Detects problems of the disk, of its load, and of what should reduce that load: order, cache, checkpoints,
//! read-ahead.
//!
//! Savings are of observed waiting. Several findings may explain the same waiting; which may claim it is
//! decided where findings are ranked (`ranking.rs`).

mod application_eviction;
mod cache_too_small;
mod checkpoint;
#[cfg(test)]
mod conditions;
mod cpu;
mod dirty_limit;
mod disk_limited;
mod disk_saturated;
mod disk_slow;
mod history_store;
mod journal;
pub mod key_order;
mod not_the_problem;
mod random_inserts;
mod read_ahead;
mod scattered_series;

use seekscope_run::Gain;

use super::Detector;
use crate::Evidence;
use crate::evidence::waiting::JournalSyncs;
use crate::ranking::PER_HOUR;
use crate::wording::mongosh;
/// Counter names, by release.
pub(super) use application_eviction::PAGES as EVICTED_BY_APPLICATION;

/// All detectors of this module.
pub(super) const DETECTORS: &[Detector] = &[
    key_order::DETECTOR,
    cache_too_small::DETECTOR,
    checkpoint::DETECTOR,
    disk_limited::DETECTOR,
    disk_slow::DETECTOR,
    disk_saturated::DETECTOR,
    journal::DETECTOR,
    application_eviction::DETECTOR,
    dirty_limit::DETECTOR,
    read_ahead::DETECTOR,
    random_inserts::DETECTOR,
    scattered_series::DETECTOR,
    history_store::DETECTOR,
    cpu::DETECTOR,
    not_the_problem::DETECTOR,
];

/// Fewest reads or requests from which anything is concluded.
const EVENTS_MIN: f64 = 100.0;
/// The share of the time from which a few syncs are enough: the slower a disk, the fewer there are.
const FILLING_SHARE: f64 = 0.2;
const FILLING_EVENTS_MIN: f64 = 5.0;

/// Returns whether there are enough syncs to conclude anything from.
fn are_enough(syncs: &JournalSyncs) -> bool {
    let fill = syncs.count >= FILLING_EVENTS_MIN && syncs.s_per_s() >= FILLING_SHARE;
    syncs.count >= EVENTS_MIN || fill
}

/// Returns a gain of waiting saved at the observed load, s per hour.
pub(super) fn saved_per_hour(value: f64, low: f64, high: f64) -> Gain {
    Gain {
        value,
        low: low.min(value).max(0.0),
        high: high.max(value),
        unit: PER_HOUR.into(),
    }
}

/// Returns "high" where the trace is complete and the disk's capability was measured; "medium" with one of
/// the two.
fn confidence(evidence: &Evidence<'_>) -> String {
    let phase = evidence.document.phases.first();
    let facts = phase.and_then(|phase| phase.trace.as_ref());
    let whole = facts.is_some_and(|facts| !facts.truncated && !facts.loss_matters());
    let traced = whole && evidence.trace.is_some_and(|trace| trace.events > 0);
    let measured = evidence.model().is_some_and(|(_, measured)| measured);
    match (traced, measured) {
        (true, true) => "high",
        (false, false) => "low",
        _ => "medium",
    }
    .into()
}

/// Returns a command that measures the disk under the data while the database runs on it.
fn measure_disk(evidence: &Evidence<'_>) -> String {
    let path = evidence.device().map_or(".", |device| &device.path);
    format!(
        "seekscope disk --next-to-database {}",
        crate::wording::shell_quoted(path)
    )
}

/// Returns a command that changes the storage engine's options in the running server, if that is MongoDB;
/// otherwise the tuner, which knows how to do it on other servers.
fn engine_option(evidence: &Evidence<'_>, option: &str) -> String {
    let is_mongod = evidence
        .examined()
        .is_some_and(|m| m.target.product.contains("mongod"));
    if !is_mongod {
        return format!(
            "seekscope tune init {}",
            crate::wording::shell_quoted(evidence.uri())
        );
    }
    let script = format!(
        "db.adminCommand({{setParameter: 1, wiredTigerEngineRuntimeConfig: \"{option}\"}})"
    );
    mongosh(evidence.uri(), &script)
}
