//! What a replay tells of itself: figures, records, the model's answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use seekscope_run::{IoEvent, IoOp, RunDirectory, parse_tag};
use serde_json::Value;

use crate::directory_snapshot::unchanged_by;
use crate::recorded_run::{DATA, MS, event, write_run};
use crate::schemas::assert_valid;
use crate::support::{Bench, json, machine, run_document, stderr};

const SIZE: u64 = 4 << 20;

/// `seekscope replay rec --create target --out OUT`.
fn replay(bench: &Bench, out: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["replay", "rec", "--out", out, "--create"]);
    command.arg(bench.target()).args(more);
    command
}

/// One thread that reads 40 blocks, one every 20 ms, and writes and syncs after each tenth.
fn steady() -> Vec<IoEvent> {
    let mut events = Vec::new();
    for n in 0..40 {
        events.push(event(5, IoOp::Pread, 1 + n * 20 * MS, n * 65_536, 4096));
        if n % 10 == 9 {
            events.push(event(
                5,
                IoOp::Pwrite,
                1 + n * 20 * MS + MS,
                n * 65_536,
                512,
            ));
            events.push(event(5, IoOp::Fdatasync, 1 + n * 20 * MS + 2 * MS, 0, 0));
        }
    }
    events
}

fn write_steady(bench: &Bench) {
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &steady());
}

#[test]
fn the_figures_of_both_sides_are_those_of_the_same_operations() {
    let bench = Bench::new();
    write_steady(&bench);
    let document = unchanged_by(&bench.target(), || json(&mut replay(&bench, "run", &[])));
    assert_valid("replay", &document);
    let summary = &document["summary"];
    assert_eq!(summary["ended"], "complete");
    let outcome = &summary["outcome"];
    for (kind, count, bytes) in [
        ("reads", 40, 40 * 4096),
        ("writes", 4, 2048),
        ("syncs", 4, 0),
    ] {
        for side in ["recorded", "replayed"] {
            let figures = &outcome[kind][side];
            assert_eq!(figures["count"], count, "{kind} {side}");
            assert_eq!(figures["latency"]["count"], count, "{kind} {side}");
            assert_eq!(
                (&figures["bytes"], &figures["errors"]),
                (&bytes.into(), &0.into())
            );
        }
        let recorded = outcome[kind]["recorded"]["latency"]["p50_ns"]
            .as_u64()
            .unwrap();
        assert!(recorded.abs_diff(100_000) < 100, "{recorded}");
        assert!(outcome[kind]["ratio"]["p99"].as_f64() > Some(0.0));
    }
    // From the first start to the last sync's end.
    assert_eq!(outcome["recorded_elapsed_ns"], 782 * MS + 100_000);
    assert!(
        outcome["elapsed_ns"].as_u64() >= Some(770 * MS),
        "{outcome:#}"
    );
    assert_eq!(summary["target"]["resident_bytes"], 0);
    assert_eq!(summary["plan"]["cache"]["hits"], 40);
    records_agree(&bench.path("run"), outcome);
    shown_again(&bench, &document);
}

/// The run's own records hold the same operations.
fn records_agree(run: &Path, outcome: &Value) {
    let (directory, _) = RunDirectory::open(run).unwrap();
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (tag, histogram) in directory.latency_histograms().unwrap() {
        counts.insert(parse_tag(&tag).unwrap(), histogram.len());
    }
    let mut of_intervals: BTreeMap<String, u64> = BTreeMap::new();
    for interval in directory.intervals().unwrap() {
        *of_intervals.entry(interval.operation).or_default() += interval.count;
    }
    for (kind, operation) in [("reads", "read"), ("writes", "write"), ("syncs", "sync")] {
        let count = outcome[kind]["replayed"]["count"].as_u64().unwrap();
        assert_eq!(of_intervals[operation], count, "{operation}");
        for step in ["recorded", "replayed"] {
            assert_eq!(
                counts[&(step.into(), operation.into())],
                count,
                "{step} {operation}"
            );
        }
    }
}

