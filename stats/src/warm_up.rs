//! Finds where a warm-up ends, by the truncation rule MSER-5.
//!
//! White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 1997; White,
//! Cobb and Spratt, "A comparison of five steady-state truncation heuristics", WSC 2000. Of all points at which
//! the beginning can be cut off, the rule takes the one that leaves the smallest standard error of the mean:
//! cutting values that are far from the rest pays, cutting more does not. A later outage makes the good
//! beginning the part that is far from the rest, so a caller with failures among its values must not cut.

use serde::{Deserialize, Serialize};

use crate::{Verdict, steadiness};

/// Values are judged in means of this many, which dampens noise.
const BATCH: usize = 5;
/// The fewest batches from which anything can be decided.
const BATCHES_MIN: usize = 4;

/// How a series begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmUp {
    /// The number of leading values that belong to the warm-up; 0 if none was seen.
    Cut(usize),
    /// The best cut lies in the second half, and what remains after the best one in the first half drifts.
    NeverSettled,
    /// Fewer than 20 values.
    TooShort,
}

/// Applies MSER-5 to a series of equally long intervals, e.g. operations in each second. Values must be finite.
pub fn warm_up(series: &[f64]) -> WarmUp {
    let means: Vec<f64> = series
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let batches = means.len();
    if batches < BATCHES_MIN {
        return WarmUp::TooShort;
    }
    // The best cut anywhere, and the best in the first half: (statistic, batches).
    let (mut best, mut best_early) = ((f64::INFINITY, 0), (f64::INFINITY, 0));
    // Starting from the end, so that each further batch is added to the sums once. The last few are not
    // candidates: so few can agree by chance.
    let (mut mean, mut squares) = (0.0, 0.0);
    for cut in (0..batches).rev() {
        let kept = (batches - cut) as f64;
        let distance = means[cut] - mean;
        mean += distance / kept;
        squares += distance * (means[cut] - mean);
        if batches - cut < BATCHES_MIN.min(batches / 2) {
            continue;
        }
        // Of equal statistics, the earliest wins.
        let statistic = squares / (kept * kept);
        if statistic <= best.0 {
            best = (statistic, cut);
        }
        if cut <= batches / 2 && statistic <= best_early.0 {
            best_early = (statistic, cut);
        }
    }
    let kept = &series[best_early.1 * BATCH..];
    let drifts = || steadiness(kept).is_some_and(|s| s.verdict == Verdict::Drifting);
    // The rule alone would reject one steady series in six.
    if best.1 > batches / 2 && drifts() {
        WarmUp::NeverSettled
    } else {
        WarmUp::Cut(best_early.1 * BATCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Noise;

    /// Returns `warm` values that rise from half to the level, followed by values at the level; noise of 5 %,
    /// correlated.
    fn rising(warm: usize, n: usize, seed: u64) -> Vec<f64> {
        let mut noise = Noise::new(seed, 0.5);
        let level = |i: usize| {
            if i < warm {
                500.0 + 500.0 * i as f64 / warm as f64
            } else {
                1000.0
            }
        };
        (0..n).map(|i| level(i) + 50.0 * noise.draw()).collect()
    }

    #[test]
    fn a_warm_up_is_cut_off_and_little_else() {
        let mut good = 0;
        for seed in 0..200 {
            if let WarmUp::Cut(cut) = warm_up(&rising(20, 120, seed)) {
                good += usize::from((10..=50).contains(&cut));
            }
        }
        assert!(good >= 180, "{good} of 200");
    }

    #[test]
    fn what_never_settles_is_told() {
        let never = |seed| warm_up(&rising(120, 120, seed)) == WarmUp::NeverSettled;
        let told = (0..200).filter(|&seed| never(seed)).count();
        assert!(told >= 180, "{told} of 200");
    }

    #[test]
    fn an_even_series_loses_little() {
        let cuts: Vec<usize> = (0..200)
            .filter_map(|seed| match warm_up(&rising(0, 120, seed)) {
                WarmUp::Cut(cut) => Some(cut),
                _ => None,
            })
            .collect();
        let mean = cuts.iter().sum::<usize>() as f64 / cuts.len() as f64;
        assert!(cuts.len() >= 190 && mean < 15.0, "{} {mean}", cuts.len());
        assert_eq!(warm_up(&[7.0; 60]), WarmUp::Cut(0));
        assert_eq!(warm_up(&[7.0; 19]), WarmUp::TooShort);
        assert_eq!(warm_up(&[]), WarmUp::TooShort);
    }
}
