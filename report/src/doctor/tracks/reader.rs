//! Reads counters of server, host and disk as points over time.

use std::collections::BTreeMap;

use seekscope_doctor::evidence::{Counters, Series};
use seekscope_run::examination::COUNTERS_OF_FTDC;

use super::device_seconds::{DeviceSeconds, Requests};

const CACHE: &str = "wiredTiger.cache.";

/// (CLOCK_MONOTONIC ns, value).
pub(super) type Points = Vec<(u64, f64)>;

/// Reads the counters that a group shows.
pub(super) struct Reader<'a> {
    pub(super) counters: &'a Counters,
    /// Source of the server's own counters.
    pub(super) server: &'static str,
    pub(super) device: Option<&'a DeviceSeconds>,
}

impl Reader<'_> {
    pub(super) fn has_server(&self) -> bool {
        self.counters.sources().contains(&self.server)
    }

    pub(super) fn is_of_the_run(&self) -> bool {
        self.server != COUNTERS_OF_FTDC
    }

    pub(super) fn of_server(&self, name: &str) -> Option<&Series> {
        self.counters.get(self.server, name)
    }

    /// Returns a counter of the host; they exist only during the run.
    fn of_host(&self, source: &str, name: &str) -> Option<&Series> {
        self.is_of_the_run()
            .then(|| self.counters.get(source, name))
            .flatten()
    }

    /// Returns the sum of the rates of some of `opcounters`.
    pub(super) fn operations(&self, names: &[&str]) -> Points {
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        for name in names {
            let series = self.of_server(&format!("opcounters.{name}"));
            for (t_ns, per_s) in series.map(Series::rates).unwrap_or_default() {
                *sums.entry(t_ns).or_default() += per_s;
            }
        }
        sums.into_iter().collect()
    }

    /// Returns the mean latency of a kind of `opLatencies`, ns.
    pub(super) fn latency(&self, kind: &str) -> Points {
        let total_us = self.of_server(&format!("opLatencies.{kind}.latency"));
        let count = self.of_server(&format!("opLatencies.{kind}.ops"));
        quotients(total_us, count, 1e3)
    }

    pub(super) fn cache_share(&self, name: &str) -> Points {
        let limit = self.of_server(&format!("{CACHE}maximum bytes configured"));
        let limit = limit.and_then(Series::last).filter(|limit| *limit > 0.0);
        let bytes = self.of_server(&format!("{CACHE}{name}"));
        let points = bytes.map_or(&[][..], |series| &series.points);
        limit.map_or_else(Vec::new, |limit| {
            points
                .iter()
                .map(|(t_ns, bytes)| (*t_ns, bytes / limit))
                .collect()
        })
    }

    pub(super) fn host_rate(&self, source: &str, name: &str, factor: f64) -> Points {
        let rates = self
            .of_host(source, name)
            .map(Series::rates)
            .unwrap_or_default();
        rates
            .into_iter()
            .map(|(t_ns, rate)| (t_ns, rate * factor))
            .collect()
    }

    /// Reads the kernel's counters of the disk, or else the requests in the trace.
    pub(super) fn disk(
        &self,
        direction: usize,
        name: &str,
        of: fn(&Requests) -> Option<f64>,
    ) -> Points {
        match self.host_rate("diskstats", name, 1.0) {
            points if points.is_empty() => self.traced(direction, of),
            points => points,
        }
    }

    pub(super) fn disk_latency(&self, direction: usize, total_ms: &str, count: &str) -> Points {
        let total = self.of_host("diskstats", total_ms);
        match quotients(total, self.of_host("diskstats", count), 1e6) {
            points if points.is_empty() => self.traced(direction, |requests| {
                (requests.count > 0).then(|| requests.latency_ns as f64 / requests.count as f64)
            }),
            // The kernel counts whole milliseconds: of few short requests none may be counted.
            points => points.into_iter().filter(|(_, ns)| *ns > 0.0).collect(),
        }
    }

    fn traced(&self, direction: usize, of: fn(&Requests) -> Option<f64>) -> Points {
        self.device
            .map_or_else(Vec::new, |device| device.points(direction, of))
    }
}

/// Returns the growth of one counter over the growth of another that was sampled at the same times,
/// multiplied by `factor`. A step in which the other did not grow is left out.
fn quotients(total: Option<&Series>, count: Option<&Series>, factor: f64) -> Points {
    let (Some(total), Some(count)) = (total, count) else {
        return Vec::new();
    };
    let counts: BTreeMap<u64, f64> = count.rates().into_iter().collect();
    let quotient = |(t_ns, per_s): (u64, f64)| {
        let count = counts.get(&t_ns).filter(|count| **count > 0.0)?;
        Some((t_ns, per_s / count * factor))
    };
    total.rates().into_iter().filter_map(quotient).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use seekscope_run::CounterSample;

    /// Builds counters of the server from second, name and value.
    pub(in super::super) fn counters(rows: &[(u64, &str, f64)]) -> Counters {
        Counters::new(rows.iter().map(|&(second, name, value)| CounterSample {
            t_ns: second * 1_000_000_000,
            source: "serverStatus".into(),
            name: name.into(),
            value,
        }))
    }

    pub(in super::super) fn reader(counters: &Counters) -> Reader<'_> {
        Reader {
            counters,
            server: "serverStatus",
            device: None,
        }
    }

    #[test]
    fn latency_is_the_time_of_the_operations_of_that_second() {
        let counters = counters(&[
            (1, "opLatencies.reads.latency", 1_000.0),
            (1, "opLatencies.reads.ops", 10.0),
            (2, "opLatencies.reads.latency", 3_000.0),
            (2, "opLatencies.reads.ops", 20.0),
            (3, "opLatencies.reads.latency", 3_000.0),
            (3, "opLatencies.reads.ops", 20.0),
        ]);
        // 200 µs each; no operation in the next second, so no latency either.
        assert_eq!(
            reader(&counters).latency("reads"),
            [(1_500_000_000, 200_000.0)]
        );
    }
}
