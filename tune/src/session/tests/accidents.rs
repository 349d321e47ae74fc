//! Tests what goes wrong, and invalid plans.

use std::time::Duration;

use seekscope_run::tune::{TrialPurpose, TrialStatus, TuneRecord, TuneVerdict};

use super::simulated::{Flat, flat_plan, go_through, plan, run_on};
use super::{UNHURRIED, conclusion};
use crate::session::{Next, Outline, Plan, PlanError, Preset, Session, Stopped};
use crate::space::{Configuration, SpaceError, Value};
use crate::synthetic::Surface;

#[test]
fn what_fails_or_misses_a_constraint_is_not_recommended() {
    let mut session = Session::new(plan(Surface::Wt8, 20, 4)).unwrap();
    let mut machine = run_on(Surface::Wt8, 6);
    let compressor = Value::Text("2".into());
    go_through(&mut session, |request| {
        let mut trial = machine(request);
        if trial.values.get("compressor") != Some(&compressor) && trial.arm != "baseline" {
            trial.status = TrialStatus::ConstraintMissed;
            trial.reason = "p99_ms <= 20, and was 31".into();
            trial.value = trial.value.map(|v| 10.0 * v);
        }
        trial
    });
    let record = conclusion(&mut session);
    let missed = record
        .trials
        .iter()
        .filter(|t| t.status == TrialStatus::ConstraintMissed);
    assert!(missed.count() > 3);
    let best = &record.best;
    assert!(
        best["compressor"] == compressor || *best == session.baseline.0,
        "{best:?}"
    );
}

#[test]
fn who_fails_in_the_duel_has_lost() {
    let mut session = Session::new(plan(Surface::Wt8, 14, 9)).unwrap();
    let mut machine = run_on(Surface::Wt8, 8);
    go_through(&mut session, |request| {
        let mut trial = machine(request);
        // A block in which the server is gone counts against no arm.
        let gone = request.block == Some(1);
        if gone || request.arm == "best" && request.block == Some(3) {
            (trial.status, trial.value) = (TrialStatus::Failed, None);
        }
        trial
    });
    let record = conclusion(&mut session);
    let fights = |arm: &str| {
        let of = record
            .trials
            .iter()
            .filter(|t| t.arm == arm && t.purpose == TrialPurpose::Duel);
        of.filter_map(|t| t.block).max()
    };
    assert_eq!(fights("best"), Some(3));
    let duel = &record.duels[0];
    assert_eq!(
        (duel.verdict, duel.failed, duel.pairs),
        (TuneVerdict::NotBetter, 1, 1)
    );
    assert_eq!((duel.ratio, duel.holm_p), (0.0, None));
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<TuneRecord>(&json).unwrap(), record);
    assert_ne!(record.recommended, record.best);
}

#[test]
fn a_baseline_that_fails_twice_ends_it_until_that_is_put_right() {
    let mut session = Session::new(flat_plan(12, 1)).unwrap();
    let mut machine = Flat::new(0.05, 1);
    for fails in [false, true, false, true, true] {
        let Next::Run(request) = session.next(UNHURRIED) else {
            panic!("one failure is no reason to end");
        };
        let mut trial = machine.run(&request);
        if fails {
            (trial.status, trial.value) = (TrialStatus::Failed, None);
            trial.reason = "connection refused".into();
        }
        session.record(trial);
    }
    assert_eq!(session.next(UNHURRIED), Next::Done);
    let why = session.stopped().unwrap().to_string();
    assert!(why.contains("connection refused"), "{why}");
    assert_eq!(conclusion(&mut session).verdict, None);
    session.retry();
    go_through(&mut session, |request| machine.run(request));
    // Failed runs are made up for.
    let runs = session
        .trials()
        .iter()
        .filter(|t| t.purpose == TrialPurpose::Baseline);
    assert_eq!(runs.count(), 8 + 3);
}

#[test]
fn a_sentinel_that_fails_is_run_again_at_once() {
    let mut session = Session::new(flat_plan(12, 1)).unwrap();
    let mut machine = Flat::new(0.05, 1);
    go_through(&mut session, |request| {
        let mut trial = machine.run(request);
        if request.purpose == TrialPurpose::Sentinel {
            // NaN is not a measurement.
            trial.value = Some(f64::NAN);
        }
        trial
    });
    assert!(matches!(
        session.stopped(),
        Some(Stopped::BaselineFails { .. })
    ));
    let last: Vec<_> = session
        .trials()
        .iter()
        .rev()
        .take(3)
        .map(|t| (t.purpose, t.status))
        .collect();
    let failed = (TrialPurpose::Sentinel, TrialStatus::Failed);
    assert_eq!(
        last,
        [
            failed,
            failed,
            (TrialPurpose::Search, TrialStatus::Measured)
        ]
    );
}

