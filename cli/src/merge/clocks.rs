//! Checks whether the clients started together and their clocks agree.

use anyhow::Result;
use seekscope_run::Limitation;

use super::clients::Client;

/// If starts are further apart than this, seconds of one client are added to the wrong seconds of another.
const APART_NS_MAX: u64 = 1_000_000_000;
const CLOCKS_NS_MAX: f64 = 500e6;
const UPTIME: &str = "uptimeMillis";

/// Returns what is unreliable about a merged run.
pub fn limitations(clients: &[Client]) -> Result<Vec<Limitation>> {
    let mut found: Vec<Limitation> = late_starts(clients).into_iter().collect();
    found.extend(clocks_apart(clients)?);
    Ok(found)
}

/// Returns the first step that the clients did one after the other rather than at the same time: the sum of their rates
/// was never there.
pub fn apart(clients: &[Client]) -> Option<String> {
    let merged = clients.first()?.document.started;
    let steps = &clients.first()?.bench.steps;
    let is_apart = |index: usize| {
        let spans = clients.iter().filter_map(|client| {
            let step = client.bench.steps.get(index)?;
            let at = |t_ns| client.on_clock(t_ns, merged);
            Some((at(step.started_ns), at(step.ended_ns)))
        });
        let spans: Vec<(u64, u64)> = spans.collect();
        let last_start = spans.iter().map(|span| span.0).max()?;
        let first_start = spans.iter().map(|span| span.0).min()?;
        let first_end = spans.iter().map(|span| span.1).min()?;
        let shortest = spans
            .iter()
            .map(|(from, to)| to.saturating_sub(*from))
            .min()?;
        let together = first_end.saturating_sub(last_start);
        Some(last_start - first_start > APART_NS_MAX && together * 2 < shortest)
    };
    let index = (0..steps.len()).find(|&index| is_apart(index).unwrap_or(false))?;
    Some(format!(
        "the clients ran \"{}\" one after the other, so that its figures describe a load that \
         never existed",
        steps[index].name
    ))
}

/// Finds the step whose starts are furthest apart.
fn late_starts(clients: &[Client]) -> Option<Limitation> {
    let merged = clients.first()?.document.started;
    let spread = |index: usize| {
        let starts = clients.iter().filter_map(|client| {
            let step = client.bench.steps.get(index)?;
            Some(client.on_clock(step.started_ns, merged))
        });
        let (least, most) = starts.fold((u64::MAX, 0), |(a, b), t| (a.min(t), b.max(t)));
        most.saturating_sub(least)
    };
    let steps = &clients.first()?.bench.steps;
    let (index, apart_ns) = (0..steps.len())
        .map(|i| (i, spread(i)))
        .max_by_key(|(_, ns)| *ns)?;
    (apart_ns > APART_NS_MAX).then(|| Limitation {
        what: format!(
            "the clients did not run \"{}\" at the same time: they began {:.1} s apart",
            steps[index].name,
            apart_ns as f64 / 1e9
        ),
        why: "this is according to their own clocks".into(),
        remedy: "start all of them with the same --start-at, far enough ahead".into(),
    })
}

/// Compares the clients' clocks. Each client asked the server for its uptime; with the client's own clock this
/// gives the server's start time, which is the same moment for all.
fn clocks_apart(clients: &[Client]) -> Result<Option<Limitation>> {
    let mut starts_ms: Vec<(u32, f64)> = Vec::new();
    for client in clients {
        let started = client.document.started;
        let counters = client.directory.counters()?;
        let mut starts: Vec<f64> = counters
            .iter()
            .filter(|c| c.source == "serverStatus" && c.name == UPTIME)
            .map(|c| {
                let since_start_ns = c.t_ns as f64 - started.monotonic_ns as f64;
                (started.realtime_ns as f64 + since_start_ns) / 1e6 - c.value
            })
            .collect();
        // The fastest answer is the least delayed.
        starts.sort_by(f64::total_cmp);
        if let Some(least) = starts.first() {
            starts_ms.push((client.number, *least));
        }
    }
    let by_time = |a: &&(u32, f64), b: &&(u32, f64)| a.1.total_cmp(&b.1);
    let (Some(least), Some(most)) = (
        starts_ms.iter().min_by(by_time),
        starts_ms.iter().max_by(by_time),
    ) else {
        return Ok(None);
    };
    let apart_ms = most.1 - least.1;
    Ok((apart_ms * 1e6 > CLOCKS_NS_MAX).then(|| Limitation {
        what: format!(
            "the clocks of clients {} and {} differ by {:.1} s",
            least.0,
            most.0,
            apart_ms / 1e3
        ),
        why: "this follows from the server's uptime and each client's clock".into(),
        remedy: "synchronise the clients' clocks (NTP); the totals are correct, but the figures \
                 for single seconds are not"
            .into(),
    }))
}
