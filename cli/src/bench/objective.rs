//! Checks whether a step meets the user's service-level objective.

use hdrhistogram::Histogram;
use seekscope_run::BenchStep;
use seekscope_run::units::format_ns;

use crate::args::Slo;

/// Returns the limits that were missed, in words; empty if all are met. `response`: response times of all
/// requests, ns.
pub fn misses(slo: &Slo, step: &BenchStep, response: &Histogram<u64>) -> Vec<String> {
    let mut missed = Vec::new();
    for limit in &slo.limits {
        let found_ns = response.value_at_quantile(limit.quantile);
        let limit_ns = u64::try_from(limit.limit.as_nanos()).unwrap_or(u64::MAX);
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

#[cfg(test)]
mod tests {
    use seekscope_run::{OperationResult, latency_histogram};

    use super::*;
    use crate::args::parse_slo;

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
