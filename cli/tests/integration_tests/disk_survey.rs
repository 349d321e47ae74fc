use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::directory_snapshot::unchanged_by;
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, stderr};

const READING: [&str; 8] = [
    "generator",
    "size",
    "ramp",
    "sequential_direct",
    "order",
    "cached",
    "read_ahead",
    "mmap",
];
const WRITING: [&str; 3] = ["journal", "checkpoint", "mixed"];

fn steps<'a>(document: &'a Value, group: &str) -> Vec<&'a Value> {
    let all = document["summary"]["steps"].as_array().unwrap();
    all.iter().filter(|s| s["group"] == group).collect()
}

fn groups(document: &Value) -> BTreeSet<&str> {
    let all = document["summary"]["steps"].as_array().unwrap();
    all.iter().map(|s| s["group"].as_str().unwrap()).collect()
}

#[test]
fn a_short_survey_has_all_figures_and_a_model() {
    let _machine = machine();
    let bench = Bench::new();
    let started = Instant::now();
    let document = unchanged_by(&bench.target(), || {
        let mut command = bench.seekscope(&["disk", "target", "--out", "run"]);
        json(command.args(["--budget", "12s", "--size", "128M"]))
    });
    assert!(
        started.elapsed() < Duration::from_secs(36),
        "{:?}",
        started.elapsed()
    );
    assert_valid("disk", &document);
    assert_eq!(document["outcome"], "ok");
    let all: BTreeSet<&str> = READING.into_iter().chain(WRITING).collect();
    assert_eq!(groups(&document), all);
    let ramp: BTreeSet<(u64, u64)> = steps(&document, "ramp")
        .iter()
        .map(|s| {
            (
                s["block_bytes"].as_u64().unwrap(),
                s["depth"].as_u64().unwrap(),
            )
        })
        .collect();
    let sizes = [4096, 16_384, 32_768];
    let wanted = sizes.iter().flat_map(|s| (0..8).map(move |d| (*s, 1 << d)));
    assert_eq!(ramp, wanted.collect());
    for step in document["summary"]["steps"].as_array().unwrap() {
        assert!(step["iops"].as_f64() > Some(0.0), "{step:#}");
    }
    assert!(document["summary"]["model"]["l0_ns"].as_f64() > Some(0.0));
    assert_eq!(document["summary"]["direct"], true);
    // 128 MiB to fill it, and then the writing steps.
    assert!(document["summary"]["written_bytes"].as_u64() > Some(128 << 20));

    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    page_is_self_contained(&bench);
    assert_eq!(bench.leftovers(&["run", "target"]), Vec::<String>::new());
}

/// It can be opened years later, on a host without a network.
fn page_is_self_contained(bench: &Bench) {
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    for load in ["src=\"", "href=\"", "url(", "fetch(", "import("] {
        for (at, _) in page.match_indices(load) {
            let rest = &page[at + load.len()..];
            let target: String = rest.chars().take(40).collect();
            let target = target.trim_start_matches(['"', '\'', ' ']);
            assert!(
                !target.starts_with("http:")
                    && !target.starts_with("https:")
                    && !target.starts_with("//"),
                "{load}{target}"
            );
        }
    }
}

#[test]
fn a_survey_of_an_existing_file_never_writes_it() {
    // Surveys take all that the disk has.
    let _machine = machine();
    let bench = Bench::new();
    let data = bench.target().join("collection.wt");
    std::fs::write(&data, vec![7; 64 << 20]).unwrap();
    let document = unchanged_by(&bench.target(), || {
        let mut command = bench.seekscope(&["disk", "--budget", "10s"]);
        json(command.arg("--read-existing").arg(&data))
    });
    assert_valid("disk", &document);
    assert_eq!(groups(&document), READING.into_iter().collect());
    assert_eq!(document["summary"]["written_bytes"], 0);
    assert!(document["summary"]["model"].is_object());
}

/// The throttled disk of the fact sheet: 150 requests/s, 150 MB/s.
#[test]
fn on_a_slow_disk_order_is_everything_and_the_model_knows() {
    let _machine = machine();
    let bench = Bench::new();
    bench.target();
    let mut command = bench.seekscope(&["disk", "target", "--out", "run", "--emulate-disk", "hdd"]);
    let document = json(command.args(["--budget", "40s", "--size", "300M"]));
    assert_eq!(bench.leftovers(&["run", "target"]), Vec::<String>::new());
    assert_valid("disk", &document);
    assert_eq!(document["summary"]["emulated"], true);
    for step in steps(&document, "ramp") {
        let iops = step["iops"].as_f64().unwrap();
        assert!((135.0..165.0).contains(&iops), "{step:#}");
    }
    let predictions = document["summary"]["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 4, "{predictions:#?}");
    let per_s = |name: &str, what: &str| {
        let found = predictions
            .iter()
            .find(|p| p["name"].as_str().unwrap().contains(name))
            .unwrap_or_else(|| panic!("no {name}: {predictions:#?}"));
        found[what].as_f64().unwrap()
    };
    for name in ["in order", "shuffled", "runs of 8", "runs of 64"] {
        let ratio = per_s(name, "predicted_per_s") / per_s(name, "measured_per_s");
        assert!(
            (0.75..=1.25).contains(&ratio),
            "{name}: {ratio} {predictions:#?}"
        );
    }
    let gain = per_s("in order", "measured_per_s") / per_s("shuffled", "measured_per_s");
    assert!(gain > 10.0, "order gain {gain}");
    let shown = bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    for word in ["emulated", "rder gain", "runs of 64"] {
        assert!(text.contains(word), "{word} is missing:\n{text}");
    }
}

#[test]
fn the_report_prints_the_same_tables_again() {
    // Surveys take all that the disk has.
    let _machine = machine();
    let bench = Bench::new();
    bench.target();
    let mut survey = bench.seekscope(&["disk", "target", "--out", "run"]);
    survey.args(["--budget", "10s", "--size", "32M"]);
    let mut job = bench.disk_job(&["--size", "8M", "--runtime", "200ms", "--out", "job"]);
    for (command, out) in [(&mut survey, "run"), (&mut job, "job")] {
        let first = command.output().unwrap();
        assert!(first.status.success(), "{}", stderr(&first));
        let again = bench.seekscope(&["report", out]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (first, again) = (text(first.stdout), text(again.stdout));
        assert!(!first.is_empty() && first == again, "{first}\n{again}");
    }
}
