//! How hard to read, so that the server's other reads do not wait long: additive increase,
//! multiplicative decrease.
//!
//! The server's other reads that had to wait for the disk are compared with how long they took while
//! we did not read (in pauses, which are made for it). Intensity 1 is the full depth; below one
//! read in flight it is the share of the time in which we read.

use std::collections::VecDeque;

/// The slowest of this many reads is about their 98th percentile.
const RECENT: usize = 32;
const BASELINE: usize = 512;
/// The fewest undisturbed reads that others can be compared with.
const BASELINE_MIN: usize = 16;
/// Others may wait half as long again; this leaves some room below that.
const RATIO_MAX: f64 = 1.4;
const DECREASE: f64 = 0.6;
const INCREASE: f64 = 0.05;
const INTENSITY_MIN: f64 = 0.02;

/// The intensity of our reading, and what decides it.
#[derive(Debug)]
pub struct Guard {
    baseline_ns: VecDeque<u64>,
    recent_ns: VecDeque<u64>,
    intensity: f64,
    /// Number of times it gave way.
    pub decreases: u64,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            baseline_ns: VecDeque::new(),
            recent_ns: VecDeque::new(),
            intensity: 1.0,
            decreases: 0,
        }
    }
}

impl Guard {
    /// Notes another read of the server and its latency; `in_peace`: while we were not reading.
    pub fn others_read(&mut self, latency_ns: u64, in_peace: bool) {
        let (list, max) = match in_peace {
            true => (&mut self.baseline_ns, BASELINE),
            false => (&mut self.recent_ns, RECENT),
        };
        if list.len() == max {
            list.pop_front();
        }
        list.push_back(latency_ns);
    }

    /// Returns how hard to read from now on, 0.02 to 1. Must be called at a steady rate.
    pub fn intensity(&mut self) -> f64 {
        match self.others_wait() {
            Some(ratio) if ratio > RATIO_MAX => {
                self.intensity = (self.intensity * DECREASE).max(INTENSITY_MIN);
                self.decreases += 1;
                // The latencies so far belong to the former intensity.
                self.recent_ns.clear();
            }
            _ => self.intensity = (self.intensity + INCREASE).min(1.0),
        }
        self.intensity
    }

    /// Returns whether a pause is needed: there are other reads, and how long they take undisturbed
    /// is unknown.
    pub fn wants_peace(&self) -> bool {
        self.baseline_ns.len() < BASELINE_MIN && self.recent_ns.len() >= BASELINE_MIN
    }

    /// Returns how many times as long others wait as when undisturbed; `None` while there is too
    /// little to compare.
    pub fn others_wait(&self) -> Option<f64> {
        if self.baseline_ns.len() < BASELINE_MIN || self.recent_ns.len() < BASELINE_MIN {
            return None;
        }
        let in_peace = high(&self.baseline_ns);
        Some(high(&self.recent_ns) / in_peace.max(1.0))
    }
}

/// The 95th percentile.
fn high(latencies_ns: &VecDeque<u64>) -> f64 {
    let mut sorted: Vec<u64> = latencies_ns.iter().copied().collect();
    sorted.sort_unstable();
    let at = (sorted.len() * 95).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with_baseline(latency_ns: u64) -> Guard {
        let mut guard = Guard::default();
        (0..BASELINE_MIN).for_each(|_| guard.others_read(latency_ns, true));
        guard
    }

    #[test]
    fn without_a_baseline_it_does_not_judge() {
        let mut guard = Guard::default();
        (0..100).for_each(|_| guard.others_read(u64::MAX, false));
        assert_eq!((guard.others_wait(), guard.intensity()), (None, 1.0));
        assert!(guard.wants_peace() && !with_baseline(7).wants_peace());
    }

    #[expect(clippy::cast_possible_truncation, reason = "milliseconds in ns")]
    /// Where latency rises with intensity, it settles near what is allowed.
    #[test]
    fn it_settles_where_others_wait_as_long_as_they_may() {
        let mut guard = with_baseline(1_000_000);
        let mut intensity = 1.0;
        let mut waits = Vec::new();
        for _ in 0..400 {
            let latency_ns = 1e6 + 4e6 * intensity;
            (0..RECENT).for_each(|_| guard.others_read(latency_ns as u64, false));
            intensity = guard.intensity();
            waits.push(latency_ns / 1e6);
        }
        let late = &waits[100..];
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!((1.1..1.5).contains(&mean), "{mean}");
    }

    proptest! {
        #[test]
        fn intensity_stays_within_bounds(reads in prop::collection::vec((any::<u64>(), any::<bool>()), 0..600)) {
            let mut guard = Guard::default();
            for (latency_ns, in_peace) in reads {
                guard.others_read(latency_ns, in_peace);
                let intensity = guard.intensity();
                prop_assert!((INTENSITY_MIN..=1.0).contains(&intensity));
            }
        }

        #[test]
        fn peace_lets_it_recover(latency_ns in 1u64..1_000_000_000) {
            let mut guard = with_baseline(latency_ns);
            (0..RECENT).for_each(|_| guard.others_read(latency_ns.saturating_mul(10), false));
            prop_assert!(guard.intensity() < 1.0);
            for _ in 0..40 {
                (0..RECENT).for_each(|_| guard.others_read(latency_ns, false));
                guard.intensity();
            }
            prop_assert_eq!(guard.intensity(), 1.0);
        }
    }
}
