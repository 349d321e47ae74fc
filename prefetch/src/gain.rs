//! What reading ahead is good for: now and then it pauses, and gives back what the scan comes to next, so
//! that the scan passes some dozens of leaves as it would without us.
//!
//! From the scan's pace there follows how long all of it would have taken, and whether it is faster with us
//! at all.

use std::ops::Range;

use seekscope_run::prefetch::PrefetchGain;
use seekscope_stats::Estimate;

use crate::sweep::{Place, Sweep};

/// What pauses may cost, as a share of the time since the beginning. The first comes early: it is what
/// shows that reading ahead does harm.
const TIME_SHARE: f64 = 0.04;
const TIME_SHARE_FIRST: f64 = 0.08;
/// How long pauses are, the first and others, unless these are too few leaves.
const PAUSE_NS_FIRST: f64 = 200e6;
const PAUSE_NS: f64 = 300e6;
const LEAVES_MIN: usize = 40;
const LEAVES_MAX: usize = 4096;
/// Leaves at the beginning of a pause that do not count: what we had asked for is still before them in the
/// disk's queue.
const HEAD: usize = 4;
/// What one sample takes, and of how many leaves it is, at least: control groups let requests through in
/// bursts, ten a second, which shorter samples would tell of.
const SAMPLE_NS: u64 = 90_000_000;
const SAMPLE_LEAVES: usize = 4;
/// A pause begins so many leaves ahead of the scan, which moves on while it is made ready.
const AHEAD: usize = 40;
/// Nothing is asked for any more when the scan is so many leaves before it.
const QUIET_AHEAD: usize = 8;
/// Reading ends where the scan is less than so many times as fast with it.
const WORTH_MIN: f64 = 1.05;
/// An interval wider than this says that nothing is known.
const TELLING_MAX: f64 = 4.0;

/// Of a scan, how far it has come in what time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Since reading ahead, or the scan, began.
    pub elapsed_ns: u64,
    /// Of leaves that the scan has passed meanwhile.
    pub passed_bytes: u64,
    pub passed_leaves: u64,
    /// Of leaves that are in memory by us, which it will pass in no time.
    pub held_bytes: u64,
}

/// Parts of the scan for which nothing is read ahead.
#[derive(Debug, Default)]
pub struct Pauses {
    current: Option<Pause>,
    count: u64,
    leaves: u64,
    bytes: u64,
    spent_ns: u64,
    /// Time of the scan per byte of leaves, ns, of each block.
    samples: Vec<f64>,
}

#[derive(Debug)]
struct Pause {
    leaves: Range<usize>,
    /// Of the leaves before each, from the first to the one after the last.
    bytes_before: Vec<u64>,
    /// When the scan came in, and where the block that it is in begins.
    entered_ns: Option<u64>,
    block: Option<(usize, u64)>,
}

impl Pauses {
    /// How many leaves a pause should have that begins now, where one leaf without us takes `leaf_ns`;
    /// `None` where it is too early.
    pub fn wanted(&self, elapsed_ns: u64, leaf_ns: f64) -> Option<usize> {
        if self.current.is_some() {
            return None;
        }
        let (share, pause_ns) = match self.count {
            0 => (TIME_SHARE_FIRST, PAUSE_NS_FIRST),
            _ => (TIME_SHARE, PAUSE_NS),
        };
        let affordable_ns = elapsed_ns as f64 * share - self.spent_ns as f64;
        let leaf_ns = leaf_ns.max(1.0);
        let fits = |leaves: &usize| *leaves as f64 * leaf_ns <= pause_ns;
        let leaves = (LEAVES_MIN..LEAVES_MAX).take_while(fits).last();
        let leaves = leaves.unwrap_or(LEAVES_MIN);
        // No sooner than it can be as long as that: several short ones tell less.
        (affordable_ns >= leaves as f64 * leaf_ns).then_some(leaves)
    }

