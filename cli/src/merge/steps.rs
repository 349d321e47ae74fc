//! Adds up the steps of several clients.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use seekscope_report::bench::LostLatencies;
use seekscope_run::{
    BenchStep, ClockOffset, LatencySummary, OperationResult, Steady, Verification, parse_tag,
    response_tag_of, tag_of,
};

use super::clients::Client;
use crate::exit::Usage;

/// Intervals of the log begin at whole milliseconds.
const LOG_RESOLUTION: Duration = Duration::from_millis(1);

type Histograms = BTreeMap<String, Histogram<u64>>;

/// Merges every step that all clients have done.
pub fn merge(clients: &[Client], merged: ClockOffset) -> Result<Vec<BenchStep>> {
    let histograms = histograms(clients)?;
    let count = clients
        .iter()
        .map(|c| c.bench.steps.len())
        .min()
        .unwrap_or(0);
    let step = |i: usize| {
        let parts: Vec<(&Client, &BenchStep)> = clients
            .iter()
            .filter_map(|c| Some((c, c.bench.steps.get(i)?)))
            .collect();
        merge_one(&parts, &histograms, merged)
    };
    Ok((0..count).map(step).collect())
}

/// Adds up the distributions, without each client's warm-up, as in its own figures.
fn histograms(clients: &[Client]) -> Result<Histograms> {
    let mut sums = Histograms::new();
    for client in clients {
        let started_ns = client.document.started.monotonic_ns;
        let counts_from: BTreeMap<&str, Duration> = client
            .bench
            .steps
            .iter()
            .map(|step| {
                let from_ns = step
                    .warm_up_ended_ns
                    .unwrap_or(0)
                    .saturating_sub(started_ns);
                let from = Duration::from_nanos(from_ns).saturating_sub(LOG_RESOLUTION);
                (step.name.as_str(), from)
            })
            .collect();
        let counts = |tag: &str, start: Duration| {
            let tag = seekscope_run::service_tag_of_response(tag).unwrap_or(tag);
            let step = parse_tag(tag).map(|(step, _)| step);
            step.and_then(|step| counts_from.get(step.as_str()))
                .is_some_and(|from| start >= *from)
        };
        let own = client
            .directory
            .latency_histograms_where(0, |interval| counts(&interval.tag, interval.start))?;
        refuse_lost_latencies(client, &own)?;
        for (tag, histogram) in own {
            match sums.get_mut(&tag) {
                Some(sum) => sum
                    .add(histogram)
                    .context("distributions cannot be added")?,
                None => {
                    sums.insert(tag, histogram);
                }
            }
        }
    }
    Ok(sums)
}

/// Refuses a client whose log of latencies lacks what its own figures were made from: the distribution of all would be
/// that of the others.
fn refuse_lost_latencies(client: &Client, own: &Histograms) -> Result<()> {
    let kept = |step: &str, operation: &str| {
        let histogram = own.get(&tag_of(step, operation));
        histogram.map_or(0, Histogram::len)
    };
    match LostLatencies::first(&client.bench, kept) {
        Some(lost) => Err(Usage(lost.refusal(client.directory.path())).into()),
        None => Ok(()),
    }
}

