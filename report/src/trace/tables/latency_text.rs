//! Formats latencies: "at least" where they were cut off.

use seekscope_pattern::TraceAnalysis;
use seekscope_run::CUT_OFF_LATENCY_NS;
use seekscope_run::units::format_ns;
use seekscope_stats::Quantiles;

use super::NONE;
use crate::table::Cell;

/// Quantiles of many values are within 0.8 %, so a cut-off latency may be slightly below the limit.
const NEAR: f64 = 0.99;

/// How latencies of a trace are shown. Records of earlier versions ended at 4.29 s; a value that reaches that
/// is a lower bound, if such records are among the events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LatencyText {
    cut_off: bool,
}

impl LatencyText {
    pub(crate) fn of(analysis: &TraceAnalysis) -> Self {
        Self {
            cut_off: analysis.latencies_cut_off > 0,
        }
    }

    pub(crate) fn text(self, ns: u64) -> String {
        if self.cut_off && ns as f64 >= CUT_OFF_LATENCY_NS as f64 * NEAR {
            format!("at least {}", format_ns(ns))
        } else {
            format_ns(ns)
        }
    }

    /// Returns median and 99th percentile.
    pub(super) fn p50_p99(self, latency_ns: &Quantiles) -> [Cell; 2] {
        self.p50_p99_among([latency_ns].into_iter())
    }

    /// Returns median and 99th percentile, of several files the lowest and the highest: quantiles cannot be added up.
    pub(super) fn p50_p99_among<'a>(
        self,
        latencies: impl Iterator<Item = &'a Quantiles> + Clone,
    ) -> [Cell; 2] {
        let known = latencies.filter(|latency| latency.count > 0);
        let among = |of: fn(&Quantiles) -> u64| {
            let values = known.clone().map(of);
            let ends = values.clone().min().zip(values.max());
            let text = ends.map(|(low, high)| match (self.text(low), self.text(high)) {
                (low, high) if low == high => low,
                (low, high) => format!("{low} to {high}"),
            });
            Cell::or(text, NONE)
        };
        [among(|latency| latency.p50), among(|latency| latency.p99)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_cut_off_is_a_lower_bound() {
        let mut analysis = TraceAnalysis::default();
        assert_eq!(
            LatencyText::of(&analysis).text(CUT_OFF_LATENCY_NS),
            format_ns(CUT_OFF_LATENCY_NS)
        );
        analysis.latencies_cut_off = 1;
        let old = LatencyText::of(&analysis);
        assert_eq!(
            old.text(CUT_OFF_LATENCY_NS),
            format!("at least {}", format_ns(CUT_OFF_LATENCY_NS))
        );
        assert_eq!(old.text(4_000_000_000), format_ns(4_000_000_000));
    }
}