fn shown_again(bench: &Bench, document: &Value) {
    let again = json(&mut bench.seekscope(&["report", "run"]));
    assert_eq!(&again, document);
    let text = bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    for words in [
        "/data/c.wt",
        " read\n recorded",
        " sync\n recorded",
        "total time",
        "48 of 48 operations",
        "closed loop, as recorded",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
}

#[test]
fn speed_decides_what_is_waited_for() {
    // What a sync takes counts, too.
    let _machine = machine();
    let bench = Bench::new();
    write_steady(&bench);
    let elapsed_ms = |name: &str, more: &[&str]| {
        let document = json(&mut replay(&bench, name, more));
        assert_valid("replay", &document);
        document["summary"]["outcome"]["elapsed_ns"]
            .as_u64()
            .unwrap()
            / MS
    };
    assert!(elapsed_ms("open", &["--loop", "open"]) >= 782);
    let twice = elapsed_ms("twice", &["--speed", "2"]);
    assert!(twice >= 385, "{twice}");
    let most = elapsed_ms("max", &["--speed", "max"]);
    assert!(most < twice, "{most} {twice}");
}

#[test]
fn late_starts_count_from_when_they_should_have_been() {
    let bench = Bench::new();
    // A hundred reads at once.
    let burst: Vec<IoEvent> = (0..100)
        .map(|n| event(5, IoOp::Pread, 9, n * 4096, 4096))
        .collect();
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &burst);
    let open = json(&mut replay(&bench, "open", &["--loop", "open"]));
    assert_valid("replay", &open);
    let outcome = &open["summary"]["outcome"];
    assert_eq!(outcome["late_starts"], 99);
    let reads = &outcome["reads"]["replayed"];
    let longest = |of: &str| reads[of]["max_ns"].as_u64().unwrap();
    assert!(longest("response") > longest("latency"), "{reads:#}");
    let closed = json(&mut replay(&bench, "closed", &[]));
    let outcome = &closed["summary"]["outcome"];
    assert_eq!(outcome["late_starts"], 0);
    assert!(outcome["reads"]["replayed"]["response"].is_null());
}

