//! `seekscope layout` on stopped data, `compare`, and `report` on their runs. The data directories are
//! those of real mongods, cut down to what layout reads; the truth beside them is WiredTiger's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use seekscope_run::RunDirectory;
use serde_json::Value;

use crate::directory_snapshot::unchanged_by;
use crate::recorded_run::write_run;
use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, json, machine, run_document, stderr};

const ARCHIVES: [&str; 4] = ["none", "snappy", "snappy42", "zlib_dirs"];

fn test_data(name: &str) -> PathBuf {
    Path::new("../wiredtiger/tests/data").join(name)
}

/// Unpacks a data directory into `data` and reads what is true of its files.
fn unpack(bench: &Bench, archive: &str) -> (PathBuf, Value) {
    let data = bench.path("data");
    std::fs::create_dir(&data).unwrap();
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(test_data(&format!("{archive}.tar.gz")))
        .arg("-C")
        .arg(&data)
        .status()
        .unwrap();
    assert!(status.success());
    let truth = std::fs::read(test_data(&format!("{archive}.expected.json"))).unwrap();
    let truth: Value = serde_json::from_slice(&truth).unwrap();
    (home(&data), truth["files"].clone())
}

/// The folder with the turtle.
fn home(folder: &Path) -> PathBuf {
    if folder.join("WiredTiger.turtle").exists() {
        return folder.to_path_buf();
    }
    let below = folder.read_dir().unwrap().flatten().map(|e| e.path());
    let found = below.filter(|p| p.is_dir()).map(|p| home(&p));
    found.into_iter().next().expect("a WiredTiger directory")
}

fn layout(bench: &Bench, place: &Path, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["layout"]);
    command.arg(place).args(more);
    command
}

fn by_file(document: &Value) -> BTreeMap<String, Value> {
    let files = document["summary"]["files"].as_array().unwrap();
    let key = |file: &Value| file["file"].as_str().unwrap().to_string();
    files.iter().map(|file| (key(file), file.clone())).collect()
}

/// The collection of the truth with most leaves.
fn largest(truth: &Value) -> (String, Value) {
    let collections = truth.as_object().unwrap().iter();
    let collections = collections.filter(|(_, file)| file["index"].is_null());
    let leaves = |file: &Value| file["leaves"].as_array().map_or(0, Vec::len);
    let (name, file) = collections.max_by_key(|(_, file)| leaves(file)).unwrap();
    (name.clone(), file.clone())
}

#[test]
fn files_of_real_mongods_are_found_named_and_listed() {
    for archive in ARCHIVES {
        let bench = Bench::new();
        let (data, truth) = unpack(&bench, archive);
        let document = unchanged_by(&data, || {
            json(&mut layout(
                &bench,
                &data,
                &["--out", "run", "--typical", "hdd"],
            ))
        });
        assert_valid("layout", &document);
        assert_eq!(document["outcome"], "ok", "{archive}: {document}");
        assert_eq!(document["summary"]["state"], "stopped");
        assert_eq!(document["summary"]["names"], "catalogue");
        assert_eq!(document["summary"]["disk_measured"], false);
        let found = by_file(&document);
        for (name, truth) in truth.as_object().unwrap() {
            let file = found
                .get(name)
                .unwrap_or_else(|| panic!("{archive}: no {name}"));
            assert_eq!(file["namespace"], truth["namespace"], "{archive} {name}");
            assert_eq!(file["index"], truth["index"], "{archive} {name}");
            let leaves = truth["leaves"].as_array().map_or(0, Vec::len);
            assert_eq!(file["leaf_pages"], leaves, "{archive} {name}");
        }
        let mut last = f64::INFINITY;
        for file in document["summary"]["files"].as_array().unwrap() {
            let scan = &file["predicted_scan_s"];
            let saved =
                scan["now"].as_f64().unwrap_or(0.0) - scan["ordered"].as_f64().unwrap_or(0.0);
            assert!(
                saved.max(0.0) <= last,
                "what order would save most comes first"
            );
            last = saved.max(0.0);
        }
    }
}

