//! Many comparisons made together, and what each one shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Estimate;

/// One variant, b, compared with another, a.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatioComparison {
    /// b / a.
    #[schemars(with = "Option<f64>")]
    pub ratio: f64,
    /// Lower bound of the 95 % interval of `ratio`, for this comparison alone.
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// Upper bound of the 95 % interval of `ratio`, for this comparison alone; null where values without spread are
    /// too few for one.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// Probability (0 to 1) of a difference at least this large if there is none, corrected for the number of
    /// comparisons.
    #[schemars(range(min = 0, max = 1))]
    pub p_adjusted: f64,
    /// Whether `p_adjusted` is below 5 %.
    pub differs: bool,
    /// The smallest difference that would have been detected in four cases out of five, as a share of a: 0.03 is 3
    /// % more; null where values without spread are too few for any.
    #[schemars(with = "Option<f64>")]
    pub detectable: f64,
}

const ALPHA: f64 = 0.05;
/// A standard error of a logarithm below this is rounding: the values agree to nine digits.
const NO_SPREAD: f64 = 1e-9;

/// Returns what each estimate of ln(b / a) shows, where all of them belong to one question: in 95 % of cases
/// none of them finds a difference that is not there (Holm, "A simple sequentially rejective multiple test
/// procedure", Scandinavian Journal of Statistics 1979).
///
/// Values without any spread tell nothing of their error: they may agree because of what they were counted in. Of them
/// only the number counts: that n of them are on one side happens by chance in one of 2^(n - 1) cases (the sign test).
/// Where they are too few for that, the interval holds every ratio, and no difference would have been detected.
pub fn holm(log_ratios: &[Estimate]) -> Vec<RatioComparison> {
    let ps: Vec<f64> = log_ratios.iter().map(p_of_none).collect();
    let adjusted = holm_adjusted(&ps);
    let all = log_ratios.iter().zip(adjusted);
    // By the strictest step of the procedure, so that the promise holds there too.
    let strictest = ALPHA / log_ratios.len() as f64;
    all.map(|(estimate, p_adjusted)| {
        let (low, high) = match is_too_few(estimate, ALPHA) {
            true => (f64::NEG_INFINITY, f64::INFINITY),
            false => estimate.interval(ALPHA),
        };
        let detectable = match is_too_few(estimate, strictest) {
            true => f64::INFINITY,
            false => estimate.detectable(strictest),
        };
        RatioComparison {
            ratio: estimate.value.exp(),
            low: low.exp(),
            high: high.exp(),
            p_adjusted,
            differs: p_adjusted < ALPHA,
            detectable: detectable.exp() - 1.0,
        }
    })
    .collect()
}

/// Returns the probability of an estimate at least this far from zero if there is no difference.
fn p_of_none(estimate: &Estimate) -> f64 {
    if has_spread(estimate) {
        estimate.p_of_zero()
    } else if estimate.value.abs() < NO_SPREAD {
        1.0
    } else {
        p_by_signs(estimate)
    }
}

fn has_spread(estimate: &Estimate) -> bool {
    estimate.standard_error >= NO_SPREAD
}

/// Returns the probability that this many values are on one side of zero by chance.
fn p_by_signs(estimate: &Estimate) -> f64 {
    (-estimate.degrees_of_freedom).exp2()
}

/// Returns whether the values have no spread, and are too few to show a difference at `alpha` all the same.
fn is_too_few(estimate: &Estimate, alpha: f64) -> bool {
    !has_spread(estimate) && p_by_signs(estimate) >= alpha
}

