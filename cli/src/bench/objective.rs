//! Checks whether a step meets the user's service-level objective.

use hdrhistogram::Histogram;
use seekscope_run::BenchStep;
use seekscope_run::units::{format_count, format_ns};

use crate::args::{LatencyLimit, Slo};

/// How steps stand to the objective, in words; what was met is not said.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    pub missed: Vec<String>,
    /// Limits that cannot be judged.
    pub unjudged: Vec<String>,
}

impl Judgement {
    /// Judges a step, as far as it had enough operations.
    pub fn of(slo: &Slo, step: &BenchStep, response: &Histogram<u64>) -> Self {
        let is_enough = |limit: &LatencyLimit| response.len() >= needed(limit);
        let (enough, few): (Vec<LatencyLimit>, Vec<LatencyLimit>) =
            slo.limits.iter().partition(|limit| is_enough(limit));
        let unjudged = few.iter().map(|limit| {
            format!(
                "{}: {} operations are too few for {}, which takes {}",
                step.name,
                format_count(response.len()),
                limit.name(),
                format_count(needed(limit))
            )
        });
        let judged = Slo {
            limits: enough,
            ..slo.clone()
        };
        Self {
            missed: misses(&judged, step, response),
            unjudged: unjudged.collect(),
        }
    }

    pub fn extend(&mut self, other: Self) {
        self.missed.extend(other.missed);
        self.unjudged.extend(other.unjudged);
    }
}

/// Returns the number of operations from which on the percentile is one of them: 100 for p99.
fn needed(limit: &LatencyLimit) -> u64 {
    let share_above: f64 = 1.0 - limit.quantile;
    match share_above > 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded, positive"
        )]
        true => (1.0 / share_above).round() as u64,
        false => 1,
    }
}

/// Returns the limits that were missed, in words; empty if all are met. `response`: response times of all
/// requests, ns.
pub fn misses(slo: &Slo, step: &BenchStep, response: &Histogram<u64>) -> Vec<String> {
    let mut missed = Vec::new();
    for limit in &slo.limits {
        let found_ns = response.value_at_quantile(limit.quantile);
        let limit_ns = limit_ns(limit);
        if response.is_empty() {
            missed.push(format!("{}: {} of nothing", step.name, limit.name()));
        } else if found_ns > limit_ns {
            missed.push(format!(
                "{}: {} was {}, {} is allowed",
                step.name,
                limit.name(),
                format_ns(found_ns),
                format_ns(limit_ns)
            ));
        }
    }
    let (done, errors) = (
        step.operations.iter().map(|o| o.count),
        step.operations.iter().map(|o| o.errors),
    );
    let (done, errors): (u64, u64) = (done.sum(), errors.sum());
    let share = errors as f64 / (done + errors).max(1) as f64;
    if share > slo.errors_share {
        missed.push(format!(
            "{}: {:.3} % of operations failed",
            step.name,
            share * 100.0
        ));
    }
    missed
}

fn limit_ns(limit: &LatencyLimit) -> u64 {
    u64::try_from(limit.limit.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns whether the server took longer for half of the operations of each kind than is allowed for more of them: then it
/// missed the objective, however late the client was.
pub fn is_missed_by_server(slo: &Slo, step: &BenchStep) -> bool {
    let done = step.operations.iter().filter(|o| o.count > 0);
    let least_ns = done.map(|o| o.service.p50_ns).min();
    let is_over = |least_ns: u64| {
        let mut limits = slo.limits.iter().filter(|limit| limit.quantile >= 0.5);
        limits.any(|limit| least_ns > limit_ns(limit))
    };
    least_ns.is_some_and(is_over)
}

#[cfg(test)]
mod tests {
    use seekscope_run::{OperationResult, latency_histogram};

    use super::*;
    use crate::args::parse_slo;

    #[test]
    fn too_few_operations_are_not_judged() {
        let slo = parse_slo("p50=1ms,p99=20ms").unwrap();
        let mut response = latency_histogram();
        response.record_n(30_000_000, 99).unwrap();
        let step = BenchStep::default();
        let few = Judgement::of(&slo, &step, &response);
        assert!(
            few.missed.len() == 1 && few.missed[0].contains("p50"),
            "{few:?}"
        );
        assert!(
            few.unjudged[0].contains("99 operations are too few for p99, which takes 100"),
            "{few:?}"
        );
        response.record(30_000_000).unwrap();
        let enough = Judgement::of(&slo, &step, &response);
        assert_eq!((enough.missed.len(), enough.unjudged.len()), (2, 0));
    }

    #[test]
    fn most_operations_that_took_too_long_by_themselves_miss_it_for_sure() {
        let step = |medians_ns: &[u64]| BenchStep {
            operations: medians_ns
                .iter()
                .map(|p50_ns| OperationResult {
                    count: 10,
                    service: seekscope_run::LatencySummary {
                        p50_ns: *p50_ns,
                        ..Default::default()
                    },
                    ..OperationResult::default()
                })
                .collect(),
            ..BenchStep::default()
        };
        let is_missed = |slo: &str, medians_ns: &[u64]| {
            is_missed_by_server(&parse_slo(slo).unwrap(), &step(medians_ns))
        };
        assert!(is_missed("p99=1us", &[90_000]) && is_missed("p50=1us", &[90_000]));
        assert!(!is_missed("p99=1us", &[90_000, 900]), "one kind is quick");
        assert!(!is_missed("p25=1us", &[90_000]) && !is_missed("p99=1ms", &[90_000]));
        assert!(!is_missed("p99=1us", &[]));
    }

    #[test]
    fn latencies_and_errors_are_held_against_it() {
        let slo = parse_slo("p99=20ms").unwrap();
        let step = |errors| BenchStep {
            operations: vec![OperationResult {
                count: 100,
                errors,
                ..OperationResult::default()
            }],
            ..BenchStep::default()
        };
        let mut response = latency_histogram();
        assert_eq!(
            misses(&slo, &step(0), &response).len(),
            1,
            "nothing meets nothing"
        );
        response.record_n(1_000_000, 100).unwrap();
        assert!(misses(&slo, &step(0), &response).is_empty());
        assert!(misses(&slo, &step(1), &response)[0].contains("0.990 %"));
        response.record_n(21_000_000, 2).unwrap();
        assert!(misses(&slo, &step(0), &response)[0].contains("p99 was"));
    }
}
