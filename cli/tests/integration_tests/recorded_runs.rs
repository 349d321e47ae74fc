//! What is shown of runs that were recorded on a real mongod, whole: on a terminal, as JSON and as a page.
//!
//! The runs lie in `tests/recorded`, made by the script there, and what is shown of each beside them. They are
//! old runs, too, which every later version must open. After a change that is meant, run the test with
//! `INSTA_UPDATE=always` and read the difference.

use std::path::PathBuf;
use std::process::Output;

use crate::schemas::assert_valid;
use crate::support::{Bench, assert_fails, stderr};

/// Columns of the page's text.
const PAGE_COLUMNS: usize = 200;

/// The runs in the folder, and the schema of their JSON.
const RUNS: [(&str, &str); 17] = [
    ("advise", "advise"),
    ("bench", "bench"),
    ("bench-again", "bench"),
    ("bench-index", "bench"),
    ("demo", "doctor"),
    ("disk", "disk"),
    ("disk-run", "disk"),
    ("doctor", "doctor"),
    ("index-builds", "doctor"),
    ("layout", "layout"),
    ("prefetch", "prefetch"),
    ("reorder", "reorder"),
    ("reorder-plan", "reorder"),
    ("replay", "replay"),
    ("trace", "trace"),
    ("tune", "tune"),
    ("tune-interrupted", "tune"),
];

fn recorded() -> PathBuf {
    PathBuf::from("tests/recorded")
}

/// A copy, for the page is written into the run's folder.
fn copied(bench: &Bench, name: &str) {
    let (from, to) = (recorded().join(name), bench.path(name));
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn shown(bench: &Bench, arguments: &[&str]) -> String {
    let output: Output = bench.seekscope(arguments).output().unwrap();
    // Exit code 1 says that there is a finding.
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{arguments:?}: {}",
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the page's text without the style, the data and the scripts.
fn text_of_page(page: &str) -> String {
    let body = page.split_once("<body>").unwrap().1;
    let body = body.split_once("<script").map_or(body, |(body, _)| body);
    let plain = html2text::config::plain().no_table_borders();
    let text = plain
        .string_from_read(body.as_bytes(), PAGE_COLUMNS)
        .unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

fn assert_shown(bench: &Bench, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../recorded/shown");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let folder = bench.path("").display().to_string();
    settings.add_filter(folder.trim_end_matches('/'), "FOLDER");
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn run_is_shown_as_ever(name: &str, schema: &str) {
    let bench = Bench::new();
    copied(&bench, name);
    let text = shown(&bench, &["report", name]);
    assert_shown(&bench, &format!("{name}.terminal"), &text);
    let page = std::fs::read_to_string(bench.path(name).join("report.html"));
    if let Ok(page) = page {
        assert_shown(&bench, &format!("{name}.page"), &text_of_page(&page));
    }
    let json = shown(&bench, &["report", name, "--json"]);
    let document = serde_json::from_str(&json).unwrap();
    assert_valid(schema, &document);
    let json = serde_json::to_string_pretty(&document).unwrap();
    assert_shown(&bench, &format!("{name}.json"), &json);
}

#[test]
fn runs_are_shown_as_ever() {
    for (name, schema) in RUNS {
        run_is_shown_as_ever(name, schema);
    }
}

#[test]
fn each_recorded_run_is_tried() {
    for entry in std::fs::read_dir(recorded()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_run = entry.path().join("run.json").exists();
        assert!(
            !is_run || RUNS.iter().any(|(run, _)| *run == name),
            "{name}"
        );
    }
}

#[test]
fn runs_are_compared_bundled_and_predicted_as_ever() {
    let bench = Bench::new();
    for name in ["bench", "bench-again", "disk", "doctor", "trace"] {
        copied(&bench, name);
    }
    for (name, arguments) in [
        ("compare", &["compare", "bench", "bench-again"][..]),
        (
            "predict",
            &["disk", "predict", "--model", "disk", "--trace", "trace"][..],
        ),
        ("doctor-of-run", &["doctor", "doctor"][..]),
    ] {
        let text = shown(&bench, arguments);
        assert_shown(&bench, &format!("{name}.terminal"), &text);
    }
    shown(&bench, &["collect", "doctor", "--out", "bundle.tar.gz"]);
    let text = shown(&bench, &["doctor", "bundle.tar.gz"]);
    assert_shown(&bench, "doctor-of-bundle.terminal", &text);
}

#[test]
fn every_kind_of_run_is_shown_from_its_bundle_as_from_its_folder() {
    let bench = Bench::new();
    for (name, _) in RUNS {
        copied(&bench, name);
        let bundle = format!("{name}.tar.gz");
        let made = shown(&bench, &["collect", name, "--out", &bundle]);
        assert!(made.contains("Open it with: seekscope "), "{made}");
        let from_folder = shown(&bench, &["report", name]);
        let from_bundle = shown(&bench, &["report", &bundle, "--out", "unpacked"]);
        assert_eq!(from_bundle.replace("unpacked", name), from_folder, "{name}");
        std::fs::remove_dir_all(bench.path("unpacked")).unwrap();
    }
}

#[test]
fn doctor_of_another_kind_of_run_says_which_it_is() {
    let bench = Bench::new();
    copied(&bench, "bench");
    shown(&bench, &["collect", "bench", "--out", "bench.tar.zst"]);
    for run in ["bench", "bench.tar.zst"] {
        let output = bench.seekscope(&["doctor", run]).output().unwrap();
        let words = ["a run of `seekscope bench`", "seekscope report "];
        assert_fails(&output, 2, &words);
    }
}
