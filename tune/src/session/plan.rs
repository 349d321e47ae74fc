//! Defines the plan of a session, and its possible errors.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duel::LOOKS;
use crate::optimiser::Goal;
use crate::space::{Configuration, Space, SpaceError};

/// Arms that every session may have; presets need other names.
pub(super) const BASELINE: &str = "baseline";
pub(super) const BEST: &str = "best";
pub(super) const MINIMAL: &str = "minimal";

/// A named setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Preset {
    pub name: String,
    pub values: Configuration,
}

/// The plan of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The knobs; their defaults are the baseline: what the server had at the start.
    pub space: Space,
    pub goal: Goal,
    /// Determines everything random.
    pub seed: u64,
    /// Settings known to be good, tried right after the baseline: experts', the last session's best.
    pub presets: Vec<Preset>,
    /// Settings that take part in the final duel whatever the search says; also tried in the search.
    pub also: Vec<Preset>,
    /// The most runs of the search, without sentinels.
    pub trials: usize,
    /// Pairs of runs of the baseline before the search; two suffice for a short budget.
    pub baseline_pairs: usize,
    /// The most blocks of the duel: one of [`LOOKS`].
    pub duel_pairs: usize,
    /// Time limit; the search ends early enough for a duel of six blocks.
    pub budget: Option<Duration>,
}

/// Why a plan is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("preset `{preset}`: {source}")]
    Preset { preset: String, source: SpaceError },
    #[error(
        "a preset cannot be called `{name}`: baseline, best and minimal are taken, and each of those that \
         fight needs its own name; rename it"
    )]
    Name { name: String },
    #[error(
        "a duel cannot have {pairs} pairs: its statistics hold for 4, 6, 8, 12, 16 or 24; choose one of them"
    )]
    DuelPairs { pairs: usize },
    #[error(
        "without a trial, or without a pair of baseline runs, nothing is learnt; allow at least one"
    )]
    Nothing,
}

impl Plan {
    /// Returns the plan with all presets in canonical form, if it is valid.
    pub(super) fn checked(mut self) -> Result<Self, PlanError> {
        if self.trials == 0 || self.baseline_pairs == 0 {
            return Err(PlanError::Nothing);
        }
        if LOOKS.iter().all(|look| look.pairs != self.duel_pairs) {
            return Err(PlanError::DuelPairs {
                pairs: self.duel_pairs,
            });
        }
        let mut names = BTreeSet::from([BASELINE, BEST, MINIMAL]);
        let taken = self.presets.iter().find(|p| names.contains(&*p.name));
        let twice = || self.also.iter().find(|p| !names.insert(&p.name));
        if let Some(preset) = taken.or_else(twice) {
            return Err(PlanError::Name {
                name: preset.name.clone(),
            });
        }
        for preset in self.presets.iter_mut().chain(&mut self.also) {
            let values = self.space.complete(&preset.values);
            preset.values = values.map_err(|source| PlanError::Preset {
                preset: preset.name.clone(),
                source,
            })?;
        }
        Ok(self)
    }
}
