//! Decides what still fits into the given time.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};
use seekscope_stats::median;

use super::baseline::PAIRS_MIN;
use super::{Session, Stopped};

/// Blocks of a duel for which the search leaves time.
const BLOCKS: usize = 6;
/// Blocks that are run even if it takes longer than expected: fewer decide nothing.
pub(super) const BLOCKS_MIN: usize = 4;

/// Returns the median time of the successful runs, or of all if there are none. The first run prepared more
/// than itself, such as all the data, and counts only while it is the only one.
pub(super) fn run_time(trials: &[TuneTrial]) -> Option<Duration> {
    let trials = match trials {
        [_, later @ ..] if !later.is_empty() => later,
        all => all,
    };
    let time = |trial: &TuneTrial| trial.prepare_s + trial.measure_s;
    let through = |trial: &&TuneTrial| {
        matches!(
            trial.status,
            TrialStatus::Measured | TrialStatus::ConstraintMissed
        )
    };
    let whole: Vec<f64> = trials.iter().filter(through).map(time).collect();
    let seconds = median(&whole).or_else(|| median(&trials.iter().map(time).collect::<Vec<_>>()));
    Duration::try_from_secs_f64(seconds?).ok()
}

/// Returns the runs of a duel that decides: baseline, best, minimal and the settings that were requested.
fn duel_runs(also: usize) -> usize {
    BLOCKS * (3 + also)
}

fn time_of(runs: usize, run: Duration) -> Duration {
    run.saturating_mul(u32::try_from(runs).unwrap_or(u32::MAX))
}

/// What is known of a session before its knobs are.
#[derive(Debug, Clone, Copy)]
pub struct Outline {
    pub baseline_pairs: usize,
    /// Settings that fight in the duel whatever the search says.
    pub also: usize,
    pub trials: usize,
}

impl Outline {
    /// Returns why the budget allows no search if runs have this length, before anything is run.
    pub fn refused(&self, budget: Duration, run: Duration) -> Option<Stopped> {
        // Setting, settling and ending add a tenth at least.
        let with_preparation = run.saturating_mul(11) / 10;
        let due = 2 * self.baseline_pairs.min(PAIRS_MIN) + duel_runs(self.also);
        let mut stopped = self.too_small(budget, with_preparation, Duration::ZERO, due)?;
        if let Stopped::BudgetTooSmall { run_s, .. } = &mut stopped {
            *run_s = run.as_secs_f64();
        }
        Some(stopped)
    }

    /// Returns the same after `elapsed`, with this many runs due besides one of the search.
    fn too_small(
        &self,
        budget: Duration,
        run: Duration,
        elapsed: Duration,
        due: usize,
    ) -> Option<Stopped> {
        let taking = |runs| elapsed.saturating_add(time_of(runs, run)).as_secs_f64();
        let least_s = taking(due + 1);
        (least_s > budget.as_secs_f64()).then(|| Stopped::BudgetTooSmall {
            budget_s: budget.as_secs_f64(),
            run_s: run.as_secs_f64(),
            least_s,
            all_s: taking(due + self.trials),
        })
    }
}

impl Session {
    fn duel_runs(&self) -> usize {
        duel_runs(self.plan.also.len())
    }

    fn time_of(&self, runs: usize) -> Duration {
        time_of(runs, self.run_time().unwrap_or_default())
    }

    /// Returns why the session stops, if the budget allows no search at all; not known before the second run.
    pub(super) fn budget_too_small(&self, elapsed: Duration) -> Option<Stopped> {
        let (budget, run) = self.plan.budget.zip(self.run_time())?;
        let searched =
            |t: &TuneTrial| matches!(t.purpose, TrialPurpose::Search | TrialPurpose::Duel);
        if self.trials.len() < 2 || self.trials.iter().any(searched) {
            return None;
        }
        let outline = Outline {
            baseline_pairs: self.plan.baseline_pairs,
            also: self.plan.also.len(),
            trials: self.plan.trials,
        };
        let due = self.baseline_runs_due() + self.duel_runs();
        outline.too_small(budget, run, elapsed, due)
    }

    /// Returns whether one more run of the search leaves time for the duel.
    pub(super) fn search_goes_on(&self, elapsed: Duration) -> bool {
        let fits = |budget| elapsed.saturating_add(self.time_of(1 + self.duel_runs())) <= budget;
        self.count(TrialPurpose::Search) < self.plan.trials
            && self.plan.budget.is_none_or(fits)
            && self.count(TrialPurpose::Duel) == 0
    }

    /// Returns whether another block may begin after this many.
    pub(super) fn block_fits(&self, blocks: usize, elapsed: Duration) -> bool {
        blocks < BLOCKS_MIN || self.plan.budget.is_none_or(|budget| elapsed < budget)
    }
}
