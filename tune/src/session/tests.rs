mod accidents;
mod simulated;

use std::time::Duration;

use seekscope_run::KnobValues;
use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneRecord, TuneTrial, TuneVerdict};

use super::plan::{BEST, MINIMAL};
use super::*;
use crate::optimiser::Goal;
use crate::space::Value;
use crate::synthetic::Surface;
use simulated::{Flat, flat_plan, go_through, plan, run_on, wt8_preset};

const UNHURRIED: Duration = Duration::ZERO;

fn conclusion(session: &mut Session) -> TuneRecord {
    let mut record = TuneRecord::default();
    session.conclude(&mut record);
    record
}

fn truth(values: &KnobValues) -> f64 {
    let space = Surface::Wt8.space().unwrap();
    let levels = space.levels_of(&Configuration(values.clone())).unwrap();
    Surface::Wt8.truth(&levels).throughput
}

/// If intervals covered the truth in 95 % of sessions, fewer than 9 of 12 would in 0.2 % of tests.
#[test]
fn a_gain_is_found_and_proven() {
    let mut covered = 0;
    for seed in 1..=12 {
        let mut session = Session::new(plan(Surface::Wt8, 25, seed)).unwrap();
        go_through(&mut session, run_on(Surface::Wt8, seed + 100));
        let record = conclusion(&mut session);
        assert_eq!(session.stopped(), None);
        assert_eq!(record.verdict, Some(TuneVerdict::Better));
        let default = truth(&session.baseline.0);
        assert!(truth(&record.recommended) > 1.3 * default, "{seed}");
        let duel = &record.duels[0];
        assert_eq!((&*duel.candidate, &*duel.against), ("best", "baseline"));
        assert!(duel.promised.is_some_and(|p| p > 1.2) && duel.holm_p.is_some_and(|p| p < 0.05));
        assert!(duel.worst <= duel.ratio && duel.pairs >= 4 && duel.failed == 0);
        let ratio = truth(&record.best) / default;
        covered += usize::from(duel.low < ratio && ratio < duel.high);
    }
    assert!(covered >= 9, "{covered} of 12");
}

#[test]
fn the_record_tells_the_whole_session() {
    let mut wanted = plan(Surface::Wt8, 25, 3);
    wanted.also = vec![wt8_preset(&[("syncdelay", 120), ("dirty_trigger", 50)])];
    let mut session = Session::new(wanted).unwrap();
    go_through(&mut session, run_on(Surface::Wt8, 11));
    let record = conclusion(&mut session);
    let of = |purpose| record.trials.iter().filter(move |t| t.purpose == purpose);
    assert_eq!(of(TrialPurpose::Baseline).count(), 8);
    assert_eq!(of(TrialPurpose::Search).count(), 25);
    assert_eq!(of(TrialPurpose::Sentinel).count(), 3);
    let first = of(TrialPurpose::Search).next().unwrap();
    assert_eq!((&*first.origin, &*first.arm), ("preset", "expert"));
    assert!(
        of(TrialPurpose::Search)
            .next_back()
            .unwrap()
            .best_so_far
            .is_some()
    );
    let seeds = of(TrialPurpose::Duel).map(|t| (t.block, t.seed));
    let seeds: std::collections::BTreeSet<_> = seeds.collect();
    let blocks = of(TrialPurpose::Duel).filter_map(|t| t.block).max();
    assert_eq!(u32::try_from(seeds.len()).ok(), blocks);
    assert!(of(TrialPurpose::Search).all(|t| seeds.iter().all(|(_, seed)| *seed != t.seed)));

    let noise = record.noise.unwrap();
    assert!(
        (0.05..0.2).contains(&noise.coefficient_of_variation),
        "{noise:?}"
    );
    let fought =
        |a: &str, b: &str| (record.duels.iter()).any(|d| d.candidate == a && d.against == b);
    assert!(
        fought("expert", "baseline") && fought("best", "expert"),
        "{:?}",
        record.duels
    );
    assert_eq!(record.importance.unwrap().knobs.len(), 8);
    assert!(!record.slices.is_empty() && record.slices.len() <= 6 && record.heat_map.is_some());
    assert_eq!(record.ledger.measure_s, 50.0 * record.trials.len() as f64);
}

