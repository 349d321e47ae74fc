//! The highest rate that meets an objective: first what a closed loop does, then open loops from an
//! eighth of that on, doubling until one fails, then halving the distance; the answer must hold for a
//! longer step. A host is seldom quiet, so a rate fails only if it fails twice, and a probe whose client was
//! late tells nothing. Decides only; somebody else runs the probes.

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
const PROBES_MAX: usize = 60;
const CONFIRM_TIME: Duration = Duration::from_secs(30);
/// Of the confirming step's length.
const PROBE_SHARE: f64 = 1.0 / 6.0;
const PROBE_TIME_MIN: Duration = Duration::from_secs(2);
/// So many verdicts of one kind settle a rate; one that is met at once needs no second.
const VERDICTS_MIN: usize = 2;
/// After so many probes of one rate whose client was late it is given up.
const LATE_MAX: usize = 3;
/// A generator whose lateness is more than this share of the response time is what was measured.
const LAG_SHARE_MAX: f64 = 0.5;
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

/// What a probe says of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Met,
    Missed,
    /// The client was late.
    Untold,
}

/// See the module.
#[derive(Debug)]
pub struct Search {
    confirm_time: Duration,
    probes: usize,
    closed_per_s: Option<f64>,
    /// The highest rate that passed, the lowest that failed, and the lowest of which nothing can be told.
    passed: Option<f64>,
    failed: Option<f64>,
    untold: Option<f64>,
    /// What the probes of the rate under way have said, and the last of them.
    verdicts: Vec<Verdict>,
    repeated: Option<Probe>,
    confirmations: u32,
    confirmed: Option<(f64, String)>,
    others_cpu_share: Option<f64>,
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
            untold: None,
            verdicts: Vec::new(),
            repeated: None,
            confirmations: 0,
            confirmed: None,
            others_cpu_share: None,
            points: Vec::new(),
        }
    }

    /// What to run next; `None` when there is an answer, or none will be found.
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

    /// No higher rate is worth a probe.
    fn ceiling(&self) -> Option<f64> {
        self.failed.into_iter().chain(self.untold).reduce(f64::min)
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

    /// What the probe came to. Passed: every limit is met, and the schedule was kept. `others_cpu_share`: of
    /// this host, where that is known.
    pub fn note(
        &mut self,
        probe: &Probe,
        step: &BenchStep,
        response: &Histogram<u64>,
        is_client_bound: bool,
        others_cpu_share: Option<f64>,
        slo: &Slo,
    ) {
        let Some(per_s) = probe.per_s else {
            self.closed_per_s = Some(step.throughput_per_s);
            return;
        };
        self.others_cpu_share = match (self.others_cpu_share, others_cpu_share) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let mut missed = misses(slo, step, response);
        // How late the client was is in the response time, which has met its limit.
        let faults = step
            .invalid
            .iter()
            .filter(|why| !why.starts_with(CLIENT_LATE));
        missed.extend(faults.cloned());
        let late = late_client(step, response, is_client_bound).filter(|_| !missed.is_empty());
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
            response: LatencySummary::of(response),
            server_cpu_ns_per_operation: cpu.map(|ns| ns as f64 / step.requests as f64),
            missed,
            untold: late,
        });
    }

    fn settle(&mut self, probe: &Probe, per_s: f64, verdict: Verdict, step: &str) {
        let lowest = |rate: Option<f64>| Some(rate.map_or(per_s, |rate| rate.min(per_s)));
        match verdict {
            Verdict::Met if probe.is_confirming => self.confirmed = Some((per_s, step.into())),
            Verdict::Met => self.passed = Some(self.passed.map_or(per_s, |rate| rate.max(per_s))),
            Verdict::Missed => self.failed = lowest(self.failed),
            Verdict::Untold => self.untold = lowest(self.untold),
        }
    }

    /// The latest point, for people.
    pub fn last_line(&self) -> String {
        match (self.points.last(), self.closed_per_s) {
            (Some(point), _) => format!(
                "  {:.0}/s: {:.0}/s done, p99 {}{}",
                point.offered_per_s,
                point.achieved_per_s,
                format_ns(point.response.p99_ns),
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
                missed_from_per_s: self.failed,
                untold_from_per_s: self.untold,
                confirmed,
                others_cpu_share: self.others_cpu_share,
            },
            confirmed_step: self.confirmed.map(|(_, step)| step),
        }
    }
}

