//! `seekscope report` and `compare` of benchmarks, from their directories alone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use seekscope_run::{
    Arrivals, BenchMeasurement, BenchStep, Interval, LatencySummary, OperationResult, Outcome,
    RunDirectory, RunDocument, latency_histogram, response_tag_of, tag_of,
};
use seekscope_stats::SplitMix64;
use serde_json::Value;

use crate::recorded_run::write_run;
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json};

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 60;
const WARM_UP_S: u64 = 10;
/// A name that gives orders to terminals and browsers.
const HOSTILE: &str = "READ\u{1b}[2J<script>window.hacked=1</script>";

/// A run of one step with one operation in an open loop: `per_s` is kept up to 5 % of noise, half as much in
/// the warm-up; half of the operations take less than `p50_us`.
#[expect(
    clippy::too_many_lines,
    reason = "one record of every kind that a run has"
)]
#[expect(clippy::cast_possible_truncation, reason = "thousands")]
fn make_run(folder: &Path, seed: u64, per_s: f64, p50_us: u64, workload: &str) {
    let mut document = RunDocument::begin("bench", vec!["bench".into(), "ycsb".into()]);
    let directory = RunDirectory::create(folder, &document).unwrap();
    let started_ns = document.started.monotonic_ns;
    let warm_up_ended_ns = started_ns + WARM_UP_S * SECOND_NS;
    let mut rng = SplitMix64::new(seed);
    let mut intervals = directory.interval_writer().unwrap();
    let mut latencies = directory.latency_log_writer().unwrap();
    let mut whole = latency_histogram();
    let mut done = 0;
    for second in 0..SECONDS {
        let t_ns = started_ns + second * SECOND_NS;
        let warming = if second < WARM_UP_S { 0.5 } else { 1.0 };
        let count = (per_s * warming * (0.95 + 0.1 * rng.unit_f64())) as u64;
        let mut histogram = latency_histogram();
        for _ in 0..count {
            histogram
                .record(p50_us * 500 + rng.below(p50_us * 1000))
                .unwrap();
        }
        if second >= WARM_UP_S {
            done += count;
            whole.add(&histogram).unwrap();
        }
        let summary = LatencySummary::of(&histogram);
        intervals
            .write(&Interval {
                step: "run".into(),
                operation: HOSTILE.into(),
                t_ns,
                duration_ns: SECOND_NS,
                count,
                errors: 0,
                bytes: count * 1000,
                latency: summary,
                response: Some(summary),
            })
            .unwrap();
        for tag in [tag_of("run", HOSTILE), response_tag_of("run", HOSTILE)] {
            let at = Duration::from_secs(second);
            latencies
                .write(&tag, at, Duration::from_secs(1), &histogram)
                .unwrap();
        }
    }
    directory.finish_records().unwrap();
    let summary = LatencySummary::of(&whole);
    let measured_s = (SECONDS - WARM_UP_S) as f64;
    document.bench = Some(BenchMeasurement {
        workload: workload.into(),
        edition: "corrected".into(),
        settings: [
            ("cache_mib".to_string(), seed.to_string()),
            ("recordcount".to_string(), "1000".to_string()),
        ]
        .into(),
        steps: vec![BenchStep {
            name: "run".into(),
            kind: "run".into(),
            workload: workload.into(),
            repetition: 1,
            arrivals: Arrivals::Poisson { per_s },
            in_flight: 8,
            started_ns,
            ended_ns: started_ns + SECONDS * SECOND_NS,
            warm_up_ended_ns: Some(warm_up_ended_ns),
            requests: done,
            throughput_per_s: done as f64 / measured_s,
            client_cpu_ns: done * 17_000,
            operations: vec![OperationResult {
                name: HOSTILE.into(),
                count: done,
                per_s: done as f64 / measured_s,
                service: summary,
                response: Some(summary),
                ..OperationResult::default()
            }],
            ..BenchStep::default()
        }],
        ..BenchMeasurement::default()
    });
    document.outcome = Outcome::Ok;
    document.outcome_reason = None;
    directory.save(&document).unwrap();
}

fn stdout(bench: &Bench, arguments: &[&str]) -> String {
    let output = bench.seekscope(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn against<'a>(compared: &'a Value, measure: &str) -> &'a Value {
    let all = compared["summary"]["compared"].as_array().unwrap();
    let of_measure = all.iter().find(|c| c["measure"] == measure);
    &of_measure.unwrap_or_else(|| panic!("no {measure} in {compared:#}"))["against_first"][0]
}

