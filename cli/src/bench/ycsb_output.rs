//! The lines that YCSB prints at its end, for scripts that read them
//! (`core/src/main/java/site/ycsb/measurements/exporter/TextMeasurementsExporter.java`).

use std::fmt::Write as _;

use seekscope_run::{BenchStep, LatencySummary, OperationResult, RunDocument};

/// Of every step, one after another, as if YCSB had been run once for each.
pub fn lines(document: &RunDocument) -> String {
    let mut text = String::new();
    for step in document.bench.iter().flat_map(|b| &b.steps) {
        add_step(&mut text, step);
    }
    text
}

fn add_step(text: &mut String, step: &BenchStep) {
    let elapsed_ns = step.ended_ns.saturating_sub(step.started_ns).max(1);
    line(text, "OVERALL", "RunTime(ms)", elapsed_ns / 1_000_000);
    // Of what succeeded: YCSB counts failures, too.
    line(
        text,
        "OVERALL",
        "Throughput(ops/sec)",
        step.throughput_per_s,
    );
    for operation in &step.operations {
        add_operation(text, operation, &step.failures);
    }
}

fn add_operation(
    text: &mut String,
    operation: &OperationResult,
    failures: &[(String, String, u64, String)],
) {
    let name = operation.name.as_str();
    add_latency(text, name, &operation.service, operation.count);
    line(text, name, "Return=OK", operation.count);
    let own = failures.iter().filter(|(of, ..)| of == name);
    for (_, status, count, _) in own {
        line(text, name, &format!("Return={status}"), count);
    }
    if let Some(response) = &operation.response {
        let intended = format!("Intended-{name}");
        add_latency(text, &intended, response, response.count);
    }
    if operation.errors > 0 {
        line(
            text,
            &format!("{name}-FAILED"),
            "Operations",
            operation.errors,
        );
    }
}

fn add_latency(text: &mut String, name: &str, latency: &LatencySummary, count: u64) {
    let us = |ns: u64| ns / 1000;
    line(text, name, "Operations", count);
    line(text, name, "AverageLatency(us)", latency.mean_ns / 1e3);
    line(text, name, "MinLatency(us)", us(latency.min_ns));
    line(text, name, "MaxLatency(us)", us(latency.max_ns));
    line(text, name, "50thPercentileLatency(us)", us(latency.p50_ns));
    line(text, name, "90thPercentileLatency(us)", us(latency.p90_ns));
    line(text, name, "99thPercentileLatency(us)", us(latency.p99_ns));
}

fn line(text: &mut String, metric: &str, name: &str, value: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "[{metric}], {name}, {value}");
}
