//! `bench index` and `bench schema`, small, on local servers of their own.

use std::process::Command;

use serde_json::Value;

use crate::support::{Bench, json, machine, server_binary, shared_machine};

fn lab(bench: &Bench, verb: &str, more: &[&str]) -> Command {
    let mut command = bench.seekscope(&["bench", verb, "--out", "run", "--quiet"]);
    command
        .args(more)
        .arg("--server-binary")
        .arg(server_binary());
    command
}

fn rows<'a>(document: &'a Value, name: &str) -> &'a Vec<Value> {
    document["summary"][name].as_array().unwrap()
}

#[test]
fn indexes_are_built_beside_other_load_and_refusals_are_shown() {
    // Of a second in which nothing was answered there is no 99th percentile.
    let _machine = machine();
    let bench = Bench::new();
    let document = json(&mut lab(
        &bench,
        "index",
        &[
            "--docs",
            "3000",
            "--kinds",
            "int,hashed",
            "--repeats",
            "1",
            "--foreground",
            "100/s",
            "--margin",
            "2500ms",
            "--memory-mb",
            "100",
        ],
    ));
    let builds = rows(&document, "index_builds");
    assert_eq!(builds.len(), 2, "{document:#}");
    assert_eq!(builds[0]["verified"], true, "{document:#}");
    let p99 = builds[0]["foreground_p99_ns"].as_array().unwrap();
    // A build that ended within two seconds tells nothing of what it did to others.
    let is_told = |index: usize| p99[index].as_u64().is_some_and(|ns| ns > 0);
    let is_long = builds[0]["elapsed_ns"].as_u64().unwrap() >= 2_000_000_000;
    assert!(is_told(0) && is_told(2), "{p99:?}");
    assert_eq!(is_told(1), is_long, "{p99:?}");
    assert!(
        builds[1]["failure"]
            .as_str()
            .unwrap()
            .contains("not supported"),
        "{document:#}"
    );
    let limitations = document["limitations"].as_array().unwrap();
    let unlimited = |l: &Value| {
        l["what"]
            .as_str()
            .unwrap()
            .contains("memory for index builds")
    };
    assert!(limitations.iter().any(unlimited), "{limitations:?}");
    let steps = rows(&document, "steps");
    assert_eq!(steps[0]["name"], "beside int 1");
    let report = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(report.contains("Index builds"));
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
}

#[test]
fn ways_of_storing_samples_are_compared_with_what_was_published() {
    let _machine = shared_machine();
    let bench = Bench::new();
    let document = json(&mut lab(
        &bench,
        "schema",
        &[
            "--series",
            "50",
            "--days",
            "60",
            "--queries",
            "2",
            "--shapes",
            "sample,month,month:preallocated",
            "--cache",
            "32M",
        ],
    ));
    let shapes = rows(&document, "shapes");
    assert_eq!(shapes.len(), 3, "{document:#}");
    for shape in shapes {
        assert_eq!(
            (&shape["samples"], &shape["wrong_answers"]),
            (&3000.into(), &0.into()),
            "{shape:#}"
        );
        assert_eq!(shape["year_read_ns"].as_array().unwrap().len(), 2);
        assert_eq!(shape["cold"], true);
    }
    let names: Vec<&str> = rows(&document, "experiments")
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "one document per month",
            "index begins with the series",
            "pre-allocated months"
        ]
    );
    let recommendation = document["summary"]["recommendation"].as_str().unwrap();
    assert!(
        recommendation.starts_with("On the plain disk: "),
        "{recommendation}"
    );
    let said = document["limitations"].to_string();
    assert!(said.contains("outgrow the server's cache"), "{said}");
    assert_eq!(bench.leftovers(&["run"]), Vec::<String>::new());
}
