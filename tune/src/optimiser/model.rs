//! Models all configurations, given those that were tried.

use super::setting::Setting;
use crate::gp::{Belief, Data, Hyper, Learner, Process, prior};
use crate::space::Space;
use seekscope_stats::normal_below;

/// The most settings in a model; more would take seconds. The oldest mediocre ones are left out.
const SETTINGS_MAX: usize = 300;
/// Prior feasibility of an unknown configuration, which is expected to work: +1 works, -1 fails.
const FEASIBLE_EXPECTED: f64 = 0.6;
/// Scores are logarithms; smaller deviations are rounding errors of equal figures.
const SPREAD_MIN: f64 = 1e-6;

/// See [`Model::foretells`] and [`Model::foretells_more_than`].
const CHANCE: f64 = 2.0;

/// Beliefs about score and feasibility.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    score: Process,
    centre: f64,
    spread: f64,
    feasible: Option<Process>,
}

/// Parameters learnt so far, from which the next learning starts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learnt {
    pub(crate) score: Option<Hyper>,
    pub(crate) feasible: Option<Hyper>,
}

impl Model {
    /// Builds the model; `None` for fewer than two settings that work.
    pub(crate) fn new(
        space: &Space,
        settings: &[Setting],
        learnt: &mut Learnt,
        steps: usize,
    ) -> Option<Self> {
        let working = kept(settings.iter().filter(|s| s.runs() > 0).collect());
        if working.len() < 2 {
            return None;
        }
        let n = working.len() as f64;
        let centre = working.iter().map(|s| s.mean()).sum::<f64>() / n;
        let variance = working
            .iter()
            .map(|s| (s.mean() - centre).powi(2))
            .sum::<f64>()
            / n;
        let spread = variance.sqrt().max(SPREAD_MIN);
        let data = Data {
            kinds: space.features().iter().map(|(kind, _)| *kind).collect(),
            points: working.iter().map(|s| s.features.clone()).collect(),
            outcomes: working
                .iter()
                .map(|s| (s.mean() - centre) / spread)
                .collect(),
            noise_scale: working.iter().map(|s| s.noise_scale()).collect(),
        };
        let score = learn(&data, &mut learnt.score, steps)?;
        let feasible = Self::feasibility(&data, settings, learnt, steps);
        Some(Self {
            score,
            centre,
            spread,
            feasible,
        })
    }

    fn feasibility(
        data: &Data,
        settings: &[Setting],
        learnt: &mut Learnt,
        steps: usize,
    ) -> Option<Process> {
        if settings.iter().all(|s| s.failures == 0) {
            return None;
        }
        let all = kept(settings.iter().collect());
        let works = |s: &&Setting| if s.failures > 0 { -1.0 } else { 1.0 };
        let data = Data {
            kinds: data.kinds.clone(),
            points: all.iter().map(|s| s.features.clone()).collect(),
            outcomes: all.iter().map(|s| works(s) - FEASIBLE_EXPECTED).collect(),
            noise_scale: vec![1.0; all.len()],
        };
        learn(&data, &mut learnt.feasible, steps)
    }

    /// Returns the belief about the score at a point.
    pub(crate) fn at(&self, features: &[f64]) -> Belief {
        let belief = self.score.at(features);
        Belief {
            mean: self.centre + self.spread * belief.mean,
            deviation: self.spread * belief.deviation,
        }
    }

    pub(crate) fn mean(&self, features: &[f64]) -> f64 {
        self.centre + self.spread * self.score.mean(features)
    }

    /// Returns the standard deviation of one run's score.
    pub(crate) fn noise(&self) -> f64 {
        self.spread * self.score.hyper().noise().sqrt()
    }

    /// Returns the probability that a point works.
    pub(crate) fn feasible(&self, features: &[f64]) -> f64 {
        self.feasible.as_ref().map_or(1.0, |process| {
            let belief = process.at(features);
            let spread = (belief.deviation.powi(2) + 0.1).sqrt();
            normal_below((belief.mean + FEASIBLE_EXPECTED) / spread)
        })
    }

    /// Returns whether the model predicts more of each setting's difference from the others' mean, from the
    /// others alone, than it would if no knob did anything: for n such settings it seems to predict more than
    /// 2 / √n in at most one case of ten, with one knob as with five.
    pub(crate) fn foretells(&self) -> bool {
        if self.spread <= SPREAD_MIN {
            return false;
        }
        let n = self.score.outcomes().len() as f64;
        // Standardised: their mean is zero, and without one of them it is off by its share.
        let of_mean = square(self.score.outcomes()) * (n / (n - 1.0)).powi(2);
        self.foretells_more_than(of_mean)
    }

    /// Returns whether the model predicts each setting from the others better with these features than without them,
    /// by more than chance. In simulated searches 1 to 8 % of the knobs that do nothing passed, however many there were;
    /// one that made a difference of eight times the noise was never missed after 25 settings.
    pub(crate) fn needs(&self, is_meant: impl Fn(usize) -> bool) -> bool {
        let without = self.score.without(is_meant);
        without
            .is_some_and(|without| self.foretells_more_than(square(&without.left_out_residuals())))
    }

    /// Returns whether the residuals of settings that are predicted from the others are smaller, by more than chance,
    /// than those of another prediction, of which the sum of squares is given.
    fn foretells_more_than(&self, other_square: f64) -> bool {
        let residuals = self.score.left_out_residuals();
        let n = residuals.len() as f64;
        square(&residuals) < (1.0 - CHANCE / n.sqrt()) * other_square
    }

    /// Returns the process behind [`Model::at`], with the factor from its units to scores.
    pub(crate) fn process(&self) -> (&Process, f64) {
        (&self.score, self.spread)
    }
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}

fn learn(data: &Data, learnt: &mut Option<Hyper>, steps: usize) -> Option<Process> {
    let usual = || {
        let prior = prior(data.kinds.len());
        Hyper::new(prior.into_iter().map(|(mean, _)| mean).collect())
    };
    let hyper = Learner::new(data).climb(learnt.clone().unwrap_or_else(usual), steps);
    let process = Process::new(data, hyper.clone()).or_else(|| Process::new(data, usual()));
    *learnt = Some(hyper);
    process
}

/// Returns all settings, or of very many the best half and the newest half.
fn kept(mut settings: Vec<&Setting>) -> Vec<&Setting> {
    if settings.len() > SETTINGS_MAX {
        let older = settings.len() - SETTINGS_MAX / 2;
        let score = |s: &Setting| {
            if s.runs() > 0 {
                s.mean()
            } else {
                f64::NEG_INFINITY
            }
        };
        settings[..older].sort_by(|a, b| score(b).total_cmp(&score(a)));
        settings.drain(SETTINGS_MAX / 2..older);
    }
    settings
}
