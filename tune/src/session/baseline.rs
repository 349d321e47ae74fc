//! Analyses runs of the baseline: how noisy a run is, whether the machine drifts, and which gain could be
//! detected.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneNoise, TuneTrial};
use seekscope_stats::{Estimate, median_slope};

use super::{Request, Session, Stream};
use crate::duel::LOOKS;
use crate::optimiser::{Outcome, Trial};

/// Shortest span for a drift per hour, which cannot be extrapolated from minutes.
const DRIFT_SPAN_MIN_MS: u64 = 30 * 60 * 1000;
/// Fewest pairs, for a short budget.
pub(super) const PAIRS_MIN: usize = 2;
/// Largest share of the budget spent on the baseline beyond those.
const BUDGET_SHARE: f64 = 0.2;

impl Session {
    /// Returns the values of the runs before the search that did not fail, in order. A missed constraint is
    /// not a failure: the server does what it always did.
    fn baseline_values(&self) -> Vec<f64> {
        let runs = (self.trials.iter()).filter(|t| t.purpose == TrialPurpose::Baseline);
        runs.filter_map(|trial| trial.value).collect()
    }

    /// Returns how many more runs of the baseline are needed at least.
    pub(super) fn baseline_runs_due(&self) -> usize {
        let pairs = self.plan.baseline_pairs.min(PAIRS_MIN);
        (2 * pairs).saturating_sub(self.baseline_values().len())
    }

    pub(super) fn baseline_is_due(&self, elapsed: Duration) -> bool {
        let over = |trial: &TuneTrial| trial.purpose != TrialPurpose::Baseline;
        let runs = self.baseline_values().len();
        let costly = (self.plan.budget).is_some_and(|b| elapsed >= b.mul_f64(BUDGET_SHARE));
        let enough = costly && self.baseline_runs_due() == 0 && runs.is_multiple_of(2);
        runs < 2 * self.plan.baseline_pairs && !enough && !self.trials.iter().any(over)
    }

    pub(super) fn baseline_request(&self) -> Request {
        // Pairs as in the duel, so that they show how a pair varies.
        let pair = self.baseline_values().len() / 2;
        self.of_baseline(TrialPurpose::Baseline, self.seed(Stream::Baseline, pair))
    }

    /// Returns all runs before the search as one of the optimiser's trials, with precision according to their
    /// number.
    pub(super) fn baseline_trial(&self) -> Option<Trial> {
        let values = self.baseline_values();
        let missed = |t: &&TuneTrial| {
            t.purpose == TrialPurpose::Baseline && t.status == TrialStatus::ConstraintMissed
        };
        let missed: Vec<&TuneTrial> = self.trials.iter().filter(missed).collect();
        let outcome = match missed.last() {
            Some(trial) if 2 * missed.len() > values.len() => Outcome::Failed {
                reason: trial.reason.clone(),
            },
            _ => Outcome::Measured {
                value: self.baseline_mean()?,
                noise: 1.0 / values.len() as f64,
            },
        };
        Some(Trial {
            configuration: self.baseline.clone(),
            outcome,
        })
    }

    /// Returns the geometric mean of the runs before the search.
    pub(super) fn baseline_mean(&self) -> Option<f64> {
        let values = self.baseline_values();
        let logs: f64 = values.iter().map(|v| v.ln()).sum();
        (!values.is_empty()).then(|| (logs / values.len() as f64).exp())
    }

    /// Returns the noise; `None` for fewer than two runs.
    pub(super) fn noise(&self) -> Option<TuneNoise> {
        let values = self.baseline_values();
        let runs = Estimate::of_mean(&values)?;
        let n = values.len() as f64;
        // The runs of a pair have the same setting: the mean of the logarithm of their ratio is known to be
        // zero.
        let pairs = values.chunks_exact(2);
        let count = pairs.len() as f64;
        let squares: f64 = pairs.map(|pair| (pair[1] / pair[0]).ln().powi(2)).sum();
        let pair_deviation = (squares / count).sqrt();
        Some(TuneNoise {
            runs: values.len() as u64,
            coefficient_of_variation: runs.standard_error * n.sqrt() / runs.value,
            pair_deviation,
            drift_per_hour: self.drift_per_hour(),
            duel_pairs: self.plan.duel_pairs as u64,
            detectable_gain: detectable_gain(pair_deviation, self.plan.duel_pairs)
                .filter(|_| values.len() >= 2 * PAIRS_MIN && pair_deviation > 0.0),
        })
    }

    /// Returns the drift over the runs before and during the search.
    fn drift_per_hour(&self) -> Option<f64> {
        let runs = self
            .trials
            .iter()
            .filter(|t| matches!(t.purpose, TrialPurpose::Baseline | TrialPurpose::Sentinel));
        let first = self.trials.first()?.started_unix_ms;
        let last = self.trials.last()?.started_unix_ms;
        if last.saturating_sub(first) < DRIFT_SPAN_MIN_MS {
            return None;
        }
        let points = runs.filter_map(|trial| {
            let hours = trial.started_unix_ms.saturating_sub(first) as f64 / 3.6e6;
            Some((hours, trial.value?.ln()))
        });
        let slope = median_slope(&points.collect::<Vec<_>>())?;
        Some(slope.exp_m1()).filter(|drift| drift.is_finite())
    }
}

/// Returns the gain that the last look of a duel of this many pairs detects in four cases of five. Earlier looks
/// detect more and stop some: both are rare.
fn detectable_gain(pair_deviation: f64, duel_pairs: usize) -> Option<f64> {
    let look = LOOKS.iter().find(|look| look.pairs == duel_pairs)?;
    let pairs = look.pairs as f64;
    let mean = Estimate {
        value: 0.0,
        standard_error: pair_deviation / pairs.sqrt(),
        degrees_of_freedom: pairs - 1.0,
    };
    Some(mean.detectable(2.0 * look.alpha).exp_m1())
}
