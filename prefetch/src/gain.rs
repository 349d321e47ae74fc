//! What reading ahead is good for: some short runs of leaves are left out, and the scan's time for
//! them compared with its time for as many leaves before and after.

use std::ops::Range;

use seekscope_run::prefetch::PrefetchGain;
use seekscope_stats::log_ratio;

/// Leaves of a slice.
const SLICE: usize = 16;
const SLICES_MAX: usize = 32;
/// What may be spent on it, as a share of the scan's time.
const TIME_SHARE: f64 = 0.03;

/// Slices that are left out, and when the scan came by.
#[derive(Debug, Default)]
pub struct Slices {
    slices: Vec<Range<usize>>,
    /// When the scan was first seen at or behind the borders: of each slice four, from a slice's length
    /// before it to as much behind it.
    passed_ns: Vec<[Option<u64>; 4]>,
}

impl Slices {
    /// For a scan of `leaves` leaves that takes `scan_ns` when it is read ahead, and for which a leaf
    /// that was left out takes `left_out_ns`: evenly spaced, at most 32, none where even one takes too long.
    pub fn choose(leaves: usize, scan_ns: f64, left_out_ns: f64) -> Self {
        let affordable = scan_ns * TIME_SHARE / (left_out_ns.max(1.0) * SLICE as f64);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and the cast saturates"
        )]
        let affordable = affordable as usize;
        let count = affordable.min(SLICES_MAX).min(leaves / (SLICE * 8));
        let slices: Vec<_> = (1..=count)
            .map(|i| {
                let start = leaves / (count + 1) * i;
                start..start + SLICE
            })
            .collect();
        Self {
            passed_ns: vec![[None; 4]; slices.len()],
            slices,
        }
    }

    /// What is to be left out.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.slices
    }

    /// The scan is in one of them, or about to be.
    pub fn holds(&self, position: usize) -> bool {
        let behind = self.slices.partition_point(|slice| slice.end <= position);
        let next = self.slices.get(behind);
        next.is_some_and(|slice| slice.start <= position + SLICE / 8)
    }

    /// The scan read leaf `ordinal` at that time.
    pub fn scan_at(&mut self, ordinal: usize, t_ns: u64) {
        for (slice, passed) in self.slices.iter().zip(&mut self.passed_ns) {
            let borders = [
                slice.start - SLICE,
                slice.start,
                slice.end,
                slice.end + SLICE,
            ];
            for (border, passed) in borders.into_iter().zip(passed) {
                if ordinal >= border && ordinal < border + SLICE * 2 {
                    passed.get_or_insert(t_ns);
                }
            }
        }
    }

    /// The tree has changed, and leaves have other numbers.
    pub fn forget(&mut self) {
        let passed = self.passed_ns.iter().map(|p| p[3].is_some());
        let keep: Vec<bool> = passed.collect();
        let mut kept = keep.iter();
        self.slices.retain(|_| *kept.next().unwrap_or(&false));
        self.passed_ns.retain(|p| p[3].is_some());
        for slice in &mut self.slices {
            // Nothing is there any more; what was measured stays.
            *slice = usize::MAX / 2..usize::MAX / 2;
        }
    }

    /// `None` without slices that the scan has passed.
    pub fn gain(&self) -> Option<PrefetchGain> {
        let (mut with_ns, mut without_ns) = (Vec::new(), Vec::new());
        for passed in &self.passed_ns {
            let [Some(a), Some(b), Some(c), Some(d)] = *passed else {
                continue;
            };
            without_ns.push(c.saturating_sub(b).max(1) as f64 / SLICE as f64);
            with_ns.push(b.saturating_sub(a).max(1) as f64 / SLICE as f64);
            with_ns.push(d.saturating_sub(c).max(1) as f64 / SLICE as f64);
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let estimate = log_ratio(&with_ns, &without_ns);
        let interval = estimate.map(|estimate| estimate.interval(0.05));
        (!without_ns.is_empty()).then(|| PrefetchGain {
            slices: without_ns.len() as u64,
            leaves_left_out: (without_ns.len() * SLICE) as u64,
            ns_per_leaf: mean(&with_ns),
            ns_per_leaf_left_out: mean(&without_ns),
            ratio: estimate.map(|estimate| estimate.value.exp()),
            ratio_low: interval.map(|(low, _)| low.exp()),
            ratio_high: interval.map(|(_, high)| high.exp()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_slices_where_they_cost_much() {
        let count = |leaves, scan_ms: f64, left_out_ms: f64| {
            let slices = Slices::choose(leaves, scan_ms * 1e6, left_out_ms * 1e6);
            let ranges = slices.ranges();
            assert!(
                ranges
                    .windows(2)
                    .all(|w| w[0].end + 2 * SLICE <= w[1].start)
            );
            assert!(
                ranges
                    .iter()
                    .all(|r| r.start >= SLICE && r.end + SLICE <= leaves)
            );
            ranges.len()
        };
        assert_eq!(count(10_000, 4_000.0, 6.0), 1);
        assert_eq!(count(10_000, 500_000.0, 6.0), SLICES_MAX);
        assert_eq!(count(10_000, 100.0, 6.0), 0);
        assert_eq!(count(1_000, 500_000.0, 6.0), 7);
        assert_eq!(count(50, 1e9, 6.0), 0);
    }

    #[test]
    fn the_gain_is_the_ratio_of_times() {
        let mut slices = Slices::choose(10_000, 60e9, 6e6);
        let left_out = slices.ranges().to_vec();
        assert!(left_out.len() > 5);
        let mut t_ns = 0;
        for ordinal in 0..10_000 {
            slices.scan_at(ordinal, t_ns);
            let inside = left_out.iter().any(|slice| slice.contains(&ordinal));
            assert!(!inside || slices.holds(ordinal));
            // Not quite the same every time.
            t_ns += if inside {
                6_000_000
            } else {
                60_000 + ordinal as u64 % 7 * 1000
            };
        }
        let gain = slices.gain().unwrap();
        let (low, ratio, high) = (
            gain.ratio_low.unwrap(),
            gain.ratio.unwrap(),
            gain.ratio_high.unwrap(),
        );
        assert!(
            low < ratio && ratio < high && (80.0..110.0).contains(&ratio),
            "{gain:?}"
        );
        assert_eq!(gain.slices, left_out.len() as u64);
        slices.forget();
        assert_eq!(slices.gain().unwrap(), gain);
        assert!(!slices.holds(left_out[0].start));
    }
}
