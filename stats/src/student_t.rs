//! Student's t distribution, and the incomplete beta function that it and the binomial distribution are
//! made of.

/// Coefficients of Lanczos' approximation of the gamma function (g = 7, n = 9), 15 digits.
const LANCZOS: [f64; 9] = [
    0.999_999_999_999_809_9,
    676.520_368_121_885_1,
    -1_259.139_216_722_402_8,
    771.323_428_777_653_1,
    -176.615_029_162_140_6,
    12.507_343_278_686_905,
    -0.138_571_095_265_720_12,
    9.984_369_578_019_572e-6,
    1.505_632_735_149_311_6e-7,
];
/// The continued fraction needs some `sqrt(max(a, b))` terms.
const TERMS_MAX: usize = 10_000;
const TINY: f64 = 1e-300;

/// ln Γ(x) for x > 0.
fn ln_gamma(x: f64) -> f64 {
    let x = x - 1.0;
    let t = x + 7.5;
    let terms = LANCZOS.iter().enumerate().skip(1);
    let sum = terms.fold(LANCZOS[0], |sum, (i, c)| sum + c / (x + i as f64));
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (DLMF 8.17.22).
pub(crate) fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // It converges fast on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = a * x.ln() + b * (1.0 - x).ln() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..TERMS_MAX {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            step = c * d;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front.exp() * fraction / a
}

/// The probability of a value beyond `t` in either direction, with so many degrees of freedom (not
/// necessarily a whole number; at least a hundredth).
pub fn t_two_sided(t: f64, degrees_of_freedom: f64) -> f64 {
    let dof = degrees_of_freedom.max(0.01);
    incomplete_beta(dof / 2.0, 0.5, dof / (dof + t * t))
}

/// The value that is exceeded in either direction with probability `alpha` (0 to 1, neither of them).
pub fn t_critical(alpha: f64, degrees_of_freedom: f64) -> f64 {
    let alpha = alpha.clamp(1e-12, 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided(high, degrees_of_freedom) > alpha && high < 1e12 {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if t_two_sided(middle, degrees_of_freedom) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published tables of the t distribution, two-sided.
    #[test]
    fn critical_values_are_those_of_the_tables() {
        let table = [
            (0.05, 1.0, 12.706_205),
            (0.05, 2.0, 4.302_653),
            (0.05, 3.0, 3.182_446),
            (0.05, 10.0, 2.228_139),
            (0.05, 30.0, 2.042_272),
            (0.01, 5.0, 4.032_143),
            (0.05, 1e6, 1.959_966),
        ];
        for (alpha, dof, expected) in table {
            let t = t_critical(alpha, dof);
            assert!((t - expected).abs() < 2e-6 * expected, "{alpha} {dof}: {t}");
            assert!((t_two_sided(t, dof) - alpha).abs() < 1e-9);
        }
    }

    #[test]
    fn the_incomplete_beta_function_has_its_closed_forms() {
        // I_x(1, b) = 1 - (1-x)^b, I_x(a, 1) = x^a.
        assert!((incomplete_beta(1.0, 3.0, 0.3) - (1.0 - 0.7f64.powi(3))).abs() < 1e-12);
        assert!((incomplete_beta(4.0, 1.0, 0.9) - 0.9f64.powi(4)).abs() < 1e-12);
        let large = incomplete_beta(5e6, 5e6, 0.5);
        assert!((large - 0.5).abs() < 1e-6, "{large}");
    }
}
