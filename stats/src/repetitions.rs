//! The comparison of two variants over repetitions of the whole measurement, which is the one that holds on a
//! noisy machine.
//!
//! It works on the logarithmic scale, so that differences are ratios. With the handful of repetitions that are
//! usually available, intervals of the percentile bootstrap miss the truth in 8 to 11 % of cases instead of 5;
//! bootstrap-t (Efron, "Nonparametric standard errors and confidence intervals", Canadian Journal of Statistics
//! 1981; Hall, "Theoretical comparison of bootstrap confidence intervals", Annals of Statistics 1988) needs
//! about eight; Student's t holds from two upwards.

use crate::Estimate;

/// Returns ln(b / a) of repetitions that were not taken in pairs, by Welch's t on logarithms. Returns `None` if
/// either side has fewer than two values, or if a value is not positive.
pub fn log_ratio(a: &[f64], b: &[f64]) -> Option<Estimate> {
    Some(Estimate::of_mean(&logarithms(b)?)?.minus(&Estimate::of_mean(&logarithms(a)?)?))
}

/// Returns ln(b / a) of interleaved pairs (a, b), as in ABBA order, so that what the machine did to both
/// cancels out. Returns `None` for fewer than two pairs, or if a value is not positive.
pub fn paired_log_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (a, b) = (logarithms(&a)?, logarithms(&b)?);
    let ratios: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
    Estimate::of_mean(&ratios)
}

fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let positive = |v: &f64| *v > 0.0 && v.is_finite();
    (values.iter().all(positive)).then(|| values.iter().map(|v| v.ln()).collect())
}
