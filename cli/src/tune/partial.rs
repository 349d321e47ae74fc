//! Computes the metric of a running trial from its first seconds.

use std::sync::PoisonError;
use std::time::Duration;

use seekscope_client::Second;
use seekscope_run::LatencySummary;
use seekscope_run::units::nanoseconds;

use super::metric::operation_in;
use crate::bench::{KeptSeconds, Watch};

/// A metric that can be computed from single seconds.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    Transactions,
    Operation(&'a str),
    P99,
}

impl<'a> Told<'a> {
    fn of(figure: &'a str) -> Option<Self> {
        match figure {
            "throughput_per_s" => Some(Self::Transactions),
            "p99_ms" => Some(Self::P99),
            _ => operation_in(figure).map(Self::Operation),
        }
    }
}

/// Returns the figure over the first `window` of what is watched; `None` before that is over, and for figures
/// that are known only at the end.
pub fn partial_figure(watch: &Watch, window: Duration, figure: &str) -> Option<f64> {
    let told = Told::of(figure)?;
    let steps = watch.steps.lock().unwrap_or_else(PoisonError::into_inner);
    partial(&steps, window, told)
}

fn partial(steps: &[KeptSeconds], window: Duration, told: Told<'_>) -> Option<f64> {
    let lists: Vec<_> = (steps.iter())
        .map(|step| step.seconds.lock().unwrap_or_else(PoisonError::into_inner))
        .collect();
    let begins = |list: &[Second]| list.first().map(|second| second.t_ns);
    let ends = |list: &[Second]| list.last().map_or(0, ended_ns);
    let first_ns = lists.iter().filter_map(|list| begins(list)).min()?;
    let last_ns = lists.iter().filter_map(|list| begins(list)).max()?;
    let window_ns = nanoseconds(window);
    let window_ends_ns = first_ns.saturating_add(window_ns);
    // All running steps have reported the whole window; those of an earlier phase have ended.
    let is_behind =
        |list: &[Second]| ends(list) < window_ends_ns && (list.is_empty() || ends(list) > last_ns);
    if lists.iter().any(|list| is_behind(list))
        || !lists.iter().any(|list| ends(list) >= window_ends_ns)
    {
        return None;
    }
    let counted = |list: &'_ [Second]| list.partition_point(|second| second.t_ns < window_ends_ns);
    let seconds = (steps.iter().zip(&lists)).flat_map(|(step, list)| {
        list[..counted(list)]
            .iter()
            .map(move |second| (step, second))
    });
    let seconds: Vec<(&KeptSeconds, &Second)> = seconds.collect();
    let until_ns = seconds.iter().map(|(_, second)| ended_ns(second)).max()?;
    let elapsed_s = until_ns.saturating_sub(first_ns) as f64 / 1e9;
    let rate = |done: u64| (elapsed_s > 0.0).then(|| done as f64 / elapsed_s);
    match told {
        Told::Transactions => rate(seconds.iter().map(|(_, second)| second.transactions).sum()),
        Told::Operation(name) => {
            let of_name = seconds.iter().flat_map(|(step, second)| {
                let pairs = step.operations.iter().zip(&second.operations);
                pairs.filter(|(operation, _)| operation.eq_ignore_ascii_case(name))
            });
            rate(of_name.map(|(_, operation)| operation.done).sum())
        }
        Told::P99 => {
            let mut all = seekscope_run::latency_histogram();
            all.auto(true);
            for operation in seconds.iter().flat_map(|(_, second)| &second.operations) {
                all.add(operation.response.as_ref().unwrap_or(&operation.service))
                    .ok()?;
            }
            Some(LatencySummary::of(&all).p99_ns as f64 / 1e6)
        }
    }
}

fn ended_ns(second: &Second) -> u64 {
    second.t_ns.saturating_add(second.duration_ns)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    use seekscope_client::OperationSecond;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn second(start_s: u64, done: &[u64]) -> Second {
        let operation = |(place, done): (usize, &u64)| OperationSecond {
            operation: u16::try_from(place).unwrap(),
            done: *done,
            errors: BTreeMap::new(),
            documents: 0,
            bytes: 0,
            service: seekscope_run::latency_histogram(),
            response: None,
        };
        Second {
            t_ns: 5 + start_s * SECOND_NS,
            duration_ns: SECOND_NS,
            operations: done.iter().enumerate().map(operation).collect(),
            transactions: done.iter().sum(),
            in_flight: 1.0,
            backlog: 0,
            lag: seekscope_run::latency_histogram(),
            client_cpu_ns: 0,
        }
    }

    fn step(operations: &[&str], seconds: Vec<Second>) -> KeptSeconds {
        KeptSeconds {
            operations: operations.iter().map(|name| (*name).into()).collect(),
            seconds: Arc::new(Mutex::new(seconds)),
        }
    }

    fn figure(steps: Vec<KeptSeconds>, window_s: u64, figure: &str) -> Option<f64> {
        let watch = Watch {
            steps: Arc::new(Mutex::new(steps)),
            ..Watch::default()
        };
        partial_figure(&watch, Duration::from_secs(window_s), figure)
    }

    #[test]
    fn roles_at_the_same_time_are_told_by_the_names_of_their_operations() {
        let steps = |updates: usize| {
            let reads = (0..4).map(|at| second(at, &[100 + at, 7])).collect();
            let writes = (0..4).map(|at| second(at, &[10])).take(updates).collect();
            vec![step(&["read", "scan"], reads), step(&["update"], writes)]
        };
        let of_reads = figure(steps(4), 2, "read:throughput_per_s").unwrap();
        assert!((of_reads - 100.5).abs() < 1e-6, "{of_reads}");
        let updates = figure(steps(4), 3, "update:throughput_per_s").unwrap();
        assert!((updates - 10.0).abs() < 1e-6, "{updates}");
        let all = figure(steps(4), 2, "throughput_per_s").unwrap();
        assert!((all - 117.5).abs() < 1e-6, "{all}");
        // Not before each has reported the whole window, and not for figures known only at the end.
        assert_eq!(figure(steps(1), 2, "read:throughput_per_s"), None);
        assert_eq!(figure(steps(4), 5, "read:throughput_per_s"), None);
        assert_eq!(figure(steps(4), 2, "server_rss_bytes"), None);
        assert_eq!(figure(Vec::new(), 2, "throughput_per_s"), None);
    }

    #[test]
    fn phases_after_one_another_are_one_run() {
        let early = (0..2).map(|at| second(at, &[50])).collect();
        let late = (2..6).map(|at| second(at, &[90])).collect();
        let steps = vec![step(&["read"], early), step(&["read"], late)];
        let reads = figure(steps, 4, "read:throughput_per_s").unwrap();
        assert!((reads - 70.0).abs() < 1e-6, "{reads}");
    }
}
