//! What reading ahead is good for: now and then it pauses, and gives back what the scan comes to next, so
//! that the scan passes some dozens of leaves as it would without us.
//!
//! From the scan's pace there follows how long all of it would have taken, and whether it is faster with us
//! at all. All times are those of one clock, that of the traced reads (CLOCK_MONOTONIC).

use std::ops::Range;

use seekscope_run::prefetch::PrefetchGain;
use seekscope_stats::Estimate;

use crate::sweep::{Place, Sweep};

/// What pauses may cost, as a share of the time since the beginning. The first comes early: it is what
/// shows that reading ahead does harm.
const TIME_SHARE: f64 = 0.04;
const TIME_SHARE_FIRST: f64 = 0.1;
/// How long a pause is, unless that is too few leaves: three samples, and what goes before the first.
const PAUSE_NS: f64 = 330e6;
const LEAVES_MIN: usize = 40;
const LEAVES_MAX: usize = 4096;
/// Leaves at the beginning of a pause that do not count: what we had asked for is still before them in the
/// disk's queue.
const HEAD: usize = 4;
/// What one sample takes, and of how many leaves it is, at least: control groups let requests through in
/// bursts, ten a second, which shorter samples would tell of.
const SAMPLE_NS: u64 = 90_000_000;
const SAMPLE_LEAVES: usize = 4;
/// Fewer tell nothing.
const SAMPLES_MIN: usize = 3;
/// A pause begins so many leaves ahead of the scan, which moves on while it is made ready. The scan may be
/// seen for the first time so many leaves behind its end.
const AHEAD: usize = 40;
/// Nothing is asked for any more when the scan is so many leaves before it.
const QUIET_AHEAD: usize = 8;
/// Reading ends where the scan is less than so many times as fast with it …
const WORTH_MIN: f64 = 1.05;
/// … even if it takes as long alone as the upper end of an interval with this error, both sides together. That
/// is a wide error, because the harm goes on while one waits for more samples, and to end what does good
/// takes more than bad luck: the scan would have to seem twice as fast alone as it is.
const IN_VAIN_ERROR: f64 = 0.2;
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
    /// Those that the scan has passed, of all scans.
    count: u64,
    leaves: u64,
    bytes: u64,
    /// Time of a scan per byte of leaves, ns, of each block.
    samples: Vec<f64>,
    in_scan: InScan,
}

/// What the scan that is followed now has had of pauses.
#[derive(Debug, Default)]
struct InScan {
    bytes: u64,
    spent_ns: u64,
    /// In pauses of which nothing became; what they cost is not known better.
    lost_ns: u64,
}

#[derive(Debug)]
struct Pause {
    leaves: Range<usize>,
    /// Of the leaves before each, from the first to the one after the last.
    bytes_before: Vec<u64>,
    begun_ns: u64,
    /// When the scan came in, and where the block that it is in begins.
    entered_ns: Option<u64>,
    block: Option<(usize, u64)>,
    /// How many there had been before.
    samples_before: usize,
}

impl Pauses {
    /// How many leaves a pause should have that begins now, where one leaf without us should take `leaf_ns`;
    /// `None` where it is too early.
    pub fn wanted(&self, elapsed_ns: u64, leaf_ns: f64) -> Option<usize> {
        if self.current.is_some() {
            return None;
        }
        let share = match self.count {
            0 => TIME_SHARE_FIRST,
            _ => TIME_SHARE,
        };
        let had_ns = self.in_scan.spent_ns + self.in_scan.lost_ns;
        let affordable_ns = elapsed_ns as f64 * share - had_ns as f64;
        // A guess may be far below what one request at a time takes.
        let leaf_ns = leaf_ns.max(self.leaf_alone_ns().unwrap_or(1.0)).max(1.0);
        let fits = |leaves: &usize| *leaves as f64 * leaf_ns <= PAUSE_NS;
        let leaves = (LEAVES_MIN..LEAVES_MAX).take_while(fits).last();
        let leaves = leaves.unwrap_or(LEAVES_MIN);
        // No sooner than it can be as long as that: several short ones tell less.
        (affordable_ns >= leaves as f64 * leaf_ns).then_some(leaves)
    }

    /// What a leaf took without us.
    fn leaf_alone_ns(&self) -> Option<f64> {
        let mean = Estimate::of_mean(&self.samples).filter(|_| self.leaves > 0)?;
        Some(mean.value * self.bytes as f64 / self.leaves as f64)
    }

