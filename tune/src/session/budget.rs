//! Decides what still fits into the given time.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};
use seekscope_stats::median;

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

impl Session {
    /// Returns the runs of a duel that decides: baseline, best, minimal and the settings that were requested.
    fn duel_runs(&self) -> usize {
        BLOCKS * (3 + self.plan.also.len())
    }

    fn time_of(&self, runs: usize) -> Duration {
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        (self.run_time().unwrap_or_default()).saturating_mul(runs)
    }

    /// Returns why the session stops, if the budget allows no search at all; not known before the second run.
    pub(super) fn budget_too_small(&self, elapsed: Duration) -> Option<Stopped> {
        let (budget, run) = self.plan.budget.zip(self.run_time())?;
        if self.trials.len() < 2 {
            return None;
        }
        let searched =
            |t: &TuneTrial| matches!(t.purpose, TrialPurpose::Search | TrialPurpose::Duel);
        let due = self.baseline_runs_due() + self.duel_runs();
        let least = elapsed.saturating_add(self.time_of(due + 1));
        if least <= budget || self.trials.iter().any(searched) {
            return None;
        }
        let all = elapsed.saturating_add(self.time_of(due + self.plan.trials));
        Some(Stopped::BudgetTooSmall {
            budget_s: budget.as_secs_f64(),
            run_s: run.as_secs_f64(),
            least_s: least.as_secs_f64(),
            all_s: all.as_secs_f64(),
        })
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
