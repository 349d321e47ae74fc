//! Adds up the seconds and distributions of several clients.
//!
//! A client's second counts in the second of the wall clock that contains its midpoint. Logs are read side by
//! side, one second at a time, so that memory use does not grow with the length of the runs.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use seekscope_run::units::nanoseconds;
use seekscope_run::{
    ClockOffset, CounterSample, Interval, LatencyInterval, LatencyIntervals, LatencySummary,
    RunDirectory, latency_histogram, response_tag_of, tag_of,
};

use super::clients::Client;

const SECOND_NS: u64 = 1_000_000_000;

/// Counts of an operation in a second.
#[derive(Debug, Default)]
struct Counts {
    count: u64,
    errors: u64,
    bytes: u64,
    has_response: bool,
}

/// Second, step and operation.
type Place = (u64, String, String);

/// Writes `intervals.parquet` and `latency.hlog` of the merged run.
pub fn merge(clients: &[Client], out: &RunDirectory, merged: ClockOffset) -> Result<()> {
    let mut counts: BTreeMap<Place, Counts> = BTreeMap::new();
    for client in clients {
        for interval in client.directory.intervals()? {
            let t_ns = client.on_clock(interval.t_ns, merged);
            let second = second_of(t_ns, interval.duration_ns, merged);
            let sum = counts
                .entry((second, interval.step, interval.operation))
                .or_default();
            sum.count += interval.count;
            sum.errors += interval.errors;
            sum.bytes += interval.bytes;
            sum.has_response |= interval.response.is_some();
        }
    }
    let mut logs = Vec::new();
    for client in clients {
        let intervals = client.directory.latency_intervals(0)?;
        logs.push(Log {
            client,
            intervals: intervals.peekable(),
        });
    }
    let mut writers = Writers {
        intervals: out.interval_writer()?,
        latencies: out.latency_log_writer()?,
        merged,
    };
    let mut counts = counts.into_iter().peekable();
    while let Some(second) = next_second(&mut logs, counts.peek().map(|(place, _)| place.0), merged)
    {
        let histograms = histograms_of(&mut logs, second, merged)?;
        let mut own = Vec::new();
        while let Some(entry) = counts.next_if(|(place, _)| place.0 <= second) {
            own.push(entry);
        }
        writers.write(second, &histograms, own)?;
    }
    Ok(())
}

/// Returns the second since the merged run's start that contains the interval's midpoint.
fn second_of(t_ns: u64, duration_ns: u64, merged: ClockOffset) -> u64 {
    (t_ns.saturating_sub(merged.monotonic_ns) + duration_ns / 2) / SECOND_NS
}

/// A client's log and its next interval.
struct Log<'a> {
    client: &'a Client,
    intervals: Peekable<LatencyIntervals>,
}

impl Log<'_> {
    /// Returns the second of the next interval; 0 for one that cannot be read, so that the error is reported.
    fn next_second(&mut self, merged: ClockOffset) -> Option<u64> {
        let client = self.client;
        self.intervals.peek().map(|interval| match interval {
            Ok(interval) => second_of_latency(client, interval, merged),
            Err(_) => 0,
        })
    }
}

fn second_of_latency(client: &Client, interval: &LatencyInterval, merged: ClockOffset) -> u64 {
    let t_ns = client
        .document
        .started
        .monotonic_ns
        .saturating_add(nanoseconds(interval.start));
    second_of(
        client.on_clock(t_ns, merged),
        nanoseconds(interval.duration),
        merged,
    )
}

fn next_second(logs: &mut [Log<'_>], of_counts: Option<u64>, merged: ClockOffset) -> Option<u64> {
    let of_logs = logs.iter_mut().filter_map(|log| log.next_second(merged));
    of_logs.chain(of_counts).min()
}

/// Adds up everything up to the end of the second, by tag.
fn histograms_of(
    logs: &mut [Log<'_>],
    second: u64,
    merged: ClockOffset,
) -> Result<BTreeMap<String, Histogram<u64>>> {
    let mut sums: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for log in logs {
        while log.next_second(merged).is_some_and(|next| next <= second) {
            let Some(interval) = log.intervals.next() else {
                break;
            };
            let interval = interval?;
            let sum = sums.entry(interval.tag).or_insert_with(|| {
                let mut empty = latency_histogram();
                empty.auto(true);
                empty
            });
            sum.add(interval.histogram)
                .context("distributions cannot be added")?;
        }
    }
    Ok(sums)
}

struct Writers {
    intervals: seekscope_run::IntervalWriter,
    latencies: seekscope_run::LatencyLogWriter,
    merged: ClockOffset,
}

impl Writers {
    fn write(
        &mut self,
        second: u64,
        histograms: &BTreeMap<String, Histogram<u64>>,
        counts: Vec<(Place, Counts)>,
    ) -> Result<()> {
        let summary = |tag: &str| histograms.get(tag).map(LatencySummary::of);
        for ((_, step, operation), sum) in counts {
            let response = summary(&response_tag_of(&step, &operation));
            self.intervals.write(&Interval {
                t_ns: self.merged.monotonic_ns + second * SECOND_NS,
                duration_ns: SECOND_NS,
                count: sum.count,
                errors: sum.errors,
                bytes: sum.bytes,
                latency: summary(&tag_of(&step, &operation)).unwrap_or_default(),
                response: response.or(sum.has_response.then(LatencySummary::default)),
                step,
                operation,
            })?;
        }
        let start = Duration::from_secs(second);
        for (tag, histogram) in histograms {
            self.latencies
                .write(tag, start, Duration::from_secs(1), histogram)?;
        }
        Ok(())
    }
}

/// Merges the counters of all clients; those of the server and its host are the first client's, as all have
/// asked the same server.
pub fn merge_counters(clients: &[Client], out: &RunDirectory, merged: ClockOffset) -> Result<()> {
    let mut writer = out.counter_writer()?;
    for (i, client) in clients.iter().enumerate() {
        let counters = client.directory.counters()?;
        let wanted = counters
            .into_iter()
            .filter(|c| i == 0 || c.source == "client");
        let shifted: Vec<CounterSample> = wanted
            .map(|counter| CounterSample {
                t_ns: client.on_clock(counter.t_ns, merged),
                source: match counter.source.as_str() {
                    "client" => format!("client {}", client.number),
                    _ => counter.source,
                },
                ..counter
            })
            .collect();
        writer.write(&shifted)?;
    }
    Ok(())
}
