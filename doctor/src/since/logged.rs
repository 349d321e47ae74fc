//! Measures the operations that a finding is about, where the server's log of both runs tells of them.
//!
//! The server counts the time of all operations on a collection together: an index that serves one kind leaves that of the
//! others, and lets clients that wait for each answer ask more. The log tells the kinds apart. It has the slow ones alone,
//! so a kind that it has no longer takes next to no time, provided that the collection is asked as much as it was.

use seekscope_run::{Finding, LoggedOperations, WorkCompared};

use super::Examined;
use super::measured::{Measured, untold_at};
use super::printed::predicted;
use super::work::{self, ITS_OPERATIONS, Load};

/// Share of the predicted saving that the log must tell of: where it tells of less, the prediction rests on something else.
const TOLD_MIN: f64 = 0.5;

/// What a log tells of the operations that a finding is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InLog {
    pub(super) s_per_hour: f64,
    per_s: f64,
    count: f64,
    took_us: f64,
    longest_us: f64,
    /// Documents or keys of indexes that they examined, whichever are more.
    examined: f64,
}

impl InLog {
    /// Returns `None` where the log was not read, or where the finding names no operations.
    pub(super) fn of(finding: &Finding, run: Examined<'_>) -> Option<Self> {
        let member = run.document.examination.as_ref()?.examined()?;
        let covered_s = member.slow_log_s.filter(|covered_s| *covered_s > 0.0)?;
        let kinds = &finding.operations;
        if kinds.is_empty() {
            return None;
        }
        let its = member.operations.iter();
        let its = its.filter(|operation| kinds.iter().any(|kind| kind.includes(operation)));
        let mut all = LoggedOperations::default();
        its.filter_map(|operation| operation.logged.as_ref())
            .for_each(|logged| all.add(logged));
        let (count, took_us) = (all.count as f64, all.took_us as f64);
        Some(Self {
            s_per_hour: took_us / 1e6 / covered_s * 3600.0,
            per_s: count / covered_s,
            count,
            took_us,
            longest_us: all.longest_us as f64,
            examined: all.documents_examined.max(all.keys_examined) as f64,
        })
    }

    pub(super) fn ms_each(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.took_us / self.count / 1000.0)
    }

    pub(super) fn examined_each(self) -> Option<f64> {
        (self.examined > 0.0 && self.count > 0.0).then(|| self.examined / self.count)
    }

    /// Returns the standard error of the mean duration, relative to it, at most: durations from 0 to M with the mean m have
    /// no larger variance than m · (M - m).
    pub(super) fn relative_error(self) -> f64 {
        let mean_us = self.took_us / self.count;
        ((self.longest_us / mean_us - 1.0).max(0.0) / self.count).sqrt()
    }
}

/// Returns the time that the operations took, s per hour, now for as many of them as then; `None` where the logs do not
/// tell.
pub(super) fn measured(
    finding: &Finding,
    earlier: Examined<'_>,
    now: Examined<'_>,
) -> Option<Measured> {
    let (then, left) = (InLog::of(finding, earlier)?, InLog::of(finding, now)?);
    let promised = predicted(finding).map_or(0.0, |gain| gain.value);
    if then.per_s <= 0.0 || then.s_per_hour < promised * TOLD_MIN {
        return None;
    }
    let before = Some(then.s_per_hour);
    let asked = work::compared(finding, earlier, now);
    let load = asked.as_ref().map(Load::of);
    let is_asked_as_much = matches!(load, Some(Load::Alike | Load::Heavier));
    if left.per_s > 0.0 {
        let scale = then.per_s / left.per_s;
        // Those that the log lacks now became fast.
        let scale = if is_asked_as_much {
            scale.min(1.0)
        } else {
            scale
        };
        return Some(Measured {
            before,
            after: Some(left.s_per_hour * scale),
            scale: Some(scale),
            is_all_its_own: true,
            work: Some(WorkCompared {
                unit: ITS_OPERATIONS.into(),
                before_per_s: then.per_s,
                after_per_s: left.per_s,
            }),
            ..Measured::default()
        });
    }
    Some(Measured {
        before,
        after: is_asked_as_much.then_some(0.0),
        is_all_its_own: true,
        untold: (!is_asked_as_much).then(|| untold_at(load, asked.as_ref())),
        work: asked,
        ..Measured::default()
    })
}
