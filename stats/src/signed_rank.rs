//! Wilcoxon's signed-rank test, which tests whether the middle of the differences is above zero. It assumes
//! nothing about their distribution but symmetry.

/// With fewer differences, the smallest p is above 3 %, so nothing can be concluded.
const DIFFERENCES_MIN: usize = 5;

/// Returns the one-sided, exact probability of a sum of positive ranks at least as large if each sign were a
/// coin toss (Wilcoxon, "Individual comparisons by ranking methods", Biometrics 1945). Zeros are left out, and
/// equal sizes share the mean of their ranks. Returns `None` for fewer than five differences that are not zero,
/// or if one is not a number. The time grows with the cube of their number, so it is meant for a few hundred.
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    let mut sizes: Vec<(f64, bool)> = (differences.iter().filter(|d| **d != 0.0))
        .map(|d| (d.abs(), *d > 0.0))
        .collect();
    if sizes.len() < DIFFERENCES_MIN || sizes.iter().any(|(size, _)| size.is_nan()) {
        return None;
    }
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Ranks are doubled, so that the mean of two is a whole number.
    let mut ranks = Vec::with_capacity(sizes.len());
    for equal in sizes.chunk_by(|a, b| a.0 == b.0) {
        let before = ranks.len();
        ranks.resize(before + equal.len(), 2 * before + equal.len() + 1);
    }
    let positive = sizes.iter().zip(&ranks).filter(|((_, up), _)| *up);
    let observed: usize = positive.map(|(_, rank)| rank).sum();
    // The probability of each sum, built up one coin at a time.
    let mut probability = vec![0.0; ranks.iter().sum::<usize>() + 1];
    probability[0] = 1.0;
    for &rank in &ranks {
        for sum in (0..probability.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| probability[rest]);
            probability[sum] = f64::midpoint(probability[sum], with);
        }
    }
    Some(probability[observed..].iter().sum::<f64>().min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        // All five positive: one case in 32. Published table for n = 8: P(sum <= 5) = 0.0391.
        assert_eq!(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(1.0 / 32.0));
        let p = signed_rank(&[1.0, -2.0, -3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        assert!((p - 10.0 / 256.0).abs() < 1e-12, "{p}");
        let opposite = signed_rank(&[-1.0, -2.0, -3.0, -4.0, -5.0]).unwrap();
        assert!((opposite - 1.0).abs() < 1e-12, "{opposite}");
    }

    #[test]
    fn equal_sizes_share_their_ranks_and_zeros_do_not_count() {
        // Ranks 1.5, 1.5, 3, 4, 5; of the 32 signs those without a 1.5 or none give 13.5 or more.
        let p = signed_rank(&[1.0, -1.0, 2.0, 3.0, 4.0, 0.0]).unwrap();
        assert!((p - 3.0 / 32.0).abs() < 1e-12, "{p}");
        assert_eq!(signed_rank(&[1.0, 2.0, 3.0, 4.0, 0.0]), None);
        assert_eq!(signed_rank(&[1.0, 2.0, 3.0, 4.0, f64::NAN]), None);
    }
}
