use seekscope_stats::{SplitMix64, median};

use super::*;
use crate::synthetic::Surface;

/// Runs a session on a response and returns the history.
fn session(surface: Surface, trials: usize, seed: u64) -> (Optimiser, History) {
    let space = surface.space().unwrap();
    let mut optimiser = Optimiser::new(space, &[], Goal::Maximise, seed).unwrap();
    let (mut history, mut rng) = (History::default(), SplitMix64::new(seed + 1000));
    for _ in 0..trials {
        let proposal = optimiser.propose(&history);
        history
            .trials
            .push(run(surface, &optimiser, proposal, &mut rng));
    }
    (optimiser, history)
}

fn run(surface: Surface, optimiser: &Optimiser, proposal: Proposal, rng: &mut SplitMix64) -> Trial {
    let levels = optimiser.space.levels_of(&proposal.configuration).unwrap();
    let outcome = match surface.measure(&levels, rng) {
        Some(value) => Outcome::Measured { value, noise: 1.0 },
        None => Outcome::Failed {
            reason: "out of memory".into(),
        },
    };
    Trial {
        configuration: proposal.configuration,
        outcome,
    }
}

fn regret(surface: Surface, optimiser: &mut Optimiser, history: &History) -> f64 {
    let recommended = optimiser.recommend(history).unwrap().configuration;
    surface.regret(&optimiser.space.levels_of(&recommended).unwrap())
}

/// Far looser than the benchmark's goals, which are medians over many seeds.
#[test]
fn much_better_than_chance() {
    for (surface, at_most) in [(Surface::Wt8, 0.33), (Surface::Sparse20, 0.40)] {
        let regrets = [1, 2, 3].map(|seed| {
            let (mut optimiser, history) = session(surface, 32, seed);
            regret(surface, &mut optimiser, &history)
        });
        assert!(
            median(&regrets).unwrap() < at_most,
            "{surface:?} {regrets:?}"
        );
    }
}

#[test]
fn a_resumed_session_goes_on_the_same() {
    let (mut through, history) = session(Surface::Deceptive12, 24, 5);
    let space = through.space.clone();
    for end in [0, 3, 9, 10, 17, 24] {
        let part = History {
            trials: history.trials[..end].to_vec(),
        };
        let json = serde_json::to_string(&part).unwrap();
        let part: History = serde_json::from_str(&json).unwrap();
        let mut resumed = Optimiser::new(space.clone(), &[], Goal::Maximise, 5).unwrap();
        let proposal = resumed.propose(&part);
        if let Some(next) = history.trials.get(end) {
            assert_eq!(proposal.configuration, next.configuration, "{end}");
        } else {
            assert_eq!(proposal, through.propose(&part));
        }
        // Queries in between change nothing.
        resumed.recommend(&part);
        assert_eq!(proposal, resumed.propose(&part));
    }
    let mut other = Optimiser::new(space, &[], Goal::Maximise, 6).unwrap();
    assert_ne!(other.propose(&history), through.propose(&history));
}

#[test]
fn the_default_and_presets_come_first() {
    let space = Surface::Wt8.space().unwrap();
    let mut preset = space.default_configuration();
    preset
        .0
        .insert("syncdelay".into(), crate::space::Value::Integer(120));
    let presets = [preset.clone(), space.default_configuration()];
    let mut optimiser = Optimiser::new(space.clone(), &presets, Goal::Maximise, 1).unwrap();
    let mut history = History::default();
    let mut origins = Vec::new();
    for value in [100.0, 120.0, 90.0] {
        let proposal = optimiser.propose(&history);
        origins.push(proposal.origin);
        let outcome = Outcome::Measured { value, noise: 1.0 };
        history.trials.push(Trial {
            configuration: proposal.configuration,
            outcome,
        });
    }
    assert_eq!(origins, [Origin::Default, Origin::Preset, Origin::Design]);
    assert_eq!(
        history.trials[0].configuration,
        space.default_configuration()
    );
    assert_eq!(history.trials[1].configuration, preset);
    preset
        .0
        .insert("no_such".into(), crate::space::Value::Bool(true));
    assert!(Optimiser::new(space, &[preset], Goal::Maximise, 1).is_err());
}

#[test]
fn what_fails_is_never_recommended_and_nothing_else_is_needed() {
    let space = Surface::Wt8.space().unwrap();
    let mut optimiser = Optimiser::new(space, &[], Goal::Maximise, 1).unwrap();
    let mut history = History::default();
    for nth in 0..16 {
        let proposal = optimiser.propose(&history);
        let outcome = if nth % 4 == 0 {
            Outcome::Measured {
                value: f64::NAN,
                noise: f64::NAN,
            }
        } else {
            Outcome::Failed {
                reason: "did not start".into(),
            }
        };
        history.trials.push(Trial {
            configuration: proposal.configuration,
            outcome,
        });
    }
    assert_eq!(optimiser.recommend(&history), None);
    assert!(optimiser.analyse(&history).is_none());
}

#[test]
fn less_is_better_where_the_goal_says_so() {
    let space = Surface::Wt8.space().unwrap();
    let maximise = Optimiser::new(space.clone(), &[], Goal::Maximise, 3).unwrap();
    let minimise = Optimiser::new(space, &[], Goal::Minimise, 3).unwrap();
    let (mut more, mut less) = (maximise, minimise);
    let (_, history) = session(Surface::Wt8, 20, 3);
    let mut inverse = history.clone();
    for trial in &mut inverse.trials {
        if let Outcome::Measured { value, .. } = &mut trial.outcome {
            *value = 1.0 / *value;
        }
    }
    let (a, b) = (
        more.recommend(&history).unwrap(),
        less.recommend(&inverse).unwrap(),
    );
    assert_eq!(a.configuration, b.configuration);
    assert!((a.expected * b.expected - 1.0).abs() < 1e-6);
    assert!(b.low < b.expected && b.expected < b.high);
}

#[test]
fn a_lucky_winner_is_run_again_and_no_more_than_allowed() {
    let (mut optimiser, mut history) = session(Surface::Wt8, 24, 4);
    let Outcome::Measured { value, .. } = &mut history.trials[15].outcome else {
        panic!("choose a trial that works");
    };
    *value *= 3.0;
    let lucky = history.trials[15].configuration.clone();
    let proposal = optimiser.propose(&history);
    assert_eq!(
        (proposal.origin, &proposal.configuration),
        (Origin::Retest, &lucky)
    );
    for value in [1e5, 1e5] {
        let outcome = Outcome::Measured { value, noise: 1.0 };
        history.trials.push(Trial {
            configuration: lucky.clone(),
            outcome,
        });
    }
    // Advance to the next turn of a retest.
    history.trials.extend_from_within(..15);
    history.trials.extend_from_within(..7);
    assert_eq!(history.trials.len(), 48);
    assert_ne!(optimiser.propose(&history).origin, Origin::Retest);
}

#[test]
fn trials_of_another_space_are_left_out() {
    let (mut optimiser, mut history) = session(Surface::Wt8, 12, 4);
    let before = optimiser.recommend(&history);
    let mut foreign = Configuration::default();
    foreign
        .0
        .insert("elsewhere".into(), crate::space::Value::Bool(true));
    let outcome = Outcome::Measured {
        value: 1e9,
        noise: 1.0,
    };
    history.trials.push(Trial {
        configuration: foreign,
        outcome,
    });
    let after = optimiser.recommend(&history);
    assert_eq!(
        before.map(|r| r.configuration),
        after.map(|r| r.configuration)
    );
}
