//! Ends runs that cannot win: after 30 % and 60 % of their window.
//!
//! How much a partial figure says about the final one is learnt from the completed runs: a run is abandoned
//! only if even the upper 99 % bound of its final figure is below 60 % of the best. It is up to the caller to
//! run the default and presets in full.

use seekscope_stats::Estimate;
use serde::{Deserialize, Serialize};

use crate::optimiser::{Goal, Outcome};

/// When to check, as shares of the window.
pub const CHECKPOINTS: [f64; 2] = [0.3, 0.6];
/// A run is hopeless below this share of the best.
const HOPELESS: f64 = 0.6;
/// One-sided error of the bound.
const ALPHA: f64 = 0.01;
/// With fewer completed runs, none is ended early.
const COMPLETED_MIN: usize = 5;
/// An early end says less than a whole run: its variance counts this many times.
const NOISE: f64 = 2.0;

/// Relations between completed runs' figures at their checkpoints and at their end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlyStop {
    goal: Goal,
    /// Per checkpoint: final minus partial score of each completed run.
    gains: [Vec<f64>; CHECKPOINTS.len()],
}

impl EarlyStop {
    pub fn new(goal: Goal) -> Self {
        Self {
            goal,
            gains: Default::default(),
        }
    }

    /// Learns from a completed run: its figure up to each checkpoint, and at the end. Figures that are not
    /// positive numbers are ignored.
    pub fn completed(&mut self, partial: [f64; CHECKPOINTS.len()], end: f64) {
        for (gains, partial) in self.gains.iter_mut().zip(partial) {
            let scores = self.goal.score(partial).zip(self.goal.score(end));
            gains.extend(scores.map(|(partial, end)| end - partial));
        }
    }

    /// Decides whether a run whose figure up to a checkpoint (0 or 1) is `partial` should end, given the best
    /// setting's expected figure; if so, returns the outcome to record for it.
    pub fn hopeless(&self, checkpoint: usize, partial: f64, best: f64) -> Option<Outcome> {
        let gains = self
            .gains
            .get(checkpoint)
            .filter(|g| g.len() >= COMPLETED_MIN)?;
        let (partial, best) = (self.goal.score(partial)?, self.goal.score(best)?);
        let gain = Estimate::of_mean(gains)?;
        // The bound for one more run, not for the mean.
        let one = Estimate {
            standard_error: gain.standard_error * (gains.len() as f64 + 1.0).sqrt(),
            ..gain
        };
        let (_, upper) = one.interval(2.0 * ALPHA);
        (partial + upper < best + HOPELESS.ln()).then(|| Outcome::Measured {
            value: self.goal.value(partial + gain.value),
            noise: NOISE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seekscope_stats::SplitMix64;

    fn taught(goal: Goal, noise: f64) -> EarlyStop {
        let (mut rule, mut rng) = (EarlyStop::new(goal), SplitMix64::new(5));
        for _ in 0..10 {
            let end = 1000.0 * (1.0 + rng.unit_f64());
            let partial = [0.9, 0.95].map(|share| end * share * (noise * rng.normal()).exp());
            rule.completed(partial, end);
        }
        rule
    }

    #[test]
    fn what_cannot_win_ends_and_what_could_goes_on() {
        let rule = taught(Goal::Maximise, 0.02);
        let Some(Outcome::Measured { value, noise }) = rule.hopeless(0, 450.0, 1000.0) else {
            panic!("450 of 1000 is hopeless");
        };
        assert!((value / 500.0 - 1.0).abs() < 0.03 && noise > 1.0, "{value}");
        assert_eq!(rule.hopeless(0, 560.0, 1000.0), None);
        // Where partial figures say little, nothing is ended.
        assert_eq!(taught(Goal::Maximise, 0.5).hopeless(0, 450.0, 1000.0), None);
        assert_eq!(
            EarlyStop::new(Goal::Maximise).hopeless(0, 1.0, 1000.0),
            None
        );
        assert_eq!(rule.hopeless(7, 1.0, 1000.0), None);
        assert_eq!(rule.hopeless(0, f64::NAN, 1000.0), None);
    }

    #[test]
    fn of_what_is_to_be_low_the_high_ends() {
        let rule = taught(Goal::Minimise, 0.02);
        assert!(rule.hopeless(1, 2000.0, 1000.0).is_some());
        assert_eq!(rule.hopeless(1, 1200.0, 1000.0), None);
    }
}
