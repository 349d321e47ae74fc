//! Searches for the highest rate that meets an objective. A closed loop is measured first; then open loops
//! start at an eighth of its rate and double until one fails; then the distance is halved. The answer must hold
//! for a longer step. A host is seldom quiet, so a rate fails only if it fails twice, and a probe whose client
//! was late tells nothing, unless the server took too long by itself for most operations. Where it does, lower rates hardly
//! help: the lowest one is tried next. This module only decides; the caller runs the probes.

use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_run::units::format_ns;
use seekscope_run::{
    BenchStep, Confirmation, LatencySummary, LoadPoint, RateVerdict as Verdict, Saturation,
};

use super::objective::{is_missed_by_server, misses};
use super::validity::{Fault, late_client};
use crate::args::Slo;

const FACTOR: f64 = 2.0;
/// The lowest rate that is tried: almost no load.
const LOWEST_SHARE: f64 = 1e-3;
const LOWEST_PER_S: f64 = 1.0;
/// The first rate, as a share of what a closed loop reaches.
const FIRST_SHARE: f64 = 0.125;
/// The search ends when passing and failing rates are within this factor.
const RESOLUTION: f64 = 1.05;
const PROBES_MAX: usize = 60;
const CONFIRM_TIME: Duration = Duration::from_secs(30);
/// Length of a probe, as a share of the confirming step's length.
const PROBE_SHARE: f64 = 1.0 / 6.0;
const PROBE_TIME_MIN: Duration = Duration::from_secs(2);
/// Verdicts of one kind that settle a rate; a rate that is met at once needs no second one.
const VERDICTS_MIN: usize = 2;
/// A rate is given up after this many probes whose client was late.
const LATE_MAX: usize = 3;
/// Factor by which a rate that did not hold is lowered before it is tried again, and the number of such tries.
const STEP_BACK: f64 = 0.92;
const CONFIRMATIONS_MAX: u32 = 3;

/// A step to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Unique in the search.
    pub name: String,
    /// Rate of operations; `None`: a closed loop.
    pub per_s: Option<f64>,
    pub duration: Duration,
    is_confirming: bool,
}

/// The result of a search.
#[derive(Debug)]
pub struct Searched {
    pub saturation: Saturation,
    /// The step that confirmed the answer.
    pub confirmed_step: Option<String>,
}

/// The result of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Probed<'a> {
    pub step: &'a BenchStep,
    pub response: &'a Histogram<u64>,
    pub faults: &'a [Fault],
    /// Whether the client, not the server, limited the rate.
    pub is_client_bound: bool,
    /// Share of this host's CPUs used by others, if known.
    pub others_cpu_share: Option<f64>,
}

/// The state of a search for the highest rate.
#[derive(Debug)]
pub struct Search {
    confirm_time: Duration,
    probes: usize,
    closed_per_s: Option<f64>,
    /// The highest rate that passed; the rates that did not, with their verdicts.
    passed: Option<f64>,
    beyond: Vec<(f64, Verdict)>,
    /// Whether the last rate that was settled was missed by the server alone, whatever the client did.
    is_clear: bool,
    /// The verdicts on the current rate, and the probe to be repeated.
    verdicts: Vec<Verdict>,
    repeated: Option<Probe>,
    /// Number of confirming steps begun.
    confirming: u32,
    confirmations: Vec<Confirmation>,
    confirmed: Option<(f64, String)>,
    others_cpu_share: Option<f64>,
    points: Vec<LoadPoint>,
}

impl Search {
    /// Begins a search. `confirm_time`: length of the confirming step.
    pub fn new(confirm_time: Option<Duration>) -> Self {
        Self {
            confirm_time: confirm_time.unwrap_or(CONFIRM_TIME),
            probes: 0,
            closed_per_s: None,
            passed: None,
            beyond: Vec::new(),
            is_clear: false,
            verdicts: Vec::new(),
            repeated: None,
            confirming: 0,
            confirmations: Vec::new(),
            confirmed: None,
            others_cpu_share: None,
            points: Vec::new(),
        }
    }