#[test]
fn what_is_left_out_or_played_otherwise_is_counted() {
    let bench = Bench::new();
    let events = [
        event(5, IoOp::Pread, 1, 0, 4096),
        event(5, IoOp::Pread, 2, SIZE - 4096, 4096),
        event(5, IoOp::Pwrite, 3, 0, 4096),
        event(5, IoOp::Fsync, 4, 0, 0),
        IoEvent {
            result: -5,
            ..event(5, IoOp::Pread, 5, 0, 4096)
        },
        IoEvent {
            offset: None,
            ..event(5, IoOp::Read, 6, 0, 4096)
        },
    ];
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
    let target = bench.target().join("small");
    std::fs::write(&target, vec![1; 1 << 20]).unwrap();
    let mut command = bench.seekscope(&["replay", "rec", "--out", "run", "--file"]);
    let document = unchanged_by(&bench.target(), || json(command.arg(&target)));
    assert_valid("replay", &document);
    let plan = &document["summary"]["plan"];
    let skipped = &plan["skipped"];
    assert_eq!(
        (&skipped["writes"], &skipped["syncs"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&skipped["failed"][0], &skipped["unknown_offset"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&plan["operations"], &plan["adjusted"]["wrapped"]),
        (&2.into(), &1.into())
    );
    assert_eq!(
        document["summary"]["outcome"]["reads"]["recorded"]["errors"],
        1
    );
    let text = bench.seekscope(&["report", "run"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("Not replayed: 1 write: the target is only read"),
        "{text}"
    );
    assert!(
        text.contains("Replayed differently: 1 operation beyond the end of the target"),
        "{text}"
    );
}

#[test]
fn a_copy_is_written_and_its_original_is_not() {
    let bench = Bench::new();
    write_steady(&bench);
    let original = bench.target().join("data");
    std::fs::write(&original, vec![3; usize::try_from(SIZE).unwrap()]).unwrap();
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for more in [&[][..], &["--create", "elsewhere"]] {
        let mut command = bench.seekscope(&["replay", "rec", "--speed", "max", "--copy-of"]);
        command.arg(&original).args(more);
        let document = unchanged_by(&bench.target(), || json(&mut command));
        assert_valid("replay", &document);
        let summary = &document["summary"];
        assert_eq!(summary["target"]["kind"], "copy");
        assert_eq!(summary["outcome"]["writes"]["replayed"]["count"], 4);
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    }
}

#[test]
fn a_time_limit_ends_it_with_what_was_played() {
    let bench = Bench::new();
    let hour = 3_600_000 * MS;
    let events = [
        event(5, IoOp::Pread, 0, 0, 4096),
        event(5, IoOp::Pread, hour, 0, 4096),
    ];
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &events);
    let document = json(&mut replay(&bench, "run", &["--time-limit", "300ms"]));
    assert_valid("replay", &document);
    let summary = &document["summary"];
    assert_eq!(
        (&summary["ended"], &document["outcome"]),
        (&"time_limit".into(), &"ok".into())
    );
    assert_eq!(summary["outcome"]["reads"]["recorded"]["count"], 1);
    assert_eq!(summary["outcome"]["recorded_elapsed_ns"], 100_000);
}

#[test]
fn a_warm_target_keeps_its_pages() {
    let bench = Bench::new();
    write_steady(&bench);
    let file = bench.target().join("data");
    std::fs::write(&file, vec![3; usize::try_from(SIZE).unwrap()]).unwrap();
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let resident = |more: &[&str]| {
        let mut command = bench.seekscope(&["replay", "rec", "--speed", "max", "--file"]);
        let document = json(command.arg(&file).args(more));
        document["summary"]["target"]["resident_bytes"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(resident(&["--warm"]), SIZE);
    assert_eq!(resident(&[]), 0);
}

#[test]
fn the_model_answers_for_the_same_accesses() {
    let bench = Bench::new();
    bench.target();
    let mut survey = bench.seekscope(&["disk", "target", "--out", "model"]);
    // Surveys take all that the disk has.
    let alone = machine();
    json(survey.args(["--budget", "10s", "--size", "64M"]));
    drop(alone);
    let reads: Vec<IoEvent> = (0..200)
        .map(|n| event(5, IoOp::Pread, 1 + n * MS, n * 37 % 512 * 8192, 8192))
        .collect();
    write_run(&bench.path("rec"), &[(DATA, "/data/c.wt", SIZE)], &reads);
    let predicted = json(
        bench
            .seekscope(&["disk", "predict", "--model", "model"])
            .args(["--trace", "rec"]),
    );
    let document = json(&mut replay(
        &bench,
        "max",
        &["--speed", "max", "--model", "model"],
    ));
    assert_valid("replay", &document);
    let prediction = &document["summary"]["prediction"];
    let seconds = |of: &str| prediction[of].as_u64().unwrap() as f64 / 1e9;
    let other = &predicted["summary"];
    assert_eq!(
        Some(seconds("as_recorded_ns")),
        other["predicted_s"].as_f64()
    );
    assert_eq!(
        Some(seconds("without_think_time_ns")),
        other["predicted_without_think_time_s"].as_f64()
    );
    assert_eq!(
        prediction["at_this_speed_ns"],
        prediction["without_think_time_ns"]
    );
    let slower = json(&mut replay(
        &bench,
        "half",
        &["--speed", "0.5", "--model", "model"],
    ));
    let at_half = &slower["summary"]["prediction"]["at_this_speed_ns"];
    assert!(
        at_half.as_u64() > prediction["as_recorded_ns"].as_u64(),
        "{slower:#}"
    );
    let text = bench.seekscope(&["report", "max"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("At this speed: predicted"), "{text}");
    let not_a_model = replay(&bench, "never", &["--model", "rec"])
        .output()
        .unwrap();
    assert_eq!(
        not_a_model.status.code(),
        Some(2),
        "{}",
        stderr(&not_a_model)
    );
    assert!(!bench.path("never").exists());
    assert_eq!(run_document(&bench.path("max"))["command"], "replay");
}
