//! Chooses records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seekscope_stats::SplitMix64;

use super::language::Keys;
use super::values::standard_normal;
use crate::generators::{Hotspot, Permutation, Zipf, floor_u64};

/// Chooses record numbers.
#[derive(Debug, Clone)]
pub(crate) enum Chooser {
    Uniform,
    Sequential(Arc<AtomicU64>),
    /// The previous step's choice.
    Same,
    /// Zipf over the initial records; a permutation decides where the hot ones are.
    Zipf(Zipf, Permutation),
    Latest(Zipf),
    Hotspot(Hotspot),
    Normal {
        mean: f64,
        deviation: f64,
    },
}

impl Chooser {
    /// Creates the choice; `records` is the initial number. `None` for what parsing rejects anyway.
    pub(crate) fn new(keys: Keys, records: u64, seed: u64) -> Option<Self> {
        let records = records.max(1);
        Some(match keys {
            Keys::Uniform => Self::Uniform,
            Keys::Sequential => Self::Sequential(Arc::default()),
            Keys::Same => Self::Same,
            Keys::Zipf { theta } => {
                Self::Zipf(Zipf::new(theta, records)?, Permutation::new(records, seed))
            }
            Keys::Latest { theta } => Self::Latest(Zipf::new(theta, records)?),
            Keys::Hotspot { data, operations } => {
                Self::Hotspot(Hotspot::new(records, data, operations))
            }
            Keys::Normal { mean, deviation } => Self::Normal { mean, deviation },
        })
    }

    /// Returns a record below `records`, which may have grown; 0 if there are none.
    pub(crate) fn choose(&self, random: &mut SplitMix64, records: u64) -> u64 {
        let last = records.saturating_sub(1);
        match self {
            Self::Uniform | Self::Same => random.below(records),
            Self::Sequential(next) => next.fetch_add(1, Ordering::Relaxed) % records.max(1),
            Self::Zipf(zipf, permutation) => permutation.apply(zipf.draw(random)).min(last),
            Self::Latest(zipf) => last.saturating_sub(zipf.draw(random)),
            Self::Hotspot(hotspot) => hotspot.draw(random).min(last),
            Self::Normal { mean, deviation } => {
                let place = mean + deviation * standard_normal(random);
                floor_u64(place.clamp(0.0, 1.0) * records as f64).min(last)
            }
        }
    }
}
