//! Order statistics.

use serde::{Deserialize, Serialize};

/// Returns the value at quantile `q` (0..=1) of an ascending slice, by nearest rank; `None` if it is empty.
pub fn quantile_sorted<T: Copy>(sorted: &[T], q: f64) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 <= rank <= len"
    )]
    let rank = (q.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
}

/// Returns the median of a slice in any order (the mean of the middle two); `None` if it is empty. NaN sorts
/// last.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

/// Exact quantiles of a set of whole numbers (ns, bytes or counts: the unit is the caller's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quantiles {
    pub count: u64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
    /// Rounded down.
    pub mean: u64,
}

impl Quantiles {
    /// Sorts `values` in place and reads off the quantiles; all are zero for an empty set.
    pub fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let at = |q| quantile_sorted(values, q).unwrap_or(0);
        let sum: u128 = values.iter().map(|&v| u128::from(v)).sum();
        let mean = sum.checked_div(values.len() as u128).unwrap_or(0);
        Self {
            count: values.len() as u64,
            min: at(0.0),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            mean: u64::try_from(mean).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let mut values: Vec<u64> = (1..=1000).rev().collect();
        let q = Quantiles::of(&mut values);
        assert_eq!(
            (q.min, q.p50, q.p90, q.p99, q.p999, q.max),
            (1, 500, 900, 990, 999, 1000)
        );
        assert_eq!((q.count, q.mean), (1000, 500));
        assert_eq!(Quantiles::of(&mut []), Quantiles::default());
        assert_eq!(Quantiles::of(&mut [7]).p999, 7);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
