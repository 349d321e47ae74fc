use super::*;
use crate::synthetic::Drift;

fn share(sessions: u64, ratio: f64, counts: impl Fn(&Judgement) -> bool) -> f64 {
    let judged = (0..sessions)
        .map(|seed| judge(&Drift::USUAL.pairs(ratio, 0.05, seed), Goal::Maximise).unwrap());
    judged.filter(counts).count() as f64 / sessions as f64
}

fn better(judgement: &Judgement) -> bool {
    judgement.verdict == Some(Verdict::Better)
}

/// The benchmark counts 4,000 sessions each.
#[test]
fn equal_settings_are_seldom_told_apart_and_unequal_ones_are() {
    let wrong = share(200, 1.0, better);
    assert!(wrong <= 0.07, "{wrong}");
    let right = share(60, 1.1, better);
    assert!(right >= 0.95, "{right}");
    let covered = share(200, 1.05, |j| j.low <= 1.05 && 1.05 <= j.high);
    assert!(covered >= 0.92, "{covered}");
}

#[test]
fn nothing_is_said_before_the_first_look_and_nothing_changes_after_the_verdict() {
    let pairs = Drift::USUAL.pairs(1.2, 0.05, 3);
    assert_eq!(judge(&pairs[..1], Goal::Maximise), None);
    let early = judge(&pairs[..3], Goal::Maximise).unwrap();
    assert_eq!((early.verdict, early.pairs), (None, 3));
    let end = judge(&pairs, Goal::Maximise).unwrap();
    assert_eq!(end.verdict, Some(Verdict::Better));
    assert_eq!(judge(&pairs[..end.pairs], Goal::Maximise), Some(end));
    assert!(end.low > 1.0 && end.low < end.ratio && end.ratio < end.high);
}

#[test]
fn the_goal_turns_the_ratio_round() {
    let pairs = Drift::USUAL.pairs(0.8, 0.05, 3);
    let worse = judge(&pairs, Goal::Maximise).unwrap();
    assert_eq!(worse.verdict, Some(Verdict::NotBetter));
    let better = judge(&pairs, Goal::Minimise).unwrap();
    assert_eq!(better.verdict, Some(Verdict::Better));
    assert!(better.ratio > 1.1);
}

#[test]
fn odd_pairs_are_survived() {
    let same = [(1.0, 1.0); 24];
    assert_eq!(
        judge(&same, Goal::Maximise).unwrap().verdict,
        Some(Verdict::NotBetter)
    );
    let certain = [(1.0, 1.5); 24];
    let judgement = judge(&certain, Goal::Maximise).unwrap();
    assert_eq!(
        (judgement.verdict, judgement.pairs),
        (Some(Verdict::Better), 4)
    );
    let failed = [(f64::NAN, 1.0), (0.0, 1.0), (1.0, f64::INFINITY)];
    assert_eq!(judge(&failed, Goal::Maximise), None);
}

#[test]
fn blocks_hold_every_arm_once_in_random_order() {
    let orders = block_orders(3, 60, 1);
    assert_eq!(orders, block_orders(3, 60, 1));
    let first = orders.iter().filter(|order| order[0] == 0).count();
    assert!((10..32).contains(&first), "{first}");
    for mut order in orders {
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2]);
    }
}

/// The looks spend five hundredths in all.
#[test]
fn the_error_is_spent_once() {
    let spent: f64 = LOOKS.iter().map(|look| look.alpha).sum();
    assert!((spent - 0.05).abs() < 2e-4, "{spent}");
}
