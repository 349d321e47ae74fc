//! Runs the final duel: blocks in which every arm runs once, in random order and with one seed of the
//! workload.
//!
//! The best setting and the minimal change are one claim with an error of 5 %: the minimal change is only
//! tested if the best is better (testing in a fixed sequence; Maurer, Hothorn and Lehmacher, 1995), or if the
//! best has failed. If each were a chance of its own, more than 5 % of sessions would find a gain that is not
//! there.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneDuel, TuneTrial, TuneVerdict};
use seekscope_stats::{Estimate, holm_adjusted, signed_rank};

use super::plan::{BASELINE, BEST, MINIMAL};
use super::{Request, Session, Stream};
use crate::duel::{LOOKS, Verdict, block_orders, judge};
use crate::optimiser::Goal;
use crate::space::Configuration;

/// An arm of the duel.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arm {
    pub(super) name: String,
    pub(super) values: Configuration,
}

impl Arm {
    pub(super) fn new(name: &str, values: Configuration) -> Self {
        Self {
            name: name.into(),
            values,
        }
    }
}

/// The runs of the duel so far.
pub(super) struct Field<'a> {
    goal: Goal,
    arms: &'a [Arm],
    /// Runs by block (from 1) and arm.
    runs: Vec<Vec<Option<&'a TuneTrial>>>,
}

impl<'a> Field<'a> {
    pub(super) fn new(goal: Goal, arms: &'a [Arm], blocks: usize, trials: &'a [TuneTrial]) -> Self {
        let mut runs = vec![vec![None; arms.len()]; blocks];
        // Runs without a block are of a duel that was begun anew.
        for trial in trials.iter().filter(|t| t.purpose == TrialPurpose::Duel) {
            let arm =
                (arms.iter()).position(|arm| arm.name == trial.arm && arm.values.0 == trial.values);
            let block = trial.block.and_then(|block| block.checked_sub(1));
            let block = block.and_then(|block| usize::try_from(block).ok());
            if let (Some(arm), Some(block)) = (arm, block)
                && let Some(runs) = runs.get_mut(block)
            {
                runs[arm].get_or_insert(trial);
            }
        }
        Self { goal, arms, runs }
    }

    /// Returns the value of an arm's run. The baseline may miss a constraint, because it is the existing
    /// setting.
    fn value(&self, block: usize, arm: usize) -> Option<f64> {
        let trial = self.runs[block][arm]?;
        let counts = arm == 0 || trial.status != TrialStatus::ConstraintMissed;
        trial.value.filter(|_| counts)
    }

    /// Counts runs of an arm that failed although the baseline of the block did not: if both fail, the server
    /// is the cause.
    fn failed(&self, arm: usize, blocks: usize) -> usize {
        let failed = |block: &usize| {
            self.runs[*block][arm].is_some()
                && self.value(*block, arm).is_none()
                && self.value(*block, 0).is_some()
        };
        (0..blocks).filter(failed).count()
    }

    /// Returns the values of the blocks, among the first `blocks`, in which both ran: (against, candidate).
    fn pairs(&self, candidate: usize, against: usize, blocks: usize) -> Vec<(f64, f64)> {
        (0..blocks)
            .filter_map(|block| self.value(block, against).zip(self.value(block, candidate)))
            .collect()
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.arms.iter().position(|arm| arm.name == name)
    }

    /// Returns the verdict after this many blocks on an arm that had none before.
    fn first_verdict(&self, arm: usize, blocks: usize) -> Option<Verdict> {
        if self.failed(arm, blocks) > 0 {
            return Some(Verdict::NotBetter);
        }
        let pairs = self.pairs(arm, 0, blocks);
        let look = LOOKS.iter().any(|look| look.pairs == pairs.len());
        look.then(|| judge(&pairs, self.goal))??.verdict
    }

    /// Returns the arm that must be better for this one to be: the best for the minimal change, unless it
    /// failed.
    fn premise(&self, arm: usize, blocks: usize) -> Option<usize> {
        let best = self
            .place(BEST)
            .filter(|best| self.failed(*best, blocks) == 0)?;
        (self.place(MINIMAL) == Some(arm)).then_some(best)
    }

    /// Returns the current block and its arms; `None` when all is decided or all blocks are done. An arm that
    /// is not better drops out; one that is better continues, so that the best of those is found too.
    fn under_way(&self) -> Option<(usize, Vec<usize>)> {
        let mut verdicts: Vec<Option<Verdict>> = vec![None; self.arms.len()];
        for block in 0..self.runs.len() {
            if block > 0 {
                let open = (1..self.arms.len()).filter(|arm| verdicts[*arm].is_none());
                for arm in open.collect::<Vec<_>>() {
                    let premise = self.premise(arm, block).and_then(|arm| verdicts[arm]);
                    let futile = premise == Some(Verdict::NotBetter);
                    verdicts[arm] = match self.first_verdict(arm, block) {
                        _ if futile => Some(Verdict::NotBetter),
                        verdict => verdict,
                    };
                }
            }
            if verdicts[1..].iter().all(Option::is_some) {
                return None;
            }
            let fights = |arm: &usize| verdicts[*arm] != Some(Verdict::NotBetter);
            let fighting: Vec<usize> = (0..self.arms.len()).filter(fights).collect();
            if fighting.iter().any(|&arm| self.runs[block][arm].is_none()) {
                return Some((block, fighting));
            }
        }
        None
    }

