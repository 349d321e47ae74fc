//! The table of rooms in ARCHITECTURE.md against what the crates depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const ARCHITECTURE: &str = include_str!("../../../ARCHITECTURE.md");

/// The names between backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    let odd = text.split('`').skip(1).step_by(2);
    odd.map(str::to_owned).collect()
}

/// A row of the table.
struct Room {
    /// The row, counted from the top.
    row: usize,
    /// `None`: all.
    knows: Option<BTreeSet<String>>,
}

fn rooms() -> BTreeMap<String, Room> {
    let rows = ARCHITECTURE.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let name = cells[0].strip_suffix("/`")?;
        let knows = cells.last()?.trim_end_matches('|').trim();
        // What stands behind the semicolon is for tests.
        let knows = knows.split(';').next()?;
        Some((name.to_owned(), (knows != "all").then(|| quoted(knows))))
    });
    rows.enumerate()
        .map(|(row, (name, knows))| (name, Room { row, knows }))
        .collect()
}

/// The crates of ours that each of our crates needs to run, tests apart, by the names of their folders.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let room = |package: &Value| {
        let name = package["name"].as_str().unwrap();
        name.strip_prefix("seekscope-").unwrap_or(name).to_owned()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap().iter();
            let ours = all.filter(|d| d["path"].is_string() && d["kind"].is_null());
            (room(package), ours.map(room).collect())
        })
        .collect()
}

#[test]
fn crates_know_only_rooms_above_them_that_the_table_names() {
    let (rooms, dependencies) = (rooms(), dependencies());
    assert!(dependencies.len() > 20, "{dependencies:?}");
    let mut wrong = Vec::new();
    for (name, needed) in &dependencies {
        let Some(room) = rooms.get(name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        for other in needed {
            if rooms.get(other).is_none_or(|other| other.row >= room.row) {
                wrong.push(format!("{name} needs {other}, which is not above it"));
            }
            if room
                .knows
                .as_ref()
                .is_some_and(|knows| !knows.contains(other))
            {
                wrong.push(format!(
                    "{name} needs {other}, which the table does not say"
                ));
            }
        }
        for other in room.knows.iter().flatten() {
            if !needed.contains(other) {
                wrong.push(format!("{name} is said to know {other}, and does not"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
