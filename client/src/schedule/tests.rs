use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::Retries;

fn job(schedule: ScheduleKind) -> Job {
    Job {
        schedule,
        in_flight: 1,
        threads: 1,
        transactions: None,
        duration: None,
        timeout: Duration::from_secs(1),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: None,
    }
}

fn arrivals(kind: ScheduleKind) -> Arrivals {
    Arrivals::new(&kind).unwrap().unwrap()
}

/// Returns the distance of an empirical distribution from a closed form, times the root of the sample's size:
/// below 1.63 in 99 of 100 samples (Kolmogorov).
fn kolmogorov(mut sample: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let mut greatest: f64 = 0.0;
    for (i, &x) in sample.iter().enumerate() {
        let expected = distribution(x);
        greatest = greatest
            .max((expected - i as f64 / n).abs())
            .max(((i + 1) as f64 / n - expected).abs());
    }
    greatest * n.sqrt()
}

#[test]
fn gaps_of_poisson_arrivals_are_exponential() {
    let per_s = 2_000.0;
    let times: Vec<u64> = arrivals(ScheduleKind::Poisson { per_s, seed: 7 })
        .take(200_001)
        .collect();
    let gaps: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    // The mean of n exponential gaps is off by 1/√n in one of three samples, the variance by √(8/n).
    assert!((mean / 500_000.0 - 1.0).abs() < 3.0 / n.sqrt(), "{mean}");
    assert!((variance / 500_000f64.powi(2) - 1.0).abs() < 3.0 * (8.0 / n).sqrt());
    let distance = kolmogorov(gaps, |gap| 1.0 - (-gap / 500_000.0).exp());
    assert!(distance < 1.63, "{distance}");
    // Independent: neighbours do not correlate.
    let again: Vec<u64> = arrivals(ScheduleKind::Poisson { per_s, seed: 7 })
        .take(9)
        .collect();
    assert_eq!(again, times[..9], "the seed decides");
    let other = arrivals(ScheduleKind::Poisson { per_s, seed: 8 }).next();
    assert_ne!(other, Some(times[0]));
}

#[test]
fn hours_of_even_arrivals_do_not_drift() {
    // A third of a second has no exact fraction.
    let mut even = arrivals(ScheduleKind::Constant { per_s: 30_000.0 });
    even.index = 30_000 * 3600 * 24;
    assert_eq!(even.next(), Some(3600 * 24 * 1_000_000_000));
    assert_eq!(even.next(), Some(3600 * 24 * 1_000_000_000 + 33_333));
}

proptest! {
    #[test]
    fn even_arrivals_are_exact(per_s in 0.001f64..1e6, index in 0u64..1_000_000_000) {
        let mut even = arrivals(ScheduleKind::Constant { per_s });
        even.index = index;
        let exact = index as f64 * (1e9 / per_s);
        let at_ns = even.next().unwrap();
        prop_assert!((at_ns as f64 - exact).abs() <= 1.0 + exact * 1e-15);
    }

    #[test]
    fn a_ramp_brings_the_integral_of_its_rate(
        from in 0.0f64..5_000.0,
        to in 0.1f64..5_000.0,
        over_s in 0.0f64..1_000.0,
        number in 1u64..1_000_000,
    ) {
        let at_s = ramp_s(number as f64, from, to, over_s);
        let inside = at_s.min(over_s);
        let slope = if over_s > 0.0 { (to - from) / over_s } else { 0.0 };
        let come = from * inside + slope * inside * inside / 2.0 + (at_s - inside) * to;
        prop_assert!((come - number as f64).abs() < 1e-6 * number as f64 + 1e-6, "{come}");
        let later = ramp_s(number as f64 + 1.0, from, to, over_s);
        prop_assert!(later >= at_s);
    }

    #[test]
    fn what_is_due_is_what_has_come(
        mut times in proptest::collection::vec(0u64..10_000, 0..200),
        at_ns in 0u64..12_000,
    ) {
        times.sort_unstable();
        let mut job = job(ScheduleKind::Replayed(Arc::from(times.clone())));
        job.duration = Some(Duration::from_nanos(9_000));
        let expected = times.iter().filter(|&&t| t <= at_ns && t < 9_000).count();
        let mut counter = DueCounter::new(&job).unwrap();
        counter.due_by(at_ns / 2);
        prop_assert_eq!(counter.due_by(at_ns), expected as u64);
    }
}

#[test]
fn all_threads_together_get_each_arrival_once() {
    let schedule = Schedule::new(&job(ScheduleKind::Replayed((0..10_000).collect()))).unwrap();
    let mut claimed: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    while let Claim::At(at_ns) = schedule.claim(0) {
                        mine.push(at_ns);
                    }
                    assert!(mine.is_sorted(), "in order");
                    mine
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    claimed.sort_unstable();
    assert!(claimed.into_iter().eq(0..10_000));
}

#[test]
fn time_and_count_end_what_is_given_out() {
    let mut closed = job(ScheduleKind::Closed);
    closed.transactions = Some(2);
    closed.duration = Some(Duration::from_secs(1));
    let schedule = Schedule::new(&closed).unwrap();
    assert_eq!(schedule.claim(0), Claim::Now);
    assert_eq!(
        schedule.claim(1_000_000_000),
        Claim::Over(EndReason::Time),
        "late"
    );
    assert_eq!(schedule.claim(5), Claim::Now);
    assert_eq!(schedule.claim(5), Claim::Over(EndReason::Done));

    let mut even = job(ScheduleKind::Constant { per_s: 100.0 });
    even.duration = Some(Duration::from_secs(1));
    let schedule = Schedule::new(&even).unwrap();
    let given = std::iter::from_fn(|| match schedule.claim(0) {
        Claim::At(at_ns) => Some(at_ns),
        _ => None,
    });
    assert_eq!(given.count(), 100);
    assert_eq!(schedule.claim(0), Claim::Idle(1_000_000_000));
    assert_eq!(schedule.claim(1_000_000_000), Claim::Over(EndReason::Time));
}

#[test]
fn what_is_no_rate_is_refused() {
    for per_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e12] {
        assert!(Arrivals::new(&ScheduleKind::Constant { per_s }).is_err());
        assert!(Arrivals::new(&ScheduleKind::Poisson { per_s, seed: 1 }).is_err());
    }
    assert!(Arrivals::new(&ScheduleKind::Replayed(Arc::from([2, 1]))).is_err());
    assert!(Arrivals::new(&ScheduleKind::Closed).unwrap().is_none());
}
