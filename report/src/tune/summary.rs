//! Provides the figures of a session as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/tune.schema.json`.

use schemars::JsonSchema;
use seekscope_run::TuneRecord;
use seekscope_run::tune::{
    Expected, KnobImportance, KnobValues, MinimalChange, PairImportance, TrialStatus, TuneDuel,
    TuneExports, TuneLedger, TuneNoise, TuneVerdict,
};
use serde::Serialize;

use super::reading::{deciding_duel, importance_told, ratio, same_in_all_runs, verdict};

/// The result of a session. Unknown values are null; figures of the metric are in its own unit.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TuneSummary<'a> {
    workload: &'a str,
    metric: &'a str,
    /// Unit: per_s, ms, …; empty if there is none.
    unit: &'a str,
    /// True if higher is better.
    maximise: bool,
    constraints: &'a [String],
    seed: u64,
    /// Number of runs, failed ones included.
    trials: usize,
    failed: usize,
    /// The metric's value if every run that gave a figure gave this one, whatever was set: nothing that was varied reaches
    /// it, or the command does not measure the server; null: it varied.
    same_in_all_runs: Option<f64>,
    /// The search's best setting; empty if there is none.
    best: &'a KnobValues,
    /// The minimal change if it held, else the best, else empty: change nothing.
    recommended: &'a KnobValues,
    /// Values of the tuned knobs at the start.
    baseline: KnobValues,
    /// Verdict on `recommended`, or on the best if there is no gain; null: no duel was run.
    verdict: Option<TuneVerdict>,
    /// Knobs and presets of the catalogue that are not tuned, and why; names an option that would include
    /// one.
    left_out: Vec<Said<'a>>,
    /// What people should know of tuned knobs: their risks, their bounds, and what runs of this length cannot
    /// show.
    cautions: Vec<Said<'a>>,
    /// Expectation of the search for its best setting, with its 95 % interval: a guide, not a proof.
    expected: Option<Expected>,
    /// The duel of what is recommended, or of the best, against the baseline.
    duel: Option<DuelSummary<'a>>,
    duels: Vec<WholeDuel<'a>>,
    noise: Option<TuneNoise>,
    /// Shares of the variance by the model, the most important knob first; empty if nothing is known of any.
    importance: &'a [KnobImportance],
    /// Joint effects of two knobs beyond each one's own.
    interactions: &'a [PairImportance],
    minimal: Option<&'a MinimalChange>,
    exports: &'a TuneExports,
    ledger: TuneLedger,
    /// Whether every setting was put back and read back; null: nothing had been changed.
    restored: Option<bool>,
}

/// A note on a knob.
#[derive(Debug, Serialize, JsonSchema)]
struct Said<'a> {
    knob: &'a str,
    why: &'a str,
}

/// One setting against another in fresh, interleaved runs.
#[derive(Debug, Serialize, JsonSchema)]
struct DuelSummary<'a> {
    /// best, minimal, or a preset's name.
    candidate: &'a str,
    /// baseline, best, or a preset's name.
    against: &'a str,
    /// Candidate divided by the other in the direction of the goal: above 1 is better; null: fewer than two
    /// pairs.
    #[schemars(extend("exclusiveMinimum" = 0))]
    ratio: Option<f64>,
    /// Lower end of its 95 % interval.
    #[schemars(extend("exclusiveMinimum" = 0))]
    low: Option<f64>,
    /// Upper end of its 95 % interval.
    #[schemars(extend("exclusiveMinimum" = 0))]
    high: Option<f64>,
    pairs: u64,
    verdict: TuneVerdict,
}

/// A duel with all its figures.
#[derive(Debug, Serialize, JsonSchema)]
struct WholeDuel<'a> {
    #[serde(flatten)]
    duel: DuelSummary<'a>,
    /// Standard deviation of the logarithm of a pair's ratio.
    deviation: Option<f64>,
    /// Signed-rank test, one-sided; null: fewer than five pairs.
    #[schemars(range(min = 0, max = 1))]
    wilcoxon_p: Option<f64>,
    /// Student's one-sided p, corrected for all comparisons of the session.
    #[schemars(range(min = 0, max = 1))]
    holm_p: Option<f64>,
    /// The ratio that the search had promised; null: it was not involved.
    promised: Option<f64>,
    /// The worst pair's ratio.
    worst: Option<f64>,
    /// Failed runs of the candidate: with any, it is not better.
    failed: u64,
}

impl<'a> TuneSummary<'a> {
    /// Returns the summary of a record.
    pub fn of(record: &'a TuneRecord) -> Self {
        let baseline = (record.knobs.iter())
            .map(|knob| (knob.name.clone(), knob.baseline.clone()))
            .collect();
        let failed = (record.trials.iter())
            .filter(|trial| trial.status == TrialStatus::Failed)
            .count();
        let importance = importance_told(record);
        Self {
            workload: &record.workload,
            metric: &record.metric,
            unit: &record.unit,
            maximise: record.maximise,
            constraints: &record.constraints,
            seed: record.seed,
            trials: record.trials.len(),
            failed,
            same_in_all_runs: same_in_all_runs(record).map(|(value, _)| value),
            best: &record.best,
            recommended: &record.recommended,
            baseline,
            verdict: verdict(record),
            left_out: said(&record.left_out),
            cautions: said(&record.cautions),
            expected: record.expected,
            duel: deciding_duel(record).map(DuelSummary::of),
            duels: record.duels.iter().map(WholeDuel::of).collect(),
            noise: record.noise,
            importance: importance.map_or(&[], |i| &i.knobs),
            interactions: importance.map_or(&[], |i| &i.pairs),
            minimal: record.minimal.as_ref(),
            exports: &record.exports,
            ledger: record.ledger,
            restored: record.restored,
        }
    }
}

fn said(knobs: &[(String, String)]) -> Vec<Said<'_>> {
    knobs.iter().map(|(knob, why)| Said { knob, why }).collect()
}

impl<'a> DuelSummary<'a> {
    fn of(duel: &'a TuneDuel) -> Self {
        let interval = ratio(duel);
        Self {
            candidate: &duel.candidate,
            against: &duel.against,
            ratio: interval.map(|i| i.0),
            low: interval.map(|i| i.1),
            high: interval.map(|i| i.2),
            pairs: duel.pairs,
            verdict: duel.verdict,
        }
    }
}

impl<'a> WholeDuel<'a> {
    fn of(duel: &'a TuneDuel) -> Self {
        Self {
            duel: DuelSummary::of(duel),
            deviation: Some(duel.deviation),
            wilcoxon_p: duel.wilcoxon_p,
            holm_p: duel.holm_p,
            promised: duel.promised,
            worst: Some(duel.worst).filter(|worst| *worst > 0.0),
            failed: duel.failed,
        }
    }
}
