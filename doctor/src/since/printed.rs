//! Tells a change in the figures that the reports print.
//!
//! What is measured of both runs (`measured.rs`) decides how a finding changed. A reader holds the line beside the findings
//! below it and in the earlier report, and those print what acting on them saves.

use seekscope_run::units::{format_count, whole};
use seekscope_run::{Finding, Gain};

use super::SAME_WITHIN;
use super::measured::{Measured, Quantity};
use crate::ranking::PER_HOUR;

/// A single predicted value is right within this factor of what came.
const ABOUT: f64 = 0.25;

/// Returns the gain that the finding promised, with an interval, in the unit in which it is measured: what its report
/// printed.
pub(super) fn predicted(finding: &Finding) -> Option<Gain> {
    let saved = || {
        let value = saved_alone(finding).filter(|_| Quantity::of(finding).is_per_hour())?;
        Some(Gain {
            value,
            low: value * (1.0 - ABOUT),
            high: value * (1.0 + ABOUT),
            unit: PER_HOUR.into(),
        })
    };
    // Where others take a part first, what it saves by itself is printed.
    let own = finding.gain.clone();
    own.filter(|_| finding.alone_s_per_hour.is_none())
        .or_else(saved)
        .or_else(|| finding.gain.clone())
}

/// Returns what acting on the finding alone would save, s per hour, whatever others save of the same waiting.
pub(super) fn saved_alone(finding: &Finding) -> Option<f64> {
    finding.alone_s_per_hour.or(finding.saves_s_per_hour)
}

/// Returns what a report prints of what acting on the finding saves, s per hour.
pub(super) fn saves(finding: &Finding) -> Option<f64> {
    let gain = predicted(finding).filter(|_| Quantity::of(finding).is_per_hour());
    gain.map(|gain| gain.value)
}

impl Measured {
    /// Tells it in what the reports print. Of a finding that is made again that is what it saves now, unless it was acted
    /// on: what a further step would save is not what is left of the first.
    pub(super) fn in_printed_figures(
        self,
        finding: &Finding,
        again: Option<&Finding>,
        is_done: bool,
    ) -> Self {
        let Some((printed, measured)) = saves(finding).zip(self.before) else {
            return self;
        };
        let again = again.filter(|_| !is_done).and_then(saves);
        let left = |after: f64| match again.zip(self.scale) {
            Some((now, scale)) => now * scale,
            None if self.is_all_its_own && measured > 0.0 => printed * after / measured,
            None => (printed + after - measured).max(0.0),
        };
        let after = self.after.map(left);
        let unscaled = |scale: f64| match again {
            Some(now) => Some(now),
            None => Some(left(self.after? / scale)),
        };
        let at_work_of_now = self.scale.and_then(unscaled).filter(|_| after.is_some());
        Self {
            before: Some(printed),
            after,
            grown: self.grown.map(left),
            at_work_of_now: at_work_of_now
                .filter(|now| after.is_some_and(|after| differ(after, *now))),
            ..self
        }
    }
}

/// Returns whether two figures are further apart than noise.
pub(super) fn differ(a: f64, b: f64) -> bool {
    (a - b).abs() > SAME_WITHIN * a.max(b)
}

/// Returns a number with three digits at least.
pub(super) fn figure(value: f64) -> String {
    match value {
        999.5.. => format_count(whole(value)),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        // "Not any more" needs no digits.
        0.0 => "0".into(),
        _ => format!("{value:.3}"),
    }
}
