use seekscope_wiredtiger::{Leaf, LeafKind};

use super::*;

const LEAF: u32 = 32 << 10;
const LEAVES: usize = 40_000;

fn sweep() -> Sweep {
    let leaf = |i: u64| Leaf {
        offset: i * u64::from(LEAF),
        length: LEAF,
        kind: LeafKind::Plain,
    };
    let leaves: Vec<Leaf> = (0..LEAVES as u64).map(leaf).collect();
    Sweep::new(&leaves, u64::MAX).unwrap()
}

/// A scan that takes `aided_ns` per leaf, and `alone_ns` (not quite the same every time) in pauses.
fn scanned(aided_ns: u64, alone_ns: u64) -> (Pauses, Progress) {
    let (mut pauses, mut sweep, mut t_ns) = (Pauses::default(), sweep(), 0);
    for ordinal in 0..LEAVES {
        pauses.scan_at(ordinal, t_ns);
        sweep.advance(ordinal);
        if let Some(leaves) = pauses.wanted(t_ns, alone_ns as f64) {
            pauses.begin(&mut sweep, leaves, t_ns);
        }
        let inside = pauses.current.as_ref();
        let inside = inside.is_some_and(|pause| pause.leaves.contains(&ordinal));
        assert!(!inside || pauses.holds(ordinal));
        t_ns += match inside {
            true => alone_ns * (92 + ordinal as u64 % 17) / 100,
            false => aided_ns,
        };
    }
    let progress = Progress {
        elapsed_ns: t_ns,
        passed_bytes: LEAVES as u64 * u64::from(LEAF),
        passed_leaves: LEAVES as u64,
        held_bytes: 0,
    };
    (pauses, progress)
}

#[test]
fn the_gain_is_that_of_the_whole_scan() {
    let (pauses, progress) = scanned(1_000_000, 6_000_000);
    let gain = pauses.gain(&progress).unwrap();
    let without_ns = 6_000_000.0 * LEAVES as f64;
    let expected = without_ns / progress.elapsed_ns as f64;
    let (low, ratio, high) = (
        gain.ratio_low.unwrap(),
        gain.ratio.unwrap(),
        gain.ratio_high.unwrap(),
    );
    assert!((ratio / expected - 1.0).abs() < 0.05, "{gain:?}");
    assert!(low < ratio && ratio < high, "{gain:?}");
    assert!(!pauses.are_in_vain(&progress));
    // Pauses have cost what they may.
    let cost = progress.elapsed_ns as f64 / (1_000_000.0 * LEAVES as f64);
    assert!((1.01..1.05).contains(&cost), "{cost}");
}

#[test]
fn a_scan_that_is_slower_is_noticed() {
    let (pauses, mut progress) = scanned(6_000_000, 3_000_000);
    assert!(pauses.are_in_vain(&progress));
    assert!(pauses.gain(&progress).unwrap().ratio.unwrap() < 0.6);
    progress.held_bytes = progress.passed_bytes * 2;
    assert!(
        !pauses.are_in_vain(&progress),
        "what is held will be passed at once"
    );
}

#[test]
fn a_short_scan_has_no_pause() {
    let (pauses, progress) = scanned(10_000, 5_000_000);
    assert_eq!(
        (pauses.gain(&progress), pauses.are_in_vain(&progress)),
        (None, false)
    );
}

#[test]
fn samples_that_contradict_one_another_tell_nothing() {
    let (mut pauses, progress) = scanned(1_000_000, 6_000_000);
    pauses.samples = vec![1.0, 500.0, 3.0];
    let gain = pauses.gain(&progress).unwrap();
    assert_eq!(
        (gain.ratio, gain.ratio_low, gain.ratio_high),
        (None, None, None)
    );
}

/// Begins a pause of 100 leaves in a scan of 10 ms per leaf that is in the middle of it. Returns
/// its first leaf.
fn within(pauses: &mut Pauses, sweep: &mut Sweep) -> usize {
    pauses.begin(sweep, 100, 0);
    let start = sweep.position() + AHEAD;
    for ordinal in start..start + 50 {
        pauses.scan_at(ordinal, (ordinal - start) as u64 * 10_000_000);
        sweep.advance(ordinal + 1);
    }
    assert!(pauses.holds(sweep.position()) && !pauses.samples.is_empty());
    start
}

