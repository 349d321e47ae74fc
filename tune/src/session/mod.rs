//! Implements a whole tuning session as a state machine without clock or I/O: it says which run is next, is
//! told the result, and draws the conclusion.
//!
//! First the baseline (what the server had at the start) is run in pairs to measure noise. Then comes the
//! search, with the baseline run again now and then as a sentinel for drift. Its best setting, the smallest
//! change that is nearly as good and requested settings then meet the baseline in a duel of fresh blocks.
//!
//! All state follows from the plan and the trials in order, so a session is resumed by recording its stored
//! trials again. A run that was in progress when it was interrupted is requested again.

mod baseline;
mod budget;
mod conclusion;
mod duels;
mod plan;
mod request;
mod search;
#[cfg(test)]
mod tests;

use std::time::Duration;

use seekscope_run::tune::{Expected, TrialPurpose, TrialStatus, TuneTrial};
use seekscope_stats::SplitMix64;

use crate::early_stop::EarlyStop;
use crate::optimiser::Optimiser;
use crate::space::Configuration;
pub use budget::Outline;
use plan::BASELINE;
pub use plan::{Plan, PlanError, Preset};
pub use request::{Next, Request, Stopped};
use search::Shortlist;

/// Consecutive failed runs of the baseline that end the session.
const BASELINE_FAILURES: usize = 2;

/// A session; see the module.
#[derive(Debug, Clone)]
pub struct Session {
    plan: Plan,
    baseline: Configuration,
    optimiser: Optimiser,
    trials: Vec<TuneTrial>,
    early_stop: EarlyStop,
    /// Number of the latest consecutive failed runs of the baseline.
    failures: usize,
    stopped: Option<Stopped>,
    shortlist: Option<Shortlist>,
}

/// The purposes that seeds are drawn for.
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
    /// Creates a session without trials.
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

    /// Returns the next run, the same until one is recorded; `elapsed` is the session's time so far,
    /// including all its parts if it was resumed.
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

    /// Returns why the last setting failed if settings were searched and each failed.
    pub fn only_failures(&self) -> Option<&str> {
        let searched = || (self.trials.iter()).filter(|t| t.purpose == TrialPurpose::Search);
        let fails = searched().all(|trial| trial.status == TrialStatus::Failed);
        let last = searched().next_back().filter(|_| fails)?;
        Some(&last.reason)
    }

    /// Takes a run that has ended, or one from the journal, and returns it as it is to be stored: numbered,
    /// with the present expectation of the best. A value that is not a positive number is a failure.
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

    /// Returns all runs so far.
    pub fn trials(&self) -> &[TuneTrial] {
        &self.trials
    }

    /// Returns the rule that says whether a run that may be ended early is hopeless.
    pub fn early_stop(&self) -> &EarlyStop {
        &self.early_stop
    }

    /// Returns why the session stopped, unless it was completed.
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }

    /// Continues after the cause of a stop was removed.
    pub fn retry(&mut self) {
        (self.stopped, self.failures) = (None, 0);
    }

    /// Returns the expectation of the best setting that was tried; `None` before two settings have worked.
    pub fn running_best(&mut self) -> Option<Expected> {
        let best = self.optimiser.recommend(&self.history())?;
        Some(self.expected(&best))
    }

    /// Returns the median time of a run with its preparation; `None` before the first.
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
        // The first numbers from neighbouring seeds are independent, the seeds themselves are not.
        SplitMix64::new(self.plan.seed ^ place).next_u64() >> 11
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
}

/// Removes values that a journal cannot hold, and those that only seem measured.
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
