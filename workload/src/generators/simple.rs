//! Provides choosers with a one-line formula: hot spot, exponential, weighted choice.

use seekscope_stats::SplitMix64;

use super::floor_u64;

/// Two uniform ranges, one of them hot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hotspot {
    hot_count: u64,
    count: u64,
    hot_share: f64,
}

impl Hotspot {
    /// The lowest `floor(count * hot_fraction)` of `count` numbers get `hot_share` of the draws. Both are
    /// clamped to 0 to 1; a part without numbers gets no draws.
    pub fn new(count: u64, hot_fraction: f64, hot_share: f64) -> Self {
        let hot_count = floor_u64(count as f64 * hot_fraction.clamp(0.0, 1.0)).min(count);
        Self {
            hot_count,
            count,
            hot_share: match hot_count {
                0 => 0.0,
                all if all == count => 1.0,
                _ => hot_share.clamp(0.0, 1.0),
            },
        }
    }

    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        if random.unit_f64() < self.hot_share {
            random.below(self.hot_count)
        } else {
            self.hot_count + random.below(self.count - self.hot_count)
        }
    }
}

/// Exponentially distributed distances from the newest record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exponential {
    gamma: f64,
}

impl Exponential {
    /// Creates a distribution in which `percentile` per cent (between 0 and 100) of the draws are below
    /// `range` (positive).
    pub fn new(percentile: f64, range: f64) -> Option<Self> {
        let gamma = -(1.0 - percentile / 100.0).ln() / range;
        (gamma.is_finite() && gamma > 0.0).then_some(Self { gamma })
    }

    /// Returns a distance, rounded down.
    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        // 1 - u is never 0.
        floor_u64(-(1.0 - random.unit_f64()).ln() / self.gamma)
    }
}

/// A choice in proportion to weights, made like YCSB: weights are subtracted from one uniform draw in turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Weighted<T> {
    /// Choices, each with the cumulative share up to and including it.
    choices: Vec<(T, f64)>,
}

impl<T: Copy> Weighted<T> {
    /// Creates the choice. Weights of 0 and less are dropped. `None` if nothing is left, or a weight is not
    /// finite.
    pub fn new(weights: &[(T, f64)]) -> Option<Self> {
        let total: f64 = weights.iter().map(|(_, weight)| weight.max(0.0)).sum();
        if !(total.is_finite() && total > 0.0) {
            return None;
        }
        let mut below = 0.0;
        let choices = weights
            .iter()
            .filter(|(_, weight)| *weight > 0.0)
            .map(|&(choice, weight)| {
                below += weight / total;
                (choice, below)
            })
            .collect();
        Some(Self { choices })
    }

    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> T {
        let u = random.unit_f64();
        let last = self.choices.len() - 1;
        let found = self.choices[..last].iter().find(|(_, below)| u < *below);
        found.unwrap_or(&self.choices[last]).0
    }

    /// Returns everything that can be chosen.
    pub fn choices(&self) -> impl Iterator<Item = T> + '_ {
        self.choices.iter().map(|&(choice, _)| choice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    /// Five standard deviations of a binomial distribution.
    fn assert_share(seen: u32, share: f64) {
        let expected = share * f64::from(DRAWS);
        let deviation = (expected * (1.0 - share)).sqrt();
        assert!(
            (f64::from(seen) - expected).abs() <= 5.0 * deviation,
            "{seen} of {DRAWS}, expected {expected}"
        );
    }

    #[test]
    fn the_hot_spot_gets_its_share() {
        let hotspot = Hotspot::new(1_003, 0.2, 0.8);
        let mut random = SplitMix64::new(1);
        let (mut hot, mut first, mut last) = (0, 0, 0);
        for _ in 0..DRAWS {
            let drawn = hotspot.draw(&mut random);
            assert!(drawn < 1_003);
            hot += u32::from(drawn < 200);
            first += u32::from(drawn == 0);
            last += u32::from(drawn == 1_002);
        }
        assert_share(hot, 0.8);
        assert_share(first, 0.8 / 200.0);
        assert_share(last, 0.2 / 803.0);
        for (count, fraction) in [(3, 0.1), (3, 1.0), (1, 0.5)] {
            let edge = Hotspot::new(count, fraction, 0.5);
            assert!((0..100).all(|_| edge.draw(&mut random) < count));
        }
    }

    #[test]
    fn exponential_distances_follow_their_percentile() {
        let exponential = Exponential::new(95.0, 10_000.0 * 0.857_142_857_1).unwrap();
        let mut random = SplitMix64::new(2);
        let (mut near, mut half) = (0, 0);
        let gamma = 20_f64.ln() / 8_571.428_571;
        for _ in 0..DRAWS {
            let distance = exponential.draw(&mut random);
            near += u32::from(distance < 8_571);
            half += u32::from(distance < 2_000);
        }
        assert_share(near, 1.0 - (-gamma * 8_571.0_f64).exp());
        assert_share(half, 1.0 - (-gamma * 2_000.0_f64).exp());
        assert!(Exponential::new(100.0, 5.0).is_none());
        assert!(Exponential::new(0.0, 5.0).is_none());
        assert!(Exponential::new(95.0, 0.0).is_none());
        assert!(Exponential::new(f64::NAN, 1.0).is_none());
    }

    #[test]
    fn weights_are_normalised() {
        let choice = Weighted::new(&[('a', 3.0), ('b', 0.0), ('c', 1.0)]).unwrap();
        let mut random = SplitMix64::new(3);
        let mut a = 0;
        for _ in 0..DRAWS {
            match choice.draw(&mut random) {
                'a' => a += 1,
                other => assert_eq!(other, 'c'),
            }
        }
        assert_share(a, 0.75);
        assert!(Weighted::new(&[('a', 0.0)]).is_none());
        assert!(Weighted::new(&[('a', f64::INFINITY)]).is_none());
    }
}
