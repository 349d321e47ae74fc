//! Draws numbers from a distribution.

use seekscope_stats::SplitMix64;

use crate::generators::{Weighted, Zipf};
use crate::own::language::{Bucket, Distribution, Limits};

/// A distribution, ready to draw from.
#[derive(Debug)]
pub(crate) enum DrawnNumber {
    Constant(f64),
    Uniform(f64, f64),
    Normal {
        mean: f64,
        deviation: f64,
        min: f64,
        max: f64,
    },
    Exponential {
        mean: f64,
        min: f64,
        max: f64,
    },
    Zipf {
        from: f64,
        zipf: Zipf,
    },
    Histogram {
        places: Weighted<usize>,
        buckets: Vec<Bucket>,
    },
}

/// Unlimited normal draws stay within this many deviations (10^-15 of them would not).
const DEVIATIONS_MAX: f64 = 8.0;
/// Unlimited exponential draws stay below this many means (10^-15 of them would not).
const MEANS_MAX: f64 = 35.0;

impl DrawnNumber {
    /// Creates the distribution; `None` for what parsing rejects anyway.
    pub(crate) fn new(distribution: &Distribution) -> Option<Self> {
        Some(match distribution {
            Distribution::Constant(value) => Self::Constant(*value),
            Distribution::Uniform { low, high } => Self::Uniform(*low, *high),
            Distribution::Normal {
                mean,
                deviation,
                limits,
            } => {
                let far = DEVIATIONS_MAX * deviation;
                let (min, max) = within(*limits, mean - far, mean + far);
                Self::Normal {
                    mean: *mean,
                    deviation: *deviation,
                    min,
                    max,
                }
            }
            Distribution::Exponential { mean, limits } => {
                let (min, max) = within(*limits, 0.0, mean * MEANS_MAX);
                Self::Exponential {
                    mean: *mean,
                    min,
                    max,
                }
            }
            Distribution::Zipf { from, to, theta } => {
                let zipf = Zipf::new(*theta, (to - from).saturating_add(1))?;
                Self::Zipf {
                    from: *from as f64,
                    zipf,
                }
            }
            Distribution::Histogram(buckets) => {
                let weights: Vec<_> = buckets.iter().map(|b| b.2).enumerate().collect();
                Self::Histogram {
                    places: Weighted::new(&weights)?,
                    buckets: buckets.clone(),
                }
            }
        })
    }

    /// Returns the lowest and highest number that can be drawn.
    pub(crate) fn range(&self) -> (f64, f64) {
        match self {
            Self::Constant(value) => (*value, *value),
            Self::Uniform(low, high) => (*low, *high),
            Self::Normal { min, max, .. } | Self::Exponential { min, max, .. } => (*min, *max),
            Self::Zipf { from, zipf } => (*from, from + zipf.population() as f64 - 1.0),
            Self::Histogram { buckets, .. } => {
                let low = buckets.iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
                (
                    low,
                    buckets
                        .iter()
                        .map(|b| b.1)
                        .fold(f64::NEG_INFINITY, f64::max),
                )
            }
        }
    }

    pub(crate) fn real(&self, random: &mut SplitMix64) -> f64 {
        match self {
            Self::Uniform(low, high) => low + (high - low) * random.unit_f64(),
            Self::Histogram { places, buckets } => {
                let Bucket(low, high, _) = buckets[places.draw(random)];
                low + (high - low) * random.unit_f64()
            }
            other => other.drawn(random),
        }
    }

    /// Draws a rounded number; both ends of a range are as likely as those between.
    pub(crate) fn whole(&self, random: &mut SplitMix64) -> i64 {
        match self {
            Self::Uniform(low, high) => whole_between(*low, *high, random),
            Self::Histogram { places, buckets } => {
                let Bucket(low, high, _) = buckets[places.draw(random)];
                whole_between(low, high, random)
            }
            other => rounded(other.drawn(random)),
        }
    }

    /// Draws a length: negative numbers become 0.
    pub(crate) fn count(&self, random: &mut SplitMix64) -> usize {
        usize::try_from(self.whole(random)).unwrap_or(0)
    }

    /// Returns the greatest length.
    pub(crate) fn count_max(&self) -> u64 {
        u64::try_from(rounded(self.range().1)).unwrap_or(0)
    }

    fn drawn(&self, random: &mut SplitMix64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Normal {
                mean,
                deviation,
                min,
                max,
            } => (mean + deviation * standard_normal(random)).clamp(*min, *max),
            Self::Exponential { mean, min, max } => {
                // 1 - u is never 0.
                (-mean * (1.0 - random.unit_f64()).ln()).clamp(*min, *max)
            }
            Self::Zipf { from, zipf } => from + zipf.draw(random) as f64,
            Self::Uniform(low, _) => *low,
            Self::Histogram { buckets, .. } => buckets[0].0,
        }
    }
}

/// Draws by Box and Muller, "A note on the generation of random normal deviates", 1958.
pub(crate) fn standard_normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit_f64()).cos()
}

fn within(limits: Limits, low: f64, high: f64) -> (f64, f64) {
    let min = limits.min.unwrap_or(low.min(limits.max.unwrap_or(low)));
    let max = limits.max.unwrap_or(high.max(min));
    (min, max)
}

fn whole_between(low: f64, high: f64, random: &mut SplitMix64) -> i64 {
    let (low, high) = (rounded(low), rounded(high));
    let span = high.abs_diff(low).saturating_add(1);
    low.wrapping_add_unsigned(random.below(span))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is meant"
)]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}