    #[cfg(test)]
    pub(super) fn is_over(&self) -> bool {
        self.under_way().is_none()
    }

    fn compare(&self, candidate: usize, against: usize) -> (TuneDuel, f64) {
        let blocks = self.runs.len();
        let pairs = self.pairs(candidate, against, blocks);
        let failed = self.failed(candidate, blocks);
        let judged = judge(&pairs, self.goal);
        let score = |(a, b): &(f64, f64)| Some(self.goal.score(*b)? - self.goal.score(*a)?);
        let decided = judged.map_or(pairs.len(), |judged| judged.pairs);
        let gains: Vec<f64> = pairs.iter().take(decided).filter_map(score).collect();
        let p = Estimate::of_mean(&gains).map_or(1.0, |mean| mean.p_of_no_gain());
        let worst = gains.iter().copied().reduce(f64::min).map_or(0.0, f64::exp);
        let premise = (self.premise(candidate, blocks)).filter(|_| against == 0);
        let premised = premise.is_none_or(|arm| {
            let judged = judge(&self.pairs(arm, 0, blocks), self.goal);
            judged.and_then(|judged| judged.verdict) == Some(Verdict::Better)
        });
        let verdict = match judged.and_then(|judged| judged.verdict) {
            _ if failed > 0 => TuneVerdict::NotBetter,
            Some(Verdict::Better) if !premised => TuneVerdict::Unresolved,
            Some(Verdict::Better) => TuneVerdict::Better,
            Some(Verdict::NotBetter) => TuneVerdict::NotBetter,
            Some(Verdict::Unresolved) | None => TuneVerdict::Unresolved,
        };
        let duel = TuneDuel {
            candidate: self.arms[candidate].name.clone(),
            against: self.arms[against].name.clone(),
            verdict,
            pairs: gains.len() as u64,
            ratio: judged.map_or(0.0, |judged| judged.ratio),
            low: judged.map_or(0.0, |judged| judged.low),
            high: judged.map_or(0.0, |judged| judged.high),
            deviation: judged.map_or(0.0, |judged| judged.deviation),
            wilcoxon_p: signed_rank(&gains),
            holm_p: None,
            promised: None,
            worst,
            failed: failed as u64,
        };
        (duel, p)
    }

    /// Compares every arm with the baseline, the minimal change with the best, and the best with presets.
    /// Empty if no block was begun.
    pub(super) fn comparisons(&self) -> Vec<TuneDuel> {
        if self.runs.iter().flatten().all(Option::is_none) {
            return Vec::new();
        }
        let (best, minimal) = (self.place(BEST), self.place(MINIMAL));
        let mut matches: Vec<(usize, usize)> = (1..self.arms.len()).map(|arm| (arm, 0)).collect();
        matches.extend(minimal.zip(best));
        let presets =
            (1..self.arms.len()).filter(|arm| Some(*arm) != best && Some(*arm) != minimal);
        matches.extend(presets.filter_map(|preset| Some((best?, preset))));
        let (mut duels, ps): (Vec<TuneDuel>, Vec<f64>) = (matches.into_iter())
            .map(|(candidate, against)| self.compare(candidate, against))
            .unzip();
        for (duel, p) in duels.iter_mut().zip(holm_adjusted(&ps)) {
            duel.holm_p = (duel.pairs > 1).then_some(p);
        }
        duels
    }
}

impl Session {
    pub(super) fn field<'a>(&'a self, arms: &'a [Arm]) -> Field<'a> {
        Field::new(self.plan.goal, arms, self.plan.duel_pairs, &self.trials)
    }

    /// Returns the next run of the duel; `None` when it is over or there is no arm to compare with the
    /// baseline.
    pub(super) fn duel_request(&mut self, elapsed: Duration) -> Option<Request> {
        let arms = self.shortlist().arms;
        let field = self.field(&arms);
        let (block, fighting) = field.under_way()?;
        let runs = &field.runs[block];
        let begun = runs.iter().any(Option::is_some);
        if !begun && !self.block_fits(block, elapsed) {
            return None;
        }
        let seed = self.seed(Stream::Orders, 0);
        let order = block_orders(arms.len(), self.plan.duel_pairs, seed).swap_remove(block);
        let arm = (order.into_iter()).find(|arm| fighting.contains(arm) && runs[*arm].is_none())?;
        Some(Request {
            purpose: TrialPurpose::Duel,
            arm: arms[arm].name.clone(),
            origin: String::new(),
            block: u32::try_from(block + 1).ok(),
            seed: self.seed(Stream::Duel, block),
            values: arms[arm].values.clone(),
            best: None,
        })
    }
}

/// Returns whether an arm may be recommended: it must be better than the baseline for certain.
pub(super) fn is_better(duels: &[TuneDuel], name: &str) -> bool {
    against(duels, name, BASELINE).is_some_and(|duel| duel.verdict == TuneVerdict::Better)
}

pub(super) fn against<'a>(duels: &'a [TuneDuel], name: &str, other: &str) -> Option<&'a TuneDuel> {
    (duels.iter()).find(|duel| duel.candidate == name && duel.against == other)
}
