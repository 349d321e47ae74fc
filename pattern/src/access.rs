//! How consecutive accesses of one file relate.

use schemars::JsonSchema;
use seekscope_run::IoEvent;
use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// A step forward of at most this many bytes still counts as sequential: the kernel's default
/// read-ahead window, inside which the next bytes are already on their way.
pub const SEQUENTIAL_WINDOW_BYTES: u64 = 128 * 1024;

/// The kind of an access pattern, chosen by the shares of accesses that fit each kind
/// ([`crate::Evidence`]): from 65 % on a pattern dominates, up to 35 % it is noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum PatternKind {
    /// One stream forwards, or several interleaved ones.
    Sequential,
    /// Equal steps that are not sequential, forwards or backwards.
    Strided,
    /// One stream, or several interleaved ones, read from the end towards the start.
    Backward,
    /// The same few places again and again.
    #[serde(rename = "re-read")]
    #[strum(serialize = "re-read")]
    ReRead,
    /// None of the other patterns.
    Random,
    /// One of the other patterns in part, but not enough for it to dominate.
    Mixed,
    /// Fewer than 8 accesses: too few to tell.
    Few,
}

impl PatternKind {
    /// Returns the word itself.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The direction in which most steps lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// At most 10 % of the steps go back.
    Forward,
    /// At least 90 % of the steps go back.
    Backward,
    Both,
}

impl Direction {
    /// Returns "forward", "backward" or "both ways".
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::Both => "both ways",
        }
    }
}

/// The pattern of one file's reads or writes. With `oᵢ`, `eᵢ` the start and end of access i in
/// order of start time, a step is the gap `gᵢ = oᵢ₊₁ - eᵢ`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccessPattern {
    pub kind: PatternKind,
    pub direction: Direction,
    /// Accesses with a known offset and at least one byte.
    pub accesses: u64,
    /// Share of steps with g = 0: the access continues where the last one ended.
    pub contiguous_share: f64,
    /// Share of steps with 0 <= g <= [`SEQUENTIAL_WINDOW_BYTES`].
    pub sequential_share: f64,
    /// Share of steps that start before the last access started.
    pub backward_share: f64,
    /// Steps that are not sequential, plus one: the number of places the disk had to go to.
    pub seeks: u64,
    /// Accesses per run; a run is a stretch of contiguous accesses.
    pub run_accesses: Quantiles,
    /// Bytes per run.
    pub run_bytes: Quantiles,
    /// |g| of the steps that are not contiguous, bytes.
    pub seek_bytes: Quantiles,
    /// The commonest distance oᵢ₊₁ - oᵢ when the pattern is strided, bytes.
    pub stride_bytes: Option<i64>,
    /// Lowest offset and highest end touched, bytes.
    pub first_byte: u64,
    pub last_byte: u64,
    /// Bytes transferred by these accesses, and how many different bytes of the file those were:
    /// the rest was read again.
    pub bytes: u64,
    pub distinct_bytes: u64,
    /// Share of `bytes` that had been transferred before: 1 - distinct_bytes / bytes.
    pub reread_share: f64,
    /// Number of sequential streams that take turns; 1 if there is one, or none.
    pub interleaved_streams: u64,
}

/// One access: a range of at least one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Access {
    /// Returns the access of an event that transferred something at a known offset.
    pub(crate) fn of(event: &IoEvent) -> Option<Self> {
        match (event.offset, event.bytes()) {
            (Some(offset), bytes @ 1..) => Some(Self { offset, bytes }),
            _ => None,
        }
    }

    pub(crate) fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::direction::PatternCounter;
    use seekscope_stats::SplitMix64;

    const BLOCK: u64 = 32 * 1024;

    fn pattern(offsets: impl IntoIterator<Item = u64>) -> AccessPattern {
        let mut counter = PatternCounter::new(1 << 20);
        for offset in offsets {
            let bytes = BLOCK;
            counter.add(Access { offset, bytes }, 1);
        }
        counter.pattern().unwrap()
    }

    #[test]
    fn a_straight_scan() {
        let p = pattern((0..100).map(|i| i * BLOCK));
        assert_eq!(
            (p.kind, p.direction, p.seeks),
            (PatternKind::Sequential, Direction::Forward, 1)
        );
        assert_eq!(
            (p.contiguous_share, p.sequential_share, p.backward_share),
            (1.0, 1.0, 0.0)
        );
        assert_eq!((p.run_accesses.count, p.run_accesses.max), (1, 100));
        assert_eq!(
            (p.bytes, p.distinct_bytes, p.last_byte),
            (100 * BLOCK, 100 * BLOCK, 100 * BLOCK)
        );
        assert_eq!(p.seek_bytes.count, 0);
    }

    #[test]
    fn small_gaps_are_sequential_but_not_contiguous() {
        let p = pattern((0..100).map(|i| i * (BLOCK + 4096)));
        assert_eq!(
            (p.kind, p.contiguous_share, p.sequential_share),
            (PatternKind::Sequential, 0.0, 1.0)
        );
        assert_eq!((p.seek_bytes.p50, p.run_accesses.max), (4096, 1));
    }

    #[test]
    fn backwards() {
        let p = pattern((0..100).rev().map(|i| i * BLOCK));
        assert_eq!(
            (p.kind, p.direction),
            (PatternKind::Backward, Direction::Backward)
        );
        assert_eq!((p.stride_bytes, p.seeks), (None, 100));
    }

    #[test]
    fn strides() {
        let p = pattern((0..100).map(|i| i * 1_000_000));
        assert_eq!(
            (p.kind, p.stride_bytes),
            (PatternKind::Strided, Some(1_000_000))
        );
    }

    #[test]
    fn a_shuffled_scan() {
        let mut offsets: Vec<u64> = (0..2000).map(|i| i * BLOCK).collect();
        let mut rng = SplitMix64::new(5);
        for i in (1..offsets.len()).rev() {
            offsets.swap(i, usize::try_from(rng.below(i as u64 + 1)).unwrap());
        }
        let p = pattern(offsets);
        assert_eq!(
            (p.kind, p.direction),
            (PatternKind::Random, Direction::Both)
        );
        assert!(
            p.sequential_share < 0.01 && (p.backward_share - 0.5).abs() < 0.05,
            "{p:?}"
        );
        // The mean distance of random pairs on a line is a third of its length.
        let third = 2000 * BLOCK / 3;
        assert!(p.seek_bytes.mean.abs_diff(third) < third / 10, "{p:?}");
        assert_eq!(p.bytes, p.distinct_bytes);
    }

    #[test]
    fn runs_of_eight_are_mixed() {
        let p = pattern((0..800).map(|i| (i / 2 % 2 * 100_000_000) + i * BLOCK));
        assert_eq!(p.kind, PatternKind::Mixed);
        assert_eq!(p.run_accesses.p50, 2);
    }

    #[test]
    fn reading_twice_is_seen_and_ends_do_not_overflow() {
        let p = pattern([0, 0, BLOCK / 2, u64::MAX - 5]);
        assert_eq!(p.kind, PatternKind::Few);
        assert_eq!(p.distinct_bytes, BLOCK + BLOCK / 2 + 5);
        assert!(PatternCounter::new(1).pattern().is_none());
    }
}
