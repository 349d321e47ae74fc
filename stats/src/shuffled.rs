//! Distinct random numbers.

use crate::SplitMix64;

/// Returns `count` distinct numbers below `total`, in random order (all of them if `count` is larger).
pub fn distinct(total: u64, count: u64, seed: u64) -> Vec<u64> {
    let mut random = SplitMix64::new(seed);
    let mut numbers: Vec<u64> = (0..total).collect();
    let count = usize::try_from(count.min(total)).unwrap_or(usize::MAX);
    // The first steps of a Fisher-Yates shuffle.
    for at in 0..count.min(numbers.len()) {
        let left = u64::try_from(numbers.len() - at).unwrap_or(1);
        let other = at + usize::try_from(random.below(left)).unwrap_or(0);
        numbers.swap(at, other);
    }
    numbers.truncate(count);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_seeded_and_spread() {
        let drawn = distinct(10_000, 1_000, 7);
        assert_eq!(drawn, distinct(10_000, 1_000, 7));
        assert_ne!(drawn, distinct(10_000, 1_000, 8));
        let mut sorted = drawn.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 1_000);
        assert!(drawn.iter().all(|&n| n < 10_000));
        let ascending = drawn.windows(2).filter(|pair| pair[0] < pair[1]).count();
        assert!((400..600).contains(&ascending), "{ascending}");
        let mean = drawn.iter().sum::<u64>() / 1_000;
        assert!((4_500..5_500).contains(&mean), "{mean}");
    }

    #[test]
    fn never_more_than_there_are() {
        assert_eq!(distinct(3, 9, 1).len(), 3);
        assert!(distinct(0, 9, 1).is_empty());
    }
}
