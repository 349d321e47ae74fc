//! What changed since an earlier run, and whether what it predicted came true.
//!
//! Findings are told apart by id and subject. What is compared is measured in both runs in the same way:
//! the predicted scan of the same file, the waiting for the same collection or index, free bytes, the
//! median checkpoint. A finding counts as gone only if what it needs was looked at again.

mod measured;

use seekscope_run::{Finding, FindingChange, Gain, RunDocument};

use crate::Diagnosis;
use crate::thresholds::NOTHING_WRONG;
use measured::{Quantity, measured};

/// Up to this relative change is taken for noise: the device model is off by as much between surveys.
const SAME_WITHIN: f64 = 0.1;

/// A run and what is concluded from it now.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    pub document: &'a RunDocument,
    pub diagnosis: &'a Diagnosis,
}

/// Every finding of either run: those of the earlier in its order, then the new ones.
pub fn compare(earlier: Examined<'_>, now: Examined<'_>) -> Vec<FindingChange> {
    let illnesses = |run: Examined<'_>| -> Vec<Finding> {
        let findings = run.diagnosis.findings.iter();
        findings
            .filter(|finding| finding.id != NOTHING_WRONG)
            .cloned()
            .collect()
    };
    let (before, after) = (illnesses(earlier), illnesses(now));
    let known = before.iter().map(|finding| {
        let again = after.iter().find(|other| is_same(finding, other));
        change_of(finding, again, earlier, now)
    });
    let new = after
        .iter()
        .filter(|finding| !before.iter().any(|other| is_same(finding, other)));
    known
        .chain(new.map(|finding| new_one(finding, now)))
        .collect()
}

fn is_same(a: &Finding, b: &Finding) -> bool {
    (&a.id, &a.subject) == (&b.id, &b.subject)
}

fn new_one(finding: &Finding, now: Examined<'_>) -> FindingChange {
    FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        change: "new".into(),
        after: Quantity::of(finding)
            .measure(now, &finding.subject)
            .or(finding.saves_s_per_hour),
        verdict: "not found in the earlier run".into(),
        ..FindingChange::default()
    }
}

fn change_of(
    finding: &Finding,
    again: Option<&Finding>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> FindingChange {
    let looked_at = again.is_some() || was_looked_at(now, &finding.id);
    let (before, after) = measured(finding, again, earlier, now);
    let after = after.filter(|_| looked_at);
    let change = match (again, looked_at) {
        (None, true) => "gone",
        (None, false) => "unknown",
        (Some(_), _) => direction(before, after),
    };
    FindingChange {
        id: finding.id.clone(),
        subject: finding.subject.clone(),
        change: change.into(),
        before,
        after,
        predicted: finding.gain.clone(),
        verdict: verdict(finding, change, (before, after)),
    }
}

fn direction(before: Option<f64>, after: Option<f64>) -> &'static str {
    match before.zip(after) {
        Some((before, after)) if after < before * (1.0 - SAME_WITHIN) => "better",
        Some((before, after)) if after > before * (1.0 + SAME_WITHIN) => "worse",
        _ => "same",
    }
}

fn was_traced(run: Examined<'_>) -> bool {
    let phase = run.document.phases.first();
    phase.is_some_and(|phase| phase.trace.is_some())
}

/// Was what a finding of this id rests on looked at?
fn was_looked_at(run: Examined<'_>, id: &str) -> bool {
    let family = id.split('.').next().unwrap_or_default();
    let document = run.document;
    let host = || {
        document
            .examination
            .as_ref()
            .is_some_and(|e| e.host.is_some())
    };
    match (family, id) {
        ("layout", _) => document.layout.is_some(),
        (_, "space.reusable") => !run.diagnosis.answers.space.is_empty(),
        (_, "space.nearly-full") => document.device.is_some(),
        (_, "index.random-inserts") | ("schema" | "read-ahead" | "journal", _) => was_traced(run),
        ("filesystem" | "scheduler" | "huge-pages" | "numa" | "memory" | "host", _) => host(),
        _ => document.examination.is_some() && !document.phases.is_empty(),
    }
}

fn verdict(finding: &Finding, change: &str, measured: (Option<f64>, Option<f64>)) -> String {
    if change == "unknown" {
        return "cannot be told: what it needs was not measured this time".into();
    }
    let Some(gain) = &finding.gain else {
        return "nothing was predicted".into();
    };
    match measured {
        (Some(_), Some(_)) if change == "same" => {
            "nothing changed: not acted on, or without effect".into()
        }
        (Some(before), Some(after)) => against_prediction(gain, before - after),
        _ => {
            "cannot be told: it was not measured in both runs, or its files were not used this time"
                .into()
        }
    }
}

fn against_prediction(gain: &Gain, saved: f64) -> String {
    let Gain {
        low, high, unit, ..
    } = gain;
    let word = match saved {
        s if s < 0.0 => "it became worse",
        s if s < *low => "less than predicted",
        s if s > *high => "more than predicted",
        _ => "as predicted",
    };
    format!("{word}: saved {saved:.3} {unit}, predicted {low:.3} to {high:.3}")
}

#[cfg(test)]
mod tests;
