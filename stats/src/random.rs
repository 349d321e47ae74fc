//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). It is implemented
//! here because data sets are a pure function of a seed and must stay the same across releases of any library.

/// A 64-bit generator with 64 bits of state; not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// Creates a generator. Every seed is a good one, 0 included.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns the next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniform number in `0..n`, without modulo bias (Lemire 2019); 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the two halves of a 128-bit product"
            )]
            let (high, low) = ((product >> 64) as u64, product as u64);
            if low >= n || low >= n.wrapping_neg() % n.max(1) {
                return high;
            }
        }
    }

    /// Returns a uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a normally distributed number with mean 0 and variance 1 (Box and Muller, "A note on the
    /// generation of random normal deviates", 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit_f64()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First outputs for seed 1234567, from the reference implementation by S. Vigna.
    #[test]
    fn matches_the_published_vector() {
        let mut rng = SplitMix64::new(1_234_567);
        let expected: [u64; 5] = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected, std::array::from_fn(|_| rng.next_u64()));
    }

    #[test]
    fn below_is_uniform_and_bounded() {
        let mut rng = SplitMix64::new(7);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[usize::try_from(rng.below(6)).unwrap()] += 1;
        }
        // Five standard deviations of a binomial(60000, 1/6) are 456.
        assert!(
            counts.iter().all(|&c| c.abs_diff(10_000) < 460),
            "{counts:?}"
        );
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
    }
}
