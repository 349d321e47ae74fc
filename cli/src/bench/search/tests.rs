use seekscope_run::{OperationResult, latency_histogram};

use super::*;
use crate::args::parse_slo;

fn slo() -> Slo {
    parse_slo("p99=20ms").unwrap()
}

/// A server that answers in 1 ms up to `capacity`, and in a second beyond; in long steps only up to `lasting`.
/// `disturbed` is the number of a probe that others slow down; `is_late` tells for which probes the client is
/// late.
#[derive(Clone, Copy)]
struct Made {
    capacity: f64,
    lasting: f64,
    disturbed: Option<usize>,
    is_late: fn(usize, f64) -> bool,
    /// Median of the server's own times, ns.
    service_ns: u64,
}

const CALM: Made = Made {
    capacity: 1000.0,
    lasting: 1000.0,
    disturbed: None,
    is_late: |_, _| false,
    service_ns: 0,
};

fn searched(made: Made) -> (Searched, usize) {
    let Made {
        capacity,
        lasting,
        disturbed,
        is_late,
        service_ns,
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
                service: LatencySummary {
                    p50_ns: service_ns,
                    ..LatencySummary::default()
                },
                ..OperationResult::default()
            }],
            lag: LatencySummary {
                p99_ns: if is_late { ns } else { 0 },
                ..LatencySummary::default()
            },
            ..BenchStep::default()
        };
        let probed = Probed {
            step: &step,
            response: &response,
            faults: &[],
            is_client_bound: false,
            others_cpu_share: Some(0.1),
        };
        search.note(&probe, probed, &slo());
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
    let missed = |found: &Saturation| -> Vec<f64> {
        let missed = |c: &&Confirmation| c.verdict == Verdict::Missed;
        let longer = found.confirmations.iter().filter(missed);
        longer.map(|c| c.per_s).collect()
    };
    assert!(!missed(&found).is_empty() && found.missed_from_per_s > Some(maximum));
    let never = lasting(100.0);
    assert!(!never.confirmed);
    // What longer steps missed is not a limit above what short ones met.
    let maximum = never.maximum_per_s.unwrap();
    assert!(never.missed_from_per_s > Some(maximum), "{never:?}");
    let missed = missed(&never);
    assert_eq!(missed.len(), 3, "{never:?}");
    assert!(missed.iter().all(|per_s| *per_s <= maximum), "{never:?}");
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
    // The client is late now and then: another probe decides.
    let (found, _) = searched(Made {
        is_late: |n, _| n % 3 == 0,
        ..CALM
    });
    let maximum = found.saturation.maximum_per_s.unwrap();
    assert!((950.0..=1000.0).contains(&maximum), "{maximum}");
    // The client cannot send more than half of what the server can take.
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

#[test]
fn what_the_server_misses_by_itself_ends_the_search_early() {
    let (found, steps) = searched(Made {
        capacity: 0.5,
        is_late: |_, _| true,
        service_ns: 100_000_000,
        ..CALM
    });
    let found = found.saturation;
    assert_eq!((found.maximum_per_s, found.untold_from_per_s), (None, None));
    assert!(
        found.missed_from_per_s.is_some() && found.all_missed(),
        "{found:?}"
    );
    assert!(steps <= 5, "{steps}");
    assert!(
        found
            .points
            .iter()
            .all(|p| p.untold.is_none() && !p.missed.is_empty())
    );
}
