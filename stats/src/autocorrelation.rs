//! How much each value of a series depends on the one before it.

/// The strongest correlation taken into account: beyond it, a series says nothing about its own noise.
pub(crate) const RHO_MAX: f64 = 0.95;

/// Returns the correlation of each value with the next, from 0 (none, or the values alternate) to 0.95. It is
/// corrected for the bias of short series (Marriott and Pope, "Bias in the estimation of autocorrelations",
/// Biometrika 1954), without which the intervals of short runs would be too narrow.
pub fn lag1_correlation(series: &[f64]) -> f64 {
    let n = series.len() as f64;
    if series.len() < 3 {
        return 0.0;
    }
    let mean = series.iter().sum::<f64>() / n;
    let squares: f64 = series.iter().map(|v| (v - mean).powi(2)).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let products: f64 = series
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    let rho = products / squares;
    (rho + (1.0 + 3.0 * rho) / n).clamp(0.0, RHO_MAX)
}

/// Returns the factor by which the correlation `rho` between successive values increases the variance of a
/// mean: (1 + ρ) / (1 − ρ), for an autoregressive process of order 1.
pub(crate) fn variance_inflation(rho: f64) -> f64 {
    (1.0 + rho) / (1.0 - rho)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::Noise;

    #[test]
    fn a_known_correlation_is_found() {
        for rho in [0.0, 0.5, 0.8] {
            let mean = (0..200)
                .map(|seed| lag1_correlation(&Noise::series(seed, rho, 100, 10.0, 0.1)))
                .sum::<f64>()
                / 200.0;
            assert!((mean - rho).abs() < 0.06, "{rho}: {mean}");
        }
        assert!(lag1_correlation(&[1.0, 1.0, 1.0]).abs() < f64::EPSILON);
        assert!(lag1_correlation(&[]).abs() < f64::EPSILON);
    }
}
