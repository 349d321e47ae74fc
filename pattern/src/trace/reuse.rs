//! Re-use distances: how much else is read between two reads of the same page.

use serde::{Deserialize, Serialize};

/// How much else was read between two reads of the same 4 KiB page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReuseDistances {
    /// Share of pages that was followed, a power of two; 1 means the distances are exact.
    pub sampling_rate: f64,
    /// Page references, estimated from the sample.
    pub references: u64,
    /// Of these, first ones: no cache could have had them.
    pub first_references: u64,
    /// Other references by distance: different bytes read since the page was last read, itself
    /// included; ascending.
    pub distances: Vec<DistanceCount>,
}

/// References whose distance is at most `distance_bytes` and above the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DistanceCount {
    pub distance_bytes: u64,
    pub references: u64,
}

impl ReuseDistances {
    /// Share of page references that an LRU cache of `cache_bytes` would miss, 0..=1; `None`
    /// without references.
    pub fn miss_ratio(&self, cache_bytes: u64) -> Option<f64> {
        let hits: u64 = self
            .distances
            .iter()
            .take_while(|d| d.distance_bytes <= cache_bytes)
            .map(|d| d.references)
            .sum();
        (self.references > 0).then(|| 1.0 - hits as f64 / self.references as f64)
    }
}
