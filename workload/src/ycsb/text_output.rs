//! Formats YCSB's summary as text, which scripts parse: `[METRIC], name, value`, a line each.

use std::fmt::Write;

use hdrhistogram::Histogram;

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub struct YcsbFigures<'a> {
    pub run_time_ns: u64,
    pub operations: &'a [YcsbOperation<'a>],
    /// Percentiles in per cent.
    pub percentiles: &'a [f64],
}

/// One kind of operation.
#[derive(Debug, Clone, Copy)]
pub struct YcsbOperation<'a> {
    /// "READ", "READ-MODIFY-WRITE", ….
    pub name: &'a str,
    /// Number that counts towards the throughput: 0 for parts of a read-modify-write.
    pub counts: u64,
    /// Times of the successful ones, ns.
    pub times: &'a Histogram<u64>,
    /// Failed ones, by name; names that YCSB lacks become ERROR.
    pub errors: &'a [(String, u64)],
}

/// The statuses that YCSB knows besides OK.
const STATUSES: [&str; 8] = [
    "ERROR",
    "NOT_FOUND",
    "NOT_IMPLEMENTED",
    "UNEXPECTED_STATE",
    "BAD_REQUEST",
    "FORBIDDEN",
    "SERVICE_UNAVAILABLE",
    "BATCHED_OK",
];
const NS_PER_US: f64 = 1_000.0;

/// Returns the lines that YCSB prints at its end, except those on Java's garbage collectors. Times are those
/// of successful operations; throughput excludes failures, unlike YCSB's.
pub fn ycsb_output(figures: &YcsbFigures<'_>) -> String {
    let mut text = String::new();
    let done: u64 = figures.operations.iter().map(|op| op.counts).sum();
    let run_time_ms = figures.run_time_ns / 1_000_000;
    let per_s = done as f64 / (figures.run_time_ns as f64 / 1e9);
    let per_s = if per_s.is_finite() { per_s } else { 0.0 };
    line(&mut text, "OVERALL", "RunTime(ms)", run_time_ms);
    line(
        &mut text,
        "OVERALL",
        "Throughput(ops/sec)",
        format!("{per_s:?}"),
    );
    for operation in figures.operations {
        times(&mut text, operation, figures.percentiles);
        returns(&mut text, operation);
    }
    text
}

fn times(text: &mut String, operation: &YcsbOperation<'_>, percentiles: &[f64]) {
    let YcsbOperation { name, times, .. } = operation;
    let mean_us = if times.is_empty() {
        0.0
    } else {
        times.mean() / NS_PER_US
    };
    line(text, name, "Operations", times.len());
    line(text, name, "AverageLatency(us)", format!("{mean_us:?}"));
    line(text, name, "MinLatency(us)", us(times.min()));
    line(text, name, "MaxLatency(us)", us(times.max()));
    for &percentile in percentiles {
        let value = us(times.value_at_percentile(percentile));
        let what = format!("{}PercentileLatency(us)", ordinal(percentile));
        line(text, name, &what, value);
    }
}

/// Converts to µs, rounded.
fn us(ns: u64) -> u64 {
    ns.saturating_add(500) / 1_000
}

fn returns(text: &mut String, operation: &YcsbOperation<'_>) {
    let name = operation.name;
    if !operation.times.is_empty() {
        line(text, name, "Return=OK", operation.times.len());
    }
    let mut failed = 0;
    for status in STATUSES {
        let of_status = |(error, _): &&(String, u64)| status_of(error) == status;
        let errors = operation.errors.iter().filter(of_status);
        let count: u64 = errors.map(|(_, count)| count).sum();
        if count > 0 {
            line(text, name, &format!("Return={status}"), count);
        }
        failed += count;
    }
    if failed > 0 {
        line(text, &format!("{name}-FAILED"), "Operations", failed);
    }
}

/// Returns YCSB's status for a failure's name.
fn status_of(error: &str) -> &'static str {
    STATUSES
        .into_iter()
        .find(|status| *status == error)
        .unwrap_or("ERROR")
}

fn line(text: &mut String, metric: &str, name: &str, value: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "[{metric}], {name}, {value}");
}

/// Formats a percentile as in YCSB: 50th, 91st, 99.9.
fn ordinal(percentile: f64) -> String {
    if percentile.fract() != 0.0 {
        return format!("{percentile}");
    }
    let whole = crate::generators::floor_u64(percentile);
    let suffix = match (whole % 100, whole % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{whole}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_scripts_parse() {
        let mut reads = Histogram::new(3).unwrap();
        for us in [100_u64, 200, 300] {
            reads.record(us * 1_000).unwrap();
        }
        let errors = [
            ("NOT_FOUND".to_owned(), 2),
            ("ConnectionReset".to_owned(), 1),
        ];
        let none = Histogram::new(3).unwrap();
        let operation = |name, counts, times, errors| YcsbOperation {
            name,
            counts,
            times,
            errors,
        };
        let output = ycsb_output(&YcsbFigures {
            run_time_ns: 2_000_000_000,
            operations: &[
                operation("READ", 3, &reads, &errors),
                operation("UPDATE", 0, &none, &[]),
            ],
            percentiles: &[50.0, 99.9, 91.0],
        });
        let expected = "\
            [OVERALL], RunTime(ms), 2000\n\
            [OVERALL], Throughput(ops/sec), 1.5\n\
            [READ], Operations, 3\n\
            [READ], AverageLatency(us), ";
        assert!(output.starts_with(expected), "{output}");
        for line in [
            "[READ], MinLatency(us), 100\n",
            "[READ], MaxLatency(us), 300\n",
            "[READ], 50thPercentileLatency(us), 200\n",
            "[READ], 99.9PercentileLatency(us), 300\n",
            "[READ], 91stPercentileLatency(us), 300\n",
            "[READ], Return=OK, 3\n[READ], Return=ERROR, 1\n[READ], Return=NOT_FOUND, 2\n",
            "[READ-FAILED], Operations, 3\n",
            "[UPDATE], Operations, 0\n[UPDATE], AverageLatency(us), 0.0\n",
            "[UPDATE], 50thPercentileLatency(us), 0\n",
        ] {
            assert!(output.contains(line), "{line} in {output}");
        }
        assert!(!output.contains("NaN"));
    }

    #[test]
    fn names_percentiles_as_ycsb_does() {
        let cases = [
            (1.0, "1st"),
            (2.0, "2nd"),
            (3.0, "3rd"),
            (11.0, "11th"),
            (95.0, "95th"),
        ];
        for (percentile, name) in cases {
            assert_eq!(ordinal(percentile), name);
        }
    }
}
