//! When the next access is due. With a rate, accesses have intended starts that do not wait for the
//! disk, and latency counts from these, so that a stall shows in every access that it delays.

use std::time::Duration;

use rustix::time::{ClockId, Timespec};
use seekscope_run::monotonic_ns;
use seekscope_stats::SplitMix64;

use crate::job::Job;
use crate::offsets::thread_seed;

/// The longest sleep, so that a request to stop is noticed.
const SLEEP_NS_MAX: u64 = 100_000_000;

/// The intended starts of one thread.
#[derive(Debug)]
pub(crate) struct Pacing {
    mean_gap_ns: f64,
    /// CLOCK_MONOTONIC ns; fractions matter at high rates.
    next_ns: f64,
    poisson: Option<SplitMix64>,
}

impl Pacing {
    /// Returns the pacing of a thread; `None` for a job without a rate.
    pub(crate) fn new(job: &Job, number: u32, start_ns: u64) -> Option<Self> {
        let rate_per_s = job.facts.rate_per_s?;
        let threads = f64::from(job.facts.threads);
        let mean_gap_ns = 1e9 * threads / rate_per_s;
        let mut pacing = Self {
            mean_gap_ns,
            next_ns: start_ns as f64,
            poisson: (job.facts.poisson).then(|| SplitMix64::new(thread_seed(!job.seed, number))),
        };
        // With even gaps, the threads take turns.
        if pacing.poisson.is_some() {
            pacing.advance();
        } else {
            pacing.next_ns += mean_gap_ns * f64::from(number) / threads;
        }
        Some(pacing)
    }

    /// Returns the next intended start, CLOCK_MONOTONIC ns.
    pub(crate) fn next_ns(&self) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are positive and fit"
        )]
        let whole = self.next_ns as u64;
        whole
    }

    /// Moves on to the next intended start.
    pub(crate) fn advance(&mut self) {
        let gap = match &mut self.poisson {
            None => 1.0,
            // The inverse of the exponential distribution; 1 - u is never 0.
            Some(random) => -(1.0 - random.unit_f64()).ln(),
        };
        self.next_ns += gap * self.mean_gap_ns;
    }

    /// Returns the intended starts up to `end_ns` that have not been taken.
    pub(crate) fn behind(&self, end_ns: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates"
        )]
        let behind = ((end_ns as f64 - self.next_ns) / self.mean_gap_ns).max(0.0) as u64;
        behind
    }
}

/// Sleeps until `until_ns` (CLOCK_MONOTONIC), or for a tenth of a second if that is less.
pub(crate) fn sleep_until(until_ns: u64, now_ns: u64) {
    let until_ns = until_ns.min(now_ns + SLEEP_NS_MAX);
    let time = Duration::from_nanos(until_ns);
    let at = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    // If a signal wakes it early, the caller checks the clock anyway.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &at);
}

/// Makes the kernel wake this thread on time, not up to 50 µs later (`PR_SET_TIMERSLACK`).
pub(crate) fn sleep_exactly() {
    // SAFETY: this option takes one number and touches no memory.
    let _ = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64) };
}

/// Measures the cost of reading the clock once, ns: the median of several batches.
pub fn clock_read_ns() -> f64 {
    const READS: u32 = 20_000;
    let batches: Vec<f64> = (0..9)
        .map(|_| {
            let start_ns = monotonic_ns();
            for _ in 0..READS {
                std::hint::black_box(monotonic_ns());
            }
            (monotonic_ns() - start_ns) as f64 / f64::from(READS)
        })
        .collect();
    seekscope_stats::median(&batches).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_run::{AccessKind, EngineKind};

    fn starts(poisson: bool, number: u32) -> Vec<u64> {
        let mut job = Job::new(AccessKind::RandRead, EngineKind::Null);
        (job.facts.rate_per_s, job.facts.poisson, job.facts.threads) = (Some(1e6), poisson, 2);
        let mut pacing = Pacing::new(&job, number, 1_000_000).unwrap();
        (0..100_000)
            .map(|_| {
                let next = pacing.next_ns();
                pacing.advance();
                next
            })
            .collect()
    }

    #[test]
    fn even_gaps_in_turns() {
        assert_eq!(starts(false, 0)[..3], [1_000_000, 1_002_000, 1_004_000]);
        assert_eq!(starts(false, 1)[..3], [1_001_000, 1_003_000, 1_005_000]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_spread_of_the_exponential_distribution() {
        let starts = starts(true, 0);
        let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard errors at this count: 0.3 % of the mean, 0.5 % of the deviation.
        assert!((mean / 2000.0 - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / 2000.0 - 1.0).abs() < 0.03, "{variance}");
    }
}
