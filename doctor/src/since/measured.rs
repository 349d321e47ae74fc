//! Measures a finding in both runs.
//!
//! Two runs hardly see the same load, so waiting is compared per unit of work (`work.rs`), scaled to the work
//! of the earlier run. What was measured of the file itself (how a scan would go, free bytes) is compared as
//! it is.

use seekscope_run::{Finding, WorkCompared};

use super::work::{self, Load, in_words};
use super::{Examined, SAME_WITHIN};
use crate::answers::{DeviceUser, name_of};
use crate::claims;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Predicted scan of the subject's file, s.
    Scan,
    /// Free bytes in the file.
    FreeBytes,
    /// Median checkpoint, s.
    Checkpoint,
    /// Lag of a member, s.
    Lag,
    /// Waiting for the subject, s per hour.
    Waiting,
    /// Time that operations on the subject took, s per hour.
    Operations,
}

/// The values of both runs, and the reason if there is none.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Measured {
    /// In the unit of the prediction.
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
    pub(super) work: Option<WorkCompared>,
    pub(super) untold: Option<String>,
}

impl Quantity {
    /// Returns the quantity by the unit of the prediction, else by what the finding is about.
    pub(super) fn of(finding: &Finding) -> Self {
        let unit = finding.gain.as_ref().map_or("", |gain| gain.unit.as_str());
        match finding.id.as_str() {
            _ if super::is_of_queries(finding) && !finding.subject.is_empty() => Self::Operations,
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

    /// Does it depend on how much the server is asked to do?
    fn is_of_load(self) -> bool {
        matches!(self, Self::Waiting | Self::Operations | Self::Checkpoint)
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
            Self::Operations => {
                let member = run.document.examination.as_ref()?.examined()?;
                let facts = member.collection(subject)?;
                let taken_ns = facts.reading_ns? + facts.writing_ns.unwrap_or(0);
                let watched_ns = run.document.phases.first()?.duration_ns();
                (watched_ns > 0).then(|| taken_ns as f64 / watched_ns as f64 * 3600.0)
            }
        }
    }
}

pub(super) fn measured(
    finding: &Finding,
    again: Option<&Finding>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Measured {
    let subject = &finding.subject;
    let quantity = match Quantity::of(finding) {
        // Where the server does not count the time of operations, the waiting for their file.
        Quantity::Operations if Quantity::Operations.measure(earlier, subject).is_none() => {
            Quantity::Waiting
        }
        quantity => quantity,
    };
    let before = quantity.measure(earlier, subject);
    if quantity == Quantity::Scan && !is_same_disk(earlier, now) {
        return Measured {
            before,
            untold: Some("its scans were predicted for different disks".into()),
            ..Measured::default()
        };
    }
    if !quantity.is_of_load() {
        return Measured {
            before,
            after: quantity.measure(now, subject),
            ..Measured::default()
        };
    }
    let (before, after) = match (quantity, before) {
        (Quantity::Checkpoint, before) => (before, quantity.measure(now, subject)),
        (_, Some(before)) => {
            // Nobody waits for what nobody reads any more.
            let after = quantity.measure(now, subject).unwrap_or(0.0);
            (Some(before), Some(after))
        }
        // Waiting of no single file: all of the kind that the finding explains.
        (_, None) => {
            let of = |run: Examined<'_>| run.diagnosis.answers.waited.explained_by(&finding.id);
            match (of(earlier), of(now)) {
                (Some(before), Some(after)) => (Some(before), Some(after)),
                // What acting on it would save, then and now, shows which way it went.
                _ => (
                    finding.saves_s_per_hour,
                    again.and_then(|again| again.saves_s_per_hour),
                ),
            }
        }
    };
    let work = work::compared(finding, earlier, now);
    let found = at_like_load(quantity, (before, after), work);
    if found.untold.is_none() {
        return found;
    }
    // The layout of a file shows how much its scans changed, whoever reads it.
    match by_layout(finding, found.before, earlier, now) {
        Some((before, after)) => Measured {
            before: Some(before),
            after: Some(after),
            ..Measured::default()
        },
        None => found,
    }
}

/// Is the waiting that both explain, as far as it is measured, the same, and not that for the file of one of them?
pub(super) fn explain_the_same(a: &Finding, b: &Finding, earlier: Examined<'_>) -> bool {
    let is_of_a_kind = |finding: &Finding| {
        let waiting = Quantity::Waiting;
        Quantity::of(finding) == waiting && waiting.measure(earlier, &finding.subject).is_none()
    };
    is_of_a_kind(a) && is_of_a_kind(b) && claims::explain_the_same(&a.id, &b.id)
}

/// Scales waiting to the work of the earlier run; returns nothing where the loads cannot be compared.
fn at_like_load(
    quantity: Quantity,
    (before, after): (Option<f64>, Option<f64>),
    work: Option<WorkCompared>,
) -> Measured {
    let Some(work) = work else {
        let why = "how much work the server did is not known of both runs";
        return Measured {
            before,
            untold: Some(why.into()),
            ..Measured::default()
        };
    };
    let load = Load::of(&work);
    let scale = match quantity {
        Quantity::Waiting | Quantity::Operations => Load::scale(&work),
        _ => 1.0,
    };
    let after = after.map(|after| after * scale);
    let became_worse = before
        .zip(after)
        .is_some_and(|(before, after)| after > before * (1.0 + SAME_WITHIN));
    let told = load.tells(became_worse);
    let untold = (!told).then(|| {
        let way = match load {
            Load::Lighter => "the server had less to do",
            Load::Unknown => "what the server had to do is not counted, or was next to nothing",
            _ => "the server had more to do",
        };
        format!("{way} ({}); compare runs under like load", in_words(&work))
    });
    Measured {
        before,
        after: after.filter(|_| told),
        work: Some(work),
        untold,
    }
}

fn by_layout(
    finding: &Finding,
    before: Option<f64>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<(f64, f64)> {
    let is_told = finding.id.starts_with("layout.") && is_same_disk(earlier, now);
    let before = before.filter(|_| is_told)?;
    let scan = |run| Quantity::Scan.measure(run, &finding.subject);
    let scan_before = scan(earlier).filter(|s| *s > 0.0)?;
    Some((before, before * scan(now)? / scan_before))
}

/// Were scans predicted for the same disk, where both runs predicted any?
fn is_same_disk(earlier: Examined<'_>, now: Examined<'_>) -> bool {
    let disk = |run: Examined<'_>| Some(run.document.layout.as_ref()?.predicted_for.clone());
    let both = disk(earlier).zip(disk(now));
    both.is_none_or(|(earlier, now)| earlier == now)
}

/// Returns `None` where none of them is the subject's.
pub(super) fn sum_over_users(
    run: Examined<'_>,
    subject: &str,
    value: impl Fn(&DeviceUser) -> f64,
) -> Option<f64> {
    let users = run.diagnosis.answers.device_users.iter();
    let its = users.filter(|user| user.namespace.as_deref() == Some(subject));
    its.map(value).reduce(|a, b| a + b)
}
