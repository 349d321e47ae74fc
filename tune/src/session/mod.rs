//! A whole tuning session as a machine without clock or I/O: it says which run is next, is told how that
//! ended, and draws the conclusion.
//!
//! First the baseline (what the server had at the start) is run in pairs: how noisy is this? Then the search,
//! with the baseline run again now and then as a sentinel for drift. Its best setting, the least change that
//! is nearly as good and settings that were asked for then meet the baseline in a duel of fresh blocks.
//!
//! All state follows from the plan and the trials in order, so a session is resumed by recording its stored
//! trials again. Whatever was under way when it was interrupted is asked for again.

mod baseline;
mod budget;
mod conclusion;
mod duels;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use seekscope_run::tune::{Expected, MinimalChange, TrialPurpose, TrialStatus, TuneTrial};
use seekscope_stats::SplitMix64;

use crate::early_stop::EarlyStop;
use crate::optimiser::{History, Optimiser, Origin, Outcome, Recommendation, Trial};
use crate::space::Configuration;
use duels::Arm;
use plan::{BASELINE, BEST, MINIMAL};
pub use plan::{Plan, PlanError, Preset};

/// After so many runs of the search the baseline is run again.
const SENTINEL_AFTER: usize = 8;
/// So many runs of the baseline that fail one after the other end the session.
const BASELINE_FAILURES: usize = 2;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Run(Request),
    /// The session is over; [`Session::stopped`] says whether something went wrong.
    Done,
}

/// A run that is wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub purpose: TrialPurpose,
    /// As in [`TuneTrial::arm`] and [`TuneTrial::origin`].
    pub arm: String,
    pub origin: String,
    /// Of the duel, from 1.
    pub block: Option<u32>,
    /// For the workload; below 2^53, so that every reader of JSON can hold it.
    pub seed: u64,
    pub values: Configuration,
    /// What is expected of the best setting, if the run may be ended early by [`Session::early_stop`].
    pub best: Option<f64>,
}

impl Request {
    /// The trial to fill in: so far a failed one without a reason.
    pub fn trial(&self) -> TuneTrial {
        TuneTrial {
            number: 0,
            purpose: self.purpose,
            arm: self.arm.clone(),
            origin: self.origin.clone(),
            block: self.block,
            seed: self.seed,
            values: self.values.0.clone(),
            status: TrialStatus::Failed,
            value: None,
            partial: [None; 2],
            noise: 1.0,
            reason: String::new(),
            figures: BTreeMap::new(),
            started_unix_ms: 0,
            prepare_s: 0.0,
            measure_s: 0.0,
            best_so_far: None,
        }
    }
}

/// Why a session ended before its time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Stopped {
    #[error(
        "the settings found at the start failed twice in a row, so it is not the settings that fail: {reason}; \
         put that right and resume"
    )]
    BaselineFails { reason: String },
    #[error(
        "the budget of {budget_s:.0} s is too small: a run takes {run_s:.0} s, so baseline, one trial and a \
         duel take {least_s:.0} s, and all trials asked for {all_s:.0} s; give a larger budget or make runs \
         shorter"
    )]
    BudgetTooSmall {
        budget_s: f64,
        run_s: f64,
        least_s: f64,
        all_s: f64,
    },
}

/// A session; see the module.
#[derive(Debug, Clone)]
pub struct Session {
    plan: Plan,
    baseline: Configuration,
    optimiser: Optimiser,
    trials: Vec<TuneTrial>,
    early_stop: EarlyStop,
    /// The latest runs of the baseline that failed one after the other.
    failures: usize,
    stopped: Option<Stopped>,
    shortlist: Option<Shortlist>,
}

/// What the search comes to.
#[derive(Debug, Clone)]
struct Shortlist {
    /// So many trials it rests on.
    trials: usize,
    best: Option<Recommendation>,
    minimal: Option<MinimalChange>,
    /// Who fights: the baseline first.
    arms: Vec<Arm>,
}

/// What seeds are drawn for.
#[derive(Clone, Copy)]
enum Stream {
    Baseline,
    Search,
    Sentinel,
    Duel,
    Orders,
    Importance,
}

