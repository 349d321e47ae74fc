use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::directory_snapshot::unchanged_by;
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, shared_machine, stderr};

const SHORT: [&str; 6] = ["--size", "64M", "--runtime", "300ms", "--warm-up", "100ms"];

fn summary(bench: &Bench, more: &[&str]) -> Value {
    let mut command = bench.disk_job(&SHORT);
    let document = json(command.args(more));
    assert_valid("disk", &document);
    document["summary"].clone()
}

fn number(summary: &Value, name: &str) -> f64 {
    summary[name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name} is no number in {summary:#}"))
}

/// A table of latencies: there, in µs, and in order.
fn assert_latencies_rise(latency: &Value) {
    let in_order = ["p50", "p90", "p99", "p999", "max"];
    let known: Vec<f64> = in_order
        .iter()
        .map(|name| {
            assert!(latency.as_object().unwrap().contains_key(*name), "{name}");
            &latency[*name]
        })
        .filter_map(Value::as_f64)
        .collect();
    assert!(known.len() >= 2 && known.is_sorted(), "{latency:#}");
    assert!(
        known[0] > 0.0 && known[known.len() - 1] < 60e6,
        "{latency:#}"
    );
}

#[test]
fn every_engine_does_every_kind_and_names_its_figures() {
    // In a third of a second each job has to write and sync at least once.
    let _machine = machine();
    let bench = Bench::new();
    for engine in ["uring", "sync", "mmap", "null"] {
        for kind in ["read", "randread", "write", "randwrite", "rw", "randrw"] {
            let mut more = vec!["--engine", engine, "--rw", kind, "--bs", "16k"];
            if kind == "randwrite" {
                more.push("--sync");
            }
            let summary = unchanged_by(&bench.target(), || summary(&bench, &more));
            assert_eq!(summary["engine"], engine);
            assert_eq!(summary["access"], kind);
            assert_eq!(summary["block_bytes"], 16_384);
            let operations = number(&summary, "operations");
            let per_s = operations / number(&summary, "elapsed_s");
            assert!(operations > 0.0, "{summary:#}");
            assert!((number(&summary, "iops") / per_s - 1.0).abs() < 1e-6);
            assert!((number(&summary, "bytes_per_s") / (per_s * 16_384.0) - 1.0).abs() < 1e-6);
            assert!(number(&summary, "cpu_us_per_io") >= 0.0);
            assert!(summary["direct"].is_boolean());
            assert_latencies_rise(&summary["latency_us"]);
            assert_eq!(
                summary["write_latency_us"].is_object(),
                kind.contains('w'),
                "{kind}: {summary:#}"
            );
            assert_eq!(
                summary["sync_latency_us"].is_object(),
                kind == "randwrite" && engine != "null",
                "{engine} {kind}: {summary:#}"
            );
        }
    }
}

#[test]
fn what_goes_through_the_page_cache_is_not_called_direct() {
    let _machine = shared_machine();
    let bench = Bench::new();
    assert_eq!(summary(&bench, &[])["direct"], true);
    for more in [
        &["--buffered"][..],
        &["--engine", "mmap"],
        &["--engine", "null"],
    ] {
        let summary = summary(&bench, more);
        assert_eq!(summary["direct"], false, "{more:?}: {summary:#}");
    }
}

#[test]
fn the_null_engine_writes_nothing_and_says_so() {
    let _machine = shared_machine();
    let bench = Bench::new();
    for kind in ["randread", "randwrite", "rw"] {
        let summary = summary(&bench, &["--engine", "null", "--rw", kind]);
        assert_eq!(summary["written_bytes"], 0, "{summary:#}");
    }
}

#[test]
fn a_rate_is_kept() {
    let _machine = machine();
    let bench = Bench::new();
    let jobs: [(f64, f64, &[&str]); 4] = [
        (20_000.0, 0.03, &["--engine", "null"]),
        // Of 40,000 independent gaps the sum strays by 0.5 % (one standard deviation).
        (20_000.0, 0.04, &["--engine", "null", "--poisson"]),
        (200.0, 0.05, &["--engine", "sync"]),
        (
            200.0,
            0.05,
            &["--engine", "uring", "--depth", "4", "--threads", "2"],
        ),
    ];
    for (rate, tolerance, more) in jobs {
        let rate_text = rate.to_string();
        let mut command = bench.disk_job(&["--size", "64M", "--runtime", "2s", "--warm-up", "0ms"]);
        let summary = json(command.args(["--rate", &rate_text]).args(more))["summary"].clone();
        let done = number(&summary, "operations") / (rate * 2.0);
        assert!((done - 1.0).abs() <= tolerance, "{more:?}: {summary:#}");
        assert_eq!(number(&summary, "rate_per_s"), rate);
    }
}

#[test]
fn a_missed_threshold_ends_with_6_and_still_shows_the_figures() {
    let _machine = shared_machine();
    let bench = Bench::new();
    for (more, words) in [
        (["--min-iops", "1e9"], "--min-iops"),
        (["--max-p99", "0.001ms"], "--max-p99"),
    ] {
        let output = bench.disk_job(&SHORT).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("operations per second"));
    }
    let output = bench
        .disk_job(&SHORT)
        .args(["--min-iops", "1", "--max-p99", "1h"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn an_existing_file_is_read_and_stays_what_it_was() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let data = bench.target().join("collection.wt");
    let content: Vec<u8> = (0..32u32 << 20)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&data, &content).unwrap();
    let existing = |more: &[&str]| {
        let mut command = bench.seekscope(&["disk", "run", "--runtime", "300ms"]);
        command.arg("--read-existing").arg(&data).args(more);
        command
    };
    for engine in ["uring", "sync", "mmap"] {
        let document = unchanged_by(&bench.target(), || {
            json(&mut existing(&["--engine", engine]))
        });
        assert!(number(&document["summary"], "operations") > 0.0);
        assert_eq!(document["summary"]["written_bytes"], 0);
        assert_eq!(document["summary"]["existing_file"], data.to_str().unwrap());
    }
    for kind in ["write", "rw", "randwrite", "randrw"] {
        let output = unchanged_by(&bench.target(), || {
            existing(&["--rw", kind]).output().unwrap()
        });
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("only ever read"),
            "{}",
            stderr(&output)
        );
    }
}

