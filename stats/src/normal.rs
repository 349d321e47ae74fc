//! The normal distribution.

/// The density at `z` standard deviations.
pub fn normal_density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt()
}

/// The probability of a value below `z` standard deviations, within 1e-15 (Hart's rational approximation,
/// "Computer Approximations", 1968, algorithm 5666; beyond 7 a continued fraction, to 7 digits).
pub fn normal_below(z: f64) -> f64 {
    const UPPER: [f64; 7] = [
        3.526_249_659_989_11e-2,
        0.700_383_064_443_688,
        6.373_962_203_531_65,
        33.912_866_078_383,
        112.079_291_497_871,
        221.213_596_169_931,
        220.206_867_912_376,
    ];
    const LOWER: [f64; 8] = [
        8.838_834_764_831_84e-2,
        1.755_667_163_182_64,
        16.064_177_579_207,
        86.780_732_202_946_1,
        296.564_248_779_674,
        637.333_633_378_831,
        793.826_512_519_948,
        440.413_735_824_752,
    ];
    let x = z.abs();
    let polynomial = |terms: &[f64]| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = if x > 37.0 {
        0.0
    } else if x < 7.0 {
        (-0.5 * x * x).exp() * polynomial(&UPPER) / polynomial(&LOWER)
    } else {
        normal_density(x) / (x + 1.0 / (x + 2.0 / (x + 3.0 / (x + 4.0 / (x + 0.65)))))
    };
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published tables.
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
            // The continued fraction is cut off.
            let error_max = if z < -7.0 { 1e-7 } else { 1e-9 };
            assert!((found / expected - 1.0).abs() < error_max, "{z}: {found}");
        }
        assert!(normal_below(f64::NEG_INFINITY) < f64::MIN_POSITIVE);
        assert!((normal_density(0.0) - 0.398_942_280_401_433).abs() < 1e-14);
    }
}