#[test]
fn a_resumed_session_goes_on_the_same() {
    let mut wanted = plan(Surface::Deceptive12, 22, 5);
    wanted.budget = Some(Duration::from_secs(100 * 60));
    let mut session = Session::new(wanted.clone()).unwrap();
    let mut machine = run_on(Surface::Deceptive12, 7);
    let (mut requests, mut elapsed) = (Vec::new(), Vec::new());
    let mut time = Duration::ZERO;
    while let Next::Run(request) = session.next(time) {
        elapsed.push(time);
        let mut trial = machine(&request);
        if requests.len() % 5 == 3 && trial.purpose == TrialPurpose::Search {
            (trial.status, trial.noise) = (TrialStatus::EndedEarly, 2.0);
        }
        session.record(trial);
        requests.push(Next::Run(request));
        time += Duration::from_secs(60);
    }
    requests.push(Next::Done);
    elapsed.push(time);
    assert!(
        session
            .trials()
            .iter()
            .any(|t| t.status == TrialStatus::Failed)
    );
    assert!(
        session
            .trials()
            .iter()
            .any(|t| t.purpose == TrialPurpose::Duel)
    );
    let whole = conclusion(&mut session);
    for (end, (request, elapsed)) in requests.iter().zip(elapsed).enumerate() {
        let mut resumed = Session::new(wanted.clone()).unwrap();
        for trial in &session.trials()[..end] {
            let journal = serde_json::to_string(trial).unwrap();
            let stored: TuneTrial = serde_json::from_str(&journal).unwrap();
            assert_eq!(resumed.record(stored), trial);
        }
        assert_eq!(&resumed.next(elapsed), request, "{end}");
        assert_eq!(&resumed.next(elapsed), request, "{end}: asked twice");
        if *request == Next::Done {
            assert_eq!(conclusion(&mut resumed), whole);
        }
    }
}

/// If 5 % of sessions found a gain that is not there, 2 % of tests would count more than 16 of 200
/// (binomial).
#[test]
fn where_nothing_matters_nothing_is_found() {
    let mut better = 0;
    for seed in 0..200 {
        let mut wanted = flat_plan(12, seed);
        // Another candidate is another chance, and must not be counted as one.
        if seed % 2 == 1 {
            let values = [("idle1".to_owned(), Value::Float(0.9))];
            wanted.also = vec![Preset {
                name: "expert".into(),
                values: Configuration(values.into()),
            }];
        }
        let mut session = Session::new(wanted).unwrap();
        let mut machine = Flat::new(0.05, seed + 1000);
        go_through(&mut session, |request| machine.run(request));
        let duels = session.shortlist();
        let duels = session.field(&duels.arms).comparisons();
        better += usize::from(conclusion::recommended(&duels).is_some());
    }
    assert!(better <= 16, "{better} of 200");
}

#[test]
fn less_can_be_better() {
    let mut wanted = plan(Surface::Wt8, 20, 2);
    wanted.goal = Goal::Minimise;
    let mut session = Session::new(wanted).unwrap();
    let mut machine = run_on(Surface::Wt8, 5);
    go_through(&mut session, |request| {
        let mut trial = machine(request);
        trial.value = trial.value.map(|throughput| 1e6 / throughput);
        trial
    });
    let record = conclusion(&mut session);
    assert_eq!(record.verdict, Some(TuneVerdict::Better));
    let duel = &record.duels[0];
    assert!(
        duel.low > 1.2 && duel.promised.is_some_and(|p| p > 1.2),
        "{duel:?}"
    );
    assert!(!record.maximise && !record.recommended.is_empty());
}

#[test]
fn hopeless_runs_are_known_from_those_that_went_through() {
    let mut session = Session::new(plan(Surface::Wt8, 20, 3)).unwrap();
    let mut machine = run_on(Surface::Wt8, 3);
    let (mut may_end, mut ended) = (0, 0);
    go_through(&mut session, |request| {
        let mut trial = machine(request);
        trial.partial = [trial.value.map(|v| 0.9 * v), trial.value.map(|v| 0.95 * v)];
        let whole = matches!(request.origin.as_str(), "" | "default" | "preset");
        assert!(!whole || request.best.is_none());
        may_end += usize::from(request.best.is_some());
        trial
    });
    let best = session.running_best().unwrap().value;
    for trial in session.trials() {
        let partial = trial.partial[0].unwrap_or(f64::NAN);
        ended += usize::from(session.early_stop().hopeless(0, partial, best).is_some());
    }
    assert!(may_end >= 10 && ended >= 1, "{may_end} {ended}");
}

