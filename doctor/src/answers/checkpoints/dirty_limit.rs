//! Computes the dirty limit that bounds the duration of a checkpoint.
//!
//! A checkpoint writes what is dirty when it starts. If d bytes are dirty in the cache then, and w bytes of
//! them are written (compressed, and only what changed) in t seconds, the next one takes at most T if no more
//! than d T / t are dirty. Where the server does not report d, w is used instead, which is smaller. The limit
//! is set in whole percents of the cache, so in a large cache the smallest possible setting may be above the
//! ideal one: the promised time is that of the setting.
//!
//! A checkpoint's syncs also flush what eviction had written before and the page cache still held, and no
//! dirty limit reduces that: only the share that a checkpoint wrote itself becomes shorter. With mongod 4.4.6
//! under random updates checkpoints wrote 1 % themselves on a disk of 30 MB/s (data larger than the cache)
//! and 13 % on one of 20 MB/s (data in the cache). They took 9.6 and 11.2 s, and 4.0 and 4.1 s, with
//! WiredTiger's default limits; 9.6 and 10.7 s, and 3.8 and 3.9 s, with the smallest limits that can be set.

use std::collections::HashSet;

use schemars::JsonSchema;
use seekscope_pattern::ThreadRole;
use seekscope_run::FileRole;
use seekscope_run::units::format_bytes;
use serde::{Deserialize, Serialize};

use super::{CheckpointAnswer, seconds};
use crate::Evidence;
use crate::evidence::Series;
use crate::wording::duration;

/// Longest acceptable checkpoint, s: a thirtieth of the minute between two.
const GOAL_S: f64 = 2.0;
/// The server takes whole percents from 1 on, and requires the target to be below the trigger.
const TRIGGER_PERCENT_MIN: f64 = 2.0;
/// Two steps of the counters.
const BEGAN_WITHIN_NS: u64 = 2_000_000_000;
/// A limit is worth its cost where it makes the longest checkpoint shorter than this share of its duration.
const WORTH: f64 = 0.67;
const WRITTEN: &str = "wiredTiger.block-manager.bytes written";
const WRITTEN_BY_CHECKPOINTS: &str = "wiredTiger.block-manager.bytes written for checkpoint";
/// WiredTiger's default trigger: a limit above it changes nothing.
const DEFAULT_TRIGGER_PERCENT: f64 = 20.0;

pub(crate) const DIRTY_BYTES: &str = "wiredTiger.cache.tracked dirty bytes in the cache";
pub(crate) const CACHE_BYTES_MAX: &str = "wiredTiger.cache.maximum bytes configured";

/// The dirty limit that keeps the longest checkpoint below a given time: the possible setting that is nearest
/// to the ideal one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirtyLimit {
    /// The time it keeps checkpoints below, s.
    pub checkpoint_s: f64,
    /// Dirty data allowed in the cache, bytes.
    pub bytes: u64,
    /// The same as a percentage of the cache.
    pub percent_of_cache: f64,
    /// The setting, e.g. "eviction_dirty_target=3,eviction_dirty_trigger=6".
    pub setting: String,
    /// How it was calculated.
    pub basis: String,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes that the server counted, and fewer"
)]
pub(super) fn dirty_limit(
    evidence: &Evidence<'_>,
    answer: &CheckpointAnswer,
) -> Option<DirtyLimit> {
    let longest = answer
        .checkpoints
        .iter()
        .max_by(|a, b| seconds(a).total_cmp(&seconds(b)))?;
    let took_s = seconds(longest);
    if took_s <= GOAL_S {
        return None;
    }
    let told = evidence.status(&[CACHE_BYTES_MAX]).and_then(|s| s.last());
    let cache_bytes = told.or_else(|| Some(evidence.examined()?.target.cache_bytes? as f64))?;
    let dirty = evidence
        .status(&[DIRTY_BYTES])
        .and_then(|dirty| around(dirty, longest.started_ns).or_else(|| dirty.max()));
    let (dirty_bytes, what) = match dirty {
        Some(bytes) => (
            bytes,
            "were dirty in the cache when it began (serverStatus)",
        ),
        None => (longest.written_bytes as f64, "were written by it (trace)"),
    };
    let percent = dirty_bytes * GOAL_S / took_s / cache_bytes * 100.0;
    if !(percent > 0.0 && percent < DEFAULT_TRIGGER_PERCENT) {
        return None;
    }
    let trigger = percent.floor().max(TRIGGER_PERCENT_MIN);
    let bytes = trigger / 100.0 * cache_bytes;
    // That much was never dirty: such a limit would change nothing.
    if bytes >= dirty_bytes {
        return None;
    }
    let share = 1.0 - answer.own_share? * (1.0 - bytes / dirty_bytes);
    if share > WORTH {
        return None;
    }
    let target = (trigger / 2.0).floor();
    Some(DirtyLimit {
        checkpoint_s: took_s * share,
        bytes: bytes as u64,
        percent_of_cache: trigger,
        setting: format!("eviction_dirty_target={target:.0},eviction_dirty_trigger={trigger:.0}"),
        basis: format!(
            "the longest checkpoint took {} ({}), {} {what}; time taken as proportional to dirty bytes",
            duration(took_s),
            answer.source,
            format_bytes(dirty_bytes as u64),
        ),
    })
}

/// Returns the share of the server's writes to its data files that checkpoints wrote themselves, by its
/// counters or else the trace; the rest are evicted pages. `None` where neither is available.
pub(super) fn own_share(evidence: &Evidence<'_>) -> Option<f64> {
    let counted = |name| evidence.status(&[name])?.increase();
    let (own, all) = counted(WRITTEN_BY_CHECKPOINTS)
        .zip(counted(WRITTEN))
        .or_else(|| traced_bytes(evidence))?;
    (all > 0.0).then(|| (own / all).min(1.0))
}

/// Bytes written by checkpoint threads and by all threads, without the journal.
fn traced_bytes(evidence: &Evidence<'_>) -> Option<(f64, f64)> {
    let files = evidence.trace?.files.iter().map(|file| &file.file);
    let journal: HashSet<u32> = files
        .filter(|file| file.role == FileRole::Journal)
        .map(|file| file.file_id)
        .collect();
    let users = evidence.device_use?.users.iter();
    let of_data = users.filter(|user| user.writes && !journal.contains(&user.file_id));
    Some(of_data.fold((0.0, 0.0), |(own, all), user| {
        let bytes = user.bytes as f64;
        let is_own = user.role == ThreadRole::Checkpoint;
        (own + if is_own { bytes } else { 0.0 }, all + bytes)
    }))
}

/// Returns the largest value of a gauge within a few samples of a checkpoint's start, because that start is
/// not known exactly.
fn around(gauge: &Series, t_ns: u64) -> Option<f64> {
    let near = gauge.points.iter();
    near.filter(|(at_ns, _)| at_ns.abs_diff(t_ns) <= BEGAN_WITHIN_NS)
        .map(|(_, value)| *value)
        .reduce(f64::max)
}
