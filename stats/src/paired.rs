//! Ratios of interleaved pairs, for comparing two variants on a noisy machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SplitMix64, median};

/// The median of `with / without` over pairs, with its 95 % percentile-bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PairedRatio {
    pub median: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

const RESAMPLES: usize = 2000;

/// Compares pairs of (without, with); returns `None` if there are no pairs or a base is not positive. With
/// fewer than about 6 pairs the interval is close to the minimum and maximum; a narrower one would not be
/// credible.
pub fn paired_ratio(pairs: &[(f64, f64)], seed: u64) -> Option<PairedRatio> {
    if pairs.iter().any(|(without, _)| *without <= 0.0) {
        return None;
    }
    let ratios: Vec<f64> = pairs.iter().map(|(without, with)| with / without).collect();
    let centre = median(&ratios)?;
    let mut rng = SplitMix64::new(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let resample: Vec<f64> = (0..ratios.len())
                .map(|_| ratios[usize::try_from(rng.below(ratios.len() as u64)).unwrap_or(0)])
                .collect();
            median(&resample)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let at = |q| crate::quantile_sorted(&medians, q).unwrap_or(centre);
    Some(PairedRatio {
        median: centre,
        low: at(0.025),
        high: at(0.975),
        pairs: ratios.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_ratio_is_inside_its_interval() {
        let mut rng = SplitMix64::new(3);
        let pairs: Vec<(f64, f64)> = (0..40)
            .map(|_| {
                let base = 1.0 + rng.unit_f64();
                (base, base * 1.2 * (0.95 + 0.1 * rng.unit_f64()))
            })
            .collect();
        let r = paired_ratio(&pairs, 1).unwrap();
        assert!(
            r.low <= 1.2 && 1.2 <= r.high && r.high - r.low < 0.1,
            "{r:?}"
        );
    }

    #[test]
    fn nothing_to_compare_is_none() {
        assert!(paired_ratio(&[], 1).is_none());
        assert!(paired_ratio(&[(0.0, 1.0)], 1).is_none());
    }
}