fn merge_one(
    parts: &[(&Client, &BenchStep)],
    histograms: &Histograms,
    merged: ClockOffset,
) -> BenchStep {
    let sum = |field: fn(&BenchStep) -> u64| parts.iter().map(|(_, step)| field(step)).sum();
    let most = |field: fn(&BenchStep) -> Option<u64>| {
        parts.iter().filter_map(|(_, step)| field(step)).max()
    };
    let on_clock = |t_ns: fn(&BenchStep) -> Option<u64>| {
        parts
            .iter()
            .filter_map(move |(client, step)| Some(client.on_clock(t_ns(step)?, merged)))
    };
    let invalid = parts.iter().flat_map(|(client, step)| {
        step.invalid
            .iter()
            .map(|why| format!("client {}: {why}", client.number))
    });
    let lag = parts
        .iter()
        .map(|(_, step)| step.lag)
        .max_by_key(|lag| lag.p99_ns);
    let last = parts
        .iter()
        .max_by_key(|(client, step)| client.on_clock(step.ended_ns, merged));
    let first = parts
        .first()
        .map(|(_, step)| (*step).clone())
        .unwrap_or_default();
    BenchStep {
        in_flight: parts.iter().map(|(_, step)| step.in_flight).sum(),
        started_ns: on_clock(|s| Some(s.started_ns)).min().unwrap_or(0),
        ended_ns: on_clock(|s| Some(s.ended_ns)).max().unwrap_or(0),
        warm_up_ended_ns: on_clock(|s| s.warm_up_ended_ns).max(),
        steady: steady(parts),
        invalid: invalid.collect(),
        requests: sum(|s| s.requests),
        transactions: sum(|s| s.transactions),
        offered_per_s: parts.iter().map(|(_, step)| step.offered_per_s).sum(),
        throughput_per_s: parts.iter().map(|(_, step)| step.throughput_per_s).sum(),
        throughput_interval: None,
        operations: operations(parts, &first.name, histograms),
        failures: failures(parts),
        backlog_at_end: sum(|s| s.backlog_at_end),
        lag: lag.unwrap_or_default(),
        client_cpu_ns: sum(|s| s.client_cpu_ns),
        client_rss_bytes: sum(|s| s.client_rss_bytes),
        // All clients looked at the same server at about the same time.
        server_cpu_ns: most(|s| s.server_cpu_ns),
        // To each client the other clients count as others.
        others_cpu_ns: None,
        server_read_bytes: most(|s| s.server_read_bytes),
        server_write_bytes: most(|s| s.server_write_bytes),
        storage_after: last.and_then(|(_, step)| step.storage_after.clone()),
        verification: verification(parts),
        // Counted by the shards themselves, for all clients together.
        shards: last.and_then(|(_, step)| step.shards.clone()),
        ..first
    }
}

fn steady(parts: &[(&Client, &BenchStep)]) -> Option<Steady> {
    let each: Option<Vec<(u32, &Steady)>> = parts
        .iter()
        .map(|(client, step)| Some((client.number, step.steady.as_ref()?)))
        .collect();
    let each = each?;
    // The least steady client stands for all.
    let shown = each.iter().min_by_key(|(_, one)| match one.steady {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    })?;
    Some(Steady {
        steady: shown.1.steady,
        how: format!("client {}: {}", shown.0, shown.1.how),
    })
}

/// Merges the operations in the order of the first client that has them.
fn operations(
    parts: &[(&Client, &BenchStep)],
    step: &str,
    histograms: &Histograms,
) -> Vec<OperationResult> {
    let mut sums: Vec<OperationResult> = Vec::new();
    for operation in parts.iter().flat_map(|(_, step)| &step.operations) {
        match sums.iter_mut().find(|sum| sum.name == operation.name) {
            None => sums.push(operation.clone()),
            Some(sum) => {
                sum.count += operation.count;
                sum.errors += operation.errors;
                sum.documents += operation.documents;
                sum.bytes += operation.bytes;
                sum.per_s += operation.per_s;
            }
        }
    }
    for sum in &mut sums {
        let summary = |tag: &str| histograms.get(tag).map(LatencySummary::of);
        // Clients share the server, so their seconds are not independent samples.
        sum.per_s_interval = None;
        sum.service = summary(&tag_of(step, &sum.name)).unwrap_or_default();
        sum.response = summary(&response_tag_of(step, &sum.name));
    }
    sums
}

fn failures(parts: &[(&Client, &BenchStep)]) -> Vec<(String, String, u64, String)> {
    let mut sums: Vec<(String, String, u64, String)> = Vec::new();
    for failure in parts.iter().flat_map(|(_, step)| &step.failures) {
        let is_same =
            |sum: &&mut (String, String, u64, String)| (&sum.0, &sum.1) == (&failure.0, &failure.1);
        match sums.iter_mut().find(is_same) {
            Some(sum) => sum.2 += failure.2,
            None => sums.push(failure.clone()),
        }
    }
    sums
}

/// Merges the verifications: every client has read back what it wrote.
fn verification(parts: &[(&Client, &BenchStep)]) -> Option<Verification> {
    let each: Option<Vec<&Verification>> = parts
        .iter()
        .map(|(_, step)| step.verification.as_ref())
        .collect();
    let each = each?;
    let sum = |field: fn(&Verification) -> u64| each.iter().map(|v| field(v)).sum();
    Some(Verification {
        // Unknown if one client did not count.
        expected: each.iter().map(|v| v.expected).sum(),
        counted: each.iter().map(|v| v.counted).sum(),
        sampled: sum(|v| v.sampled),
        missing: sum(|v| v.missing),
        different: sum(|v| v.different),
        in_doubt: sum(|v| v.in_doubt),
    })
}
