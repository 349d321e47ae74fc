//! Simulates a machine that drifts, for testing the statistics of duels.

use seekscope_stats::SplitMix64;

use crate::duel::{LOOKS, block_orders};

/// How runs depend on their time, in units of the noise of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Correlation of each run's noise with the next one's (an autoregressive process of order 1).
    pub correlation: f64,
    /// Standard deviation of each step of a random walk.
    pub walk: f64,
    /// Total of a linear trend from first to last run.
    pub trend: f64,
}

impl Drift {
    /// Correlated noise, a walk that ends about 1.4 standard deviations off, and a trend of 2.
    pub const USUAL: Self = Self {
        correlation: 0.2,
        walk: 0.2,
        trend: 2.0,
    };
    /// Noise alone, where nothing cancels within a pair.
    pub const NONE: Self = Self {
        correlation: 0.0,
        walk: 0.0,
        trend: 0.0,
    };

    /// Returns all pairs of a duel (baseline, candidate): `ratio` is the truth, `noise` the standard
    /// deviation of the logarithm of one run.
    pub fn pairs(&self, ratio: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut rng = SplitMix64::new(seed);
        let blocks = LOOKS.last().map_or(0, |look| look.pairs);
        let (mut own, mut walk) = (rng.normal(), 0.0);
        let orders = block_orders(2, blocks, rng.next_u64());
        let mut pairs = Vec::with_capacity(blocks);
        for (block, order) in orders.iter().enumerate() {
            let mut values = [0.0; 2];
            for (place, &arm) in order.iter().enumerate() {
                let time = (2 * block + place) as f64 / (2 * blocks) as f64;
                let rho = self.correlation;
                own = rho * own + (1.0 - rho * rho).sqrt() * rng.normal();
                walk += self.walk * rng.normal();
                let gain = if arm == 1 { ratio.ln() } else { 0.0 };
                values[arm] = (gain + noise * (own + walk + self.trend * time)).exp();
            }
            pairs.push((values[0], values[1]));
        }
        pairs
    }
}