#[test]
fn noise_is_what_the_pairs_say() {
    let mut session = Session::new(flat_plan(12, 1)).unwrap();
    for value in [100.0, 110.0, 100.0, 110.0, 121.0, 110.0, 110.0, 121.0] {
        let Next::Run(request) = session.next(UNHURRIED) else {
            panic!("the baseline is not over");
        };
        let nth = session.trials().len() as u64;
        let mut trial = request.trial();
        (trial.status, trial.value) = (TrialStatus::Measured, Some(value));
        trial.started_unix_ms = 1_000_000 + 3_600_000 * nth;
        session.record(trial);
    }
    let seeds: Vec<u64> = session.trials().iter().map(|t| t.seed).collect();
    assert!(seeds[0] == seeds[1] && seeds[1] != seeds[2] && seeds.iter().all(|s| *s < 1 << 53));
    let noise = session.noise().unwrap();
    assert!(
        (noise.pair_deviation - 1.1f64.ln()).abs() < 1e-12,
        "{noise:?}"
    );
    // (2.014 + 0.858) standard errors of 24 pairs: t of 0.0278 and of 0.2 with 23 degrees of freedom.
    let expected = ((2.0141 + 0.8575) * 1.1f64.ln() / 24f64.sqrt()).exp_m1();
    assert!(
        (noise.detectable_gain.unwrap() - expected).abs() < 1e-3,
        "{noise:?} {expected}"
    );
    assert!(
        noise
            .drift_per_hour
            .is_some_and(|drift| drift > 0.01 && drift < 0.03),
        "{noise:?}"
    );
    // A duel of 4 pairs shows (9.1 + 1.0) standard errors of 4 pairs, if its risk is the same.
    session.plan.duel_pairs = 4;
    let few = session.noise().unwrap();
    let expected = ((9.1 + 0.98) * 1.1f64.ln() / 4f64.sqrt()).exp_m1();
    assert_eq!(few.duel_pairs, 4);
    assert!(
        (few.detectable_gain.unwrap() / expected - 1.0).abs() < 0.03,
        "{few:?} {expected}"
    );
}

#[test]
fn the_minimal_change_is_only_better_if_the_best_is() {
    let values = |value: f64| Configuration([("idle0".to_owned(), Value::Float(value))].into());
    let arms = [(BASELINE, 0.5), (BEST, 0.9), (MINIMAL, 0.8)];
    let arms = arms.map(|(name, value)| duels::Arm::new(name, values(value)));
    // Four blocks in which the minimal change is twice as fast, by luck.
    let verdicts = |best: [Option<f64>; 4]| {
        let mut trials = Vec::new();
        for (block, best) in (1..).zip(best) {
            for (arm, value) in arms.iter().zip([Some(100.0), best, Some(200.0)]) {
                let request = Request {
                    purpose: TrialPurpose::Duel,
                    arm: arm.name.clone(),
                    origin: String::new(),
                    block: Some(block),
                    seed: 1,
                    values: arm.values.clone(),
                    best: None,
                };
                trials.push(TuneTrial {
                    status: TrialStatus::Measured,
                    value: value.map(|v| v * (1.0 + 0.001 * f64::from(block % 2))),
                    ..request.trial()
                });
            }
        }
        let field = duels::Field::new(Goal::Maximise, &arms, 24, &trials);
        let duels = field.comparisons();
        assert!(duels[1].candidate == MINIMAL && duels[1].ratio > 1.9);
        let recommended = conclusion::recommended(&duels).map(str::to_owned);
        (
            field.is_over(),
            duels[0].verdict,
            duels[1].verdict,
            recommended,
        )
    };
    let (better, not, open) = (
        TuneVerdict::Better,
        TuneVerdict::NotBetter,
        TuneVerdict::Unresolved,
    );
    let (slow, mixed) = (
        [Some(99.0), Some(98.0), Some(97.0), Some(98.5)],
        [Some(99.0), Some(120.0), Some(85.0), Some(130.0)],
    );
    assert_eq!(verdicts(slow), (true, not, open, None));
    assert_eq!(verdicts(mixed), (false, open, open, None));
    // Where the best failed, the minimal change is the claim.
    let failed = [Some(210.0), None, Some(210.0), Some(210.0)];
    assert_eq!(verdicts(failed), (true, not, better, Some(MINIMAL.into())));
    let fast = [Some(212.0), Some(211.0), Some(210.0), Some(211.0)];
    // It certainly loses more than 1 %.
    assert_eq!(verdicts(fast), (true, better, better, Some(BEST.into())));
}
