//! The moving-block bootstrap: how far any figure of a single run may be off.
//!
//! Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics 1989.
//! Whole stretches of the series are drawn, so the dependence between neighbouring values is kept.

use crate::autocorrelation::lag1_correlation;
use crate::{Estimate, SplitMix64};

const RESAMPLES: usize = 1000;
const VALUES_MIN: usize = 10;
/// The minimum number of blocks in a resample.
const BLOCKS_MIN: usize = 5;

/// Returns the block length for a series with this correlation, by the rule for an autoregressive process of
/// order 1 (Carlstein, "The use of subseries values for estimating the variance of a general statistic", Annals
/// of Statistics 1986).
fn block_length(n: usize, rho: f64) -> usize {
    let length = n as f64;
    let wanted = (2.0 * rho / (1.0 - rho * rho)).powf(2.0 / 3.0) * length.cbrt();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and clamped to the length of the series"
    )]
    let wanted = wanted.ceil().min(length) as usize;
    wanted.clamp(1, (n / BLOCKS_MIN).max(1))
}

/// Returns the share of the variance of a mean that the means of blocks show, for an autoregressive process of
/// order 1: they miss the correlation between the last values of one block and the first values of the next.
fn variance_seen(block: usize, rho: f64) -> f64 {
    let block = block as f64;
    1.0 - 2.0 * rho * (1.0 - rho.powf(block)) / (block * (1.0 - rho * rho))
}

/// Returns a statistic of a series, with its standard error over resamples. `statistic` is given indexes into
/// the series, whose order is meaningful only within stretches, and may return `None` if there is no value;
/// `series` holds the values by which the block length is chosen, e.g. operations per second.
///
/// Returns `None` for fewer than 10 values, or if the statistic itself is `None`.
pub fn block_bootstrap(
    series: &[f64],
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> Option<f64>,
) -> Option<Estimate> {
    let n = series.len();
    if n < VALUES_MIN {
        return None;
    }
    let mut indexes: Vec<usize> = (0..n).collect();
    let value = statistic(&indexes)?;
    let rho = lag1_correlation(series);
    let block = block_length(n, rho);
    let mut rng = SplitMix64::new(seed);
    let mut drawn = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        indexes.clear();
        while indexes.len() < n {
            let start = usize::try_from(rng.below((n - block + 1) as u64)).unwrap_or(0);
            let wanted = block.min(n - indexes.len());
            indexes.extend(start..start + wanted);
        }
        drawn.extend(statistic(&indexes).filter(|v| v.is_finite()));
    }
    let spread = Estimate::of_mean(&drawn)?;
    let standard_deviation = spread.standard_error * (drawn.len() as f64).sqrt();
    let blocks = n as f64 / block as f64;
    Some(Estimate {
        value,
        // The variance of n values is likewise divided by n - 1.
        standard_error: standard_deviation
            * (blocks / (blocks - 1.0) / variance_seen(block, rho)).sqrt(),
        degrees_of_freedom: blocks - 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, share_of};

    fn mean(series: &[f64], seed: u64) -> Option<Estimate> {
        block_bootstrap(series, seed, |indexes| {
            Some(indexes.iter().map(|&i| series[i]).sum::<f64>() / indexes.len() as f64)
        })
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        for (rho, n, at_least) in [
            (0.0, 60, 0.92),
            (0.5, 60, 0.90),
            (0.5, 300, 0.93),
            (0.8, 120, 0.92),
        ] {
            let share = share_of(400, |seed| {
                let series = Noise::series(seed, rho, n, 1000.0, 0.1);
                let (low, high) = mean(&series, seed).unwrap().interval(0.05);
                low <= 1000.0 && 1000.0 <= high
            });
            assert!((at_least..0.995).contains(&share), "{rho} {n}: {share}");
        }
    }

    #[test]
    fn equal_runs_seldom_differ_and_unequal_ones_do() {
        let differs = |seed: u64, ratio: f64| {
            let a = Noise::series(seed, 0.5, 100, 1000.0, 0.1);
            let b = Noise::series(seed + 1_000_000, 0.5, 100, 1000.0 * ratio, 0.1);
            let log_mean = |series: &[f64]| {
                block_bootstrap(series, seed, |indexes| {
                    let sum: f64 = indexes.iter().map(|&i| series[i]).sum();
                    Some((sum / indexes.len() as f64).ln())
                })
            };
            log_mean(&b)
                .unwrap()
                .minus(&log_mean(&a).unwrap())
                .p_of_zero()
                < 0.05
        };
        let false_positives = share_of(400, |seed| differs(seed, 1.0));
        assert!(false_positives <= 0.05, "{false_positives}");
        assert!(share_of(100, |seed| differs(seed, 1.2)) >= 0.99);
    }

    #[test]
    fn blocks_grow_with_the_correlation() {
        let block = |rho| block_length(500, rho);
        assert!(block(0.0) == 1 && block(0.5) > block(0.0) && block(0.9) > block(0.5));
        assert!(mean(&[1.0; 9], 1).is_none());
        assert!(block_bootstrap(&[1.0; 20], 1, |_| None).is_none());
    }
}