/// Returns the p-values corrected as in [`holm`]: each is multiplied by the number of those at least as large,
/// and is never less than the result for a smaller one nor more than 1.
pub fn holm_adjusted(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|&a, &b| ps[a].total_cmp(&ps[b]));
    let mut adjusted = vec![1.0; ps.len()];
    let mut greatest: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        greatest = greatest.max(ps[index] * (ps.len() - rank) as f64).min(1.0);
        adjusted[index] = greatest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Noise, share_of};
    use crate::{log_ratio, paired_log_ratio};

    #[test]
    fn holm_on_a_worked_example() {
        let adjusted = holm_adjusted(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (found, expected) in adjusted.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    /// Returns paired repetitions of two variants on a machine whose speed drifts.
    fn pairs(seed: u64, n: usize, ratio: f64) -> Vec<(f64, f64)> {
        let machine = Noise::series(seed, 0.9, 2 * n, 1000.0, 0.1);
        let own = Noise::series(seed + 1_000_000, 0.0, 2 * n, 1.0, 0.05);
        let at = |i: usize, ratio: f64| machine[i] * own[i] * ratio;
        // ABBA order: drift affects both alike.
        (0..n)
            .map(|i| match i % 2 {
                0 => (at(2 * i, 1.0), at(2 * i + 1, ratio)),
                _ => (at(2 * i + 1, 1.0), at(2 * i, ratio)),
            })
            .collect()
    }

    #[test]
    fn repetitions_without_a_difference_show_none_and_a_real_one_is_found() {
        for n in [4, 6, 12] {
            let found = |seed: u64, ratio: f64| {
                holm(&[paired_log_ratio(&pairs(seed, n, ratio)).unwrap()])[0].differs
            };
            let false_positives = share_of(2000, |seed| found(seed, 1.0));
            assert!(false_positives <= 0.05, "{n}: {false_positives}");
            if n >= 6 {
                assert!(share_of(300, |seed| found(seed, 1.2)) >= 0.95, "{n}");
            }
        }
    }

    #[test]
    fn intervals_over_repetitions_hold_the_true_ratio() {
        let holds = |seed: u64| {
            let a = Noise::series(seed, 0.0, 5, 1000.0, 0.08);
            let b = Noise::series(seed + 1_000_000, 0.0, 5, 1100.0, 0.08);
            let c = holm(&[log_ratio(&a, &b).unwrap()])[0];
            c.low <= 1.1 && 1.1 <= c.high
        };
        let share = share_of(2000, holds);
        assert!((0.94..=0.975).contains(&share), "{share}");
    }

    #[test]
    fn many_comparisons_without_a_difference_find_one_no_more_often() {
        let share = share_of(1000, |seed| {
            let estimates: Vec<Estimate> = (0..10)
                .map(|k| paired_log_ratio(&pairs(seed * 10 + k, 6, 1.0)).unwrap())
                .collect();
            holm(&estimates).iter().any(|c| c.differs)
        });
        assert!(share <= 0.06, "{share}");
    }

    #[test]
    fn what_could_have_been_seen_is_seen_in_four_of_five() {
        let detectable: f64 = (0..200)
            .map(|seed| holm(&[paired_log_ratio(&pairs(seed, 8, 1.0)).unwrap()])[0].detectable)
            .sum::<f64>()
            / 200.0;
        let found = share_of(1000, |seed| {
            holm(&[paired_log_ratio(&pairs(seed, 8, 1.0 + detectable)).unwrap()])[0].differs
        });
        assert!((0.7..0.92).contains(&found), "{detectable}: {found}");
    }

    /// CPU time in ticks of 10 ms: both pairs of runs fell on 23 and 17 of them.
    #[test]
    fn few_pairs_without_spread_show_nothing() {
        let compared = |pairs: &[(f64, f64)]| holm(&[paired_log_ratio(pairs).unwrap()])[0];
        let ticks = compared(&[(23.0, 17.0); 2]);
        assert!(!ticks.differs && ticks.p_adjusted >= ALPHA, "{ticks:?}");
        assert!(ticks.low <= 0.0 && ticks.high.is_infinite(), "{ticks:?}");
        assert!(ticks.detectable.is_infinite(), "{ticks:?}");
        assert!((ticks.ratio - 17.0 / 23.0).abs() < 1e-12);
        // The same ratio, rounded in another place.
        let rounded = compared(&[23.0, 46.1, 69.3].map(|a| (a, a * 17.0 / 23.0)));
        assert!(!rounded.differs, "{rounded:?}");
        let equal = compared(&[(5.0, 5.0); 2]);
        assert!(
            !equal.differs && equal.detectable.is_infinite(),
            "{equal:?}"
        );
        let a = log_ratio(&[23.0, 23.0], &[17.0, 17.0]).unwrap();
        assert!(!holm(&[a])[0].differs);
    }

    #[test]
    fn many_pairs_without_spread_show_what_they_have_in_common() {
        let compared = |pairs: &[(f64, f64)]| holm(&[paired_log_ratio(pairs).unwrap()])[0];
        let ticks = compared(&[(23.0, 17.0); 6]);
        assert!(ticks.differs && ticks.detectable < 1e-6, "{ticks:?}");
        assert!((ticks.p_adjusted - 1.0 / 32.0).abs() < 1e-9);
        let equal = compared(&[(5.0, 5.0); 6]);
        assert!(!equal.differs && equal.detectable <= 0.0, "{equal:?}");
    }

    #[test]
    fn what_cannot_be_compared_is_none() {
        assert!(log_ratio(&[1.0], &[1.0, 2.0]).is_none());
        assert!(log_ratio(&[1.0, 0.0], &[1.0, 2.0]).is_none());
        assert!(paired_log_ratio(&[(1.0, f64::NAN), (1.0, 2.0)]).is_none());
        assert!(paired_log_ratio(&[]).is_none());
    }
}
