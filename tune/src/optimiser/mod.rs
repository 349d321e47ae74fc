//! Proposes what to try next, and recommends a setting: Bayesian optimisation under noise, with an
//! ask-and-tell interface.
//!
//! All state is the history: [`Optimiser::propose`] gives the same answer for the same history and seed,
//! whether the session was resumed or not.
//!
//! First come the default, presets and eight spread points. Then most proposals are where a Gaussian process
//! expects the greatest improvement over the best that it believes in (not the luckiest run); every third
//! comes from a Parzen estimator, which keeps trying what the model has given up. Each configuration is run
//! once: the model averages noise over neighbours, so repetitions are only for winners that surprise it.

mod acquisition;
mod design;
mod history;
mod model;
mod propose;
mod setting;
#[cfg(test)]
mod tests;
mod tpe;

pub use history::{Goal, History, Outcome, Trial};
use model::Learnt;
pub(crate) use model::Model;
pub use propose::{Origin, Proposal};
pub(crate) use setting::Setting;
use setting::settings;

use serde::{Deserialize, Serialize};

use crate::space::{Configuration, Space, SpaceError};

/// Steps of learning from the first trials, and after each further one from the last result.
const STEPS_FIRST: usize = 40;
const STEPS_NEXT: usize = 6;

/// How proposals alternate. The default is what did best on the responses in [`crate::synthetic`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strategy {
    /// Interval of proposals from the Parzen estimator; 0 is none.
    pub parzen_every: usize,
    /// Interval of proposals in a neglected part of the space; 0 is none.
    pub screening_every: usize,
    /// Shortest interval of proposals that repeat a winner that the model does not believe; 0 is none.
    pub retest_every: usize,
    /// Smallest surprise (a logarithm of a ratio) that justifies a repetition.
    pub retest_gain: f64,
    /// The most runs of a configuration during the search.
    pub retest_runs: usize,
}

impl Default for Strategy {
    fn default() -> Self {
        Self {
            parzen_every: 3,
            screening_every: 0,
            retest_every: 8,
            retest_gain: 0.02,
            retest_runs: 3,
        }
    }
}

/// Proposes what to try, and recommends the best; see the module.
#[derive(Debug, Clone)]
pub struct Optimiser {
    space: Space,
    goal: Goal,
    seed: u64,
    strategy: Strategy,
    /// Levels that are tried before there is a model: default, presets, spread points.
    opening: Vec<Vec<f64>>,
    presets: usize,
    memo: Memo,
}

/// Parameters learnt from the first trials of a history. This saves time without changing results.
#[derive(Debug, Clone, Default)]
struct Memo {
    trials: Vec<Trial>,
    learnt: Learnt,
}

/// The beliefs after some history.
#[derive(Debug, Clone)]
pub(crate) struct Believed {
    pub(crate) model: Model,
    pub(crate) known: Vec<Setting>,
}

impl Believed {
    /// Returns the working settings with their expected mean scores, best first.
    pub(crate) fn ranking(&self) -> Vec<(&Setting, f64)> {
        let working = self.known.iter().filter(|s| s.succeeds());
        let mut ranking: Vec<_> = working.map(|s| (s, self.model.mean(&s.features))).collect();
        ranking.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranking
    }

    pub(crate) fn incumbent(&self) -> Option<(&Setting, f64)> {
        self.ranking().into_iter().next()
    }

    /// Returns the lowest measured mean score.
    fn lowest(&self) -> f64 {
        let measured = self.known.iter().filter(|s| s.runs() > 0);
        measured.map(Setting::mean).fold(f64::INFINITY, f64::min)
    }
}

/// The setting to use, as far as is known. Its figures are what the search believes: they are a guide, and
/// only a duel proves them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommendation {
    pub configuration: Configuration,
    /// Expected value of the metric, and its 95 % interval according to the model.
    pub expected: f64,
    pub low: f64,
    pub high: f64,
    /// Number of runs.
    pub runs: usize,
}

impl Optimiser {
    /// Creates an optimiser. Presets are settings known to be good, tried right after the default.
    pub fn new(
        space: Space,
        presets: &[Configuration],
        goal: Goal,
        seed: u64,
    ) -> Result<Self, SpaceError> {
        let presets: Vec<Vec<f64>> = presets
            .iter()
            .map(|preset| space.levels_of(preset))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            opening: design::opening(&space, &presets, seed),
            presets: presets.len(),
            space,
            goal,
            seed,
            strategy: Strategy::default(),
            memo: Memo::default(),
        })
    }

    /// Returns the optimiser with another strategy.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    pub fn space(&self) -> &Space {
        &self.space
    }

    pub(crate) fn goal(&self) -> Goal {
        self.goal
    }

    /// Returns what to run next after this history.
    pub fn propose(&mut self, history: &History) -> Proposal {
        let known = settings(&self.space, self.goal, &history.trials);
        let untried = |levels: &&Vec<f64>| !known.iter().any(|s| s.levels == **levels);
        let (levels, origin) = match self.opening.iter().enumerate().find(|(_, l)| untried(l)) {
            Some((0, levels)) => (levels.clone(), Origin::Default),
            Some((nth, levels)) if nth <= self.presets => (levels.clone(), Origin::Preset),
            Some((_, levels)) => (levels.clone(), Origin::Design),
            None => {
                let believed = self.believe(history);
                propose::next(self, history.trials.len(), &known, believed.as_ref())
            }
        };
        Proposal {
            configuration: self.space.configuration(&levels),
            origin,
        }
    }

    /// Returns the setting with the highest expectation among those that were run and never failed; `None`
    /// before two settings have worked.
    pub fn recommend(&mut self, history: &History) -> Option<Recommendation> {
        let believed = self.believe(history)?;
        let (setting, mean) = believed.incumbent()?;
        let deviation = believed.model.at(&setting.features).deviation;
        let ends = [-1.96, 1.96].map(|z| self.goal.value(mean + z * deviation));
        Some(Recommendation {
            configuration: self.space.configuration(&setting.levels),
            expected: self.goal.value(mean),
            low: ends[0].min(ends[1]),
            high: ends[0].max(ends[1]),
            runs: setting.runs(),
        })
    }

    /// Returns the model after a history. Learning continues from trial to trial, always from the same one,
    /// so that a resumed session learns what the interrupted one did.
    pub(crate) fn believe(&mut self, history: &History) -> Option<Believed> {
        let trials = &history.trials;
        let start = self.opening.len();
        if trials.len() < start {
            return self.learn(trials, &mut Learnt::default(), STEPS_FIRST);
        }
        if !trials.starts_with(&self.memo.trials) {
            self.memo = Memo::default();
        }
        let mut learnt = std::mem::take(&mut self.memo.learnt);
        let begin = (self.memo.trials.len() + 1).max(start);
        for end in begin..=trials.len() {
            let steps = if end == start {
                STEPS_FIRST
            } else {
                STEPS_NEXT
            };
            self.learn(&trials[..end], &mut learnt, steps);
        }
        let believed = self.learn(trials, &mut learnt, 0);
        self.memo = Memo {
            trials: trials.clone(),
            learnt,
        };
        believed
    }

    fn learn(&self, trials: &[Trial], learnt: &mut Learnt, steps: usize) -> Option<Believed> {
        let known = settings(&self.space, self.goal, trials);
        let model = Model::new(&self.space, &known, learnt, steps)?;
        Some(Believed { model, known })
    }
}
