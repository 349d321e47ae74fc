//! What reading ahead is worth. Now and then it pauses and gives back the next leaves of the scan,
//! so that the scan passes some dozens of leaves as it would without us.
//!
//! The scan's pace in pauses shows how long all of it would have taken, and whether reading ahead
//! makes it faster at all. All times are on one clock, that of the traced reads (CLOCK_MONOTONIC).

use std::ops::Range;

use seekscope_run::prefetch::PrefetchGain;
use seekscope_stats::Estimate;

use crate::sweep::{Place, Sweep};

/// What pauses may cost, as a share of the time since the beginning. The first one comes early,
/// because it shows whether reading ahead does harm.
const TIME_SHARE: f64 = 0.04;
const TIME_SHARE_FIRST: f64 = 0.1;
/// Length of a pause, unless that is too few leaves: three samples, and the head before the first.
const PAUSE_NS: f64 = 330e6;
const LEAVES_MIN: usize = 40;
const LEAVES_MAX: usize = 4096;
/// Leaves at the beginning of a pause that do not count: requests of ours are still ahead of them
/// in the disk's queue.
const HEAD: usize = 4;
/// The least time and the fewest leaves of one sample. Control groups let requests through in
/// bursts, ten a second, which would dominate shorter samples.
const SAMPLE_NS: u64 = 90_000_000;
const SAMPLE_LEAVES: usize = 4;
/// Fewer samples say nothing.
const SAMPLES_MIN: usize = 3;
/// How many leaves ahead of the scan a pause begins; the scan moves on while the pause is prepared.
/// Also how far past the end of a pause the scan may be when it is first seen.
const AHEAD: usize = 40;
/// Nothing more is requested when the scan is this many leaves before the pause.
const QUIET_AHEAD: usize = 8;
/// Reading ahead ends if it makes the scan less than this many times as fast.
pub(crate) const WORTH_MIN: f64 = 1.05;
/// The error, both sides together, of the interval whose upper end the scan alone is then taken to need. It is
/// wide because the harm goes on while one waits for more samples. It takes more than bad luck to end what does
/// good: the scan would have to seem twice as fast alone as it is.
const IN_VAIN_ERROR: f64 = 0.2;
/// An interval wider than this means that nothing is known.
const TELLING_MAX: f64 = 4.0;

/// How far a scan has come in how much time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Time since reading ahead, or the scan, began.
    pub elapsed_ns: u64,
    /// Bytes of the leaves that the scan has passed in that time.
    pub passed_bytes: u64,
    pub passed_leaves: u64,
    /// Bytes of the leaves that we hold in memory, which the scan will pass in no time.
    pub held_bytes: u64,
}

/// Parts of the scan for which nothing is read ahead.
#[derive(Debug, Default)]
pub struct Pauses {
    current: Option<Pause>,
    /// Pauses that the scan has passed, over all scans.
    count: u64,
    leaves: u64,
    bytes: u64,
    /// Scan time per byte of leaves, ns, one value per block.
    samples: Vec<f64>,
    in_scan: InScan,
}

/// The pauses of the scan that is followed now.
#[derive(Debug, Default)]
struct InScan {
    bytes: u64,
    spent_ns: u64,
    /// Time in discarded pauses; their cost is not known more exactly.
    lost_ns: u64,
}

#[derive(Debug)]
struct Pause {
    leaves: Range<usize>,
    /// Bytes of the leaves before each leaf, from the first to the one after the last.
    bytes_before: Vec<u64>,
    begun_ns: u64,
    /// When the scan came in, and where its current block begins.
    entered_ns: Option<u64>,
    block: Option<(usize, u64)>,
    /// Number of samples before this pause.
    samples_before: usize,
}

impl Pauses {
    /// Returns how many leaves a pause beginning now should have, if one leaf without us takes
    /// `leaf_ns`; `None` if it is too early.
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
        // Not before it can be that long: several short pauses say less.
        (affordable_ns >= leaves as f64 * leaf_ns).then_some(leaves)
    }

    /// Time per leaf without us.
    fn leaf_alone_ns(&self) -> Option<f64> {
        let mean = Estimate::of_mean(&self.samples).filter(|_| self.leaves > 0)?;
        Some(mean.value * self.bytes as f64 / self.leaves as f64)
    }

    /// Begins a pause of `leaves` leaves. Returns the places to give back.
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

    /// Returns whether nothing is to be read now, because the scan is in a pause or about to enter
    /// one.
    pub fn holds(&self, position: usize) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|pause| {
            pause.leaves.start <= position + QUIET_AHEAD && position <= pause.leaves.end + AHEAD
        })
    }

    /// Notes that the scan came to leaf `ordinal` at `t_ns`.
    pub fn scan_at(&mut self, ordinal: usize, t_ns: u64) {
        let Some(pause) = &mut self.current else {
            return;
        };
        if ordinal < pause.leaves.start {
            return;
        }
        // If the scan was not seen near the pause's end, how long it took for what lies after it is
        // unknown; if it was not seen within the pause, the pause says nothing at all.
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

    /// Ends the pause without using it.
    fn discard(&mut self, now_ns: u64) -> Range<usize> {
        let Some(pause) = self.current.take() else {
            return 0..0;
        };
        let since_ns = pause.entered_ns.unwrap_or(pause.begun_ns);
        self.in_scan.lost_ns += now_ns.saturating_sub(since_ns);
        self.samples.truncate(pause.samples_before);
        pause.leaves
    }

    /// Ends the pause because leaves are about to be renumbered or the scan is followed in another
    /// way. The part that lies ahead may be read again.
    pub fn forget(&mut self, sweep: &mut Sweep, now_ns: u64) {
        let leaves = self.discard(now_ns);
        sweep.take_in(leaves);
    }

    /// Starts following another scan. The time a leaf takes alone remains known.
    pub fn another_scan(&mut self, sweep: &mut Sweep, now_ns: u64) {
        self.forget(sweep, now_ns);
        self.in_scan = InScan::default();
    }

    /// Returns whether the scan is hardly faster with us than without, as far as is known.
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

    /// Returns the gain; `None` if the scan has passed no pause.
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