    /// Begins one of so many leaves. Returns what is to be given back.
    pub fn begin(&mut self, sweep: &mut Sweep, leaves: usize, now_ns: u64) -> Vec<Place> {
        let start = sweep.position() + AHEAD;
        let end = start + leaves;
        if end >= sweep.leaves().len() {
            return Vec::new();
        }
        self.current = Some(Pause {
            leaves: start..end,
            bytes_before: (start..=end).map(|at| sweep.bytes_before(at)).collect(),
            begun_ns: now_ns,
            entered_ns: None,
            block: None,
            samples_before: self.samples.len(),
        });
        sweep.leave_out(start..end)
    }

    /// Nothing is to be read now: the scan is in a pause, or about to be.
    pub fn holds(&self, position: usize) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|pause| {
            pause.leaves.start <= position + QUIET_AHEAD && position <= pause.leaves.end + AHEAD
        })
    }

    /// The scan comes to leaf `ordinal` at that time.
    pub fn scan_at(&mut self, ordinal: usize, t_ns: u64) {
        let Some(pause) = &mut self.current else {
            return;
        };
        if ordinal < pause.leaves.start {
            return;
        }
        // Not seen near its end, it has taken we know not how long for what lies behind; not seen within, it
        // tells nothing at all.
        let is_too_far = ordinal > pause.leaves.end + AHEAD;
        if is_too_far || ordinal >= pause.leaves.end && pause.entered_ns.is_none() {
            self.discard(t_ns);
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
            let bytes = pause.bytes_before.last().unwrap_or(&0) - pause.bytes_before[0];
            self.in_scan.spent_ns += t_ns.saturating_sub(entered_ns);
            self.in_scan.bytes += bytes;
            self.count += 1;
            self.leaves += pause.leaves.len() as u64;
            self.bytes += bytes;
            self.current = None;
        }
    }

    /// Ends the pause as if it had told nothing.
    fn discard(&mut self, now_ns: u64) -> Range<usize> {
        let Some(pause) = self.current.take() else {
            return 0..0;
        };
        let since_ns = pause.entered_ns.unwrap_or(pause.begun_ns);
        self.in_scan.lost_ns += now_ns.saturating_sub(since_ns);
        self.samples.truncate(pause.samples_before);
        pause.leaves
    }

    /// Leaves are about to have other numbers, or the scan is followed in another way: the pause is over,
    /// and what of it lies ahead may be read again.
    pub fn forget(&mut self, sweep: &mut Sweep, now_ns: u64) {
        let leaves = self.discard(now_ns);
        sweep.take_in(leaves);
    }

    /// Another scan is followed from now on. How long a leaf takes alone, it need not tell again.
    pub fn another_scan(&mut self, sweep: &mut Sweep, now_ns: u64) {
        self.forget(sweep, now_ns);
        self.in_scan = InScan::default();
    }

    /// Whether the scan is hardly faster with us than without, as far as is known.
    pub fn are_in_vain(&self, progress: &Progress) -> bool {
        if self.current.is_some() || self.in_scan.spent_ns == 0 || self.samples.len() < SAMPLES_MIN
        {
            return false;
        }
        let Some(unaided) = Estimate::of_mean(&self.samples) else {
            return false;
        };
        let (_, high) = unaided.interval(IN_VAIN_ERROR);
        let aided_bytes = progress.passed_bytes + progress.held_bytes;
        let aided_bytes = aided_bytes.saturating_sub(self.in_scan.bytes);
        let aided_ns = progress.elapsed_ns.saturating_sub(self.in_scan.spent_ns) as f64;
        high * (aided_bytes as f64) < aided_ns * WORTH_MIN
    }

    /// What came of it; `None` without a pause that the scan has passed.
    pub fn gain(&self, progress: &Progress) -> Option<PrefetchGain> {
        let unaided = Estimate::of_mean(&self.samples)?;
        let ns_per_leaf_left_out = self.leaf_alone_ns()?;
        let per_ns = progress.passed_bytes as f64 / progress.elapsed_ns.max(1) as f64;
        let (low, high) = unaided.interval(0.05);
        let is_known = self.samples.len() >= SAMPLES_MIN && low > 0.0 && high < low * TELLING_MAX;
        let ratio = |ns_per_byte: f64| is_known.then_some(ns_per_byte * per_ns);
        Some(PrefetchGain {
            slices: self.count,
            leaves_left_out: self.leaves,
            ns_per_leaf: progress.elapsed_ns as f64 / progress.passed_leaves.max(1) as f64,
            ns_per_leaf_left_out,
            ratio: ratio(unaided.value),
            ratio_low: ratio(low),
            ratio_high: ratio(high),
        })
    }
}

#[cfg(test)]
mod tests;
