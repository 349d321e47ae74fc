//! The highest rate that meets an objective: first what a closed loop does, then open loops from an
//! eighth of that on, doubling until one fails, then halving the distance; the answer must hold for a
//! longer step. Decides only; somebody else runs the probes.

use std::time::Duration;

use hdrhistogram::Histogram;
use seekscope_run::units::format_ns;
use seekscope_run::{BenchStep, LatencySummary, LoadPoint, Saturation};

use super::objective::misses;
use super::validity::CLIENT_LATE;
use crate::args::Slo;

const FACTOR: f64 = 2.0;
/// Of what a closed loop reaches.
const FIRST_SHARE: f64 = 0.125;
/// Passing and failing rates this close to one another are the answer.
const RESOLUTION: f64 = 1.05;
const PROBES_MAX: usize = 40;
const CONFIRM_TIME: Duration = Duration::from_secs(30);
/// Of the confirming step's length.
const PROBE_SHARE: f64 = 1.0 / 6.0;
const PROBE_TIME_MIN: Duration = Duration::from_secs(2);
/// A rate that did not hold is lowered by so much and tried again, so often.
const STEP_BACK: f64 = 0.92;
const CONFIRMATIONS_MAX: u32 = 3;

/// A step to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Probe {
    /// Unique in the search.
    pub name: String,
    /// `None`: a closed loop.
    pub per_s: Option<f64>,
    pub duration: Duration,
    is_confirming: bool,
}

/// What a search came to.
#[derive(Debug)]
pub struct Searched {
    pub saturation: Saturation,
    /// The step that is the answer.
    pub confirmed_step: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Search {
    confirm_time: Duration,
    probes: usize,
    closed_per_s: Option<f64>,
    /// The highest rate that passed, and the lowest that failed.
    passed: Option<f64>,
    failed: Option<f64>,
    confirmations: u32,
    confirmed: Option<(f64, String)>,
    points: Vec<LoadPoint>,
}

impl Search {
    /// `confirm_time`: length of the confirming step.
    pub fn new(confirm_time: Option<Duration>) -> Self {
        Self {
            confirm_time: confirm_time.unwrap_or(CONFIRM_TIME),
            probes: 0,
            closed_per_s: None,
            passed: None,
            failed: None,
            confirmations: 0,
            confirmed: None,
            points: Vec::new(),
        }
    }

