//! Makes the random draws of workloads: hashes, random numbers, key choosers, values.
//!
//! Some follow other benchmarks to the bit, defects included, so that results can be compared with theirs
//! ([`fnv`], [`java`], [`zipfian_gray`], [`printable`], [`integrity`]); others are correct counterparts
//! ([`zipf`], [`permutation`], [`compressible`]). None allocates per draw.
//!
//! All draw from [`seekscope_stats::SplitMix64`], except where a data set is defined by Java's own
//! generator.

pub mod acknowledged;
pub mod compressible;
pub mod fnv;
pub mod integrity;
pub mod java;
pub mod length;
pub mod permutation;
pub mod printable;
#[cfg(test)]
mod share_tests;
pub mod simple;
pub mod zipf;
pub mod zipfian_gray;

pub use acknowledged::AcknowledgedCounter;
pub use compressible::Compressible;
pub use fnv::{ByteOrder, fnv1a_64_abs};
pub use java::JavaRandom;
pub use length::LengthDistribution;
pub use permutation::Permutation;
pub use simple::{Exponential, Hotspot, Weighted};
pub use zipf::Zipf;
pub use zipfian_gray::{ScrambledZipfian, ZipfianGray};

use crate::sdu::mixed;

/// Returns the seed of an independent stream of random numbers: a function of all parts in order.
pub fn stream_seed(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |seed, &part| mixed(seed ^ part))
}

/// Converts a non-negative `f64` to an integer, rounding down; values beyond 64 bits become the largest.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, which is meant"
)]
#[inline]
pub(crate) fn floor_u64(value: f64) -> u64 {
    value as u64
}