#[test]
fn a_pause_that_the_scan_was_not_seen_to_pass_is_over_and_tells_nothing() {
    // Seen within, and next far behind its end: the leaves between were in the server's own cache.
    let (mut pauses, mut sweep) = (Pauses::default(), sweep());
    let start = within(&mut pauses, &mut sweep);
    let behind = start + 100 + AHEAD + 1;
    pauses.scan_at(behind, 2_000_000_000);
    sweep.advance(behind + 1);
    assert!(!pauses.holds(behind + 1) && pauses.current.is_none());
    assert_eq!((pauses.count, pauses.samples.len()), (0, 0));
    // Later pauses know what it cost.
    assert_eq!(pauses.wanted(19_000_000_000, 1e6), None);
    assert!(pauses.wanted(24_000_000_000, 1e6).is_some());

    // Not seen within at all, and close behind it.
    pauses.begin(&mut sweep, 100, 25_000_000_000);
    pauses.scan_at(sweep.position() + AHEAD + 101, 25_500_000_000);
    assert!(pauses.current.is_none());
    assert_eq!((pauses.count, pauses.in_scan.spent_ns), (0, 0));
}

#[test]
fn a_position_behind_a_pause_is_not_held() {
    let (mut pauses, mut sweep) = (Pauses::default(), sweep());
    let start = within(&mut pauses, &mut sweep);
    assert!(!pauses.holds(start + 100 + AHEAD + 1));
}

#[test]
fn a_pause_that_is_forgotten_is_read_ahead_after_all() {
    let (mut pauses, mut sweep) = (Pauses::default(), sweep());
    let unread = sweep.first_unread();
    pauses.begin(&mut sweep, 100, 0);
    assert!(!pauses.holds(0) && pauses.holds(AHEAD));
    sweep.advance(AHEAD);
    assert!(sweep.first_unread() > AHEAD + unread, "it is left out");
    pauses.forget(&mut sweep, 0);
    assert!(!pauses.holds(AHEAD));
    assert_eq!(sweep.first_unread(), AHEAD + unread);
}

/// Two index builds of one command: the second has passed hardly anything when the first would have ended.
#[test]
fn another_scan_is_judged_by_its_own_pauses() {
    let (mut pauses, first) = scanned(1_000_000, 6_000_000);
    let samples = pauses.samples.len();
    pauses.another_scan(&mut sweep(), first.elapsed_ns);
    let second = Progress {
        elapsed_ns: 1_000_000_000,
        passed_bytes: 1000 * u64::from(LEAF),
        passed_leaves: 1000,
        held_bytes: 0,
    };
    assert!(!pauses.are_in_vain(&second));
    assert_eq!(pauses.wanted(1_000_000_000, 6e6), None, "nothing is owed");
    assert!(pauses.wanted(9_000_000_000, 6e6).is_some());
    // How long a leaf takes alone is known from the first.
    assert_eq!(pauses.samples.len(), samples);
    let ratio = pauses.gain(&second).unwrap().ratio.unwrap();
    assert!((ratio / 6.0 - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn a_few_samples_end_nothing_and_say_nothing() {
    let (mut pauses, progress) = scanned(6_000_000, 3_000_000);
    let byte_ns = pauses.samples[0];
    pauses.samples = vec![byte_ns, byte_ns];
    assert!(!pauses.are_in_vain(&progress));
    assert_eq!(pauses.gain(&progress).unwrap().ratio, None);
    // Three that agree do, …
    pauses.samples = vec![byte_ns, byte_ns * 1.1, byte_ns * 0.9];
    assert!(pauses.are_in_vain(&progress));
    // … and three of the same mean that contradict one another do not.
    pauses.samples = vec![byte_ns * 0.1, byte_ns * 0.2, byte_ns * 2.7];
    assert!(!pauses.are_in_vain(&progress));
}

/// Where it does harm, the first pause is enough to end it.
#[test]
fn the_first_pause_tells_enough_to_give_up() {
    for alone_ns in [100_000, 1_000_000, 6_700_000] {
        let (mut pauses, mut sweep, mut t_ns) = (Pauses::default(), sweep(), 0);
        let mut ordinal = 0;
        while pauses.count == 0 {
            pauses.scan_at(ordinal, t_ns);
            sweep.advance(ordinal);
            if let Some(leaves) = pauses.wanted(t_ns, alone_ns as f64) {
                pauses.begin(&mut sweep, leaves, t_ns);
            }
            let inside = pauses.current.as_ref();
            let inside = inside.is_some_and(|pause| pause.leaves.contains(&ordinal));
            t_ns += if inside { alone_ns } else { alone_ns * 3 / 2 };
            ordinal += 1;
        }
        let progress = Progress {
            elapsed_ns: t_ns,
            passed_bytes: sweep.bytes_before(ordinal),
            passed_leaves: ordinal as u64,
            held_bytes: 0,
        };
        assert!(pauses.are_in_vain(&progress), "{alone_ns}: {pauses:?}");
        assert!(t_ns < 5_000_000_000, "{t_ns}");
    }
}
