//! A test of whether a series stayed where it was or drifted.

use serde::{Deserialize, Serialize};

use crate::Estimate;
use crate::autocorrelation::{RHO_MAX, lag1_correlation, variance_inflation};

/// A drift from first to last of less than this share of the mean does not count as one.
const DRIFT_MIN: f64 = 0.05;
/// An interval wider than this to either side allows no conclusion.
const BLIND: f64 = 0.25;
const ALPHA: f64 = 0.05;
const VALUES_MIN: usize = 10;

/// What can be concluded about a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Steady,
    /// It changes in one direction, by 5 % of its mean or more.
    Drifting,
    /// It is so noisy, or so short, that a drift by a quarter could be hidden.
    CannotTell,
}

/// A straight line through a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Steadiness {
    pub verdict: Verdict,
    /// The change from the first value to the last, as a share of the mean: -0.1 is a loss of a tenth.
    pub change: f64,
    /// 95 % interval of `change`, which takes the dependence between values into account.
    pub low: f64,
    pub high: f64,
    /// Correlation of the residuals from one value to the next.
    pub correlation: f64,
}

/// Fits a line by least squares, with an interval widened for the correlation of the residuals (effective
/// sample size of an autoregressive process of order 1; Santer et al., "Statistical significance of trends",
/// Journal of Geophysical Research 2000). Returns `None` for fewer than 10 values, or if their mean is not
/// positive.
pub fn steadiness(series: &[f64]) -> Option<Steadiness> {
    let n = series.len() as f64;
    let mean = series.iter().sum::<f64>() / n;
    // This also rejects a mean that is not a number.
    if series.len() < VALUES_MIN || !(mean > 0.0 && mean.is_finite()) {
        return None;
    }
    let middle = (n - 1.0) / 2.0;
    let place = |i: usize| i as f64 - middle;
    let spread: f64 = (0..series.len()).map(|i| place(i).powi(2)).sum();
    let slope = series
        .iter()
        .enumerate()
        .map(|(i, v)| place(i) * (v - mean))
        .sum::<f64>()
        / spread;
    let residuals: Vec<f64> = (series.iter().enumerate())
        .map(|(i, v)| v - mean - slope * place(i))
        .collect();
    let correlation = lag1_correlation(&residuals);
    // A line removes more of the correlation than a mean does, and `lag1_correlation` corrects for a mean.
    let correlation = (correlation + (1.0 + correlation) / n).min(RHO_MAX);
    let effective = (n / variance_inflation(correlation)).max(3.5);
    let squares: f64 = residuals.iter().map(|r| r * r).sum();
    let variance = squares / (effective - 2.0);
    let estimate = Estimate {
        value: slope * (n - 1.0) / mean,
        standard_error: (variance / spread).sqrt() * (n - 1.0) / mean,
        degrees_of_freedom: effective - 2.0,
    };
    let (low, high) = estimate.interval(ALPHA);
    let change = estimate.value;
    let verdict = if change.abs() >= DRIFT_MIN && (low > 0.0 || high < 0.0) {
        Verdict::Drifting
    } else if (high - low) / 2.0 > BLIND {
        Verdict::CannotTell
    } else {
        Verdict::Steady
    };
    Some(Steadiness {
        verdict,
        change,
        low,
        high,
        correlation,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, share_of};

    fn verdict(rho: f64, drift: f64, seed: u64) -> Verdict {
        let mut series = Noise::series(seed, rho, 120, 1000.0, 0.05);
        for (i, value) in series.iter_mut().enumerate() {
            *value += 1000.0 * drift * (i as f64 / 119.0 - 0.5);
        }
        steadiness(&series).unwrap().verdict
    }

    #[test]
    fn without_a_drift_one_is_seldom_seen() {
        // Where 120 values carry as much information as 13, the correction itself is uncertain.
        for (rho, at_most) in [(0.0, 0.05), (0.5, 0.05), (0.8, 0.065)] {
            let share = share_of(1000, |seed| verdict(rho, 0.0, seed) == Verdict::Drifting);
            assert!(share <= at_most, "{rho}: {share}");
        }
    }

    #[test]
    fn a_drift_is_seen() {
        let share = share_of(500, |seed| verdict(0.5, -0.2, seed) == Verdict::Drifting);
        assert!(share >= 0.95, "{share}");
        let steady = share_of(500, |seed| verdict(0.5, 0.0, seed) == Verdict::Steady);
        assert!(steady >= 0.95, "{steady}");
    }

    #[test]
    fn noise_hides_what_it_hides() {
        let noisy = Noise::series(4, 0.8, 20, 1000.0, 0.6);
        assert_eq!(steadiness(&noisy).unwrap().verdict, Verdict::CannotTell);
        assert_eq!(steadiness(&[0.0; 50]), None);
        assert_eq!(steadiness(&[1.0; 9]), None);
        assert_eq!(steadiness(&[f64::NAN; 50]), None);
    }
}