    /// Returns the next probe to run; `None` when there is an answer, or none will be found.
    pub fn next(&mut self) -> Option<Probe> {
        if self.confirmed.is_some() || self.probes >= PROBES_MAX {
            return None;
        }
        self.probes += 1;
        if let Some(again) = self.repeated.take() {
            let mut probe = self.probe(again.per_s, again.duration);
            probe.is_confirming = again.is_confirming;
            return Some(probe);
        }
        let probe_time = self.confirm_time.mul_f64(PROBE_SHARE).max(PROBE_TIME_MIN);
        let Some(closed_per_s) = self.closed_per_s else {
            return Some(self.probe(None, probe_time));
        };
        match (self.passed, self.ceiling()) {
            _ if closed_per_s <= 0.0 => None,
            (None, None) => Some(self.probe(Some(closed_per_s * FIRST_SHARE), probe_time)),
            // Even the first rate was too high: go down to almost no load.
            (None, Some(failed)) if failed > lowest_of(closed_per_s) => {
                let next = match self.is_clear {
                    true => lowest_of(closed_per_s),
                    false => failed / FACTOR,
                };
                Some(self.probe(Some(next), probe_time))
            }
            (None, Some(_)) => None,
            (Some(passed), None) => Some(self.probe(Some(passed * FACTOR), probe_time)),
            (Some(passed), Some(failed)) if failed / passed > RESOLUTION => {
                Some(self.probe(Some((passed * failed).sqrt()), probe_time))
            }
            (Some(passed), Some(_)) => {
                if self.confirming >= CONFIRMATIONS_MAX {
                    return None;
                }
                let lowered = STEP_BACK.powi(i32::try_from(self.confirming).unwrap_or(0));
                self.confirming += 1;
                let mut probe = self.probe(Some(passed * lowered), self.confirm_time);
                probe.is_confirming = true;
                Some(probe)
            }
        }
    }

    /// Returns the rate above which no probe is worthwhile.
    fn ceiling(&self) -> Option<f64> {
        self.beyond.iter().map(|(per_s, _)| *per_s).reduce(f64::min)
    }

    fn probe(&self, per_s: Option<f64>, duration: Duration) -> Probe {
        let rate = per_s.map_or_else(|| "closed".into(), |per_s| format!("{per_s:.0}/s"));
        Probe {
            name: format!("probe {} {rate}", self.probes),
            per_s,
            duration,
            is_confirming: false,
        }
    }

    /// Records the result of a probe. It passes if every limit is met and the schedule was kept.
    pub fn note(&mut self, probe: &Probe, probed: Probed<'_>, slo: &Slo) {
        let Probed { step, response, .. } = probed;
        let Some(per_s) = probe.per_s else {
            self.closed_per_s = Some(step.throughput_per_s);
            return;
        };
        self.others_cpu_share = match (self.others_cpu_share, probed.others_cpu_share) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let mut missed = misses(slo, step, response);
        // The client's lateness is part of the response time, which met its limit.
        let others = probed.faults.iter();
        let others = others.filter(|fault| !matches!(fault, Fault::ClientLate(_)));
        missed.extend(others.map(Fault::to_string));
        let p99_ns = response.value_at_quantile(0.99);
        let late = late_client(&step.lag, p99_ns, probed.is_client_bound);
        let is_clear = is_missed_by_server(slo, step);
        let late = late.filter(|_| !missed.is_empty() && !is_clear);
        let verdict = match (&late, missed.is_empty()) {
            (Some(_), _) => Verdict::Untold,
            (None, true) => Verdict::Met,
            (None, false) => Verdict::Missed,
        };
        self.verdicts.push(verdict);
        match settled(&self.verdicts) {
            None => self.repeated = Some(probe.clone()),
            Some(verdict) => {
                self.verdicts.clear();
                self.is_clear = is_clear;
                self.settle(probe, per_s, verdict, &step.name);
            }
        }
        if late.is_some() {
            missed.clear();
        }
        let cpu = step.server_cpu_ns.filter(|_| step.requests > 0);
        self.points.push(LoadPoint {
            step: step.name.clone(),
            offered_per_s: per_s,
            achieved_per_s: step.throughput_per_s,
            response: LatencySummary::of_any(response),
            server_cpu_ns_per_operation: cpu.map(|ns| ns as f64 / step.requests as f64),
            missed,
            untold: late,
        });
    }