    /// Begins one of so many leaves. Returns what is to be given back.
    pub fn begin(&mut self, sweep: &mut Sweep, leaves: usize) -> Vec<Place> {
        let start = sweep.position() + AHEAD;
        let end = start + leaves;
        if end >= sweep.leaves().len() {
            return Vec::new();
        }
        self.count += 1;
        self.current = Some(Pause {
            leaves: start..end,
            bytes_before: (start..=end).map(|at| sweep.bytes_before(at)).collect(),
            entered_ns: None,
            block: None,
        });
        sweep.leave_out(start..end)
    }

    /// Nothing is to be read now: the scan is in a pause, or about to be.
    pub fn holds(&self, position: usize) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|pause| pause.leaves.start <= position + QUIET_AHEAD)
    }

    /// The scan comes to leaf `ordinal` at that time.
    pub fn scan_at(&mut self, ordinal: usize, t_ns: u64) {
        let Some(pause) = &mut self.current else {
            return;
        };
        if ordinal < pause.leaves.start || ordinal > pause.leaves.end + AHEAD {
            return;
        }
        let entered_ns = *pause.entered_ns.get_or_insert(t_ns);
        let at = ordinal.min(pause.leaves.end);
        if at >= pause.leaves.start + HEAD {
            let (from, from_ns) = *pause.block.get_or_insert((at, t_ns));
            let is_long = t_ns.saturating_sub(from_ns) >= SAMPLE_NS;
            if is_long && at >= from + SAMPLE_LEAVES {
                let before = |at: usize| pause.bytes_before[at - pause.leaves.start];
                let bytes = before(at) - before(from);
                self.samples
                    .push(t_ns.saturating_sub(from_ns) as f64 / bytes.max(1) as f64);
                pause.block = Some((at, t_ns));
            }
        }
        if ordinal >= pause.leaves.end {
            self.spent_ns += t_ns.saturating_sub(entered_ns);
            self.leaves += pause.leaves.len() as u64;
            self.bytes += pause.bytes_before.last().unwrap_or(&0) - pause.bytes_before[0];
            self.current = None;
        }
    }

    /// Leaves have other numbers now, or the scan is another; what was measured stays.
    pub fn forget(&mut self) {
        self.current = None;
    }

    /// Whether the scan is hardly faster with us than without, as far as is known.
    pub fn are_in_vain(&self, progress: &Progress) -> bool {
        if self.current.is_some() || self.spent_ns == 0 {
            return false;
        }
        let Some(unaided) = Estimate::of_mean(&self.samples) else {
            return false;
        };
        let aided_bytes = (progress.passed_bytes + progress.held_bytes).saturating_sub(self.bytes);
        let aided_ns = progress.elapsed_ns.saturating_sub(self.spent_ns) as f64;
        let alone_ns = unaided.value * aided_bytes as f64;
        alone_ns < aided_ns * WORTH_MIN
    }

    /// What came of it; `None` without a pause that the scan has passed.
    pub fn gain(&self, progress: &Progress) -> Option<PrefetchGain> {
        let unaided = Estimate::of_mean(&self.samples).filter(|_| self.leaves > 0)?;
        let leaf_bytes = self.bytes as f64 / self.leaves as f64;
        let per_ns = progress.passed_bytes as f64 / progress.elapsed_ns.max(1) as f64;
        let (low, high) = unaided.interval(0.05);
        let is_known = low > 0.0 && high < low * TELLING_MAX;
        let ratio = |ns_per_byte: f64| is_known.then_some(ns_per_byte * per_ns);
        Some(PrefetchGain {
            slices: self.count,
            leaves_left_out: self.leaves,
            ns_per_leaf: progress.elapsed_ns as f64 / progress.passed_leaves.max(1) as f64,
            ns_per_leaf_left_out: unaided.value * leaf_bytes,
            ratio: ratio(unaided.value),
            ratio_low: ratio(low),
            ratio_high: ratio(high),
        })
    }
}

#[cfg(test)]
mod tests {
    use seekscope_wiredtiger::{Leaf, LeafKind};

    use super::*;

