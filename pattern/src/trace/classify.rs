//! The one word for a pattern, chosen from the evidence of single accesses.
//!
//! Steps alone are not enough: when one access in five belongs to something else, a scan keeps only
//! 64 % of its steps (0.8 × 0.8), and as many streams as threads keep none. So each access is
//! checked for whether it continues one of the recent streams, strides or places ([`Evidence`]); a
//! foreign access in between then costs only its own share.
//!
//! With f, b, s, r the shares for forward streams, backward streams, strides and repeats:
//!
//! | kind | rule, first that holds |
//! |---|---|
//! | few | fewer than 8 accesses |
//! | re-read | r >= 0.65: back at one of the 32 places visited last |
//! | sequential | f >= 0.65 |
//! | backward | b >= 0.65 |
//! | strided | s >= 0.65: one distance that is not sequential |
//! | random | f, b, s, r all <= 0.35 |
//! | mixed | otherwise |
//!
//! 0.65 is the middle between a pure pattern with 20 % noise (0.8) and an even mixture (0.5); 0.35
//! mirrors it. `tests/integration_tests/truths.rs` measures both.

use super::result::Evidence;
use crate::PatternKind;

/// The fewest accesses of which a share says anything.
pub(crate) const ACCESSES_MIN: u64 = 8;

/// The share from which a pattern dominates.
pub const DOMINANT_SHARE: f64 = 0.65;

/// Up to this share a pattern is noise.
const NOISE_SHARE: f64 = 0.35;

pub(crate) fn kind_of(accesses: u64, evidence: &Evidence) -> PatternKind {
    let Evidence {
        forward_stream_share: forward,
        backward_stream_share: backward,
        stride_share: stride,
        repeat_share: repeat,
    } = *evidence;
    let strongest = forward.max(backward).max(stride).max(repeat);
    match () {
        () if accesses < ACCESSES_MIN => PatternKind::Few,
        () if repeat >= DOMINANT_SHARE => PatternKind::ReRead,
        () if forward >= DOMINANT_SHARE => PatternKind::Sequential,
        () if backward >= DOMINANT_SHARE => PatternKind::Backward,
        () if stride >= DOMINANT_SHARE => PatternKind::Strided,
        () if strongest <= NOISE_SHARE => PatternKind::Random,
        () => PatternKind::Mixed,
    }
}
