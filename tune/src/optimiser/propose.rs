//! The order of proposals.

use seekscope_stats::SplitMix64;
use serde::{Deserialize, Serialize};

use super::acquisition::{Search, log_expected_improvement};
use super::{Goal, History, Learnt, Model, Setting, design, settings, tpe};
use crate::space::{Configuration, Range, Space, SpaceError};

/// Steps of learning after each trial; what was learnt from the trials before is where it begins.
const STEPS: usize = 6;

/// Why a configuration is proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Default,
    Preset,
    /// A point of the first, evenly spread ones.
    Design,
    /// The model expects most of it.
    Model,
    /// Knobs as the best settings have them.
    Parzen,
    /// The best in a part of the space that has been neglected.
    Screening,
    /// It did so well that it may have been luck.
    Retest,
}

/// What to run next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    pub configuration: Configuration,
    pub origin: Origin,
}

pub struct Tuning { pub tpe_every: usize, pub screen_every: usize, pub screen_mode: usize, pub steps: usize, pub retest: bool }
impl Tuning {
    pub fn read() -> Self {
        let g = |n: &str, d: usize| std::env::var(n).ok().and_then(|v| v.parse().ok()).unwrap_or(d);
        Self { tpe_every: g("TPE", 3), screen_every: g("SCREEN", 4), screen_mode: g("SMODE", 1), steps: g("STEPS", STEPS), retest: g("RETEST", 1) == 1 }
    }
}

/// Proposes what to try; see the module.
pub struct Optimiser {
    space: Space,
    goal: Goal,
    seed: u64,
    opening: Vec<Vec<f64>>,
    presets: usize,
    /// What was learnt from the first trials of a history; only saves time.
    memo: Memo,
    pub tuning: Tuning,
}

#[derive(Default, Clone)]
struct Memo {
    trials: History,
    learnt: Learnt,
}

impl Optimiser {
    /// Presets are known good settings, tried right after the default.
    pub fn new(space: Space, presets: &[Configuration], goal: Goal, seed: u64) -> Result<Self, SpaceError> {
        let presets: Vec<Vec<f64>> = presets.iter().map(|preset| space.levels_of(preset)).collect::<Result<_, _>>()?;
        Ok(Self {
            opening: design::opening(&space, &presets, seed),
            presets: presets.len(),
            space,
            goal,
            seed,
            memo: Memo::default(),
            tuning: Tuning::read(),
        })
    }

    pub fn space(&self) -> &Space { &self.space }

    fn model(&mut self, history: &History) -> Option<(Model, Vec<Setting>)> {
        let start = self.opening.len();
        let n = history.trials.len();
        if !history.trials.starts_with(&self.memo.trials.trials) || self.memo.trials.trials.len() > n {
            self.memo = Memo::default();
        }
        let mut model = None;
        for end in (self.memo.trials.trials.len() + 1).max(start.min(n))..=n {
            let part = History { trials: history.trials[..end].to_vec() };
            let known = settings(&self.space, self.goal, &part);
            let steps = if self.memo.learnt.score.is_none() { 40 } else { self.tuning.steps };
            model = Model::new(&self.space, &known, &mut self.memo.learnt, steps).map(|m| (m, known));
            self.memo.trials = part;
        }
        if model.is_none() {
            let known = settings(&self.space, self.goal, history);
            model = Model::new(&self.space, &known, &mut self.memo.learnt.clone(), 0).map(|m| (m, known));
        }
        model
    }