#[test]
fn scans_are_predicted_for_a_disk_that_is_measured_first() {
    // Surveys take all that the disk has.
    let _machine = machine();
    let bench = Bench::new();
    let (data, _) = unpack(&bench, "snappy42");
    let target = bench.target();
    let disk = target.to_str().unwrap();
    let measured = [
        "--out",
        "run",
        "--measure-disk",
        disk,
        "--measure-for",
        "10s",
    ];
    let document = json(&mut layout(&bench, &data, &measured));
    assert_valid("layout", &document);
    assert_eq!(document["summary"]["disk_measured"], true);
    let runs = bench.path("seekscope-runs").read_dir().unwrap();
    let runs: Vec<_> = runs.flatten().map(|entry| entry.path()).collect();
    assert_eq!(runs.len(), 1, "the survey's own run: {runs:?}");
    // The same from that run, named.
    let named = ["--out", "again", "--disk-run", runs[0].to_str().unwrap()];
    let again = json(&mut layout(&bench, &data, &named));
    let of = |document: &Value| document["summary"]["files"][0]["predicted_scan_s"].clone();
    assert_eq!(of(&again), of(&document));
    assert_eq!(target.read_dir().unwrap().count(), 0, "nothing is left");
}

#[test]
fn leaves_are_wiredtigers_own_by_every_name() {
    let bench = Bench::new();
    let (data, truth) = unpack(&bench, "zlib_dirs");
    let (file, facts) = largest(&truth);
    let expected = facts["leaves"].as_array().unwrap();
    let printed = |command: &mut Command| {
        let output = command.arg("--leaves").output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let lines = String::from_utf8(output.stdout).unwrap();
        let pairs = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        pairs.collect::<Vec<Value>>()
    };
    let namespace = facts["namespace"].as_str().unwrap();
    for name in [namespace, &file, file.strip_suffix(".wt").unwrap()] {
        assert_eq!(
            &printed(&mut layout(&bench, &data, &[name])),
            expected,
            "{name}"
        );
    }
    assert_eq!(
        &printed(&mut layout(&bench, &data.join(&file), &[])),
        expected
    );
    assert!(
        !bench.path("seekscope-runs").exists(),
        "prints, and makes no run"
    );
    let all = layout(&bench, &data, &["--leaves"]).output().unwrap();
    assert_fails(&all, 2, &["--leaves is of one file"]);
}

#[test]
fn details_are_shown_again_by_report() {
    let bench = Bench::new();
    let (data, truth) = unpack(&bench, "snappy");
    let (_, facts) = largest(&truth);
    let name = facts["namespace"].as_str().unwrap();
    let mut command = layout(&bench, &data, &[name, "--out", "run"]);
    let text = command
        .args(["--updates-per-hour", "1000"])
        .env("LC_ALL", "C")
        .output();
    let text = text.unwrap();
    assert!(text.status.success(), "{}", stderr(&text));
    let shown = String::from_utf8(text.stdout).unwrap();
    for expected in [
        name,
        "leaves in key order",
        "GAP TO THE NEXT LEAF",
        "RUNS OF",
        "--updates-per-hour 1000",
        "was assumed, not measured",
        "no server has this directory open",
    ] {
        assert!(
            shown.to_uppercase().contains(&expected.to_uppercase()),
            "{expected}: {shown}"
        );
    }
    assert!(
        !shown.contains(['█', '░', '│', '─']),
        "plain ASCII was asked for: {shown}"
    );

    let again = bench
        .seekscope(&["report", "run"])
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let again = String::from_utf8(again.stdout).unwrap();
    assert!(again.contains('█') && again.contains('│'), "{again}");
    let document = json(&mut bench.seekscope(&["report", "run"]));
    assert_valid("layout", &document);
    let file = &document["summary"]["files"][0];
    assert_eq!(file["namespace"], name);
    assert!(file["decay"]["half_life_hours"].as_f64().unwrap() > 0.0);
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains(name) && page.contains("Place in the file by key order"));

    let (run, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let mut rows = Vec::new();
    run.for_each_leaf(|_| true, |leaf| rows.push((leaf.offset, leaf.length)))
        .unwrap();
    let truth: Vec<(u64, u32)> = serde_json::from_value(facts["leaves"].clone()).unwrap();
    assert_eq!(rows, truth, "layout.parquet");
    assert_eq!(run.files().unwrap()[0].namespace.as_deref(), Some(name));
}

