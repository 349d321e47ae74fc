//! Shows the session on the terminal: a line for each trial, with the best so far and the time left.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneTrial};

use super::metric::shown;
use crate::progress::Progress;

/// A wider interval than this factor says nothing.
const SPAN_MAX: f64 = 100.0;

/// What the lines need to know of the session.
#[derive(Debug, Clone)]
pub struct ProgressLines {
    /// Name of the metric's figure.
    pub figure: String,
    pub budget: Option<Duration>,
    /// Values of the knobs at the start: a line shows the differences.
    pub baseline: seekscope_run::KnobValues,
}

impl ProgressLines {
    /// Prints the result of a trial.
    pub fn tell(&self, progress: Progress, trial: &TuneTrial, elapsed: Duration) {
        progress.say(self.line(trial, elapsed));
    }

    fn line(&self, trial: &TuneTrial, elapsed: Duration) -> String {
        let what = match (trial.purpose, trial.block) {
            (TrialPurpose::Baseline, _) => "baseline".into(),
            (TrialPurpose::Sentinel, _) => "baseline again".into(),
            (TrialPurpose::Duel, block) => format!("duel {} {}", block.unwrap_or(0), trial.arm),
            (TrialPurpose::Search, _) if trial.arm.is_empty() => trial.origin.clone(),
            (TrialPurpose::Search, _) => trial.arm.clone(),
        };
        let value = trial
            .value
            .map_or_else(String::new, |v| shown(&self.figure, v));
        let outcome = match trial.status {
            TrialStatus::Measured => value,
            TrialStatus::EndedEarly => format!("about {value}, ended early"),
            TrialStatus::ConstraintMissed => format!("{value}, but {}", trial.reason),
            TrialStatus::Failed => format!("failed: {}", trial.reason),
        };
        let best = trial.best_so_far.map_or_else(String::new, |best| {
            let (low, high) = (
                shown(&self.figure, best.low),
                shown(&self.figure, best.high),
            );
            let value = shown(&self.figure, best.value);
            match best.high <= SPAN_MAX * best.low {
                true => format!("; best so far {value} ({low} to {high})"),
                false => format!("; best so far {value} (too few runs to tell how sure)"),
            }
        });
        let left = self.budget.map_or_else(String::new, |budget| {
            let left = budget.saturating_sub(elapsed);
            format!("; {} of the budget left", in_words(left))
        });
        let changes = match trial.purpose {
            TrialPurpose::Search => self.changes(trial),
            _ => String::new(),
        };
        format!(
            "{:>4}  {what}: {outcome}{best}{left}{changes}",
            trial.number
        )
    }

    /// Returns the differences from the baseline.
    fn changes(&self, trial: &TuneTrial) -> String {
        let different = trial
            .values
            .iter()
            .filter(|(name, value)| self.baseline.get(*name) != Some(*value));
        let words: Vec<String> = different
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("\n      {}", words.join(" ")),
        }
    }
}

fn in_words(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        _ => format!("{} min", seconds / 60),
    }
}
