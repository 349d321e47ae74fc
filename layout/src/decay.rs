//! How fast the order of a file decays.
//!
//! A changed leaf is written to a new place at the next checkpoint. With N leaves, u updates of
//! random documents move the share f = 1 − (1 − 1/N)^u of them; a pair of neighbours stays together
//! when neither moves, so of a contiguity c₀ there remains c₀ (1 − f)². Measured on WiredTiger 11.3,
//! 1,000 and 10,000 updates of 250,000 rows: 0.607 and 0.014, where this says 0.60 and 0.011.

use std::collections::HashSet;

use seekscope_run::OrderDecay;
use seekscope_wiredtiger::tree::Leaf;

use crate::order::scanned;

const HOUR_S: f64 = 3600.0;

/// How the leaves of one file differ between two checkpoints; deleted ones are in neither.
///
/// Leaves are identified by place and length. One that was moved away and replaced by another of
/// the same length at the same place counts as unmoved, which makes `gone` a lower bound; in a file
/// that reuses its holes at once, it is too low by a few percent of the moved leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeafChanges {
    /// Leaves at the first and at the second checkpoint.
    pub before: u64,
    pub after: u64,
    /// Leaves present at both.
    pub stayed: u64,
}

impl LeafChanges {
    /// Compares two sets of leaves, in any order.
    pub fn between(before: &[Leaf], after: &[Leaf]) -> Self {
        let place = |leaf: &Leaf| (leaf.offset, leaf.length);
        let old: HashSet<_> = scanned(before).map(place).collect();
        let new: HashSet<_> = scanned(after).map(place).collect();
        Self {
            before: old.len() as u64,
            after: new.len() as u64,
            stayed: old.intersection(&new).count() as u64,
        }
    }

    /// Returns the number of leaves of the first checkpoint that are no longer in their place:
    /// moved or removed.
    pub fn gone(&self) -> u64 {
        self.before.saturating_sub(self.stayed)
    }

    /// Returns the number of leaves of the second checkpoint in places where none was: moved or
    /// added.
    pub fn new_places(&self) -> u64 {
        self.after.saturating_sub(self.stayed)
    }

    /// Returns the number of leaves that moved: those gone for which there is a new one. Any more
    /// that are gone were removed, any more that are new were appended or split off; neither counts
    /// as moved.
    pub fn moved(&self) -> u64 {
        self.gone().min(self.new_places())
    }

    /// Returns the number of leaves by which the file grew, besides those that moved.
    pub fn added(&self) -> u64 {
        self.new_places() - self.moved()
    }

    /// Returns the moved leaves as a share of those of the first checkpoint, 0 to 1; 0 if it had
    /// none.
    pub fn moved_share(&self) -> f64 {
        if self.before == 0 {
            0.0
        } else {
            self.moved() as f64 / self.before as f64
        }
    }
}

/// Returns the share of `leaf_pages` leaves that `updates` of random documents move.
pub fn moved_share(leaf_pages: u64, updates: f64) -> f64 {
    0.0 - ln_unmoved_share(leaf_pages, updates).exp_m1()
}

/// Returns the logarithm of the share of leaves that stay: 1 − 1/N to the u-th power, computed
/// without losing digits where N is large or hardly anything is left.
fn ln_unmoved_share(leaf_pages: u64, updates: f64) -> f64 {
    if leaf_pages == 0 || updates <= 0.0 {
        return 0.0;
    }
    updates * (-1.0 / leaf_pages as f64).ln_1p()
}

/// Returns the decay that this many updates of random single documents per hour cause in a file of
/// `leaf_pages` leaves of which `contiguous_now` is the contiguous share.
pub fn from_update_rate(
    contiguous_now: f64,
    leaf_pages: u64,
    updates_per_hour: f64,
    basis: String,
) -> OrderDecay {
    expected(
        contiguous_now,
        ln_unmoved_share(leaf_pages, updates_per_hour),
        basis,
    )
}

/// Returns the decay if leaves keep moving as they did between two checkpoints `elapsed_s` apart,
/// the second of which has `contiguous_now`. `None` if no time passed or there were no leaves.
///
/// It holds for a file whose leaves move at random. Leaves appended in that time do not count as
/// moved, but the former last leaf does, as it was filled up.
pub fn from_snapshots(
    contiguous_now: f64,
    changes: &LeafChanges,
    elapsed_s: f64,
) -> Option<OrderDecay> {
    if elapsed_s.is_nan() || elapsed_s <= 0.0 || changes.before == 0 {
        return None;
    }
    let ln_unmoved_per_hour = (-changes.moved_share()).ln_1p() * HOUR_S / elapsed_s;
    let basis = format!("two snapshots {elapsed_s:.0} s apart");
    Some(expected(contiguous_now, ln_unmoved_per_hour, basis))
}