#[test]
fn what_is_no_data_directory_is_refused_in_words() {
    let bench = Bench::new();
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let refused = |place: &Path, more: &[&str]| layout(&bench, place, more).output().unwrap();
    assert_fails(
        &refused(&empty, &[]),
        2,
        &["not a WiredTiger data directory", "empty"],
    );
    assert_fails(
        &refused(&bench.path("nowhere"), &[]),
        2,
        &["does not exist"],
    );
    let (data, _) = unpack(&bench, "none");
    assert_fails(
        &refused(&data, &["shop.nothing"]),
        2,
        &["shop.nothing", "there is"],
    );
    assert_fails(&refused(&data, &["--disk-run", "nothing"]), 2, &["nothing"]);
    assert_fails(&refused(&data, &["--pid", "1"]), 2, &["--pid"]);
    assert!(
        !bench.path("seekscope-runs").exists(),
        "refused before anything is made"
    );
}

#[test]
fn a_damaged_file_is_named_and_the_others_are_measured() {
    let bench = Bench::new();
    let (data, truth) = unpack(&bench, "snappy");
    let (name, facts) = largest(&truth);
    let root: (u64, u64) = serde_json::from_value(facts["root"].clone()).unwrap();
    let path = data.join(&name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(root.0).unwrap() + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();

    let output = layout(&bench, &data, &["--json", "--out", "run"])
        .output()
        .unwrap();
    assert_fails(&output, 5, &[&name, &root.0.to_string(), "damaged"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_valid("layout", &document);
    assert_eq!(document["outcome"], "partial");
    let found = by_file(&document);
    assert_eq!(found.len(), truth.as_object().unwrap().len());
    assert!(
        found[&name]["not_measured"]
            .as_str()
            .unwrap()
            .contains("damaged")
    );
    for unknown in ["leaf_pages", "free_bytes", "checkpoint", "compressor"] {
        assert_eq!(found[&name][unknown], Value::Null, "{unknown}");
    }
    let measured = found
        .values()
        .filter(|file| file["leaf_pages"].as_u64() > Some(0));
    assert!(measured.count() > 1);
}

#[test]
fn two_layouts_are_put_side_by_side() {
    let bench = Bench::new();
    let (data, truth) = unpack(&bench, "snappy");
    let before = json(&mut layout(&bench, &data, &["--out", "before"]));
    json(&mut layout(
        &bench,
        &data,
        &["--out", "after", "--since", "before"],
    ));

    let compared = json(&mut bench.seekscope(&["compare", "before", "after"]));
    assert_valid("compare", &compared);
    let files = compared["summary"]["files"].as_array().unwrap();
    assert_eq!(files.len(), truth.as_object().unwrap().len());
    for file in files {
        assert_eq!(file["first"]["score"], file["second"]["score"]);
        assert_eq!(file["first"]["file"], file["second"]["file"], "matched");
    }
    let unmoved = files.iter().filter(|f| f["moved_leaf_pages"] == 0);
    let with_leaves = by_file(&before)
        .into_values()
        .filter(|f| f["leaf_pages"] != 0);
    assert_eq!(unmoved.count(), with_leaves.count());

    let text = bench
        .seekscope(&["compare", "before", "after"])
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let (_, facts) = largest(&truth);
    assert!(
        text.contains(facts["namespace"].as_str().unwrap()),
        "{text}"
    );

    write_run(&bench.path("traced"), &[], &[]);
    let refused = bench
        .seekscope(&["compare", "before", "traced"])
        .output()
        .unwrap();
    assert_fails(&refused, 2, &["traced", "seekscope trace", "layout"]);
    let same = bench
        .seekscope(&["compare", "before", "before"])
        .output()
        .unwrap();
    assert_fails(&same, 2, &["same run"]);
}

#[test]
fn a_single_file_needs_no_directory() {
    let bench = Bench::new();
    let (data, truth) = unpack(&bench, "snappy42");
    let (name, facts) = largest(&truth);
    let alone = bench.path("alone.wt");
    std::fs::copy(data.join(&name), &alone).unwrap();
    let document = json(&mut layout(&bench, &alone, &["--lone", "--out", "run"]));
    assert_valid("layout", &document);
    assert_eq!(document["summary"]["state"], "lone_file");
    let leaves = facts["leaves"].as_array().unwrap().len();
    assert_eq!(document["summary"]["files"][0]["leaf_pages"], leaves);
    assert_eq!(run_document(&bench.path("run"))["command"], "layout");
}
