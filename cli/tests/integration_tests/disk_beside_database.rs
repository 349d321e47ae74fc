use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::directory_snapshot::unchanged_by;
use crate::mounts;
use crate::support::{Bench, ForeignServer, assert_fails, json, machine};

const SHORT: [&str; 6] = ["--size", "8M", "--runtime", "200ms", "--warm-up", "0ms"];

#[test]
fn a_running_database_is_left_in_peace() {
    let _machine = machine();
    let bench = Bench::new();
    let server = ForeignServer::start(&bench.path("target/data"), "1GB");
    let folder = find_lock(&bench);
    let mut measured: Vec<(&str, Command)> = vec![
        ("disk", bench.seekscope(&["disk"])),
        ("run", bench.seekscope(&["disk", "run"])),
        ("mongoperf", bench.seekscope(&["mongoperf"])),
    ];
    for (name, command) in &mut measured {
        match *name {
            "mongoperf" => command.current_dir(&folder).stdin(input(&bench)),
            _ => command.arg(&folder),
        };
        let output = command.output().unwrap();
        assert_fails(&output, 3, &["WiredTiger.lock", "--next-to-database"]);
    }
    assert!(
        !bench.path("seekscope-runs").exists(),
        "refused before anything is made"
    );

    let mut job = bench.seekscope(&["disk", "run", "--next-to-database", "--out", "run"]);
    job.arg(&folder)
        .args(["--size", "8M", "--runtime", "2s", "--depth", "32"]);
    let names = || {
        std::fs::read_dir(&folder)
            .unwrap()
            .map(|e| e.unwrap().file_name())
    };
    let before: BTreeSet<_> = names().collect();
    let iops = json(&mut job)["summary"]["iops"].as_f64().unwrap();
    assert!(
        (100.0..=205.0).contains(&iops),
        "{iops} per second beside a database"
    );
    assert_eq!(names().collect::<BTreeSet<_>>(), before);
    server.stop();
    // The locks of a database that has ended are no more than files.
    let mut after = bench.seekscope(&["disk", "run", "--out", "after"]);
    unchanged_by(&folder, || json(after.arg(&folder).args(SHORT)));
}

/// Where the server put its WiredTiger home.
fn find_lock(bench: &Bench) -> PathBuf {
    let found = mounts::run(
        "find",
        &[
            bench.path("target").to_str().unwrap(),
            "-name",
            "WiredTiger.lock",
        ],
    );
    Path::new(found.lines().next().unwrap())
        .parent()
        .unwrap()
        .into()
}

fn input(bench: &Bench) -> std::fs::File {
    std::fs::write(bench.path("options"), "{nThreads:1,fileSizeMB:8,r:true}").unwrap();
    std::fs::File::open(bench.path("options")).unwrap()
}
