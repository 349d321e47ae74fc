use proptest::prelude::*;

use super::*;

fn leaf(offset: u64, length: u32) -> Leaf {
    Leaf {
        offset,
        length,
        kind: LeafKind::Plain,
    }
}

/// Leaves of one length at these places.
fn at_places(places: impl IntoIterator<Item = u64>, length: u32) -> Vec<Leaf> {
    let offset = |place| 4096 + place * u64::from(length);
    places
        .into_iter()
        .map(|place| leaf(offset(place), length))
        .collect()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + b.abs())
}

#[test]
fn perfect_order() {
    let order = scan_order(&at_places(0..100, 32_768), 131_072).unwrap();
    assert_eq!(
        (order.contiguous_share, order.sequential_share, order.score),
        (1.0, 1.0, 1.0)
    );
    assert_eq!((order.runs, order.seeks, order.seeks_best), (1, 1, 1));
    assert_eq!(order.bytes_per_seek, 3_276_800.0);
    assert_eq!((order.kendall_tau, order.spearman_rho), (1.0, 1.0));
    assert_eq!(order.run_lengths, [(1 << 21, 1)]);
    assert_eq!(order.gaps, [(0, 99, 0)]);
    assert_eq!(order.mean_seek_distance_bytes, 0.0);
}

#[test]
fn backwards() {
    let order = scan_order(&at_places((0..100).rev(), 32_768), 131_072).unwrap();
    assert_eq!((order.sequential_share, order.backward_share), (0.0, 1.0));
    assert_eq!((order.seeks, order.seeks_best, order.score), (100, 1, 0.0));
    assert!(close(order.kendall_tau, -1.0) && close(order.spearman_rho, -1.0));
    // Each step goes back over two leaves.
    assert_eq!(order.median_seek_distance_bytes, 65_536);
    assert_eq!(order.gaps, [(65_536, 0, 99)]);
}

/// Eight ranges that took turns: hardly any global order within a turn, but long runs all the same.
#[test]
fn interleaved_ranges_are_sequential_without_global_order() {
    // Range r's leaves lie at every eighth place: gaps of 7 leaves.
    let places = (0..8u64).flat_map(|range| (0..50u64).map(move |i| i * 8 + range));
    let leaves = at_places(places, 4096);
    let order = scan_order(&leaves, 131_072).unwrap();
    assert_eq!(order.seeks, 8);
    assert!(close(order.sequential_share, 392.0 / 399.0));
    assert_eq!(order.contiguous_share, 0.0);
    assert!(order.kendall_tau < 0.2, "{}", order.kendall_tau);
    // Without read-ahead each step is a seek, though a perfect order would need none.
    let narrow = scan_order(&leaves, 0).unwrap();
    assert_eq!(
        (narrow.seeks, narrow.seeks_best, narrow.score),
        (400, 1, 0.0)
    );
}

/// Holes that no order can avoid do not count against the score.
#[test]
fn holes() {
    let order = scan_order(&at_places((0..10).map(|i| i * 100), 4096), 131_072).unwrap();
    assert_eq!((order.seeks, order.seeks_best, order.score), (10, 10, 1.0));
    assert_eq!(order.gaps, [(262_144, 9, 0)]);
    assert_eq!(order.run_lengths, [(4096, 10)]);
}

#[test]
fn deleted_leaves_are_skipped() {
    let mut leaves = at_places(0..10, 4096);
    leaves.insert(
        5,
        Leaf {
            kind: LeafKind::Deleted,
            ..leaf(1 << 30, 4096)
        },
    );
    assert_eq!(
        scan_order(&leaves, 0),
        scan_order(&at_places(0..10, 4096), 0)
    );
}

#[test]
fn too_few() {
    assert_eq!(scan_order(&[], 0), None);
    assert_eq!(scan_order(&at_places(0..1, 4096), 0), None);
}

#[test]
fn nonsense_does_not_panic() {
    let leaves = [
        leaf(u64::MAX, u32::MAX),
        leaf(0, u32::MAX),
        leaf(u64::MAX, 0),
        leaf(u64::MAX, 0),
    ];
    let order = scan_order(&leaves, u64::MAX).unwrap();
    assert_eq!(order.backward_share, 1.0 / 3.0);
}

