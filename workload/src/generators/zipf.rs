//! Makes exact Zipf draws for any exponent from 0 on, including 1 and more, over a population that may grow:
//! rejection-inversion after Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
//! discrete distributions", ACM TOMACS 6(3), 1996. No table, and constant time per draw.

use seekscope_stats::SplitMix64;

use super::floor_u64;

/// Ranks from 0; rank r is drawn in proportion to (r + 1)^-theta.
#[derive(Debug, Clone)]
pub struct Zipf {
    theta: f64,
    population: u64,
    /// H(1.5) - 1 and H(n + 0.5), between which values are inverted.
    lower: f64,
    upper: f64,
    /// A draw closer than this to its rank is accepted without further checks.
    squeeze: f64,
}

impl Zipf {
    /// Creates a distribution; `theta` must be finite and not negative, and `population` at least 1;
    /// otherwise `None`.
    pub fn new(theta: f64, population: u64) -> Option<Self> {
        if !(theta.is_finite() && theta >= 0.0 && population > 0) {
            return None;
        }
        let mut zipf = Self {
            theta,
            population,
            lower: 0.0,
            upper: 0.0,
            squeeze: 0.0,
        };
        zipf.lower = zipf.integral(1.5) - 1.0;
        zipf.upper = zipf.integral(population as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - 2_f64.powf(-theta));
        Some(zipf)
    }

    pub fn population(&self) -> u64 {
        self.population
    }

    /// Returns a rank below `population`, which may have changed since the last draw.
    #[inline]
    pub fn draw_of(&mut self, population: u64, random: &mut SplitMix64) -> u64 {
        if population != self.population {
            self.population = population.max(1);
            self.upper = self.integral(self.population as f64 + 0.5);
        }
        self.draw(random)
    }

    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> u64 {
        if self.theta == 0.0 {
            return random.below(self.population);
        }
        loop {
            let u = self.upper + random.unit_f64() * (self.lower - self.upper);
            let x = self.inverse(u);
            let rank = floor_u64(x + 0.5).clamp(1, self.population);
            let nearest = rank as f64;
            if nearest - x <= self.squeeze
                || u >= self.integral(nearest + 0.5) - nearest.powf(-self.theta)
            {
                return rank - 1;
            }
        }
    }

    /// Returns H(x): the integral of t^-theta from 1 to x, in a form that is accurate near theta = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.theta) * log;
        if scaled.abs() < 1e-8 {
            log * (1.0 + scaled / 2.0)
        } else {
            log * scaled.exp_m1() / scaled
        }
    }

    /// Returns the x whose H(x) is `y`.
    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        // Rounding must not leave the logarithm's domain.
        let scaled = (y * (1.0 - self.theta)).max(-1.0);
        if scaled.abs() < 1e-8 {
            (y * (1.0 - scaled / 2.0)).exp()
        } else {
            (y * scaled.ln_1p() / scaled).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 400_000;

    /// Returns the chi-square of all ranks against the closed form, in its normal approximation.
    fn deviations(theta: f64, population: u64, seed: u64) -> f64 {
        let zipf = Zipf::new(theta, population).unwrap();
        let mut random = SplitMix64::new(seed);
        let mut counts = vec![0_u32; usize::try_from(population).unwrap()];
        for _ in 0..DRAWS {
            counts[usize::try_from(zipf.draw(&mut random)).unwrap()] += 1;
        }
        let weights: Vec<f64> = (1..=population).map(|r| (r as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        let (mut statistic, mut cells) = (0.0, 0.0);
        let (mut rare_expected, mut rare_seen) = (0.0, 0.0);
        for (&seen, weight) in counts.iter().zip(&weights) {
            let expected = weight / total * f64::from(DRAWS);
            if expected < 10.0 {
                rare_expected += expected;
                rare_seen += f64::from(seen);
            } else {
                statistic += (f64::from(seen) - expected).powi(2) / expected;
                cells += 1.0;
            }
        }
        if rare_expected > 0.0 {
            statistic += (rare_seen - rare_expected).powi(2) / rare_expected;
            cells += 1.0;
        }
        let freedom: f64 = cells - 1.0;
        (statistic - freedom) / (2.0 * freedom.max(1.0)).sqrt()
    }

    #[test]
    fn follows_the_closed_form_for_all_exponents() {
        for theta in [0.0, 0.3, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.2, 2.0, 5.0] {
            for population in [2, 10, 1_000] {
                let off = deviations(theta, population, 11);
                assert!(off < 5.0, "theta {theta}, {population}: {off}");
            }
        }
    }

    #[test]
    fn holds_at_the_edges() {
        let mut random = SplitMix64::new(2);
        for theta in [0.0, 0.99, 1.0, 3.0, 1e6] {
            for population in [1, 2, 1 << 40, u64::MAX] {
                let zipf = Zipf::new(theta, population).unwrap();
                for _ in 0..1_000 {
                    assert!(zipf.draw(&mut random) < population);
                }
            }
        }
        assert!(Zipf::new(-0.1, 5).is_none());
        assert!(Zipf::new(f64::NAN, 5).is_none());
        assert!(Zipf::new(1.0, 0).is_none());
    }

    #[test]
    fn grows_as_if_made_anew() {
        let mut grown = Zipf::new(0.99, 10).unwrap();
        let anew = Zipf::new(0.99, 5_000).unwrap();
        let (mut first, mut second) = (SplitMix64::new(4), SplitMix64::new(4));
        for _ in 0..1_000 {
            assert_eq!(grown.draw_of(5_000, &mut first), anew.draw(&mut second));
        }
    }
}