/// strace counts the same calls.
#[test]
fn the_count_of_operations_is_that_of_the_system_calls() {
    // Below strace they have to be many in a second.
    let _machine = machine();
    let bench = Bench::new();
    let job = bench.disk_job(&[
        "--engine",
        "sync",
        "--threads",
        "2",
        "--rw",
        "randread",
        "--bs",
        "16k",
        "--size",
        "64M",
        "--runtime",
        "1s",
        "--warm-up",
        "0ms",
        "--json",
        "--quiet",
    ]);
    let log = bench.path("strace.log");
    let output = under_strace(&job, &log);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", stderr(&output)));
    let operations = document["summary"]["operations"].as_u64().unwrap();
    let traced = std::fs::read_to_string(&log).unwrap();
    // A call that others interrupt is two lines, of which the second has its result.
    let of_the_job = |line: &&str| line.contains("pread64") && line.ends_with("= 16384");
    let calls = traced.lines().filter(of_the_job).count() as u64;
    // Those under way when the time is up are made but not counted; the probe reads a few.
    assert!(
        operations > 500 && (operations..=operations + 64).contains(&calls),
        "{operations} operations, {calls} calls"
    );
}

fn under_strace(job: &Command, log: &Path) -> Output {
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=pread64", "-o"]).arg(log);
    command.arg(job.get_program()).args(job.get_args());
    for (name, value) in job.get_envs() {
        command.env(name, value.unwrap());
    }
    command.current_dir(job.get_current_dir().unwrap());
    command.output().expect("strace; `./x test` installs it")
}

#[test]
fn the_run_directory_says_the_same_later() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let first = json(
        bench
            .disk_job(&SHORT)
            .args(["--depth", "4", "--out", "run"]),
    );
    for name in [
        "run.json",
        "intervals.parquet",
        "latency.hlog",
        "report.html",
    ] {
        let length = bench.path("run").join(name).metadata().unwrap().len();
        assert!(length > 0, "{name}");
    }
    let again = unchanged_by(&bench.target(), || {
        json(&mut bench.seekscope(&["report", "run"]))
    });
    assert_valid("disk", &again);
    for (key, value) in first.as_object().unwrap() {
        assert_eq!(&again[key], value, "{key}");
    }
    assert_eq!(bench.leftovers(&["run", "target"]), Vec::<String>::new());
}
