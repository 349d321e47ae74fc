//! Tests how skewed YCSB's scrambled draws are compared with true Zipf ones: shares of draws that fall on the
//! hottest rows. The figures are from twenty million draws of YCSB's own formula.

use seekscope_stats::SplitMix64;

use super::{ScrambledZipfian, Zipf};

const DRAWS: u32 = 4_000_000;

/// Returns the shares of the hottest row, 1 %, 10 % and 20 % of rows.
fn shares(rows: u64, mut draw: impl FnMut() -> u64) -> [f64; 4] {
    let mut counts = vec![0_u32; usize::try_from(rows).unwrap()];
    for _ in 0..DRAWS {
        counts[usize::try_from(draw()).unwrap()] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    [1, rows / 100, rows / 10, rows / 5].map(|hottest| {
        let seen: u32 = counts[..usize::try_from(hottest).unwrap()].iter().sum();
        f64::from(seen) / f64::from(DRAWS)
    })
}

/// (rows, shares of scrambled draws, shares of true Zipf draws).
const TABLE: [(u64, [f64; 4], [f64; 4]); 2] = [
    (
        1_000,
        [0.039, 0.126, 0.290, 0.401],
        [0.129, 0.383, 0.685, 0.779],
    ),
    (
        200_000,
        [0.038, 0.334, 0.476, 0.558],
        [0.074, 0.625, 0.810, 0.867],
    ),
];

#[test]
fn scrambled_draws_are_as_flat_as_ycsbs() {
    let mut random = SplitMix64::new(1);
    for (rows, expected, _) in TABLE {
        // YCSB has one slot more than rows, and repeats draws that fall on it.
        let scrambled = ScrambledZipfian::new(rows + 1);
        let draw = || loop {
            let slot = scrambled.draw(&mut random);
            if slot < rows {
                return slot;
            }
        };
        assert_near(shares(rows, draw), expected, rows);
    }
}

#[test]
fn true_draws_are_as_skewed_as_the_formula() {
    let mut random = SplitMix64::new(2);
    for (rows, _, expected) in TABLE {
        let zipf = Zipf::new(0.99, rows).unwrap();
        assert_near(shares(rows, || zipf.draw(&mut random)), expected, rows);
        let weights: Vec<f64> = (1..=rows).map(|rank| (rank as f64).powf(-0.99)).collect();
        let total: f64 = weights.iter().sum();
        let first = weights[0] / total;
        assert!((first - expected[0]).abs() < 0.001, "{rows}: {first}");
    }
}

/// Within the error from rounding to three digits and from fewer draws: counting the hottest of few draws
/// favours those that were drawn by luck.
fn assert_near(found: [f64; 4], expected: [f64; 4], rows: u64) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!(
            (-0.004..0.02).contains(&(found - expected)),
            "{rows}: {found}, {expected}"
        );
    }
}
