//! Noise for the tests, in which each value depends on the one before it (an autoregressive process of order
//! 1), as the seconds of a measurement do.

use crate::SplitMix64;

/// A source of noise with mean 0, variance 1 and correlation `rho` from one value to the next.
pub(crate) struct Noise {
    rng: SplitMix64,
    rho: f64,
    last: f64,
}

impl Noise {
    pub(crate) fn new(seed: u64, rho: f64) -> Self {
        let mut noise = Self {
            rng: SplitMix64::new(seed),
            rho,
            last: 0.0,
        };
        noise.last = noise.rng.normal();
        noise
    }

    pub(crate) fn draw(&mut self) -> f64 {
        self.last = self.rho * self.last + (1.0 - self.rho * self.rho).sqrt() * self.rng.normal();
        self.last
    }

    /// Returns a series around `mean`, whose standard deviation is the share `share` of it.
    pub(crate) fn series(seed: u64, rho: f64, n: usize, mean: f64, share: f64) -> Vec<f64> {
        let mut noise = Self::new(seed, rho);
        (0..n)
            .map(|_| mean * (1.0 + share * noise.draw()))
            .collect()
    }
}

/// Returns the share of `trials` in which something happens.
pub(crate) fn share_of(trials: u64, mut happens: impl FnMut(u64) -> bool) -> f64 {
    (0..trials).filter(|&seed| happens(seed)).count() as f64 / trials as f64
}
