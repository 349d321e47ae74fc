//! Latency distributions: the part of a histogram that is kept in `run.json`.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The longest latency that is distinguished from longer ones: an hour.
pub const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Returns an empty histogram of latencies in ns with three significant digits (values are kept to better than
/// 0.1 %). It takes 260 KiB; latencies longer than [`LATENCY_NS_MAX`] must be recorded saturating.
pub fn latency_histogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("constant bounds that the library accepts"),
    }
}

/// Reads latencies that may be absent: `None` if there were none, for which earlier versions wrote zeros.
pub fn latency_of_any<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<LatencySummary>, D::Error> {
    let latency = Option::<LatencySummary>::deserialize(source)?;
    Ok(latency.filter(|latency| latency.count > 0))
}

/// Summary of a set of latencies, ns; all values are zero if the set is empty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct LatencySummary {
    /// Number of latencies.
    pub count: u64,
    pub min_ns: u64,
    pub mean_ns: f64,
    pub p50_ns: u64,
    pub p90_ns: u64,
    pub p99_ns: u64,
    pub p999_ns: u64,
    pub max_ns: u64,
}

impl LatencySummary {
    /// Returns the quantiles; `None` for an empty histogram.
    pub fn of_any(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self::of(histogram))
    }

    /// Reads the quantiles off a histogram of ns.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        Self {
            count: histogram.len(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}
