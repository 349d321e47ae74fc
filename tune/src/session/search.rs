//! Runs the search: what is run next, what the optimiser is told of it, and its result.

use std::f64::consts::SQRT_2;

use seekscope_run::tune::{Expected, MinimalChange, TrialPurpose, TrialStatus, TuneTrial};

use super::duels::Arm;
use super::plan::{BASELINE, BEST, MINIMAL};
use super::{Request, Session, Stream};
use crate::optimiser::{History, Origin, Outcome, Recommendation, Trial};
use crate::space::Configuration;

/// Number of runs of the search after which the baseline is run again.
const SENTINEL_AFTER: usize = 8;

/// The result of the search.
#[derive(Debug, Clone)]
pub(super) struct Shortlist {
    /// Number of trials that it is based on.
    trials: usize,
    pub(super) best: Option<Recommendation>,
    pub(super) minimal: Option<MinimalChange>,
    /// Arms of the duel: the baseline first.
    pub(super) arms: Vec<Arm>,
}

impl Session {
    /// Returns what the optimiser is told: the baseline as one exact trial, and the search. Sentinels are
    /// left out, so that its turns are those it was tested with; they would add little about a setting that
    /// was run so often.
    pub(super) fn history(&self) -> History {
        let search = (self.trials.iter()).filter(|t| t.purpose == TrialPurpose::Search);
        let mut trials: Vec<Trial> = self.baseline_trial().into_iter().collect();
        trials.extend(search.map(|trial| Trial {
            configuration: Configuration(trial.values.clone()),
            outcome: outcome(trial),
        }));
        History { trials }
    }

    pub(super) fn search_request(&mut self) -> Request {
        let since = self.trials.iter().rev();
        let since: Vec<_> = since.map(|t| (t.purpose, t.status)).collect();
        let fresh = (since.iter()).take_while(|(purpose, _)| *purpose == TrialPurpose::Search);
        // A failed one is repeated at once: is the server still there?
        let failed = since.first() == Some(&(TrialPurpose::Sentinel, TrialStatus::Failed));
        if failed || fresh.count() >= SENTINEL_AFTER {
            let nth = self.count(TrialPurpose::Sentinel);
            return self.of_baseline(TrialPurpose::Sentinel, self.seed(Stream::Sentinel, nth));
        }
        let proposal = self.optimiser.propose(&self.history());
        let may_end = !matches!(proposal.origin, Origin::Default | Origin::Preset);
        let best = may_end.then(|| self.running_best()).flatten();
        let named = (self.plan.presets.iter().chain(&self.plan.also))
            .find(|p| proposal.origin == Origin::Preset && p.values == proposal.configuration);
        Request {
            purpose: TrialPurpose::Search,
            arm: named.map(|preset| preset.name.clone()).unwrap_or_default(),
            origin: <&str>::from(proposal.origin).into(),
            block: None,
            seed: self.seed(Stream::Search, self.count(TrialPurpose::Search)),
            values: proposal.configuration,
            best: best.map(|best| best.value),
        }
    }

    /// Returns the search's result so far.
    pub(super) fn shortlist(&mut self) -> Shortlist {
        let history = self.history();
        let known = self.shortlist.take();
        let shortlist = match known.filter(|known| known.trials == history.trials.len()) {
            Some(known) => known,
            None => self.draw_up(&history),
        };
        self.shortlist.insert(shortlist).clone()
    }

    fn draw_up(&mut self, history: &History) -> Shortlist {
        let best = self.optimiser.recommend(history);
        let best = best.filter(|best| best.configuration != self.baseline);
        let analysis = best.as_ref().and_then(|_| self.optimiser.analyse(history));
        let minimal = analysis.map(|analysis| analysis.minimal_change());
        let mut arms = vec![Arm::new(BASELINE, self.baseline.clone())];
        arms.extend(best.iter().map(|b| Arm::new(BEST, b.configuration.clone())));
        let least = minimal.iter().map(|m| Configuration(m.values.clone()));
        let also = (self.plan.also.iter()).map(|p| Arm::new(&p.name, p.values.clone()));
        for arm in least.map(|values| Arm::new(MINIMAL, values)).chain(also) {
            // Equal settings would compete with each other.
            if arms.iter().all(|other| other.values != arm.values) {
                arms.push(arm);
            }
        }
        Shortlist {
            trials: history.trials.len(),
            best,
            minimal,
            arms,
        }
    }
}

impl Session {
    /// Returns what is expected of the best setting. A model of few runs takes them for more exact than the pairs of the
    /// baseline show runs to be, so its interval is at least that of a mean of as many runs.
    pub(super) fn expected(&self, best: &Recommendation) -> Expected {
        let runs = self.trials.iter().filter(|trial| trial.value.is_some());
        let runs = runs.filter(|trial| trial.purpose != TrialPurpose::Duel);
        let deviation = self.noise().map_or(0.0, |noise| noise.pair_deviation) / SQRT_2;
        let factor = (NORMAL_95 * deviation / (runs.count().max(1) as f64).sqrt()).exp();
        Expected {
            value: best.expected,
            low: best.low.min(best.expected / factor),
            high: best.high.max(best.expected * factor),
        }
    }
}

/// Half the 95 % interval of a normal distribution, in standard deviations.
const NORMAL_95: f64 = 1.96;

fn outcome(trial: &TuneTrial) -> Outcome {
    match (trial.status, trial.value) {
        (TrialStatus::Measured | TrialStatus::EndedEarly, Some(value)) => Outcome::Measured {
            value,
            noise: trial.noise,
        },
        _ => Outcome::Failed {
            reason: trial.reason.clone(),
        },
    }
}