/// Σ over all pairs of sgn(oⱼ − oᵢ), leaves at one offset counting as in order.
fn naive_tau(leaves: &[Leaf]) -> f64 {
    let (mut concordant, mut pairs) = (0.0, 0.0);
    for (i, a) in leaves.iter().enumerate() {
        for b in &leaves[i + 1..] {
            concordant += if b.offset >= a.offset { 1.0 } else { -1.0 };
            pairs += 1.0;
        }
    }
    concordant / pairs
}

/// Pearson's correlation of the ranks.
fn naive_rho(leaves: &[Leaf]) -> f64 {
    let rank = |i: usize| {
        let before = |j: &usize| (leaves[*j].offset, *j) < (leaves[i].offset, i);
        (0..leaves.len()).filter(before).count() as f64
    };
    let mean = (leaves.len() - 1) as f64 / 2.0;
    let (mut covariance, mut variance) = (0.0, 0.0);
    for i in 0..leaves.len() {
        covariance += (rank(i) - mean) * (i as f64 - mean);
        variance += (i as f64 - mean).powi(2);
    }
    covariance / variance
}

fn naive_seeks(leaves: &[Leaf], window: u64) -> u64 {
    let mut seeks = 1;
    for i in 1..leaves.len() {
        let end = leaves[i - 1].offset + u64::from(leaves[i - 1].length);
        let near = leaves[i].offset >= end && leaves[i].offset - end <= window;
        seeks += u64::from(!near);
    }
    seeks
}

proptest! {
    #[test]
    fn agrees_with_the_definitions(
        places in prop::collection::vec((0u64..300, 1u32..9), 2..120),
        window in 0u64..200_000,
    ) {
        let leaves: Vec<Leaf> = places
            .iter()
            .map(|&(place, units)| leaf(place * 4096, units * 4096))
            .collect();
        let order = scan_order(&leaves, window).unwrap();
        prop_assert!(close(order.kendall_tau, naive_tau(&leaves)));
        prop_assert!(close(order.spearman_rho, naive_rho(&leaves)));
        prop_assert_eq!(order.seeks, naive_seeks(&leaves, window));
        let mut sorted = leaves.clone();
        sorted.sort_by_key(|leaf| leaf.offset);
        prop_assert_eq!(order.seeks_best, naive_seeks(&sorted, window));
        prop_assert!((0.0..=1.0).contains(&order.score));
        let pairs: u64 = order.gaps.iter().map(|g| g.1 + g.2).sum();
        prop_assert_eq!(pairs, leaves.len() as u64 - 1);
        let runs: u64 = order.run_lengths.iter().map(|r| r.1).sum();
        prop_assert_eq!(runs, order.runs);
        let bytes: u64 = leaves.iter().map(|leaf| u64::from(leaf.length)).sum();
        let least: u64 = order.run_lengths.iter().map(|r| r.0 * r.1).sum();
        prop_assert!(least <= bytes && bytes < 2 * least);
    }

    /// Offsets that fit when packed, and some too wide for that.
    #[test]
    fn disk_order(offsets in prop::collection::vec(prop_oneof![0u64..9, (0u64..9).prop_map(|n| n << 12), any::<u64>()], 1..50)) {
        let leaves: Vec<Leaf> = offsets.iter().map(|&offset| leaf(offset, 0)).collect();
        let mut expected: Vec<u32> = (0..u32::try_from(leaves.len()).unwrap()).collect();
        expected.sort_by_key(|&ordinal| offsets[ordinal as usize]);
        prop_assert_eq!(by_offset(&leaves).unwrap(), expected);
    }

    #[test]
    fn inversions_of_any_permutation(seed: u64, count in 0u64..200) {
        let permutation: Vec<u32> = seekscope_stats::shuffled::distinct(count, count, seed)
            .into_iter()
            .map(|n| u32::try_from(n).unwrap())
            .collect();
        let naive = (0..permutation.len())
            .map(|i| permutation[i + 1..].iter().filter(|&&later| later < permutation[i]).count() as u64)
            .sum::<u64>();
        prop_assert_eq!(inversions(permutation), naive);
    }
}