/// What the probes of one rate say together; `None`: another is needed.
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

/// Why what was measured may be the client's doing.
fn late_client(
    step: &BenchStep,
    response: &Histogram<u64>,
    is_client_bound: bool,
) -> Option<String> {
    let response_ns = response.value_at_quantile(0.99) as f64;
    if is_client_bound {
        Some("the client had no CPU time left".into())
    } else if step.lag.p99_ns as f64 > LAG_SHARE_MAX * response_ns {
        let lag = format_ns(step.lag.p99_ns);
        Some(format!("the client itself was late by {lag} (p99)"))
    } else {
        None
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
    /// `lasting`. `disturbed` is the number of a probe
    /// that others slow down; `is_late` says where the client does.
    #[derive(Clone, Copy)]
    struct Made {
        capacity: f64,
        lasting: f64,
        disturbed: Option<usize>,
        is_late: fn(usize, f64) -> bool,
    }

    const CALM: Made = Made {
        capacity: 1000.0,
        lasting: 1000.0,
        disturbed: None,
        is_late: |_, _| false,
    };

    fn searched(made: Made) -> (Searched, usize) {
        let Made {
            capacity,
            lasting,
            disturbed,
            is_late,
        } = made;
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
            let is_late = is_late(steps, per_s);
            let ns = if per_s <= limit && disturbed != Some(steps) && !is_late {
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
                lag: LatencySummary {
                    p99_ns: if is_late { ns } else { 0 },
                    ..LatencySummary::default()
                },
                ..BenchStep::default()
            };
            search.note(&probe, &step, &response, false, Some(0.1), &slo());
        }
        (search.finish(&slo()), steps)
    }

    #[test]
    fn the_highest_passing_rate_is_found_and_confirmed() {
        let (found, steps) = searched(CALM);
        let found_per_s = found.saturation.maximum_per_s.unwrap();
        assert!((950.0..=1000.0).contains(&found_per_s), "{found_per_s}");
        let missed = found.saturation.missed_from_per_s.unwrap();
        assert!((1000.0..1060.0).contains(&missed), "{missed}");
        assert!(found.saturation.confirmed && found.confirmed_step.is_some());
        assert_eq!(found.saturation.others_cpu_share, Some(0.1));
        assert!(steps < 20, "{steps}");
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
        let lasting = |lasting| searched(Made { lasting, ..CALM }).0.saturation;
        let found = lasting(900.0);
        let maximum = found.maximum_per_s.unwrap();
        assert!(
            found.confirmed && (800.0..=900.0).contains(&maximum),
            "{maximum}"
        );
        let never = lasting(100.0);
        assert!(!never.confirmed && never.maximum_per_s.is_some());
        let dead = Made {
            capacity: 0.0,
            ..CALM
        };
        let dead = searched(dead).0.saturation;
        assert!(dead.maximum_per_s.is_none() && !dead.confirmed);
    }

    #[test]
    fn one_disturbed_probe_sends_nobody_down() {
        for probe in 2..20 {
            let disturbed = Some(probe);
            let (found, _) = searched(Made { disturbed, ..CALM });
            let maximum = found.saturation.maximum_per_s.unwrap();
            assert!((950.0..=1000.0).contains(&maximum), "{probe}: {maximum}");
            assert!(found.saturation.confirmed, "{probe}");
        }
    }

    #[test]
    fn a_late_client_tells_nothing() {
        // Now and then it is late: another probe tells.
        let (found, _) = searched(Made {
            is_late: |n, _| n % 3 == 0,
            ..CALM
        });
        let maximum = found.saturation.maximum_per_s.unwrap();
        assert!((950.0..=1000.0).contains(&maximum), "{maximum}");
        // It cannot send more than half of what the server does.
        let (found, _) = searched(Made {
            is_late: |_, per_s| per_s > 500.0,
            ..CALM
        });
        let found = found.saturation;
        let maximum = found.maximum_per_s.unwrap();
        assert!(
            (470.0..=500.0).contains(&maximum) && found.confirmed,
            "{maximum}"
        );
        let untold = found.untold_from_per_s.unwrap();
        assert!((500.0..530.0).contains(&untold), "{untold}");
        assert_eq!(found.missed_from_per_s, None);
        let late = found.points.iter().filter(|point| point.untold.is_some());
        assert!(late.clone().count() >= 3 && late.clone().all(|p| p.missed.is_empty()));
    }
}