    const LEAF: u32 = 32 << 10;
    const LEAVES: usize = 40_000;

    fn sweep() -> Sweep {
        let leaf = |i: u64| Leaf {
            offset: i * u64::from(LEAF),
            length: LEAF,
            kind: LeafKind::Plain,
        };
        let leaves: Vec<Leaf> = (0..LEAVES as u64).map(leaf).collect();
        Sweep::new(&leaves, u64::MAX).unwrap()
    }

    /// A scan that takes `aided_ns` per leaf, and `alone_ns` (not quite the same every time) in pauses.
    fn scanned(aided_ns: u64, alone_ns: u64) -> (Pauses, Progress) {
        let (mut pauses, mut sweep, mut t_ns) = (Pauses::default(), sweep(), 0);
        for ordinal in 0..LEAVES {
            pauses.scan_at(ordinal, t_ns);
            sweep.advance(ordinal);
            if let Some(leaves) = pauses.wanted(t_ns, alone_ns as f64) {
                pauses.begin(&mut sweep, leaves);
            }
            let inside = pauses.current.as_ref();
            let inside = inside.is_some_and(|pause| pause.leaves.contains(&ordinal));
            assert!(!inside || pauses.holds(ordinal));
            t_ns += match inside {
                true => alone_ns * (92 + ordinal as u64 % 17) / 100,
                false => aided_ns,
            };
        }
        let progress = Progress {
            elapsed_ns: t_ns,
            passed_bytes: LEAVES as u64 * u64::from(LEAF),
            passed_leaves: LEAVES as u64,
            held_bytes: 0,
        };
        (pauses, progress)
    }

    #[test]
    fn the_gain_is_that_of_the_whole_scan() {
        let (pauses, progress) = scanned(1_000_000, 6_000_000);
        let gain = pauses.gain(&progress).unwrap();
        let without_ns = 6_000_000.0 * LEAVES as f64;
        let expected = without_ns / progress.elapsed_ns as f64;
        let (low, ratio, high) = (
            gain.ratio_low.unwrap(),
            gain.ratio.unwrap(),
            gain.ratio_high.unwrap(),
        );
        assert!((ratio / expected - 1.0).abs() < 0.05, "{gain:?}");
        assert!(low < ratio && ratio < high, "{gain:?}");
        assert!(!pauses.are_in_vain(&progress));
        // Pauses have cost what they may.
        let cost = progress.elapsed_ns as f64 / (1_000_000.0 * LEAVES as f64);
        assert!((1.01..1.05).contains(&cost), "{cost}");
    }

    #[test]
    fn a_scan_that_is_slower_is_noticed() {
        let (pauses, mut progress) = scanned(6_000_000, 3_000_000);
        assert!(pauses.are_in_vain(&progress));
        assert!(pauses.gain(&progress).unwrap().ratio.unwrap() < 0.6);
        progress.held_bytes = progress.passed_bytes * 2;
        assert!(
            !pauses.are_in_vain(&progress),
            "what is held will be passed at once"
        );
    }

    #[test]
    fn a_short_scan_has_no_pause() {
        let (pauses, progress) = scanned(10_000, 5_000_000);
        assert_eq!(
            (pauses.gain(&progress), pauses.are_in_vain(&progress)),
            (None, false)
        );
    }

    #[test]
    fn samples_that_contradict_one_another_tell_nothing() {
        let (mut pauses, progress) = scanned(1_000_000, 6_000_000);
        pauses.samples = vec![1.0, 500.0, 3.0];
        let gain = pauses.gain(&progress).unwrap();
        assert_eq!(
            (gain.ratio, gain.ratio_low, gain.ratio_high),
            (None, None, None)
        );
    }

    #[test]
    fn a_tree_that_changes_ends_the_pause() {
        let (mut pauses, mut sweep) = (Pauses::default(), sweep());
        pauses.begin(&mut sweep, 100);
        assert!(!pauses.holds(0) && pauses.holds(AHEAD));
        pauses.forget();
        assert!(!pauses.holds(AHEAD));
    }
}
