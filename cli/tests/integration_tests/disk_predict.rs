use std::process::Output;

use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, stderr};

fn predict(bench: &Bench, more: &[&str]) -> Output {
    let mut command = bench.seekscope(&["disk", "predict"]);
    command.args(more).output().unwrap()
}

fn elapsed_s(bench: &Bench, order: &str) -> f64 {
    let mut command = bench.seekscope(&["disk", "predict", "--model", "run", "--order", order]);
    let document = json(command.args(["--bs", "32k", "--region", "96M"]));
    assert_valid("disk-predict", &document);
    let summary = &document["summary"];
    assert_eq!(summary["accesses"], accesses(order), "{document:#}");
    summary["predicted_s"]
        .as_f64()
        .unwrap_or_else(|| panic!("{document:#}"))
}

/// Blocks of 32 KiB in 96 MiB.
fn accesses(order: &str) -> u64 {
    match order.split_once("every:") {
        Some((_, n)) => 3072_u64.div_ceil(n.parse().unwrap()),
        None => 3072,
    }
}

#[test]
fn the_model_of_a_survey_predicts_orders() {
    let bench = Bench::new();
    bench.target();
    let mut survey = bench.seekscope(&["disk", "target", "--out", "run"]);
    survey.args(["--budget", "10s", "--size", "96M", "--emulate-disk", "hdd"]);
    let alone = machine();
    json(&mut survey);
    drop(alone);

    let in_order = elapsed_s(&bench, "sequential");
    let runs_of_64 = elapsed_s(&bench, "runs:64");
    let runs_of_8 = elapsed_s(&bench, "runs:8");
    let shuffled = elapsed_s(&bench, "shuffled");
    let times = [in_order, runs_of_64, runs_of_8, shuffled];
    assert!(times[0] > 0.0 && times.is_sorted(), "{times:?}");
    assert!(shuffled > 10.0 * in_order, "{times:?}");
    // 3,072 requests at 150 per second.
    assert!((15.0..27.0).contains(&shuffled), "{times:?}");
    elapsed_s(&bench, "backwards");
    elapsed_s(&bench, "every:8");

    let text = predict(&bench, &["--model", "run", "--order", "shuffled"]);
    assert!(text.status.success(), "{}", stderr(&text));
    assert!(String::from_utf8_lossy(&text.stdout).contains("predicted"));
    for wrong in [
        "",
        "sorted",
        "runs",
        "runs:0",
        "runs:-1",
        "every:0",
        "runs:99999999999999999999",
    ] {
        let refused = predict(&bench, &["--model", "run", "--order", wrong]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{wrong}: {}",
            stderr(&refused)
        );
    }
    absurd_sizes_are_refused(&bench);
    a_run_without_events_has_no_trace(&bench);
    an_imported_trace_is_predicted(&bench);
}

fn an_imported_trace_is_predicted(bench: &Bench) {
    let iolog = "fio version 2 iolog\n/d/a read 0 4096\n/d/a read 8192 4096\n/d/a write 0 512\n";
    std::fs::write(bench.path("iolog"), iolog).unwrap();
    json(&mut bench.seekscope(&["trace", "import", "iolog", "--out", "imported"]));
    let arguments = ["disk", "predict", "--model", "run", "--trace", "imported"];
    let document = json(&mut bench.seekscope(&arguments));
    assert_eq!(document["summary"]["accesses"], 3, "{document:#}");
}

fn absurd_sizes_are_refused(bench: &Bench) {
    for more in [
        ["--bs", "0"],
        ["--region", "0"],
        ["--region", "1"],
        ["--bs", "2G"],
        // 8 thousand billion accesses.
        ["--region", "262144T"],
    ] {
        let mut arguments = vec!["--model", "run", "--order", "shuffled"];
        arguments.extend(more);
        let refused = predict(bench, &arguments);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{more:?}: {}",
            stderr(&refused)
        );
    }
}

fn a_run_without_events_has_no_trace(bench: &Bench) {
    let refused = predict(bench, &["--model", "run", "--trace", "run"]);
    assert!(
        matches!(refused.status.code(), Some(1 | 2)),
        "{:?} {}",
        refused.status,
        stderr(&refused)
    );
    assert!(stderr(&refused).contains("run"), "{}", stderr(&refused));
}

#[test]
fn without_a_model_nothing_is_predicted() {
    let bench = Bench::new();
    let mut job = bench.disk_job(&["--size", "8M", "--runtime", "100ms", "--warm-up", "0ms"]);
    let _: Value = json(job.args(["--out", "job"]));
    for run in ["job", "target", "nowhere"] {
        let refused = predict(&bench, &["--model", run, "--order", "shuffled"]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{run}: {}",
            stderr(&refused)
        );
        assert!(stderr(&refused).contains(run), "{}", stderr(&refused));
    }
    let neither = predict(&bench, &["--model", "job"]);
    assert_eq!(neither.status.code(), Some(2), "{}", stderr(&neither));
}