#[test]
fn a_benchmark_is_shown_again_from_its_directory() {
    let bench = Bench::new();
    make_run(&bench.path("a"), 1, 1000.0, 400, "ycsb-a");
    let text = stdout(&bench, &["report", "a"]);
    assert!(text.starts_with("OK: "), "{text}");
    assert!(
        text.contains("open loop, Poisson arrivals at 1,000/s"),
        "{text}"
    );
    assert!(
        text.contains("17.0 µs") && text.contains("response"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    let page = fs::read_to_string(bench.path("a").join("report.html")).unwrap();
    assert!(page.contains("heat-0") && page.contains("chart-0-latency-0"));
    assert!(!page.contains("<script>window"));
    // The warm-up is in the log, and not in the curve.
    let document = json(&mut bench.seekscope(&["report", "a"]));
    assert_eq!(document["summary"]["steps"][0]["warm_up_s"], 10.0);
}

/// The file ends early, as a copy does that was broken off.
#[test]
fn latencies_that_were_lost_are_told() {
    let bench = Bench::new();
    make_run(&bench.path("a"), 1, 1000.0, 400, "ycsb-a");
    make_run(&bench.path("b"), 2, 1200.0, 300, "ycsb-a");
    stdout(&bench, &["compare", "a", "b"]);
    let log = bench.path("b").join("latency.hlog");
    let whole = fs::read(&log).unwrap();
    let lost = |missing: &str| {
        let output = bench.seekscope(&["compare", "a", "b"]).output().unwrap();
        assert_fails(
            &output,
            2,
            &["latency.hlog holds", missing, "copy the run again"],
        );
        let text = stdout(&bench, &["report", "b"]);
        assert!(text.contains("Missing: latency.hlog holds"), "{text}");
        let document = json(&mut bench.seekscope(&["report", "b"]));
        let told = &document["limitations"][0]["what"];
        let is_told = told.as_str().is_some_and(|what| what.contains(missing));
        assert!(is_told, "{document:#}");
    };
    fs::write(&log, &whole[..whole.len() / 2]).unwrap();
    lost("latencies of READ");
    fs::remove_file(&log).unwrap();
    lost("holds 0 of the");
    // It is a fact of the copy, and not kept as one of the run.
    fs::write(&log, whole).unwrap();
    stdout(&bench, &["compare", "a", "b"]);
    let text = stdout(&bench, &["report", "b"]);
    assert!(!text.contains("latency.hlog holds"), "{text}");
}

#[test]
fn benchmarks_are_put_side_by_side() {
    let bench = Bench::new();
    make_run(&bench.path("a"), 1, 1000.0, 400, "ycsb-a");
    make_run(&bench.path("b"), 2, 1200.0, 300, "ycsb-a");
    make_run(&bench.path("c"), 3, 1000.0, 400, "ycsb-a");
    make_run(&bench.path("other"), 4, 1000.0, 400, "ycsb-c");
    write_run(&bench.path("traced"), &[], &[]);

    let faster = json(&mut bench.seekscope(&["compare", "a", "b"]));
    assert_valid("compare", &faster);
    let rate = against(&faster, "per_second");
    assert_eq!(rate["comparison"]["differs"], true, "{rate}");
    assert!(
        (rate["ratio"].as_f64().unwrap() - 1.2).abs() < 0.03,
        "{rate}"
    );
    let p99 = against(&faster, "response_p99_ns");
    assert_eq!(p99["comparison"]["differs"], true, "{p99}");
    assert!(
        (p99["ratio"].as_f64().unwrap() - 0.75).abs() < 0.02,
        "{p99}"
    );

    let equal = json(&mut bench.seekscope(&["compare", "a", "c"]));
    assert_valid("compare", &equal);
    let rate = against(&equal, "per_second");
    assert_eq!(rate["comparison"]["differs"], false, "{rate}");
    assert!(
        rate["comparison"]["detectable"].as_f64().unwrap() < 0.05,
        "{rate}"
    );

    let text = stdout(&bench, &["compare", "a", "b", "c"]);
    assert!(text.contains("B / A") && text.contains("C / A"), "{text}");
    assert!(text.contains("cache_mib: 1 / 2 / 3"), "{text}");
    assert!(
        text.contains("no detectable difference between A and C above"),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");

    let refused = |arguments: &[&str], words: &[&str]| {
        let output = bench.seekscope(arguments).output().unwrap();
        assert_fails(&output, 2, words);
    };
    refused(
        &["compare", "a", "other"],
        &["different work", "ycsb-c", "--anyway"],
    );
    refused(&["compare", "a", "b", "a"], &["same run"]);
    refused(
        &["compare", "a", "traced"],
        &["traced", "is a run of `seekscope trace`"],
    );
    refused(
        &["compare", "traced", "a", "b"],
        &["traced", "layout, bench and doctor can be compared"],
    );
    let text = stdout(&bench, &["compare", "a", "other", "--anyway"]);
    assert!(
        text.contains("THEY DID DIFFERENT WORK: workload ycsb-a / ycsb-c"),
        "{text}"
    );
}
