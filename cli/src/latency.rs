//! Latencies as they appear in the documents of `--json`.

use schemars::JsonSchema;
use seekscope_run::LatencySummary;
use seekscope_stats::Quantiles;
use serde::Serialize;

/// Latencies, µs; null where too few operations were timed: a percentile needs at least one operation beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatencyUs {
    mean: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

impl LatencyUs {
    /// Converts latencies; `None` if there were no operations.
    pub fn of_any(latencies: Quantiles) -> Option<Self> {
        (latencies.count > 0).then(|| Self::from(latencies))
    }
}

impl From<LatencySummary> for LatencyUs {
    fn from(latency: LatencySummary) -> Self {
        let us = |ns: u64| ns as f64 / 1e3;
        let of = |count_min: u64, us: f64| (latency.count >= count_min).then_some(us);
        Self {
            mean: of(1, latency.mean_ns / 1e3),
            p50: of(1, us(latency.p50_ns)),
            p90: of(10, us(latency.p90_ns)),
            p99: of(100, us(latency.p99_ns)),
            p999: of(1000, us(latency.p999_ns)),
            max: of(1, us(latency.max_ns)),
        }
    }
}

impl From<Quantiles> for LatencyUs {
    fn from(ns: Quantiles) -> Self {
        Self::from(LatencySummary {
            count: ns.count,
            min_ns: ns.min,
            mean_ns: ns.mean as f64,
            p50_ns: ns.p50,
            p90_ns: ns.p90,
            p99_ns: ns.p99,
            p999_ns: ns.p999,
            max_ns: ns.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_too_few_operations_tell_is_null() {
        let of = |count: u64| {
            let values: Vec<u64> = (1..=count).map(|n| n * 1000).collect();
            LatencyUs::from(Quantiles::of(&mut values.clone()))
        };
        assert_eq!(LatencyUs::of_any(Quantiles::default()), None);
        let none = of(0);
        assert_eq!((none.mean, none.p50, none.max), (None, None, None));
        let few = of(99);
        assert_eq!((few.p50, few.p99, few.max), (Some(50.0), None, Some(99.0)));
        let many = of(1000);
        assert!(many.p99.is_some() && many.p999.is_some());
        let json = serde_json::to_value(of(1)).unwrap();
        assert_eq!(json["p90"], serde_json::Value::Null);
    }
}