impl Session {
    /// A session without trials.
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        let plan = plan.checked()?;
        let presets = plan.presets.iter().chain(&plan.also);
        let presets: Vec<Configuration> = presets.map(|preset| preset.values.clone()).collect();
        let optimiser = Optimiser::new(plan.space.clone(), &presets, plan.goal, plan.seed);
        Ok(Self {
            optimiser: optimiser.map_err(|source| PlanError::Preset {
                preset: String::new(),
                source,
            })?,
            baseline: plan.space.default_configuration(),
            early_stop: EarlyStop::new(plan.goal),
            trials: Vec::new(),
            failures: 0,
            stopped: None,
            shortlist: None,
            plan,
        })
    }

    /// The run that is next, the same until one is recorded; `elapsed` is what the session has taken so far,
    /// all its parts together if it was resumed.
    pub fn next(&mut self, elapsed: Duration) -> Next {
        if self.stopped.is_none() {
            self.stopped = self.budget_too_small(elapsed);
        }
        if self.stopped.is_some() {
            return Next::Done;
        }
        let request = if self.baseline_is_due(elapsed) {
            Some(self.baseline_request())
        } else if self.search_goes_on(elapsed) {
            Some(self.search_request())
        } else {
            self.duel_request(elapsed)
        };
        request.map_or(Next::Done, Next::Run)
    }

    /// Takes a run that has ended, or one of the journal, and returns it as it is to be kept: numbered, with what
    /// is expected of the best by now. A value that is no positive number is a failure.
    pub fn record(&mut self, mut trial: TuneTrial) -> &TuneTrial {
        trial.number = self.trials.len() as u64 + 1;
        clean(&mut trial);
        if self.is_baseline(&trial) {
            let failed = trial.status == TrialStatus::Failed;
            self.failures = if failed { self.failures + 1 } else { 0 };
            if self.failures >= BASELINE_FAILURES {
                self.stopped = Some(Stopped::BaselineFails {
                    reason: trial.reason.clone(),
                });
            }
        }
        let ran_through = matches!(
            trial.status,
            TrialStatus::Measured | TrialStatus::ConstraintMissed
        );
        if let (true, Some(value)) = (ran_through, trial.value) {
            let partial = trial.partial.map(|figure| figure.unwrap_or(f64::NAN));
            self.early_stop.completed(partial, value);
        }
        let unknown = trial.purpose == TrialPurpose::Search && trial.best_so_far.is_none();
        self.trials.push(trial);
        let best = unknown.then(|| self.running_best()).flatten();
        let last = self.trials.len() - 1;
        let trial = &mut self.trials[last];
        trial.best_so_far = trial.best_so_far.or(best);
        trial
    }

    /// All runs so far.
    pub fn trials(&self) -> &[TuneTrial] {
        &self.trials
    }

    /// Says whether a run that may be ended early is hopeless.
    pub fn early_stop(&self) -> &EarlyStop {
        &self.early_stop
    }

    /// Why there is nothing more to do, if it is not that all was done.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// Goes on after what stopped the session was put right.
    pub fn retry(&mut self) {
        (self.stopped, self.failures) = (None, 0);
    }

    /// What is expected of the best setting that was tried; `None` before two settings have worked.
    pub fn running_best(&mut self) -> Option<Expected> {
        let best = self.optimiser.recommend(&self.history())?;
        Some(expected(&best))
    }

    /// The median time of a run with its preparation; `None` before the first.
    pub fn run_time(&self) -> Option<Duration> {
        budget::run_time(&self.trials)
    }

    fn is_baseline(&self, trial: &TuneTrial) -> bool {
        match trial.purpose {
            TrialPurpose::Baseline | TrialPurpose::Sentinel => true,
            TrialPurpose::Duel => trial.arm == BASELINE,
            TrialPurpose::Search => false,
        }
    }

    fn count(&self, purpose: TrialPurpose) -> usize {
        self.trials.iter().filter(|t| t.purpose == purpose).count()
    }

    fn seed(&self, stream: Stream, nth: usize) -> u64 {
        let place = ((stream as u64 + 1) << 48 | nth as u64).wrapping_mul(0x2545_f491_4f6c_dd1d);
        // The generator's first numbers of neighbouring seeds are independent, the seeds themselves are not.
        SplitMix64::new(self.plan.seed ^ place).next_u64() >> 11
    }

    /// What the optimiser is told: the baseline as one exact trial, and the search. Sentinels are left out, so
    /// that its turns are those it was tried with; they would say little new about a setting run so often.
    fn history(&self) -> History {
        let search = (self.trials.iter()).filter(|t| t.purpose == TrialPurpose::Search);
        let mut trials: Vec<Trial> = self.baseline_trial().into_iter().collect();
        trials.extend(search.map(|trial| Trial {
            configuration: Configuration(trial.values.clone()),
            outcome: outcome(trial),
        }));
        History { trials }
    }

    fn search_request(&mut self) -> Request {
        let since = self.trials.iter().rev();
        let since: Vec<_> = since.map(|t| (t.purpose, t.status)).collect();
        let fresh = (since.iter()).take_while(|(purpose, _)| *purpose == TrialPurpose::Search);
        // One that failed is run again at once: is the server still there?
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
            origin: origin_name(proposal.origin).into(),
            block: None,
            seed: self.seed(Stream::Search, self.count(TrialPurpose::Search)),
            values: proposal.configuration,
            best: best.map(|best| best.value),
        }
    }

    fn of_baseline(&self, purpose: TrialPurpose, seed: u64) -> Request {
        Request {
            purpose,
            arm: BASELINE.into(),
            origin: String::new(),
            block: None,
            seed,
            values: self.baseline.clone(),
            best: None,
        }
    }

    /// What the search comes to by now.
    fn shortlist(&mut self) -> Shortlist {
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
            // Equal settings would fight one another.
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

fn expected(best: &Recommendation) -> Expected {
    Expected {
        value: best.expected,
        low: best.low,
        high: best.high,
    }
}

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

/// Takes out what no journal can hold, and what only looks measured.
fn clean(trial: &mut TuneTrial) {
    let finite = |figure: &Option<f64>| figure.filter(|v| v.is_finite());
    trial.partial = trial.partial.each_ref().map(finite);
    trial.figures.retain(|_, figure| figure.is_finite());
    if !(trial.noise > 0.0 && trial.noise.is_finite()) {
        trial.noise = 1.0;
    }
    for seconds in [&mut trial.prepare_s, &mut trial.measure_s] {
        *seconds = if seconds.is_finite() {
            seconds.max(0.0)
        } else {
            0.0
        };
    }
    let found = finite(&trial.value);
    trial.value = found.filter(|v| *v > 0.0);
    if trial.value.is_none() && trial.status != TrialStatus::Failed {
        trial.status = TrialStatus::Failed;
        let found = found.map_or("no number".into(), |v| v.to_string());
        trial.reason = format!("the metric must be a positive number, and is {found}");
    }
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Default => "default",
        Origin::Preset => "preset",
        Origin::Design => "design",
        Origin::Model => "model",
        Origin::Parzen => "parzen",
        Origin::Screening => "screening",
        Origin::Retest => "retest",
    }
}
