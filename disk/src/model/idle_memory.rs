//! Hosts that page out idle memory, as virtual machines do to give it back: pages that were read
//! ahead may remain in memory until they are wanted, may be gone by then, or anything in between.
//!
//! Which pages go depends on where in memory they lie and on what else uses it, so it is not
//! simulated. Two simulations bracket it, one that keeps everything and one that keeps no more than
//! what streams are about to read, and the geometric mean of their times is used. It was measured
//! with DAMON paging out memory idle for 30 s, on a disk of 150 reads a second, in nine scans of
//! two shuffled files: 1.1 to 1.6 times as long as the first predicts, 0.8 to 1.15 times as long as
//! the second, 0.9 to 1.35 times as long as the mean. It can be more than the second predicts,
//! because a range that lost pages in its middle is fetched in several requests.

use std::collections::HashSet;

use seekscope_run::DeviceModel;
use seekscope_run::units::format_ns;

use super::access::Access;
use super::predict::Prediction;
use super::read_ahead::EXTENT_BYTES_MAX;

/// The window being read, the one in flight, and what large folios round up.
const WINDOWS_PER_STREAM: u64 = 4;
/// Streams with little read-ahead still need room for their reads.
const ROOM_BYTES_MIN: u64 = 4 << 20;

/// Returns the size of a page cache that holds what streams are about to read, and little more.
pub(crate) fn windows_bytes(model: &DeviceModel, accesses: &[Access]) -> u64 {
    let streams: HashSet<u32> = accesses.iter().map(|access| access.stream).collect();
    let window_bytes = model.read_ahead_bytes.min(EXTENT_BYTES_MAX);
    let windows = WINDOWS_PER_STREAM.saturating_mul(streams.len() as u64);
    window_bytes.saturating_mul(windows).max(ROOM_BYTES_MIN)
}

/// Returns the middle between the costs if everything read ahead is kept, and if it is lost.
pub(crate) fn in_between(kept: Prediction, lost: &Prediction) -> Prediction {
    if lost.elapsed_ns <= kept.elapsed_ns {
        return kept;
    }
    let elapsed_ns = middle(kept.elapsed_ns, lost.elapsed_ns);
    let share = elapsed_ns as f64 / kept.elapsed_ns.max(1) as f64;
    let mut by_class = kept.by_class;
    for class in &mut by_class {
        class.elapsed_ns = scaled(class.elapsed_ns, share);
    }
    let mut unmodelled = kept.unmodelled;
    unmodelled.push(format!(
        "this host pages out idle memory, and which pages that takes before they are wanted is not predicted: \
         {} if none, {} if all that was read ahead; the middle is taken",
        format_ns(kept.elapsed_ns),
        format_ns(lost.elapsed_ns)
    ));
    Prediction {
        elapsed_ns,
        unmodelled,
        elapsed_high_ns: lost.elapsed_ns,
        device_requests: middle(kept.device_requests, lost.device_requests),
        device_bytes: middle(kept.device_bytes, lost.device_bytes),
        cached_bytes: middle(kept.cached_bytes, lost.cached_bytes),
        by_class,
        ..kept
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and neither is negative"
)]
fn middle(low: u64, high: u64) -> u64 {
    (low as f64 * high as f64).sqrt().round() as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, and neither is negative"
)]
fn scaled(ns: u64, share: f64) -> u64 {
    (ns as f64 * share).round() as u64
}
