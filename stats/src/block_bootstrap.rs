//! The moving-block bootstrap: how far a figure of one run may be off, whatever the figure.
//!
//! Künsch, "The jackknife and the bootstrap for general stationary observations", Annals of Statistics
//! 1989. Whole stretches of the series are drawn, so what neighbouring values have in common stays.

use crate::autocorrelation::lag1_correlation;
use crate::{Estimate, SplitMix64};

const RESAMPLES: usize = 1000;
const VALUES_MIN: usize = 10;
/// At least so many blocks must make up a resample.
const BLOCKS_MIN: usize = 5;

/// How long a block must be for a series of this correlation: the rule for an autoregressive process of
/// order 1 (Carlstein, "The use of subseries values for estimating the variance of a general statistic",
/// Annals of Statistics 1986).
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

/// What share of the variance of a mean is seen in means of blocks: what a block's last values have in
/// common with the next block's first is not. Of an autoregressive process of order 1.
fn variance_seen(block: usize, rho: f64) -> f64 {
    let block = block as f64;
    1.0 - 2.0 * rho * (1.0 - rho.powf(block)) / (block * (1.0 - rho * rho))
}

/// A statistic of a series, with the standard error that it has over resamples. `statistic` gets indexes
/// of the series, in an order of which only stretches mean something, and may say `None` where there is
/// nothing; `series` are the values by which the length of a block is chosen, e.g. operations per second.
///
/// `None` of fewer than 10 values, or where the statistic itself is `None`.
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
        // As a variance of n values is divided by n - 1.
        standard_error: standard_deviation
            * (blocks / (blocks - 1.0) / variance_seen(block, rho)).sqrt(),
        degrees_of_freedom: blocks - 1.0,
    })
}

/// The mean of a series; see [`block_bootstrap()`].
pub fn block_bootstrap_mean(series: &[f64], seed: u64) -> Option<Estimate> {
    block_bootstrap(series, seed, |indexes| {
        Some(indexes.iter().map(|&i| series[i]).sum::<f64>() / indexes.len() as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, share_of};

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
                let (low, high) = block_bootstrap_mean(&series, seed).unwrap().interval(0.05);
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
        assert!(block_bootstrap_mean(&[1.0; 9], 1).is_none());
        assert!(block_bootstrap(&[1.0; 20], 1, |_| None).is_none());
    }
}
