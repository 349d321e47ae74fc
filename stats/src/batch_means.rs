//! The mean of a series whose values depend on one another.

use crate::Estimate;
use crate::autocorrelation::{lag1_correlation, variance_inflation};

/// Between 10 and 30 batches work best (Schmeiser, "Batch size effects in the analysis of simulation output",
/// Operations Research 1982).
const BATCHES_MAX: usize = 20;
const BATCHES_MIN: usize = 5;

/// Returns the mean of a series with the standard error of batch means: the means of long stretches hardly
/// depend on one another. The remaining dependence is corrected for as in Skart (Tafazzoli, Steiger and Wilson,
/// "N-Skart: a nonsequential skewness- and autoregression-adjusted batch-means procedure", IEEE Transactions on
/// Automatic Control 2011; its adjustment for skewness is left out). Returns `None` for fewer than 10 values.
/// Leading values that do not fill a batch count only towards the mean.
pub fn batch_means(series: &[f64]) -> Option<Estimate> {
    let size = series.len().div_ceil(BATCHES_MAX).max(2);
    let batches = series.len() / size;
    if batches < BATCHES_MIN {
        return None;
    }
    let means: Vec<f64> = series
        .rchunks_exact(size)
        .rev()
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let inflation = variance_inflation(lag1_correlation(&means));
    let independent = Estimate::of_mean(&means)?;
    Some(Estimate {
        value: series.iter().sum::<f64>() / series.len() as f64,
        standard_error: independent.standard_error * inflation.sqrt(),
        // The number of independent batches that these are worth, less one for the mean.
        degrees_of_freedom: (batches as f64 / inflation - 1.0).max(2.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, share_of};

    /// Returns the share of 95 % intervals that hold the true mean.
    fn coverage(rho: f64, n: usize) -> f64 {
        share_of(2000, |seed| {
            let series = Noise::series(seed, rho, n, 1000.0, 0.1);
            let (low, high) = batch_means(&series).unwrap().interval(0.05);
            low <= 1000.0 && 1000.0 <= high
        })
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        for (rho, n, at_least) in [
            (0.0, 60, 0.94),
            (0.5, 60, 0.93),
            (0.5, 300, 0.94),
            (0.8, 120, 0.92),
        ] {
            let share = coverage(rho, n);
            assert!((at_least..0.995).contains(&share), "{rho} {n}: {share}");
        }
    }

    #[test]
    fn too_little_gives_nothing() {
        assert!(batch_means(&[1.0; 9]).is_none());
        let even = batch_means(&[3.0; 10]).unwrap();
        assert!((even.value - 3.0).abs() < 1e-12 && even.standard_error < 1e-12);
    }
}
