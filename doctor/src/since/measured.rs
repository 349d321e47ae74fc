//! Measures a finding in both runs.
//!
//! Two runs hardly see the same load, so waiting is compared per unit of work (`work.rs`), scaled to the work
//! of the earlier run. Where the server's log tells of the very operations that a finding is about, their time is
//! (`logged.rs`). What was measured of the file itself (how a scan would go, free bytes) is compared as it is.

use seekscope_run::{Finding, WorkCompared};

use super::printed::{figure, saved_alone};
use super::work::{self, Load, in_words};
use super::{Examined, SAME_WITHIN, layout, logged};
use crate::answers::DeviceUser;
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
    /// The earlier value, in the unit of the prediction.
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
    pub(super) work: Option<WorkCompared>,
    pub(super) untold: Option<String>,
    /// What is waited now for the work of then, if that became a multiple under a heavier load, which need not be the
    /// cause.
    pub(super) grown: Option<f64>,
    /// What a figure of this run is multiplied by for the work of then; `None` where it is told in another way.
    pub(super) scale: Option<f64>,
    /// Whether it is time of the very operations of the finding; waiting has other causes as well.
    pub(super) is_all_its_own: bool,
    /// `after` at the work of now, where that is another figure.
    pub(super) at_work_of_now: Option<f64>,
}

/// Waiting that a heavier load need not explain is this many times as much for the same work.
const GROWN: f64 = 2.0;

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

    /// Returns whether it is measured in s per hour.
    pub(super) fn is_per_hour(self) -> bool {
        matches!(self, Self::Waiting | Self::Operations)
    }

    /// Returns whether it depends on how much the server is asked to do.
    fn is_of_load(self) -> bool {
        self.is_per_hour() || self == Self::Checkpoint
    }

    pub(super) fn measure(self, run: Examined<'_>, subject: &str) -> Option<f64> {
        let answers = &run.diagnosis.answers;
        match self {
            Self::Scan => {
                let scan = layout::file(run, subject)?.predicted_scan.as_ref()?;
                Some(scan.now_s)
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
    if let Some(measured) = logged::measured(finding, earlier, now) {
        return measured;
    }
    let subject = &finding.subject;
    let quantity = match Quantity::of(finding) {
        // Where the server does not count the time of operations, the waiting for their file.
        Quantity::Operations if Quantity::Operations.measure(earlier, subject).is_none() => {
            Quantity::Waiting
        }
        quantity => quantity,
    };
    let before = quantity.measure(earlier, subject);
    if quantity == Quantity::Scan {
        return scans(finding, before, earlier, now);
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
                _ => (saved_alone(finding), again.and_then(saved_alone)),
            }
        }
    };
    let work = work::compared(finding, earlier, now);
    let found = at_like_load(quantity, (before, after), work);
    if found.untold.is_none() {
        return found;
    }
    // The layout of a file shows how much its scans changed, whoever reads it.
    match by_layout(finding, earlier, now) {
        Some((before, after)) => Measured {
            before: Some(before),
            after: Some(after),
            ..Measured::default()
        },
        None => found,
    }
}

fn scans(
    finding: &Finding,
    before: Option<f64>,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Measured {
    let both = layout::scans(finding, earlier, now);
    let is_other_disk = both.is_none() && Quantity::Scan.measure(now, &finding.subject).is_some();
    Measured {
        before,
        after: both.map(|(_, after)| after),
        untold: is_other_disk.then(|| "its scans were predicted for different disks".into()),
        ..Measured::default()
    }
}

/// Returns whether the waiting that both explain, as far as it is measured, is the same, and not that for the file of
/// one of them.
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
        return Measured {
            before,
            untold: Some(untold_at(None, None)),
            ..Measured::default()
        };
    };
    let load = Load::of(&work);
    let scale = match quantity.is_per_hour() {
        true => Load::scale(&work),
        false => 1.0,
    };
    let measured_now = after;
    let after = after.map(|after| after * scale);
    let both = before.zip(after);
    let is_above = |times: f64| both.is_some_and(|(before, after)| after > before * times);
    let told = load.tells(is_above(1.0 + SAME_WITHIN));
    let has_grown = quantity.is_per_hour() && load == Load::Heavier && is_above(GROWN);
    let untold = (!told).then(|| {
        let why = untold_at(Some(load), Some(&work));
        match measured_now.filter(|_| has_grown) {
            Some(s) => format!("{why}; {} s per hour are waited now", figure(s)),
            None => why,
        }
    });
    Measured {
        before,
        after: after.filter(|_| told),
        work: Some(work),
        untold,
        grown: after.filter(|_| has_grown),
        scale: Some(scale),
        ..Measured::default()
    }
}

/// Says why the work that was done does not allow to compare.
pub(super) fn untold_at(load: Option<Load>, work: Option<&WorkCompared>) -> String {
    let (Some(load), Some(work)) = (load, work) else {
        return "how much work the server did is not known of both runs".into();
    };
    let way = match load {
        Load::Lighter => "the server had less to do",
        Load::Unknown => "what the server had to do is not counted, or was next to nothing",
        Load::Alike | Load::Heavier => "the server had more to do",
    };
    format!("{way} ({}); compare runs under like load", in_words(work))
}

impl Measured {
    /// Takes what became a multiple for what it is: where nobody acted on it, more is waited, whatever the load is.
    pub(super) fn tell_growth(&mut self) {
        if self.grown.is_some() {
            self.after = self.grown;
            self.untold = None;
        }
    }
}

/// Tells the waiting for a file by what its scans take.
fn by_layout(finding: &Finding, earlier: Examined<'_>, now: Examined<'_>) -> Option<(f64, f64)> {
    if !finding.id.starts_with("layout.") {
        return None;
    }
    // Of waiting for other files its layout tells nothing.
    let before = Quantity::Waiting.measure(earlier, &finding.subject)?;
    let (then, now) = layout::scans(finding, earlier, now)?;
    (then > 0.0).then(|| (before, before * now / then))
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
