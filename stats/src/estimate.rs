//! A value with its standard error, the common type of means, bootstraps and comparisons.

use serde::{Deserialize, Serialize};

use crate::student_t::{t_critical, t_two_sided};

/// A value, how far it is likely to be off, and how well that is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub standard_error: f64,
    pub degrees_of_freedom: f64,
}

impl Estimate {
    /// Returns the mean of independent values, such as those of repetitions; `None` for fewer than two.
    pub fn of_mean(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some(Self {
            value: mean,
            standard_error: (variance / n).sqrt(),
            degrees_of_freedom: n - 1.0,
        })
    }

    /// Returns this estimate less another, independent one, with degrees of freedom by Welch and Satterthwaite
    /// (Welch, "The generalization of Student's problem", Biometrika 1947).
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let (a, b) = (self.standard_error.powi(2), other.standard_error.powi(2));
        let spread = a * a / self.degrees_of_freedom + b * b / other.degrees_of_freedom;
        Self {
            value: self.value - other.value,
            standard_error: (a + b).sqrt(),
            degrees_of_freedom: if spread > 0.0 {
                (a + b).powi(2) / spread
            } else {
                self.degrees_of_freedom.min(other.degrees_of_freedom)
            },
        }
    }

    /// Returns this estimate with a standard error of at least `error`: for values that may agree because they are
    /// only known to a unit.
    #[must_use]
    pub fn no_surer_than(self, error: f64) -> Self {
        Self {
            standard_error: self.standard_error.max(error),
            ..self
        }
    }

    /// Returns the interval that misses the truth with probability `alpha`.
    pub fn interval(&self, alpha: f64) -> (f64, f64) {
        let margin = t_critical(alpha, self.degrees_of_freedom) * self.standard_error;
        (self.value - margin, self.value + margin)
    }

    /// Returns the probability of a value at least this far from zero if the truth is zero.
    pub fn p_of_zero(&self) -> f64 {
        if self.standard_error <= 0.0 {
            return if self.value == 0.0 { 1.0 } else { 0.0 };
        }
        t_two_sided(self.value / self.standard_error, self.degrees_of_freedom)
    }

    /// Returns the probability of a value at least this high if the truth is zero (one-sided).
    pub fn p_of_no_gain(&self) -> f64 {
        let half = self.p_of_zero() / 2.0;
        if self.value > 0.0 { half } else { 1.0 - half }
    }

    /// Returns the smallest distance from zero that would have been noticed at `alpha` in four cases of five
    /// (power 80 %).
    pub fn detectable(&self, alpha: f64) -> f64 {
        let noticed = t_critical(alpha, self.degrees_of_freedom);
        // One-sided 80 % is two-sided 60 %.
        (noticed + t_critical(0.4, self.degrees_of_freedom)) * self.standard_error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked by hand: means 20 and 22, variances 2.5 and 2.5, five values each.
    #[test]
    fn welch_on_a_worked_example() {
        let a = Estimate::of_mean(&[18.0, 19.0, 20.0, 21.0, 22.0]).unwrap();
        let b = Estimate::of_mean(&[20.0, 21.0, 22.0, 23.0, 24.0]).unwrap();
        let difference = b.minus(&a);
        assert!((difference.value - 2.0).abs() < 1e-12);
        assert!((difference.standard_error - 1.0).abs() < 1e-12);
        assert!((difference.degrees_of_freedom - 8.0).abs() < 1e-9);
        assert!((difference.p_of_zero() - 0.080_516).abs() < 1e-5);
        assert!((difference.p_of_no_gain() - 0.040_258).abs() < 1e-5);
        assert!((a.minus(&b).p_of_no_gain() - 0.959_742).abs() < 1e-5);
        let (low, high) = difference.interval(0.05);
        assert!((low + 0.306).abs() < 1e-3 && (high - 4.306).abs() < 1e-3);
        assert!(Estimate::of_mean(&[1.0]).is_none());
    }

    #[test]
    fn an_estimate_is_no_surer_than_its_values() {
        let estimate = Estimate::of_mean(&[5.0, 5.0]).unwrap();
        let floored = estimate.no_surer_than(0.5);
        assert!((floored.standard_error - 0.5).abs() < f64::EPSILON);
        let spread = Estimate::of_mean(&[1.0, 9.0]).unwrap();
        assert_eq!(spread.no_surer_than(0.5), spread);
    }

    #[test]
    fn without_spread_any_difference_is_certain() {
        let same = Estimate::of_mean(&[5.0, 5.0, 5.0]).unwrap();
        let other = Estimate::of_mean(&[6.0, 6.0]).unwrap();
        assert!((same.minus(&same).p_of_zero() - 1.0).abs() < f64::EPSILON);
        assert!(other.minus(&same).p_of_zero() < f64::EPSILON);
    }
}
