//! The figures of a session as JSON: `summary` of `run.json` and of `--json`. Names are stable; see
//! `docs/schema/tune.schema.json`.

use seekscope_run::TuneRecord;
use seekscope_run::tune::{KnobValues, TrialStatus, TuneDuel};
use serde_json::{Value, json};

use super::reading::{deciding_duel, ratio, verdict};

/// Builds it. What is not known is null.
pub fn summary(record: &TuneRecord) -> Value {
    let baseline: KnobValues = (record.knobs.iter())
        .map(|knob| (knob.name.clone(), knob.baseline.clone()))
        .collect();
    let failed = (record.trials.iter())
        .filter(|trial| trial.status == TrialStatus::Failed)
        .count();
    let importance = record.importance.as_ref();
    json!({
        "workload": record.workload,
        "metric": record.metric,
        "unit": record.unit,
        "maximise": record.maximise,
        "constraints": record.constraints,
        "seed": record.seed,
        "trials": record.trials.len(),
        "failed": failed,
        "best": record.best,
        "recommended": record.recommended,
        "baseline": baseline,
        "verdict": verdict(record),
        "left_out": said(&record.left_out),
        "cautions": said(&record.cautions),
        "expected": record.expected,
        "duel": deciding_duel(record).map(short_duel),
        "duels": record.duels.iter().map(duel).collect::<Vec<_>>(),
        "noise": record.noise,
        "importance": importance.map_or_else(Vec::new, |i| i.knobs.clone()),
        "interactions": importance.map_or_else(Vec::new, |i| i.pairs.clone()),
        "minimal": record.minimal,
        "exports": record.exports,
        "ledger": record.ledger,
        "restored": record.restored,
    })
}

fn said(knobs: &[(String, String)]) -> Vec<Value> {
    let knobs = knobs.iter();
    knobs
        .map(|(knob, why)| json!({ "knob": knob, "why": why }))
        .collect()
}

fn short_duel(duel: &TuneDuel) -> Value {
    let interval = ratio(duel);
    json!({
        "candidate": duel.candidate,
        "against": duel.against,
        "ratio": interval.map(|i| i.0),
        "low": interval.map(|i| i.1),
        "high": interval.map(|i| i.2),
        "pairs": duel.pairs,
        "verdict": duel.verdict,
    })
}

fn duel(duel: &TuneDuel) -> Value {
    let mut all = short_duel(duel);
    all["deviation"] = json!(duel.deviation);
    all["wilcoxon_p"] = json!(duel.wilcoxon_p);
    all["holm_p"] = json!(duel.holm_p);
    all["promised"] = json!(duel.promised);
    all["worst"] = json!(Some(duel.worst).filter(|worst| *worst > 0.0));
    all["failed"] = json!(duel.failed);
    all
}