    /// What to run next; `None` when there is an answer, or none will be found.
    pub fn next(&mut self) -> Option<Probe> {
        if self.confirmed.is_some() || self.probes >= PROBES_MAX {
            return None;
        }
        self.probes += 1;
        let probe_time = self.confirm_time.mul_f64(PROBE_SHARE).max(PROBE_TIME_MIN);
        let Some(closed_per_s) = self.closed_per_s else {
            return Some(self.probe(None, probe_time));
        };
        match (self.passed, self.failed) {
            _ if closed_per_s <= 0.0 => None,
            (None, None) => Some(self.probe(Some(closed_per_s * FIRST_SHARE), probe_time)),
            // Even the first was too much: down to what is hardly a load.
            (None, Some(failed)) if failed > 1.0 && failed > closed_per_s * 1e-3 => {
                Some(self.probe(Some(failed / FACTOR), probe_time))
            }
            (None, Some(_)) => None,
            (Some(passed), None) => Some(self.probe(Some(passed * FACTOR), probe_time)),
            (Some(passed), Some(failed)) if failed / passed > RESOLUTION => {
                Some(self.probe(Some((passed * failed).sqrt()), probe_time))
            }
            (Some(passed), Some(_)) => {
                if self.confirmations >= CONFIRMATIONS_MAX {
                    return None;
                }
                let lowered = STEP_BACK.powi(i32::try_from(self.confirmations).unwrap_or(0));
                self.confirmations += 1;
                let mut probe = self.probe(Some(passed * lowered), self.confirm_time);
                probe.is_confirming = true;
                Some(probe)
            }
        }
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

    /// What the probe came to. Passed: every limit is met, and the schedule was kept.
    pub fn note(&mut self, probe: &Probe, step: &BenchStep, response: &Histogram<u64>, slo: &Slo) {
        let Some(per_s) = probe.per_s else {
            self.closed_per_s = Some(step.throughput_per_s);
            return;
        };
        let mut missed = misses(slo, step, response);
        // How late the client was is in the response time, which has met its limit.
        let faults = step
            .invalid
            .iter()
            .filter(|why| !why.starts_with(CLIENT_LATE));
        missed.extend(faults.cloned());
        let has_passed = missed.is_empty();
        if probe.is_confirming {
            self.confirmed = has_passed.then(|| (per_s, step.name.clone()));
        } else if has_passed {
            self.passed = Some(self.passed.map_or(per_s, |rate| rate.max(per_s)));
        } else {
            self.failed = Some(self.failed.map_or(per_s, |rate| rate.min(per_s)));
        }
        let cpu = step.server_cpu_ns.filter(|_| step.requests > 0);
        self.points.push(LoadPoint {
            step: step.name.clone(),
            offered_per_s: per_s,
            achieved_per_s: step.throughput_per_s,
            response: LatencySummary::of(response),
            server_cpu_ns_per_operation: cpu.map(|ns| ns as f64 / step.requests as f64),
            missed,
        });
    }

    /// The latest point, for people.
    pub fn last_line(&self) -> String {
        match (self.points.last(), self.closed_per_s) {
            (Some(point), _) => format!(
                "  {:.0}/s: {:.0}/s done, p99 {}{}",
                point.offered_per_s,
                point.achieved_per_s,
                format_ns(point.response.p99_ns),
                point
                    .missed
                    .first()
                    .map_or_else(String::new, |why| format!("; missed: {why}"))
            ),
            (None, Some(per_s)) => format!("  a closed loop does {per_s:.0}/s"),
            (None, None) => String::new(),
        }
    }

    /// The curve, by rate, and the answer.
    pub fn finish(mut self, slo: &Slo) -> Searched {
        self.points
            .sort_by(|a, b| a.offered_per_s.total_cmp(&b.offered_per_s));
        let confirmed = self.confirmed.is_some();
        let maximum_per_s = self
            .confirmed
            .as_ref()
            .map(|(per_s, _)| *per_s)
            .or(self.passed);
        Searched {
            saturation: Saturation {
                objective: slo.to_string(),
                points: self.points,
                maximum_per_s,
                confirmed,
            },
            confirmed_step: self.confirmed.map(|(_, step)| step),
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::{OperationResult, latency_histogram};

    use super::*;
    use crate::args::parse_slo;

    fn slo() -> Slo {
        parse_slo("p99=20ms").unwrap()
    }

    /// A server that answers in 1 ms up to `capacity`, and in a second beyond; long steps only up to
    /// `lasting`.
    fn searched(capacity: f64, lasting: f64) -> (Searched, usize) {
        let mut search = Search::new(None);
        let mut steps = 0;
        while let Some(probe) = search.next() {
            steps += 1;
            let per_s = probe.per_s.unwrap_or(capacity * 1.3);
            let limit = if probe.duration >= CONFIRM_TIME {
                lasting
            } else {
                capacity
            };
            let ns = if per_s <= limit {
                1_000_000
            } else {
                1_000_000_000
            };
            let mut response = latency_histogram();
            response.record_n(ns, 100).unwrap();
            let step = BenchStep {
                name: probe.name.clone(),
                throughput_per_s: per_s.min(capacity * 1.3),
                operations: vec![OperationResult {
                    count: 100,
                    ..OperationResult::default()
                }],
                ..BenchStep::default()
            };
            search.note(&probe, &step, &response, &slo());
        }
        (search.finish(&slo()), steps)
    }

    #[test]
    fn the_highest_passing_rate_is_found_and_confirmed() {
        let (found, steps) = searched(1000.0, 1000.0);
        let maximum = found.saturation.maximum_per_s.unwrap();
        assert!((950.0..=1000.0).contains(&maximum), "{maximum}");
        assert!(found.saturation.confirmed && found.confirmed_step.is_some());
        assert!(steps < 14, "{steps}");
        let rates: Vec<f64> = found
            .saturation
            .points
            .iter()
            .map(|p| p.offered_per_s)
            .collect();
        assert!(rates.is_sorted() && rates.len() == steps - 1);
    }

    #[test]
    fn what_does_not_last_is_lowered() {
        let (found, _) = searched(1000.0, 900.0);
        let maximum = found.saturation.maximum_per_s.unwrap();
        assert!(
            found.saturation.confirmed && (800.0..=900.0).contains(&maximum),
            "{maximum}"
        );
        let (never, _) = searched(1000.0, 100.0);
        assert!(!never.saturation.confirmed && never.saturation.maximum_per_s.is_some());
        let (dead, _) = searched(0.0, 0.0);
        assert!(dead.saturation.maximum_per_s.is_none() && !dead.saturation.confirmed);
    }
}
