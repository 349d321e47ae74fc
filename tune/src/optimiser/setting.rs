//! Groups trials by configuration: runs of the same one are repetitions.

use super::{Goal, Outcome, Trial};
use crate::space::Space;

/// A configuration and the results of its runs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) levels: Vec<f64>,
    pub(crate) features: Vec<f64>,
    /// Score and noise factor of each run that succeeded.
    runs: Vec<(f64, f64)>,
    pub(crate) failures: usize,
    /// Number of the trial that first tried it.
    pub(crate) first: usize,
}

/// Noise factors outside this range are clamped before dividing by them.
const NOISE_FACTOR: std::ops::RangeInclusive<f64> = 0.05..=100.0;

impl Setting {
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether it has never failed. A setting that failed once is not to be recommended.
    pub(crate) fn succeeds(&self) -> bool {
        self.failures == 0 && !self.runs.is_empty()
    }

    fn weight(&self) -> f64 {
        self.runs.iter().map(|(_, noise)| 1.0 / noise).sum()
    }

    /// Returns the mean score, weighted by the precision of each run.
    pub(crate) fn mean(&self) -> f64 {
        let sum: f64 = self.runs.iter().map(|(score, noise)| score / noise).sum();
        sum / self.weight()
    }

    /// Returns the variance of the mean in units of one ordinary run's.
    pub(crate) fn noise_scale(&self) -> f64 {
        1.0 / self.weight()
    }
}

/// Returns the settings in the order in which they were first tried. Trials of configurations that the space
/// does not have (any more) are left out.
pub(crate) fn settings(space: &Space, goal: Goal, trials: &[Trial]) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for (number, trial) in trials.iter().enumerate() {
        let Ok(levels) = space.levels_of(&trial.configuration) else {
            continue;
        };
        let known = settings.iter().position(|s| s.levels == levels);
        let at = known.unwrap_or_else(|| {
            settings.push(Setting {
                features: space.featurise(&levels),
                levels,
                runs: Vec::new(),
                failures: 0,
                first: number,
            });
            settings.len() - 1
        });
        let score = match trial.outcome {
            Outcome::Measured { value, noise } => goal.score(value).map(|score| (score, noise)),
            Outcome::Failed { .. } => None,
        };
        match score {
            Some((score, noise)) => {
                let noise = if noise.is_nan() { 1.0 } else { noise };
                let noise = noise.clamp(*NOISE_FACTOR.start(), *NOISE_FACTOR.end());
                settings[at].runs.push((score, noise));
            }
            None => settings[at].failures += 1,
        }
    }
    settings
}
