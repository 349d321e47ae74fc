//! The normal distribution.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// Returns the density at `z` standard deviations.
pub fn normal_density(z: f64) -> f64 {
    Normal::standard().pdf(z)
}

/// Returns the probability of a value below `z` standard deviations.
pub fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with published tables.
    #[test]
    fn probabilities_are_those_of_the_tables() {
        let table = [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (1.959_963_984_540_054, 0.975),
            (-3.0, 1.349_898_031_630_095e-3),
            (-6.0, 9.865_876_450_376_98e-10),
            (-8.0, 6.220_960_574_271_78e-16),
        ];
        for (z, expected) in table {
            let found = normal_below(z);
            assert!((found / expected - 1.0).abs() < 1e-9, "{z}: {found}");
        }
        assert!(normal_below(f64::NEG_INFINITY) < f64::MIN_POSITIVE);
        assert!((normal_density(0.0) - 0.398_942_280_401_433).abs() < 1e-14);
    }
}
