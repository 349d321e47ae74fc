//! Concludes a session: computes the record's parts that follow from plan and trials.

use seekscope_run::tune::{KnobValues, TuneDuel, TuneRecord, TuneVerdict};

use super::duels::{against, is_better};
use super::plan::{BASELINE, BEST, MINIMAL};
use super::search::Shortlist;
use super::{Session, Stream};
use crate::optimiser::Goal;

/// The most knobs for which slices are drawn.
const SLICES_MAX: usize = 6;
/// Share that the minimal change may lose against the best.
const LOSS_MAX: f64 = 0.01;
/// Largest probability that a recommended preset is no better, corrected for all comparisons.
const ALPHA: f64 = 0.05;

impl Session {
    /// Fills in everything that follows from plan and trials; also for a session that was interrupted.
    pub fn conclude(&mut self, record: &mut TuneRecord) {
        let Shortlist {
            best,
            minimal,
            arms,
            ..
        } = self.shortlist();
        let mut duels = self.field(&arms).comparisons();
        let promised = best.as_ref().and_then(|best| {
            let goal = self.plan.goal;
            let gain = goal.score(best.expected)? - goal.score(self.baseline_mean()?)?;
            Some(gain.exp())
        });
        let kept = minimal.as_ref().map_or(1.0, |minimal| 1.0 - minimal.loss);
        for duel in duels.iter_mut().filter(|duel| duel.against == BASELINE) {
            duel.promised = match duel.candidate.as_str() {
                BEST => promised,
                MINIMAL => promised.map(|ratio| ratio * kept),
                _ => None,
            };
        }
        let recommended = recommended(&duels);
        let judged = recommended.or_else(|| duels.first().map(|duel| duel.candidate.as_str()));
        record.verdict = judged
            .and_then(|name| against(&duels, name, BASELINE))
            .map(|duel| duel.verdict);
        let values = |name: &str| -> Option<KnobValues> {
            let arm = arms.iter().find(|arm| arm.name == name)?;
            Some(arm.values.0.clone())
        };
        record.recommended = recommended.and_then(values).unwrap_or_default();
        record.best = values(BEST).unwrap_or_else(|| self.baseline.0.clone());
        let expected = best.as_ref().map(|best| self.expected(best));
        record.expected = expected.or_else(|| self.running_best());
        record.minimal = minimal;
        record.duels = duels;
        record.seed = self.plan.seed;
        record.maximise = self.plan.goal == Goal::Maximise;
        record.noise = self.noise();
        record.trials.clone_from(&self.trials);
        record.ledger.prepare_s = self.trials.iter().map(|t| t.prepare_s).sum();
        record.ledger.measure_s = self.trials.iter().map(|t| t.measure_s).sum();
        self.explain(record);
    }

    /// Adds what the model says about the knobs.
    fn explain(&mut self, record: &mut TuneRecord) {
        let history = self.history();
        let Some(analysis) = self.optimiser.analyse(&history) else {
            return;
        };
        let Some(importance) = analysis.importance(self.seed(Stream::Importance, 0)) else {
            return;
        };
        let distinguishable = importance.knobs.iter().filter(|knob| knob.distinguishable);
        record.slices = distinguishable
            .take(SLICES_MAX)
            .filter_map(|knob| analysis.slice(&knob.knob))
            .collect();
        let [first, second] = match importance.pairs.first() {
            Some(pair) => pair.knobs.each_ref().map(String::as_str),
            None => [""; 2],
        };
        record.heat_map = analysis.heat_map(first, second);
        record.importance = Some(importance);
    }
}

/// Returns the arm to recommend: the minimal change if it holds and is not shown to lose more than 1 %
/// against the best, else the best, else a preset; `None` if none is better than the baseline. A preset has
/// to be better after correction for all comparisons: every one in the duel is one more chance of a gain that
/// is not there.
pub(super) fn recommended(duels: &[TuneDuel]) -> Option<&str> {
    let loses = |duel: &TuneDuel| duel.pairs > 1 && duel.high < 1.0 - LOSS_MAX;
    let minimal_loses = is_better(duels, BEST) && against(duels, MINIMAL, BEST).is_some_and(loses);
    if is_better(duels, MINIMAL) && !minimal_loses {
        return Some(MINIMAL);
    }
    if is_better(duels, BEST) {
        return Some(BEST);
    }
    let better = duels.iter().filter(|duel| duel.against == BASELINE);
    let better = better.filter(|duel| duel.verdict == TuneVerdict::Better);
    let better = better.filter(|duel| duel.holm_p.is_some_and(|p| p < ALPHA));
    // Of several, choose the one that gains most.
    let most = better.max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
    Some(&most.candidate)
}