    pub fn propose(&mut self, history: &History) -> Proposal {
        let known = settings(&self.space, self.goal, history);
        for (i, levels) in self.opening.iter().enumerate() {
            if !known.iter().any(|s| s.levels == *levels) {
                let origin = if i == 0 { Origin::Default } else if i <= self.presets { Origin::Preset } else { Origin::Design };
                return self.proposal(levels, origin);
            }
        }
        let t = history.trials.len();
        let mut rng = SplitMix64::new(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(t as u64).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let known_levels: Vec<Vec<f64>> = known.iter().map(|s| s.levels.clone()).collect();
        if self.tuning.tpe_every > 0 && t % self.tuning.tpe_every == self.tuning.tpe_every - 1 {
            for _ in 0..20 {
                let levels = self.space.levels_at(&tpe::propose(&self.space, &known, &mut rng));
                if self.space.within_limits(&levels) && !known_levels.contains(&levels) {
                    return self.proposal(&levels, Origin::Parzen);
                }
            }
        }
        let Some((model, known)) = self.model(history) else {
            let levels = self.space.levels_at(&(0..self.space.knobs().len()).map(|_| rng.unit_f64()).collect::<Vec<_>>());
            return self.proposal(&levels, Origin::Design);
        };
        let Some((_best, best_mean)) = model.incumbent(&known) else {
            let levels = self.space.levels_at(&(0..self.space.knobs().len()).map(|_| rng.unit_f64()).collect::<Vec<_>>());
            return self.proposal(&levels, Origin::Design);
        };
        if self.tuning.retest {
            let winner = known.iter().filter(|s| s.succeeds()).max_by(|a, b| a.mean().total_cmp(&b.mean()));
            if let Some(w) = winner && w.mean() > best_mean + 0.02 && w.runs() < 3 && history.trials.last().is_none_or(|l| self.space.levels_of(&l.configuration).ok().as_ref() != Some(&w.levels) || w.runs() < 2) {
                let l = w.levels.clone();
                return self.proposal(&l, Origin::Retest);
            }
        }
        let ucb: f64 = std::env::var("UCB").ok().and_then(|v| v.parse().ok()).unwrap_or(0.0);
        let mut top: Vec<(f64, &Setting)> = known.iter().filter(|s| s.succeeds()).map(|s| (model.mean(&s.features), s)).collect();
        top.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut fixed = Vec::new();
        let mut best = best_mean;
        let mut origin = Origin::Model;
        if self.tuning.screen_every > 0 && t % self.tuning.screen_every == 1 {
            // weights by how seldom
            let mut options = Vec::new();
            for (i, k) in self.space.knobs().iter().enumerate() {
                let n = match &k.range { Range::Categorical { choices } => choices.len(), Range::Bool => 2, _ => if self.tuning.screen_mode >= 2 { 3 } else { continue } };
                let cell = |s: &Setting| ((self.space.point_of(&s.levels)[i] * n as f64) as usize).min(n - 1);
                for c in 0..n {
                    if cell(top[0].1) == c { continue; }
                    let count = known.iter().filter(|s| cell(s) == c).count();
                    options.push((i, c, n, 1.0 / (1.0 + count as f64)));
                }
            }
            let total: f64 = options.iter().map(|o| o.3).sum();
            let mut left = rng.unit_f64() * total;
            if let Some(&(i, c, n, _)) = options.iter().find(|o| { left -= o.3; left <= 0.0 }) {
                fixed.push((i, c as f64 / n as f64, (c as f64 + 1.0 - 1e-9) / n as f64));
                let cell = |s: &Setting| ((self.space.point_of(&s.levels)[i] * n as f64) as usize).min(n - 1);
                top.retain(|(_, s)| cell(s) == c);
                best = top.first().map_or(f64::NEG_INFINITY, |t| t.0);
                if best == f64::NEG_INFINITY { best = known.iter().filter(|s| s.runs() > 0).map(|s| s.mean()).fold(f64::INFINITY, f64::min); }
                origin = Origin::Screening;
            }
        }
        top.truncate(5);
        let search = Search {
            space: &self.space,
            around: top.iter().map(|(_, s)| self.space.point_of(&s.levels)).collect(),
            fixed,
            known: &known_levels,
        };
        let levels = search.maximise(&mut rng, |features| {
            let b = model.at(features); if ucb > 0.0 && origin == Origin::Screening { return b.mean + ucb * b.deviation + 0.5 * model.feasible(features).max(1e-30).ln(); }
            log_expected_improvement(b, best) + 2.0 * model.feasible(features).max(1e-30).ln()
        });
        let levels = levels.unwrap_or_else(|| self.space.defaults().to_vec());
        self.proposal(&levels, origin)
    }

    fn proposal(&self, levels: &[f64], origin: Origin) -> Proposal {
        Proposal { configuration: self.space.configuration(levels), origin }
    }

    /// levels of the best by posterior mean
    pub fn recommend(&mut self, history: &History) -> Option<Vec<f64>> {
        let (model, known) = self.model(history)?;
        model.incumbent(&known).map(|(s, _)| s.levels.clone())
    }
}