    fn settle(&mut self, probe: &Probe, per_s: f64, verdict: Verdict, step: &str) {
        if probe.is_confirming {
            self.confirmations.push(Confirmation { per_s, verdict });
        }
        match verdict {
            Verdict::Met if probe.is_confirming => self.confirmed = Some((per_s, step.into())),
            Verdict::Met => self.passed = Some(self.passed.map_or(per_s, |rate| rate.max(per_s))),
            Verdict::Missed | Verdict::Untold => self.beyond.push((per_s, verdict)),
        }
    }

    /// Returns the latest point as a line for people.
    pub fn last_line(&self) -> String {
        match (self.points.last(), self.closed_per_s) {
            (Some(point), _) => format!(
                "  {:.0}/s: {:.0}/s done, p99 {}{}",
                point.offered_per_s,
                point.achieved_per_s,
                point
                    .response
                    .map_or_else(|| "unknown".into(), |l| format_ns(l.p99_ns)),
                match (&point.untold, point.missed.first()) {
                    (Some(why), _) => format!("; cannot tell: {why}"),
                    (None, Some(why)) => format!("; missed: {why}"),
                    (None, None) => String::new(),
                }
            ),
            (None, Some(per_s)) => format!("  a closed loop does {per_s:.0}/s"),
            (None, None) => String::new(),
        }
    }

    /// Returns the curve, sorted by rate, and the answer.
    pub fn finish(mut self, slo: &Slo) -> Searched {
        self.points
            .sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
        let confirmed = self.confirmed.is_some();
        let maximum_per_s = self
            .confirmed
            .as_ref()
            .map(|(per_s, _)| *per_s)
            .or(self.passed);
        // What longer steps found at or below the maximum is not a limit above it.
        let lowest_above = |wanted: Verdict| {
            let of_kind = self.beyond.iter().filter(|(_, found)| *found == wanted);
            let above = of_kind.filter(|(per_s, _)| maximum_per_s.is_none_or(|max| *per_s > max));
            above.map(|(per_s, _)| *per_s).reduce(f64::min)
        };
        Searched {
            saturation: Saturation {
                objective: slo.to_string(),
                missed_from_per_s: lowest_above(Verdict::Missed),
                untold_from_per_s: lowest_above(Verdict::Untold),
                points: self.points,
                maximum_per_s,
                confirmed,
                confirmations: self.confirmations,
                others_cpu_share: self.others_cpu_share,
            },
            confirmed_step: self.confirmed.map(|(_, step)| step),
        }
    }
}

/// Returns the lowest rate that is tried, where a closed loop reached this one.
fn lowest_of(closed_per_s: f64) -> f64 {
    LOWEST_PER_S.max(closed_per_s * LOWEST_SHARE)
}

/// Returns the combined verdict of the probes at one rate; `None` if another probe is needed.
fn settled(verdicts: &[Verdict]) -> Option<Verdict> {
    let count = |wanted: Verdict| verdicts.iter().filter(|v| **v == wanted).count();
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    if missed >= VERDICTS_MIN {
        Some(Verdict::Missed)
    } else if met >= VERDICTS_MIN || (met > 0 && missed == 0) {
        Some(Verdict::Met)
    } else {
        (count(Verdict::Untold) >= LATE_MAX).then_some(Verdict::Untold)
    }
}

#[cfg(test)]
mod tests;
