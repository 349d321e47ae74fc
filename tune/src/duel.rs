//! Decides whether one setting is really better than another: fresh runs in randomised pairs, tested at
//! several looks, with an error of 5 % over all looks.
//!
//! A pair is run close together and in random order, so that drift affects both alike. Of each pair only the
//! logarithm of the ratio counts, and of these only Student's t, which holds from four pairs on. Looking
//! several times would find a non-existent difference more often than promised, so each look may only spend
//! its part of the 5 % (Lan and DeMets, "Discrete sequential boundaries for clinical trials", 1983; here by
//! the union bound, which holds however the looks depend on one another).

mod interval;

use seekscope_stats::{Estimate, SplitMix64, shuffled, t_critical};
use serde::{Deserialize, Serialize};

use crate::optimiser::Goal;

/// The looks, by number of pairs, and what each may spend of the error: 0.05 (n / 24)² in total, up to it.
pub const LOOKS: [Look; 6] = [
    Look {
        pairs: 4,
        alpha: 0.0014,
    },
    Look {
        pairs: 6,
        alpha: 0.0017,
    },
    Look {
        pairs: 8,
        alpha: 0.0024,
    },
    Look {
        pairs: 12,
        alpha: 0.0069,
    },
    Look {
        pairs: 16,
        alpha: 0.0097,
    },
    Look {
        pairs: 24,
        alpha: 0.0278,
    },
];
/// A gain below this share is not worth more runs.
pub const GAIN_MIN: f64 = 0.02;
/// One-sided error of the futility bound.
const FUTILITY_ALPHA: f64 = 0.10;

/// One look at the pairs so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    pub pairs: usize,
    /// One-sided error.
    pub alpha: f64,
}

/// The result of a duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    /// A gain of 2 % or more is improbable.
    NotBetter,
    /// All pairs were run and the result is open.
    Unresolved,
}

/// State of a duel after some pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// `None` while more pairs are needed.
    pub verdict: Option<Verdict>,
    /// Pairs that the judgement is based on: those of the look that decided.
    pub pairs: usize,
    /// Candidate over baseline in the direction of the goal: above 1 means better.
    pub ratio: f64,
    /// 95 % interval of `ratio`, corrected for a possible early stop of the duel.
    pub low: f64,
    pub high: f64,
    /// Standard deviation of the logarithm of a pair's ratio.
    pub deviation: f64,
}

/// Returns the order of `arms` runs in each of `blocks`, all from the seed.
pub fn block_orders(arms: usize, blocks: usize, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = SplitMix64::new(seed);
    let order = |seed| -> Vec<usize> {
        let drawn = shuffled::distinct(arms as u64, arms as u64, seed);
        drawn
            .into_iter()
            .map(|arm| usize::try_from(arm).unwrap_or(0))
            .collect()
    };
    (0..blocks).map(|_| order(rng.next_u64())).collect()
}

/// Judges pairs (baseline, candidate) in the order in which they were run, at every look that they reach.
/// Pairs with a value that is not a positive number are left out: a failed run is no measurement, and the
/// caller must have decided about failed runs first. `None` for fewer than two pairs.
pub fn judge(pairs: &[(f64, f64)], goal: Goal) -> Option<Judgement> {
    let score = |(base, candidate): &(f64, f64)| Some(goal.score(*candidate)? - goal.score(*base)?);
    let gains: Vec<f64> = pairs.iter().filter_map(score).collect();
    for (nth, look) in LOOKS.iter().enumerate() {
        let Some(gains) = gains.get(..look.pairs) else {
            break;
        };
        let estimate = Estimate::of_mean(gains)?;
        if let Some(verdict) = decide(nth, &estimate) {
            let interval = interval::stagewise(nth, &estimate);
            return Some(judgement(Some(verdict), look.pairs, &estimate, interval));
        }
    }
    let estimate = Estimate::of_mean(&gains)?;
    Some(judgement(
        None,
        gains.len(),
        &estimate,
        estimate.interval(0.05),
    ))
}

fn judgement(
    verdict: Option<Verdict>,
    pairs: usize,
    estimate: &Estimate,
    (low, high): (f64, f64),
) -> Judgement {
    Judgement {
        verdict,
        pairs,
        ratio: estimate.value.exp(),
        low: low.exp(),
        high: high.exp(),
        deviation: estimate.standard_error * (pairs as f64).sqrt(),
    }
}

/// Returns the verdict at a look, given the mean gain; `None` to continue.
fn decide(nth: usize, estimate: &Estimate) -> Option<Verdict> {
    let bounds = interval::bounds(nth);
    if estimate.value > bounds.better * estimate.standard_error {
        Some(Verdict::Better)
    } else if estimate.value + bounds.futile * estimate.standard_error < GAIN_MIN.ln_1p() {
        Some(Verdict::NotBetter)
    } else {
        (nth + 1 == LOOKS.len()).then_some(Verdict::Unresolved)
    }
}

/// Student's t beyond which a look decides.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    better: f64,
    futile: f64,
}

impl Bounds {
    fn of(look: &Look) -> Self {
        let degrees_of_freedom = look.pairs as f64 - 1.0;
        Self {
            // One-sided.
            better: t_critical(2.0 * look.alpha, degrees_of_freedom),
            futile: t_critical(2.0 * FUTILITY_ALPHA, degrees_of_freedom),
        }
    }
}

#[cfg(test)]
mod tests;