/// Returns what remains when `ln_unmoved_per_hour` is the logarithm of the share of leaves that do
/// not move within an hour.
fn expected(contiguous_now: f64, ln_unmoved_per_hour: f64, basis: String) -> OrderDecay {
    let after_hours = |hours: f64| contiguous_now * (2.0 * hours * ln_unmoved_per_hour).exp();
    let decays = ln_unmoved_per_hour < 0.0;
    OrderDecay {
        basis,
        moved_share_per_hour: 0.0 - ln_unmoved_per_hour.exp_m1(),
        half_life_hours: decays.then(|| 0.5f64.ln() / (2.0 * ln_unmoved_per_hour)),
        contiguous_now,
        contiguous_after_hour: after_hours(1.0),
        contiguous_after_day: after_hours(24.0),
        contiguous_after_week: after_hours(168.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seekscope_wiredtiger::tree::LeafKind;

    use super::*;

    fn leaf(offset: u64) -> Leaf {
        Leaf {
            offset,
            length: 4096,
            kind: LeafKind::Plain,
        }
    }

    fn leaves(places: impl IntoIterator<Item = u64>) -> Vec<Leaf> {
        places.into_iter().map(|place| leaf(place * 4096)).collect()
    }

    /// The measured table: 250,000 rows in 4,546 leaves, then 0.4 % and 4 % of them updated.
    #[test]
    fn agrees_with_what_was_measured() {
        let hour = |updates| from_update_rate(0.934, 4546, updates, String::new());
        assert!((hour(1000.0).contiguous_after_hour - 0.607).abs() < 0.01);
        assert!((hour(10_000.0).contiguous_after_hour - 0.014).abs() < 0.005);
    }

    #[test]
    fn half_lives() {
        let decay = from_update_rate(0.8, 1000, 100.0, "--updates-per-hour 100".into());
        let half_life = decay.half_life_hours.unwrap();
        let f = decay.moved_share_per_hour;
        assert!(((1.0 - f).powf(2.0 * half_life) - 0.5).abs() < 1e-9);
        assert!((f - (1.0 - 0.999f64.powi(100))).abs() < 1e-12);
        assert!(decay.contiguous_after_week < decay.contiguous_after_day);
        let still = from_update_rate(0.8, 1000, 0.0, String::new());
        assert_eq!(
            (still.half_life_hours, still.contiguous_after_week),
            (None, 0.8)
        );
        let one = from_update_rate(1.0, 1, 5.0, String::new());
        assert_eq!(
            (one.moved_share_per_hour, one.half_life_hours),
            (1.0, Some(0.0))
        );
        assert_eq!(moved_share(0, 5.0), 0.0);
    }

    #[test]
    fn growth_is_not_movement() {
        let appended = LeafChanges::between(&leaves(0..10), &leaves(0..25));
        assert_eq!(
            (appended.moved(), appended.added(), appended.gone()),
            (0, 15, 0)
        );
        // Two moved, three appended.
        let both = LeafChanges::between(&leaves(0..10), &leaves(2..15));
        assert_eq!((both.moved(), both.added(), both.new_places()), (2, 3, 5));
        assert_eq!(both.moved_share(), 0.2);
        // Four removed.
        let fewer = LeafChanges::between(&leaves(0..10), &leaves(4..10));
        assert_eq!((fewer.moved(), fewer.gone()), (0, 4));
        assert_eq!(LeafChanges::between(&[], &leaves(0..3)).moved_share(), 0.0);
        let deleted = [Leaf {
            kind: LeafKind::Deleted,
            ..leaf(0)
        }];
        assert_eq!(LeafChanges::between(&leaves(0..1), &deleted).gone(), 1);
    }

    #[test]
    fn rates_from_snapshots() {
        let changes = LeafChanges {
            before: 100,
            after: 100,
            stayed: 90,
        };
        let decay = from_snapshots(0.5, &changes, 1800.0).unwrap();
        assert!((decay.moved_share_per_hour - 0.19).abs() < 1e-12);
        assert!((decay.contiguous_after_hour - 0.5 * 0.81 * 0.81).abs() < 1e-12);
        assert_eq!(decay.basis, "two snapshots 1800 s apart");
        // All but certainly everything moves within the hour; the half-life is short, not nothing.
        let fast = from_snapshots(0.5, &changes, 1.0).unwrap();
        assert_eq!(fast.moved_share_per_hour, 1.0);
        let half_life_s = fast.half_life_hours.unwrap() * 3600.0;
        assert!((half_life_s - 3.289).abs() < 0.001, "{half_life_s}");
        assert_eq!(from_snapshots(0.5, &changes, 0.0), None);
        assert_eq!(from_snapshots(0.5, &changes, f64::NAN), None);
        assert_eq!(from_snapshots(0.5, &LeafChanges::default(), 60.0), None);
    }

    proptest! {
        #[test]
        fn accounts_close(before in prop::collection::vec(0u64..60, 0..50), after in prop::collection::vec(0u64..60, 0..50)) {
            let changes = LeafChanges::between(&leaves(before), &leaves(after));
            prop_assert_eq!(changes.stayed + changes.gone(), changes.before);
            prop_assert_eq!(changes.stayed + changes.moved() + changes.added(), changes.after);
            prop_assert!((0.0..=1.0).contains(&changes.moved_share()));
        }
    }
}
