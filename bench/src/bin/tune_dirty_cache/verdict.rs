//! What a session found, and what the duel of it against the expert's setting says.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use seekscope_run::tune::{KnobValues, TrialPurpose, TuneTrial};
use seekscope_run::{RunDirectory, TuneRecord};
use seekscope_stats::{Estimate, paired_log_ratio};

/// What must stand: how many times the reads of the settings that the server came with the expert's get.
const EXPERT_GAIN_MIN: f64 = 1.5;
/// The search must have found it by then.
const TRIALS_MAX: usize = 25;
const MINUTES_MAX: f64 = 60.0;
/// The error probability of all intervals together, divided equally among them.
const ALPHA: f64 = 0.05;
const COMPARISONS: f64 = 3.0;

/// What the search came to.
pub(crate) struct Found {
    /// Every knob's value.
    pub(crate) values: KnobValues,
    /// The settings that differ from the server's own, in the form that `--also` takes.
    pub(crate) changes: String,
    trials: usize,
    minutes: f64,
}

impl Found {
    /// Reads a session's run: what it recommends, or the best of its search if it proved no gain.
    pub(crate) fn read(run: &Path) -> Result<Self> {
        let (record, trials) = session(run)?;
        let values = match record.recommended.is_empty() {
            true => record.best,
            false => record.recommended,
        };
        let differs = |name: &str| record.knobs.iter().find(|knob| knob.name == name);
        let changes = (values.iter())
            .filter(|(name, value)| differs(name).is_some_and(|knob| knob.baseline != **value))
            .map(|(name, value)| format!("{name}={value}"));
        let changes: Vec<String> = changes.collect();
        let searching = trials.iter().filter(|t| t.purpose != TrialPurpose::Duel);
        let seconds: f64 = searching.map(|t| t.prepare_s + t.measure_s).sum();
        let proposals = (trials.iter()).filter(|t| t.purpose == TrialPurpose::Search);
        Ok(Self {
            trials: proposals.count(),
            minutes: seconds / 60.0,
            changes: changes.join(","),
            values,
        })
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_in_time = self.trials <= TRIALS_MAX && self.minutes <= MINUTES_MAX;
        write!(
            f,
            "searched: {} trials, {:.0} min with the baseline's (at most {TRIALS_MAX} and {MINUTES_MAX:.0}): {}\n\
             found: {}",
            self.trials,
            self.minutes,
            word(is_in_time),
            match self.changes.as_str() {
                "" => "nothing better than what the server came with",
                changes => changes,
            }
        )
    }
}

/// Reads per second of each setting in the blocks of the duel.
pub(crate) struct Duel {
    default: BTreeMap<u32, f64>,
    expert: BTreeMap<u32, f64>,
    tuned: BTreeMap<u32, f64>,
}

impl Duel {
    /// Reads the run of a session in which all three met.
    pub(crate) fn read(run: &Path, expert: &str, found: &Found) -> Result<Self> {
        let (record, trials) = session(run)?;
        let named = trials.iter().find(|trial| trial.arm == expert);
        let expert = &named.context("the expert's setting was not run")?.values;
        let default: KnobValues = (record.knobs.iter())
            .map(|knob| (knob.name.clone(), knob.baseline.clone()))
            .collect();
        Ok(Self {
            default: by_block(&trials, &default),
            expert: by_block(&trials, expert),
            tuned: by_block(&trials, &found.values),
        })
    }
}

impl fmt::Display for Duel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = [
            (
                "expert/default",
                &self.default,
                &self.expert,
                EXPERT_GAIN_MIN,
            ),
            ("tuned/default", &self.default, &self.tuned, 1.0),
            ("tuned/expert", &self.expert, &self.tuned, 1.0),
        ];
        for (place, (name, against, candidate, goal)) in pairs.into_iter().enumerate() {
            if place > 0 {
                writeln!(f)?;
            }
            write!(f, "{}", Compared::of(name, against, candidate, goal))?;
        }
        Ok(())
    }
}

struct Compared {
    name: &'static str,
    pairs: usize,
    estimate: Option<Estimate>,
    goal: f64,
}

impl Compared {
    fn of(
        name: &'static str,
        against: &BTreeMap<u32, f64>,
        candidate: &BTreeMap<u32, f64>,
        goal: f64,
    ) -> Self {
        let both = against.iter();
        let pairs: Vec<(f64, f64)> = both
            .filter_map(|(block, value)| Some((*value, *candidate.get(block)?)))
            .collect();
        Self {
            name,
            pairs: pairs.len(),
            estimate: paired_log_ratio(&pairs),
            goal,
        }
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name, pairs, goal, ..
        } = self;
        let Some(estimate) = self.estimate else {
            return write!(f, "{name}: {pairs} pairs are too few to tell");
        };
        let (low, high) = estimate.interval(ALPHA / COMPARISONS);
        let (ratio, low, high) = (estimate.value.exp(), low.exp(), high.exp());
        let surely = low >= *goal || high < *goal;
        write!(
            f,
            "{name}: {ratio:.2} ({low:.2} to {high:.2}, {pairs} pairs), at least {goal:.1}: {}{}",
            word(ratio >= *goal),
            if surely {
                ""
            } else {
                ", but it could be either"
            }
        )
    }
}

fn word(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

fn session(run: &Path) -> Result<(TuneRecord, Vec<TuneTrial>)> {
    let (directory, document) = RunDirectory::open(run)?;
    let record = document.tune.context("it is no tuning session")?;
    Ok((record, directory.read_trials()?))
}

fn by_block(trials: &[TuneTrial], values: &KnobValues) -> BTreeMap<u32, f64> {
    let fought = (trials.iter())
        .filter(|trial| trial.purpose == TrialPurpose::Duel && trial.values == *values);
    fought
        .filter_map(|trial| Some((trial.block?, trial.value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(factor: f64) -> String {
        let noise = [1.0, 1.02, 0.98, 1.01];
        let against = (1..).zip(noise.map(|n| 700.0 * n)).collect();
        let candidate = (1..).zip(noise.map(|n| 700.0 * factor / n)).collect();
        Compared::of("expert/default", &against, &candidate, 1.5).to_string()
    }

    #[test]
    fn a_goal_is_met_missed_or_either() {
        assert!(compared(1.9).ends_with("4 pairs), at least 1.5: met"));
        assert!(compared(1.1).ends_with("at least 1.5: missed"));
        assert!(compared(1.51).ends_with("met, but it could be either"));
        let none = BTreeMap::new();
        let said = Compared::of("tuned/expert", &none, &none, 1.0).to_string();
        assert!(said.ends_with("0 pairs are too few to tell"), "{said}");
    }
}
