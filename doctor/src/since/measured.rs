//! What a finding is measured by in both runs.
//!
//! Two runs hardly see the same load. What makes each read slower or quicker (order, read-ahead, the
//! disk) is therefore compared per call, at the load of the earlier run; what changes the number of reads
//! (an index, a cache) is compared as it is.

use seekscope_run::Finding;

use super::{Examined, was_traced};
use crate::answers::{DeviceUser, name_of};

/// Families of findings on what a single call costs.
const PER_CALL: [&str; 4] = ["layout.", "read-ahead.", "disk.", "scheduler."];
/// Families on the number of calls: that there are none any more is what was wanted.
const NUMBER_OF_CALLS: [&str; 3] = ["query.", "cache.", "index."];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// s of the predicted scan of the file that is the subject.
    Scan,
    /// Bytes free in it.
    FreeBytes,
    /// s of the median checkpoint.
    Checkpoint,
    /// s that a member is behind.
    Lag,
    /// s of waiting per hour for the subject.
    Waiting,
}

impl Quantity {
    /// By the unit of what was predicted, else by what the finding is about.
    pub(super) fn of(finding: &Finding) -> Self {
        let unit = finding.gain.as_ref().map_or("", |gain| gain.unit.as_str());
        match finding.id.as_str() {
            _ if unit.contains("per hour") => Self::Waiting,
            _ if unit.contains("scan") => Self::Scan,
            _ if unit.starts_with("byte") => Self::FreeBytes,
            _ if unit.contains("checkpoint") => Self::Checkpoint,
            "layout.key-order-lost" => Self::Scan,
            "space.reusable" => Self::FreeBytes,
            "checkpoint.long" => Self::Checkpoint,
            "member.lagging" => Self::Lag,
            _ => Self::Waiting,
        }
    }

    pub(super) fn measure(self, run: Examined<'_>, subject: &str) -> Option<f64> {
        let answers = &run.diagnosis.answers;
        match self {
            Self::Scan => {
                let mut files = run.document.layout.as_ref()?.files.iter();
                let file = files.find(|file| name_of(file) == subject)?;
                Some(file.predicted_scan.as_ref()?.now_s)
            }
            Self::FreeBytes => {
                let answer = answers.space.iter().find(|answer| answer.name == subject)?;
                Some(answer.free_bytes as f64)
            }
            Self::Checkpoint => Some(answers.checkpoints.as_ref()?.median_s),
            Self::Lag => {
                let members = &run.document.examination.as_ref()?.members;
                members.iter().find(|member| member.name == subject)?.lag_s
            }
            Self::Waiting => sum_over_users(run, subject, |user| user.waiting_s_per_s * 3600.0),
        }
    }
}

/// Before and after, in the unit of what was predicted.
pub(super) fn measured(
    finding: &Finding,
    again: Option<&Finding>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> (Option<f64>, Option<f64>) {
    let quantity = Quantity::of(finding);
    let subject = &finding.subject;
    let before = quantity.measure(earlier, subject);
    match (quantity, before) {
        (Quantity::Waiting, Some(before)) => {
            (Some(before), waiting_after(finding, before, earlier, now))
        }
        // Waiting that is no single file's: what acting on the finding would save, then and now.
        (Quantity::Waiting, None) => {
            let after = again.map_or(Some(0.0), |again| again.saves_s_per_hour);
            (finding.saves_s_per_hour, after)
        }
        _ => (before, quantity.measure(now, subject)),
    }
}

fn waiting_after(
    finding: &Finding,
    before: f64,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<f64> {
    let subject = &finding.subject;
    let belongs = |families: &[&str]| families.iter().any(|f| finding.id.starts_with(f));
    let calls = |run| sum_over_users(run, subject, |user| user.calls_per_s).unwrap_or(0.0);
    let (calls_before, calls_after) = (calls(earlier), calls(now));
    if calls_after > 0.0 {
        let load = if belongs(&PER_CALL) {
            calls_before / calls_after
        } else {
            1.0
        };
        return Some(Quantity::Waiting.measure(now, subject)? * load);
    }
    if belongs(&NUMBER_OF_CALLS) && was_traced(now) {
        return Some(0.0);
    }
    // Nobody read it this time; how it lies says by how much scans changed.
    let scan = |run| Quantity::Scan.measure(run, subject).filter(|s| *s > 0.0);
    belongs(&["layout."]).then(|| Some(before * scan(now)? / scan(earlier)?))?
}

fn sum_over_users(
    run: Examined<'_>,
    subject: &str,
    value: impl Fn(&DeviceUser) -> f64,
) -> Option<f64> {
    let users = run.diagnosis.answers.device_users.iter();
    let its = users.filter(|user| user.namespace.as_deref() == Some(subject));
    its.map(value).reduce(|a, b| a + b)
}
