//! Says in one line what was run and what came of it.

use std::collections::BTreeSet;

use seekscope_run::units::format_ns;
use seekscope_run::{BenchMeasurement, BenchStep, OperationResult};

use crate::numbers::format_rate;

/// The most steps, and operations of one step, whose rates stand in the headline.
const STEPS_MAX: usize = 4;
const OPERATIONS_MAX: usize = 3;

/// Returns what was run and its result, in one line.
pub(super) fn headline(bench: &BenchMeasurement) -> String {
    let edition = match bench.edition.as_str() {
        "" => String::new(),
        edition => format!(" (edition {edition})"),
    };
    let result = result(bench).map_or_else(String::new, |result| format!(": {result}"));
    format!("{}{edition}{result}", bench.workload)
}

/// Returns the result in a few words; `None` where it takes a table.
fn result(bench: &BenchMeasurement) -> Option<String> {
    if let Some(saturation) = &bench.saturation {
        let doubt = match saturation.confirmed {
            true => "",
            false => ", not confirmed",
        };
        return Some(format!(
            "at most {} operations per second with {}{doubt}",
            format_rate(saturation.maximum_per_s?),
            saturation.objective
        ));
    }
    let variants: BTreeSet<&str> = (bench.steps.iter().map(|step| &step.variant))
        .chain(bench.index_builds.iter().map(|build| &build.variant))
        .map(String::as_str)
        .filter(|variant| !variant.is_empty())
        .collect();
    if variants.len() > 1 {
        return Some(format!("{} servers or settings compared", variants.len()));
    }
    // These are about something else than the operations.
    if !bench.index_builds.is_empty() || !bench.shapes.is_empty() {
        return builds(bench);
    }
    let of_kind = |kind: &str| -> Vec<&BenchStep> {
        let of_kind = bench.steps.iter().filter(|step| step.kind == kind);
        of_kind.collect()
    };
    let runs = of_kind("run");
    match runs.is_empty() {
        // What was loaded says nothing of the operations that were to follow.
        true => rates(&of_kind("load")).map(|rates| format!("the load phase alone, {rates}")),
        false => rates(&runs),
    }
}

/// Returns the rates of steps, if they are few.
fn rates(steps: &[&BenchStep]) -> Option<String> {
    match steps {
        [] => None,
        [step] => busiest(step),
        steps if steps.len() > STEPS_MAX => None,
        steps => {
            let rates = steps
                .iter()
                .map(|step| format!("{} {}", step.name, format_rate(step.throughput_per_s)));
            let rates: Vec<String> = rates.collect();
            Some(format!("{} operations per second", rates.join(", ")))
        }
    }
}

/// Returns how many indexes were built, and in what time.
fn builds(bench: &BenchMeasurement) -> Option<String> {
    let times = || bench.index_builds.iter().map(|build| build.elapsed_ns);
    let (least, most) = (format_ns(times().min()?), format_ns(times().max()?));
    Some(match bench.index_builds.len() {
        1 => format!("an index built in {least}"),
        n => format!("{n} indexes built in {least} to {most} each"),
    })
}

/// Returns rate and latency of the most frequent operations of a step; of its transactions, where it has some.
fn busiest(step: &BenchStep) -> Option<String> {
    let has_transactions = step.operations.iter().any(|op| op.is_transaction);
    let mut operations: Vec<&OperationResult> = step
        .operations
        .iter()
        .filter(|op| op.is_transaction || !has_transactions)
        .collect();
    operations.sort_by_key(|op| std::cmp::Reverse(op.count));
    operations.truncate(OPERATIONS_MAX);
    let told = operations.iter().map(|op| {
        let latency = op.response.as_ref().unwrap_or(&op.service);
        let p99 = (latency.count >= 100).then(|| format!(" (p99 {})", format_ns(latency.p99_ns)));
        let (name, rate) = (&op.name, format_rate(op.per_s));
        format!("{name} {rate} per second{}", p99.unwrap_or_default())
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join(", "))
}

#[cfg(test)]
mod tests {
    use seekscope_run::{LatencySummary, Saturation};

    use super::*;

    fn step(name: &str, kind: &str) -> BenchStep {
        let latency = LatencySummary {
            count: 42_000,
            p99_ns: 2_540_000,
            ..LatencySummary::default()
        };
        BenchStep {
            name: name.into(),
            kind: kind.into(),
            throughput_per_s: 10_545.0,
            operations: vec![OperationResult {
                name: "READ".into(),
                per_s: 5_270.0,
                service: latency,
                ..OperationResult::default()
            }],
            ..BenchStep::default()
        }
    }

    #[test]
    fn what_was_only_loaded_is_not_the_result_of_the_operations() {
        let bench = BenchMeasurement {
            workload: "ycsb-c".into(),
            steps: vec![step("load", "load"), step("probe 1 closed", "probe")],
            ..BenchMeasurement::default()
        };
        assert_eq!(
            headline(&bench),
            "ycsb-c: the load phase alone, READ 5,270 per second (p99 2.54 ms)"
        );
    }

    #[test]
    fn the_headline_is_the_result() {
        let mut bench = BenchMeasurement {
            workload: "ycsb-a".into(),
            edition: "ycsb".into(),
            steps: vec![step("load", "load"), step("a", "run")],
            ..BenchMeasurement::default()
        };
        assert_eq!(
            headline(&bench),
            "ycsb-a (edition ycsb): READ 5,270 per second (p99 2.54 ms)"
        );
        bench.steps.push(step("b", "run"));
        assert!(headline(&bench).ends_with(": a 10,545, b 10,545 operations per second"));
        bench.steps[0].variant = "zlib".into();
        bench.steps[1].variant = "snappy".into();
        assert!(headline(&bench).ends_with(": 2 servers or settings compared"));
        bench.saturation = Some(Saturation {
            objective: "p99=20ms".into(),
            maximum_per_s: Some(8_070.0),
            confirmed: true,
            ..Saturation::default()
        });
        assert!(headline(&bench).ends_with(": at most 8,070 operations per second with p99=20ms"));
    }
}
