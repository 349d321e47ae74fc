//! The dirty limit that bounds a checkpoint.
//!
//! A checkpoint writes what is dirty when it starts. With d bytes dirty in the cache, w bytes of them
//! written (compressed, and only what changed) in t seconds, the next one takes at most T if no more than
//! d T / t are dirty. Where the server does not tell d, w stands for it, which is the smaller. The limit is
//! set in whole percents of the cache, so in a large one what can be set may be above what is wished for:
//! the time that is promised is that of the setting.

use seekscope_run::units::format_bytes;
use serde::{Deserialize, Serialize};

use super::{CheckpointAnswer, seconds};
use crate::Evidence;
use crate::wording::duration;

/// Longest checkpoint that is wished for, s: a thirtieth of the minute between two.
const GOAL_S: f64 = 2.0;
/// The server takes whole percents from 1 on, and wants the target below the trigger.
const TRIGGER_PERCENT_MIN: f64 = 2.0;
/// WiredTiger's default trigger: a limit above it changes nothing.
const DEFAULT_TRIGGER_PERCENT: f64 = 20.0;

pub(crate) const DIRTY_BYTES: &str = "wiredTiger.cache.tracked dirty bytes in the cache";
pub(crate) const CACHE_BYTES_MAX: &str = "wiredTiger.cache.maximum bytes configured";

/// The dirty limit that keeps the longest checkpoint below a time: of what can be set, the one nearest to
/// what is wished for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DirtyLimit {
    /// What it keeps checkpoints below, s.
    pub checkpoint_s: f64,
    /// Of dirty data in the cache, bytes, and as percent of the cache.
    pub bytes: u64,
    pub percent_of_cache: f64,
    /// e.g. "eviction_dirty_target=3,eviction_dirty_trigger=6".
    pub setting: String,
    /// How it was reckoned.
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
    let dirty = evidence.status(&[DIRTY_BYTES]).and_then(|s| s.max());
    let (dirty_bytes, what) = match dirty {
        Some(bytes) => (bytes, "were dirty in the cache at most (serverStatus)"),
        None => (longest.written_bytes as f64, "were written by it (trace)"),
    };
    let percent = dirty_bytes * GOAL_S / took_s / cache_bytes * 100.0;
    if !(percent > 0.0 && percent < DEFAULT_TRIGGER_PERCENT) {
        return None;
    }
    let trigger = percent.floor().max(TRIGGER_PERCENT_MIN);
    let bytes = trigger / 100.0 * cache_bytes;
    // So much was never dirty: such a limit would change nothing.
    if bytes >= dirty_bytes {
        return None;
    }
    let target = (trigger / 2.0).floor();
    Some(DirtyLimit {
        checkpoint_s: took_s * bytes / dirty_bytes,
        bytes: bytes as u64,
        percent_of_cache: trigger,
        setting: format!("eviction_dirty_target={target:.0},eviction_dirty_trigger={trigger:.0}"),
        basis: format!(
            "the longest checkpoint took {}, {} {what}; time taken as proportional to dirty bytes",
            duration(took_s),
            format_bytes(dirty_bytes as u64),
        ),
    })
}
