//! Provides a seeded bijection of the numbers below any n, which determines where hot records are. Rounds of
//! xor-shift and odd multiplication permute the next power of two; a result beyond n is permuted again
//! ("cycle walking", Black and Rogaway, CT-RSA 2002), on average less than once.

use super::stream_seed;

const ROUNDS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    /// A multiplier (odd) and an addend for each round.
    keys: [(u64, u64); ROUNDS],
}

impl Permutation {
    /// Creates a permutation of the numbers `0..count`.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(1);
        let key = |round, part| stream_seed(&[seed, round, part]);
        Self {
            count,
            mask: u64::MAX >> (u64::BITS - bits),
            shift: bits.div_ceil(2),
            keys: [0, 1, 2].map(|round| (key(round, 0) | 1, key(round, 1))),
        }
    }

    /// Returns the image of `index`; an index not below the count is unchanged.
    #[inline]
    pub fn apply(&self, index: u64) -> u64 {
        if index >= self.count {
            return index;
        }
        let mut at = index;
        loop {
            for &(multiplier, summand) in &self.keys {
                at = at.wrapping_mul(multiplier).wrapping_add(summand) & self.mask;
                at ^= at >> self.shift;
            }
            if at < self.count {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_bijection_and_depends_on_the_seed() {
        for count in [1, 2, 3, 5, 10, 64, 1_000, 4_097] {
            for seed in 0..4 {
                let permutation = Permutation::new(count, seed);
                let mut images: Vec<u64> = (0..count).map(|i| permutation.apply(i)).collect();
                images.sort_unstable();
                assert!(images.into_iter().eq(0..count), "{count} {seed}");
                assert_eq!(permutation.apply(count), count);
            }
        }
        let (one, two) = (Permutation::new(1_000, 1), Permutation::new(1_000, 2));
        let same = (0..1_000).filter(|&i| one.apply(i) == two.apply(i)).count();
        assert!(same < 20, "{same}");
    }

    /// Neighbouring ranks must not be neighbours: of 10,000 pairs, those within a hundredth of the
    /// range of each other are binomial with p = 0.0199.
    #[test]
    fn neighbours_are_spread() {
        let count = 1_000_003;
        let permutation = Permutation::new(count, 9);
        let near = (0..10_000)
            .filter(|&i| permutation.apply(i).abs_diff(permutation.apply(i + 1)) < count / 100)
            .count();
        assert!((125..275).contains(&near), "{near}");
        let low = (0..10_000)
            .filter(|&i| permutation.apply(i) < count / 2)
            .count();
        assert!((4_750..5_250).contains(&low), "{low}");
    }

    #[test]
    fn reaches_the_largest_counts() {
        for count in [u64::MAX, 1 << 63, (1 << 63) + 1] {
            let permutation = Permutation::new(count, 3);
            assert!(permutation.apply(count - 1) < count);
        }
    }
}