#[test]
fn the_budget_holds() {
    // Runs of a minute: 8 for the baseline, 18 for the duel, 14 for the search.
    let minutes = |count: u64| Duration::from_secs(60 * count);
    let mut wanted = plan(Surface::Wt8, 100, 3);
    wanted.budget = Some(minutes(40));
    let mut session = Session::new(wanted.clone()).unwrap();
    let end = go_through(&mut session, run_on(Surface::Wt8, 3));
    assert!(end <= minutes(40 + 3), "{end:?}");
    let count = |session: &Session, purpose| session.count(purpose);
    assert!((12..=14).contains(&count(&session, TrialPurpose::Search)));
    assert!(session.trials().iter().any(|t| t.block == Some(4)));

    // Fewer pairs of the baseline if time is short.
    wanted.budget = Some(minutes(26));
    let mut session = Session::new(wanted.clone()).unwrap();
    go_through(&mut session, run_on(Surface::Wt8, 3));
    assert_eq!(count(&session, TrialPurpose::Baseline), 6);
    assert!(count(&session, TrialPurpose::Search) >= 1);

    // A budget that allows nothing is reported after the second run: the first may have loaded the data.
    wanted.budget = Some(minutes(15));
    let mut session = Session::new(wanted.clone()).unwrap();
    let end = go_through(&mut session, run_on(Surface::Wt8, 3));
    assert_eq!(end, minutes(2));
    let why = session.stopped().unwrap().to_string();
    assert!(why.contains("900 s") && why.contains("1380 s"), "{why}");
    // The same before the first run, where its length is known.
    let outline = Outline {
        baseline_pairs: wanted.baseline_pairs,
        also: wanted.also.len(),
        trials: wanted.trials,
    };
    let refused = outline.refused(minutes(25), minutes(1));
    let refused = refused.unwrap().to_string();
    assert!(refused.contains("1500 s"), "{refused}");
    assert_eq!(outline.refused(minutes(26), minutes(1)), None);
    assert_eq!(conclusion(&mut session).verdict, None);
}

#[test]
fn without_anything_that_works_there_is_no_duel() {
    let mut session = Session::new(flat_plan(12, 2)).unwrap();
    let mut machine = Flat::new(0.05, 2);
    go_through(&mut session, |request| {
        let mut trial = machine.run(request);
        if request.purpose == TrialPurpose::Search {
            (trial.status, trial.value) = (TrialStatus::Failed, None);
        }
        trial
    });
    assert_eq!(
        (session.stopped(), session.count(TrialPurpose::Duel)),
        (None, 0)
    );
    assert!(session.only_failures().is_some());
    let record = conclusion(&mut session);
    assert_eq!(
        (record.verdict, record.best),
        (None, session.baseline.0.clone())
    );
    assert!(record.recommended.is_empty() && record.duels.is_empty());
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut Plan)| {
        let mut wanted = flat_plan(12, 1);
        change(&mut wanted);
        Session::new(wanted).unwrap_err()
    };
    let named = |name: &str| Preset {
        name: name.into(),
        values: Configuration::default(),
    };
    assert_eq!(refused(|p| p.trials = 0), PlanError::Nothing);
    assert_eq!(refused(|p| p.baseline_pairs = 0), PlanError::Nothing);
    assert_eq!(
        refused(|p| p.duel_pairs = 5),
        PlanError::DuelPairs { pairs: 5 }
    );
    let mut twice = flat_plan(12, 1);
    twice.also = vec![named("a"), named("a")];
    assert!(matches!(Session::new(twice), Err(PlanError::Name { .. })));
    let mut taken = flat_plan(12, 1);
    taken.presets = vec![named("best")];
    assert!(matches!(Session::new(taken), Err(PlanError::Name { .. })));
    let unknown = refused(|p| {
        let values = [("no_such".to_owned(), Value::Bool(true))];
        p.presets = vec![Preset {
            name: "old".into(),
            values: Configuration(values.into()),
        }];
    });
    let PlanError::Preset { preset, source } = unknown else {
        panic!("{unknown}");
    };
    assert!(preset == "old" && matches!(source, SpaceError::Unknown { .. }));
}
