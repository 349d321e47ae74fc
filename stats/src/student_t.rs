//! Student's t distribution.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the probability of a value beyond `t` in either direction, with this many degrees of freedom (not
/// necessarily a whole number; at least a hundredth).
pub fn t_two_sided(t: f64, degrees_of_freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, degrees_of_freedom.max(0.01)) {
        // NaN would cause a panic there.
        Ok(distribution) if !t.is_nan() => 2.0 * distribution.sf(t.abs()),
        _ => f64::NAN,
    }
}

/// Returns the value that is exceeded in either direction with probability `alpha` (strictly between 0 and 1).
///
/// Found by bisection: `StudentsT::inverse_cdf` never returns for a hundredth of a degree of freedom.
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
    fn what_is_no_number_stays_none() {
        assert!(t_two_sided(f64::NAN, 3.0).is_nan());
        assert!((t_two_sided(f64::INFINITY, 3.0)).abs() < f64::MIN_POSITIVE);
        assert!((t_two_sided(-1.0, 1.0) - 0.5).abs() < 1e-12);
        assert!(t_critical(0.5, 0.01).is_finite());
    }
}
