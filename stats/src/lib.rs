//! Pure functions on numbers: order statistics, statistics under noise, and the small seeded generator
//! that everything random in seekscope draws from.
//!
//! In a measurement whose seconds depend on one another, [`warm_up()`] finds where to begin counting,
//! [`steadiness()`] whether the measurement drifts, and [`batch_means()`] and [`block_bootstrap()`] how far a
//! figure may be off. Two runs are compared by [`Estimate`]s, several repetitions by [`log_ratio`] and
//! [`paired_log_ratio`] (with [`signed_rank()`] as a second opinion), and many comparisons at once by [`holm`].

mod autocorrelation;
mod batch_means;
mod block_bootstrap;
mod comparison;
mod estimate;
mod normal;
mod order;
mod paired;
mod random;
mod repetitions;
pub mod shuffled;
mod signed_rank;
#[cfg(test)]
mod simulation;
mod slope;
mod steadiness;
mod student_t;
mod warm_up;

pub use autocorrelation::lag1_correlation;
pub use batch_means::batch_means;
pub use block_bootstrap::block_bootstrap;
pub use comparison::{RatioComparison, holm, holm_adjusted};
pub use estimate::Estimate;
pub use normal::{normal_below, normal_density};
pub use order::{Quantiles, median, quantile_sorted};
pub use paired::{PairedRatio, paired_ratio};
pub use random::SplitMix64;
pub use repetitions::{log_ratio, paired_log_ratio};
pub use signed_rank::signed_rank;
pub use slope::median_slope;
pub use steadiness::{Steadiness, Verdict, steadiness};
pub use student_t::{t_critical, t_two_sided};
pub use warm_up::{WarmUp, warm_up};
