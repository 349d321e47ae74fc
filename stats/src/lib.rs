//! Pure functions on numbers: order statistics, paired ratios with a bootstrap interval, and the
//! small seeded generator that everything random in seekscope draws from.

mod order;
mod paired;
mod random;
pub mod shuffled;

pub use order::{Quantiles, median, quantile_sorted};
pub use paired::{PairedRatio, paired_ratio};
pub use random::SplitMix64;
