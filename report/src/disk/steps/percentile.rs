//! Computes percentiles that enough operations support.

use hdrhistogram::Histogram;
use seekscope_run::LatencySummary;

/// Returns whether this many operations support that quantile. At least one must lie beyond it.
pub(in super::super) fn is_supported(count: u64, share: f64) -> bool {
    count as f64 * (1.0 - share) >= 1.0 - 1e-9
}

/// Returns the latency at a quantile, ns.
pub(in super::super) fn at_quantile(histogram: &Histogram<u64>, q: f64) -> Option<u64> {
    is_supported(histogram.len(), q).then(|| histogram.value_at_quantile(q))
}

/// Returns the median, ns.
pub(in super::super) fn p50_ns(latency: &LatencySummary) -> Option<u64> {
    is_supported(latency.count, 0.5).then_some(latency.p50_ns)
}

/// Returns the 99th percentile, ns.
pub(in super::super) fn p99_ns(latency: &LatencySummary) -> Option<u64> {
    is_supported(latency.count, 0.99).then_some(latency.p99_ns)
}

/// Returns the 99.9th percentile, ns.
pub(in super::super) fn p999_ns(latency: &LatencySummary) -> Option<u64> {
    is_supported(latency.count, 0.999).then_some(latency.p999_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_operations_beyond_them() {
        let latency = |count| LatencySummary {
            count,
            p50_ns: 1,
            p99_ns: 2,
            p999_ns: 3,
            ..LatencySummary::default()
        };
        let known = |count| {
            let latency = latency(count);
            (p50_ns(&latency), p99_ns(&latency), p999_ns(&latency))
        };
        assert_eq!(known(1), (None, None, None));
        assert_eq!(known(99), (Some(1), None, None));
        assert_eq!(known(100), (Some(1), Some(2), None));
        assert_eq!(known(999), (Some(1), Some(2), None));
        assert_eq!(known(1000), (Some(1), Some(2), Some(3)));
    }
}
