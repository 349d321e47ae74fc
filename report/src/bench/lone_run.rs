//! Estimates the uncertainty of a lone run's figures from its seconds: they depend on one another, so they
//! are resampled in blocks.

use seekscope_run::{BenchStep, Interval};
use seekscope_stats::{Estimate, block_bootstrap};

use super::records::{BenchRecords, Clock, LatencySecond, class_ns};

/// Fixed, so that the same data give the same intervals.
const SEED: u64 = 0x5eed_c0de;

/// Returns the only step.
pub(super) fn lone<'a>(
    steps: &[(&'a BenchRecords, &'a BenchStep)],
) -> Option<(&'a BenchRecords, &'a BenchStep)> {
    match *steps {
        [one] => Some(one),
        _ => None,
    }
}

/// Returns the natural logarithm of the rate of one run, estimated from its seconds.
pub(super) fn rate_estimate(
    (records, step): (&BenchRecords, &BenchStep),
    operation: &str,
    side: usize,
) -> Option<Estimate> {
    let from_ns = step.warm_up_ended_ns.unwrap_or(0);
    let seconds: Vec<&Interval> = (records.intervals_of(&step.name, operation))
        .filter(|i| i.t_ns >= from_ns && i.duration_ns > 0)
        .collect();
    let good = |i: &Interval| i.count.saturating_sub(i.errors) as f64;
    let rates: Vec<f64> = seconds
        .iter()
        .map(|i| good(i) / i.duration_ns as f64)
        .collect();
    block_bootstrap(&rates, SEED + side as u64, |indexes| {
        let done: f64 = indexes.iter().map(|&i| good(seconds[i])).sum();
        let time: f64 = indexes.iter().map(|&i| seconds[i].duration_ns as f64).sum();
        (done > 0.0).then(|| (done / time).ln())
    })
}

/// Returns the natural logarithm of a latency quantile of one run, estimated from its seconds.
pub(super) fn quantile_estimate(
    (records, step): (&BenchRecords, &BenchStep),
    operation: &str,
    clock: Clock,
    q: f64,
    side: usize,
) -> Option<Estimate> {
    let from_ns = step.warm_up_ended_ns.unwrap_or(0);
    let seconds: Vec<&LatencySecond> = (records.seconds(&step.name, operation, clock).iter())
        .filter(|second| second.counts_from(from_ns))
        .collect();
    let counts = Cumulative::of(&seconds)?;
    // The dependence of seconds is judged by how slow each was.
    let slowness: Vec<f64> = (0..seconds.len())
        .map(|i| counts.quantile(&[i], q).unwrap_or(0.0))
        .collect();
    block_bootstrap(&slowness, SEED + side as u64, |indexes| {
        counts.quantile(indexes, q).map(f64::ln)
    })
}

/// Seconds prepared so that quantiles of any draw can be read without adding up all their classes.
struct Cumulative {
    lowest: u16,
    /// Cumulative counts of latencies by class, for each second.
    up_to: Vec<Vec<u64>>,
}

impl Cumulative {
    /// Returns `None` without any latency.
    fn of(seconds: &[&LatencySecond]) -> Option<Self> {
        let classes = || {
            seconds
                .iter()
                .flat_map(|s| s.classes())
                .map(|(class, _)| *class)
        };
        let (lowest, highest) = (classes().min()?, classes().max()?);
        let of_second = |second: &&LatencySecond| {
            let mut counts = vec![0; usize::from(highest - lowest) + 1];
            for &(class, count) in second.classes() {
                counts[usize::from(class - lowest)] = u64::from(count);
            }
            let mut sum = 0;
            counts.iter_mut().for_each(|count| {
                sum += *count;
                *count = sum;
            });
            counts
        };
        Some(Self {
            lowest,
            up_to: seconds.iter().map(of_second).collect(),
        })
    }

    /// Returns a quantile of the seconds with these indexes together, ns.
    fn quantile(&self, indexes: &[usize], q: f64) -> Option<f64> {
        let up_to = |class: usize| indexes.iter().map(|&i| self.up_to[i][class]).sum::<u64>();
        let (mut low, mut high) = (0, self.up_to.first()?.len() - 1);
        let all = up_to(high);
        while low < high {
            let middle = usize::midpoint(low, high);
            if up_to(middle) as f64 >= q * all as f64 {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let class = u16::try_from(low).ok()?.checked_add(self.lowest)?;
        (all > 0).then(|| class_ns(class))
    }
}
