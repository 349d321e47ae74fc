//! How consecutive accesses of one file relate.

use std::collections::HashMap;

use seekscope_stats::Quantiles;
use serde::{Deserialize, Serialize};

/// A step forward of at most this many bytes still counts as sequential: the kernel's default
/// read-ahead window, inside which the next bytes are already on their way.
pub const SEQUENTIAL_WINDOW_BYTES: u64 = 128 * 1024;

/// The one word for a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatternKind {
    /// At least 80 % of the steps are sequential.
    Sequential,
    /// At least 80 % of the steps share one distance that is not sequential.
    Strided,
    /// One stream, or several interleaved ones, read from the end towards the start.
    Backward,
    /// The same few places again and again.
    #[serde(rename = "re-read")]
    ReRead,
    /// At most 20 % of the steps are sequential.
    Random,
    /// In between.
    Mixed,
    /// Fewer than 8 accesses: too few to tell.
    Few,
}

impl PatternKind {
    /// The word itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Strided => "strided",
            Self::Backward => "backward",
            Self::ReRead => "re-read",
            Self::Random => "random",
            Self::Mixed => "mixed",
            Self::Few => "few",
        }
    }
}

/// Where the steps mostly lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// At most 10 % of the steps go back.
    Forward,
    /// At least 90 % of the steps go back.
    Backward,
    Both,
}

impl Direction {
    /// "forward", "backward" or "both ways".
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
    /// Steps that are not sequential, plus one: places the disk had to go to.
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
    /// the difference was read again.
    pub bytes: u64,
    pub distinct_bytes: u64,
    /// Share of `bytes` that had been transferred before: 1 - distinct_bytes / bytes.
    pub reread_share: f64,
    /// Sequential streams that take turns; 1 when there is one, or none.
    pub interleaved_streams: u64,
}

/// One access: a stretch of at least one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

impl Access {
    fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// Below this many accesses a share says nothing.
const ACCESSES_MIN: usize = 8;

impl AccessPattern {
    /// Describes accesses given in order of their start; `None` when there are none.
    pub(crate) fn of(accesses: &[Access]) -> Option<Self> {
        let first_byte = accesses.iter().map(|a| a.offset).min()?;
        let steps = Steps::count(accesses);
        let (mut run_accesses, mut run_bytes) = runs(accesses);
        let mut seek_bytes = steps.seek_bytes;
        let share = |count: u64| count as f64 / (accesses.len() - 1).max(1) as f64;
        let (contiguous, sequential, backward) = (
            share(steps.contiguous),
            share(steps.sequential),
            share(steps.backward),
        );
        let (stride, stride_count) = steps.commonest_distance;
        let kind = match sequential {
            _ if accesses.len() < ACCESSES_MIN => PatternKind::Few,
            s if s >= 0.8 => PatternKind::Sequential,
            _ if share(stride_count) >= 0.8 => PatternKind::Strided,
            s if s <= 0.2 => PatternKind::Random,
            _ => PatternKind::Mixed,
        };
        Some(Self {
            kind,
            direction: match backward {
                b if b <= 0.1 => Direction::Forward,
                b if b >= 0.9 => Direction::Backward,
                _ => Direction::Both,
            },
            accesses: accesses.len() as u64,
            contiguous_share: contiguous,
            sequential_share: sequential,
            backward_share: backward,
            seeks: accesses.len() as u64 - steps.sequential,
            run_accesses: Quantiles::of(&mut run_accesses),
            run_bytes: Quantiles::of(&mut run_bytes),
            seek_bytes: Quantiles::of(&mut seek_bytes),
            stride_bytes: (kind == PatternKind::Strided).then_some(stride),
            first_byte,
            last_byte: accesses.iter().map(|a| a.end()).max()?,
            bytes: accesses.iter().map(|a| a.bytes).sum(),
            distinct_bytes: union_bytes(accesses),
            reread_share: 0.0,
            interleaved_streams: 1,
        })
    }
}

/// What is counted over neighbours.
#[derive(Default)]
struct Steps {
    contiguous: u64,
    sequential: u64,
    backward: u64,
    seek_bytes: Vec<u64>,
    /// The distance between starts that occurs most often among steps that are not sequential, and
    /// how often it does.
    commonest_distance: (i64, u64),
}

impl Steps {
    fn count(accesses: &[Access]) -> Self {
        let mut steps = Self::default();
        let mut distances: HashMap<i64, u64> = HashMap::new();
        for pair in accesses.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            let gap = after.offset.checked_sub(before.end());
            if gap == Some(0) {
                steps.contiguous += 1;
            } else {
                steps.seek_bytes.push(after.offset.abs_diff(before.end()));
            }
            if gap.is_some_and(|g| g <= SEQUENTIAL_WINDOW_BYTES) {
                steps.sequential += 1;
            } else {
                let distance = after.offset.wrapping_sub(before.offset).cast_signed();
                *distances.entry(distance).or_default() += 1;
            }
            steps.backward += u64::from(after.offset < before.offset);
        }
        // The tie-break makes the answer independent of the map's order.
        steps.commonest_distance = distances
            .into_iter()
            .max_by_key(|(distance, count)| (*count, *distance))
            .unwrap_or_default();
        steps
    }
}

/// Lengths of the contiguous runs, in accesses and in bytes.
fn runs(accesses: &[Access]) -> (Vec<u64>, Vec<u64>) {
    accesses
        .chunk_by(|before, after| before.end() == after.offset)
        .map(|run| (run.len() as u64, run.iter().map(|a| a.bytes).sum::<u64>()))
        .unzip()
}

/// Bytes covered by at least one access.
fn union_bytes(accesses: &[Access]) -> u64 {
    let mut sorted = accesses.to_vec();
    sorted.sort_unstable_by_key(|a| a.offset);
    let mut covered_to = 0;
    let mut bytes = 0;
    for access in sorted {
        bytes += access.end().saturating_sub(access.offset.max(covered_to));
        covered_to = covered_to.max(access.end());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_stats::SplitMix64;

    const BLOCK: u64 = 32 * 1024;

    fn pattern(offsets: impl IntoIterator<Item = u64>) -> AccessPattern {
        let accesses: Vec<Access> = offsets
            .into_iter()
            .map(|offset| Access {
                offset,
                bytes: BLOCK,
            })
            .collect();
        AccessPattern::of(&accesses).unwrap()
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
            (PatternKind::Strided, Direction::Backward)
        );
        assert_eq!(p.stride_bytes, Some(-BLOCK.cast_signed()));
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
        // Mean distance of random pairs on a line is a third of its length.
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
        assert!(AccessPattern::of(&[]).is_none());
    }
}
