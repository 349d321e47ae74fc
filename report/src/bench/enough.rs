//! Tells how many repetitions a comparison takes before it can show anything.

use seekscope_stats::Estimate;

/// A comparison that would have missed a difference this large (a factor of two) says nothing.
pub(super) const COARSE: f64 = 1.0;
/// The figures of one workload that two servers are compared by, about.
pub const FIGURES_OF_A_WORKLOAD: usize = 12;
/// How much the ratios of single pairs vary on a quiet host: the standard deviation of their logarithms.
const SPREAD: f64 = 0.1;
/// Probability of a difference that is not there, in all figures together.
const ALPHA: f64 = 0.05;
const PAIRS_MAX: u32 = 1_000;

/// Returns the fewest pairs of runs that vary little in which a difference of a factor of two would be detected in four
/// cases of five, where so many figures are compared at once.
pub fn pairs_needed(figures: usize) -> u64 {
    let strictest = ALPHA / figures.max(1) as f64;
    let detects = |pairs: &u32| {
        let pairs = f64::from(*pairs);
        let usual = Estimate {
            value: 0.0,
            standard_error: SPREAD / pairs.sqrt(),
            degrees_of_freedom: pairs - 1.0,
        };
        usual.detectable(strictest).exp_m1() <= COARSE
    };
    (2..=PAIRS_MAX).find(detects).unwrap_or(PAIRS_MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_figures_take_more_pairs() {
        let needed = [1, FIGURES_OF_A_WORKLOAD, 200].map(pairs_needed);
        assert_eq!(needed[..2], [3, 4]);
        assert!(needed[2] > 4, "{needed:?}");
        assert_eq!(pairs_needed(0), pairs_needed(1));
    }
}
