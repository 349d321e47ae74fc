//! Between which values a quantile lies.

use crate::student_t::incomplete_beta;

/// Ranks (from 1) between which the quantile `q` of what `n` independent values were drawn from lies, in
/// at least `1 - alpha` of cases, whatever their distribution: the number of values below a quantile is
/// binomial (David and Nagaraja, "Order Statistics", section 7.1). `None` where `n` is too small for
/// that on either side. Latencies of one run are not quite independent, so this is the least width.
pub fn quantile_ranks(n: u64, q: f64, alpha: f64) -> Option<(u64, u64)> {
    if !(0.0 < q && q < 1.0) || n == 0 {
        return None;
    }
    // P(fewer than k values lie below the quantile) for k = 1..=n.
    let below = |k: u64| 1.0 - incomplete_beta(k as f64, (n - k + 1) as f64, q);
    // The largest lower rank with P(values below < low) <= alpha / 2.
    let low = last_where(n, |k| below(k) <= alpha / 2.0)?;
    // The smallest upper rank with P(values below >= high) <= alpha / 2.
    let high = last_where(n, |k| 1.0 - below(k) > alpha / 2.0).map_or(1, |k| k + 1);
    (high <= n).then_some((low, high))
}

/// The largest k of 1..=n for which something holds that holds up to there.
fn last_where(n: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut good, mut bad) = (0, n + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    (good > 0).then_some(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;
    use crate::simulation::share_of;

    /// Published for medians: n = 10 gives the 2nd and the 9th value, n = 20 the 6th and the 15th.
    #[test]
    fn ranks_of_medians_are_those_of_the_tables() {
        assert_eq!(quantile_ranks(10, 0.5, 0.05), Some((2, 9)));
        assert_eq!(quantile_ranks(20, 0.5, 0.05), Some((6, 15)));
        assert_eq!(quantile_ranks(5, 0.5, 0.05), None);
        assert_eq!(quantile_ranks(100, 0.99, 0.05), None);
        assert_eq!(quantile_ranks(0, 0.5, 0.05), None);
        assert_eq!(quantile_ranks(10, 1.0, 0.05), None);
    }

    #[test]
    fn the_quantile_lies_between_them() {
        let (n, q) = (1000, 0.99);
        let (low, high) = quantile_ranks(n, q, 0.05).unwrap();
        let share = share_of(1000, |seed| {
            let mut rng = SplitMix64::new(seed);
            let mut values: Vec<f64> = (0..n).map(|_| rng.unit_f64()).collect();
            values.sort_by(f64::total_cmp);
            let at = |rank: u64| values[usize::try_from(rank).unwrap() - 1];
            at(low) <= q && q <= at(high)
        });
        assert!((0.94..=0.985).contains(&share), "{share}");
        let (low, high) = quantile_ranks(100_000_000, 0.999, 0.05).unwrap();
        assert!(
            low < 99_900_000 && 99_900_000 < high && high - low < 2000,
            "{low} {high}"
        );
    }
}
