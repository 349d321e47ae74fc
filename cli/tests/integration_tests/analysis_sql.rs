//! `docs/analysis` in DuckDB and in Apache Spark, against `seekscope_pattern` on the same runs.

#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers drawn below small bounds"
)]

use std::path::Path;
use std::process::Command;

use seekscope_pattern::{
    AccessPattern, AnalysisOptions, DirectionTrace, FileTrace, PatternKind, TraceAnalyser,
};
use seekscope_run::{
    FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState, RunDirectory, RunDocument,
};
use seekscope_stats::SplitMix64;
use serde_json::Value;

use crate::support::{Bench, python_interpreter, shared_machine, stderr};

const FILES: u32 = 7;
const EVENTS: u64 = 2500;
const BLOCK: u64 = 4096;

/// Where access `i` of a file goes; each file has another pattern.
fn offset(file_id: u32, i: u64, random: &mut SplitMix64) -> u64 {
    match file_id {
        0 => i * BLOCK,
        1 => random.below(1 << 20) * BLOCK,
        2 => i * 1_000_000,
        3 => (i / 2 % 2) * 100_000_000 + i * BLOCK,
        4 => (1 << 45) - i * BLOCK,
        // Small gaps, and now and then the same place again.
        5 => i / 3 * 3 * (BLOCK + 100),
        _ => i,
    }
}

fn any_of<T: Copy>(random: &mut SplitMix64, choices: &[T]) -> T {
    choices[usize::try_from(random.below(choices.len() as u64)).unwrap()]
}

/// All operations, flags, failures and unknown offsets; several events in one nanosecond; in an
/// order that is not that of their starts.
fn events(seed: u64) -> Vec<IoEvent> {
    let mut random = SplitMix64::new(seed);
    let mut accesses = [[0u64; 2]; FILES as usize];
    let mut events: Vec<IoEvent> = (0..EVENTS)
        .map(|i| {
            // The last file has too few accesses to tell.
            let file_id = if i % 400 == 0 {
                FILES - 1
            } else {
                u32::try_from(i % u64::from(FILES - 1)).unwrap()
            };
            let op = match random.below(4) {
                0 => any_of(&mut random, IoOp::ALL),
                1 if file_id == 3 => IoOp::Pwrite,
                _ => IoOp::Pread,
            };
            let number = &mut accesses[file_id as usize][usize::from(op.is_read())];
            let offset = offset(file_id, *number, &mut random);
            *number += u64::from(op.is_read() || op.is_write());
            let bytes = if random.below(20) == 0 {
                0
            } else {
                u32::try_from(BLOCK).unwrap()
            };
            let flags = any_of(&mut random, &[0, 0, 1, 2, 3, 16, 19, 128, 144]);
            IoEvent {
                t_ns: 1_000_000 + i / 3,
                pid: 1,
                tid: any_of(&mut random, &[1, 2, 3, 4]),
                file_id,
                op,
                flags: IoFlags(flags),
                offset: (random.below(30) > 0).then_some(offset),
                length: bytes,
                latency_ns: random.below(1_000_000),
                result: if random.below(30) == 0 {
                    -5
                } else {
                    bytes.cast_signed()
                },
                device_read_bytes: if flags & 2 == 0 {
                    0
                } else {
                    any_of(&mut random, &[4096, 8192, 131_072])
                },
                request: None,
            }
        })
        .collect();
    for pair in events.chunks_exact_mut(2) {
        if random.below(2) == 0 {
            pair.reverse();
        }
    }
    events
}

fn file(file_id: u32, host: &str) -> FileRecord {
    // Some paths are the same on both hosts.
    let path = if file_id < 3 {
        format!("/data/{file_id}.wt")
    } else {
        format!("/data/{host}-{file_id}.wt")
    };
    FileRecord {
        file_id,
        path,
        path_state: PathState::Known,
        device_major: 8,
        device_minor: 0,
        inode: u64::from(file_id),
        size_bytes: 0,
        role: FileRole::Collection,
        namespace: None,
        member: None,
    }
}

/// Makes a run, and analyses it from its directory.
fn analysed_run(path: &Path, host: &str, seed: u64) -> Vec<FileTrace> {
    let directory = RunDirectory::create(path, &RunDocument::begin("trace", Vec::new())).unwrap();
    let mut writer = directory.io_writer().unwrap();
    (0..FILES).for_each(|id| writer.file(&file(id, host)).unwrap());
    events(seed).iter().for_each(|e| writer.event(e).unwrap());
    writer.flush().unwrap();
    directory.finish_records().unwrap();
    let mut events = Vec::new();
    directory.for_each_event(|e| events.push(*e)).unwrap();
    assert_eq!(events.len() as u64, EVENTS);
    // Stable: the place in the file decides between equal times.
    events.sort_by_key(|e| e.t_ns);
    let mut analyser = TraceAnalyser::new(AnalysisOptions {
        exact_values_max: usize::MAX,
        ..AnalysisOptions::default()
    });
    events.iter().for_each(|event| analyser.push(event));
    analyser.finish(&directory.files().unwrap(), &[]).files
}

fn check_share(row: &Value, column: &str, expected: f64) {
    let found = row[column]
        .as_f64()
        .unwrap_or_else(|| panic!("{column} in {row:#}"));
    assert!(
        (found - expected).abs() < 1e-9,
        "{column}: {found}, not {expected}"
    );
}

/// What neighbouring steps alone can say. Seekscope's own kinds look further back, so of a pattern
/// that is not sequential only the commonest distance decides, which it knows for strides only.
fn step_kinds(pattern: &AccessPattern) -> Vec<&'static str> {
    let by_share = match pattern.sequential_share {
        _ if pattern.accesses < 8 => return vec!["few"],
        share if share >= 0.8 => return vec!["sequential"],
        share if share <= 0.2 => "random",
        _ => "mixed",
    };
    match pattern.kind {
        PatternKind::Strided | PatternKind::Backward => vec!["strided"],
        _ => vec![by_share],
    }
}

fn check_direction(row: &Value, direction: &str, calls: &DirectionTrace) {
    let (transfers, pattern) = (&calls.transfers, calls.pattern.as_ref());
    let column = |name: &str| &row[format!("{direction}_{name}")];
    assert_eq!(row[format!("{direction}s")], transfers.calls, "{row:#}");
    assert_eq!(*column("bytes"), transfers.bytes);
    assert_eq!(*column("errors"), transfers.errors);
    if transfers.calls > 0 {
        assert_eq!(*column("latency_p50_ns"), transfers.latency_ns.p50);
        assert_eq!(*column("latency_p99_ns"), transfers.latency_ns.p99);
    }
    let Some(pattern) = pattern else {
        assert!(column("step_kind").is_null(), "{row:#}");
        return;
    };
    let kind = column("step_kind").as_str().unwrap();
    assert!(step_kinds(pattern).contains(&kind), "{kind}: {pattern:?}");
    assert_eq!(*column("accesses"), pattern.accesses);
    assert_eq!(*column("seeks"), pattern.seeks);
    let share = |name: &str, expected| check_share(row, &format!("{direction}_{name}"), expected);
    share("contiguous_share", pattern.contiguous_share);
    share("sequential_share", pattern.sequential_share);
    share("backward_share", pattern.backward_share);
    let runs = pattern.run_accesses.count as f64;
    share("run_accesses_mean", pattern.accesses as f64 / runs);
}

fn check_file(row: &Value, file: &FileTrace) {
    check_direction(row, "read", &file.reads);
    check_direction(row, "write", &file.writes);
    let cache = &file.cache;
    assert_eq!(row["hits"], cache.hits);
    assert_eq!(row["misses"], cache.misses);
    assert_eq!(row["waited_for_others"], cache.waited_for_others);
    assert_eq!(row["direct"], cache.direct);
    let known = (cache.hits + cache.misses + cache.waited_for_others + cache.direct) as f64;
    if known > 0.0 {
        check_share(row, "hit_share", cache.hits as f64 / known);
        check_share(row, "miss_share", cache.misses as f64 / known);
    }
}

/// Over both runs: the sums, and shares that weigh every step alike.
fn check_path(rows: &[Value], path: &str, files: &[&FileTrace]) {
    let row = rows
        .iter()
        .find(|r| r["path"] == path && r["direction"] == "read");
    let row = row.unwrap_or_else(|| panic!("{path} in {rows:#?}"));
    assert_eq!(row["runs"], files.len());
    let sum = |of: fn(&FileTrace) -> u64| files.iter().map(|f| of(f)).sum::<u64>();
    assert_eq!(row["calls"], sum(|f| f.reads.transfers.calls));
    assert_eq!(row["bytes"], sum(|f| f.reads.transfers.bytes));
    assert_eq!(row["hits"], sum(|f| f.cache.hits));
    assert_eq!(row["misses"], sum(|f| f.cache.misses));
    let patterns = || files.iter().filter_map(|f| f.reads.pattern.as_ref());
    assert_eq!(row["seeks"], patterns().map(|p| p.seeks).sum::<u64>());
    let steps = |p: &AccessPattern| (p.accesses - 1) as f64;
    let sequential: f64 = patterns().map(|p| p.sequential_share * steps(p)).sum();
    check_share(
        row,
        "sequential_share",
        sequential / patterns().map(steps).sum::<f64>(),
    );
}

#[test]
fn duckdb_and_spark_get_the_same_numbers_as_seekscope() {
    // Spark takes a gigabyte and both processors for some seconds.
    let _machine = shared_machine();
    let bench = Bench::new();
    let hosts = ["one", "two"].map(|host| {
        let path = bench.path(&format!("{host}/run"));
        let files = analysed_run(&path, host, host.len() as u64 + u64::from(host == "two"));
        (path, files)
    });
    let kinds = |name: &str| {
        let files = hosts.iter().flat_map(|(_, files)| files);
        files
            .filter(|f| {
                let pattern = f.reads.pattern.as_ref().or(f.writes.pattern.as_ref());
                pattern.is_some_and(|p| p.kind.name() == name)
            })
            .count()
    };
    for kind in ["sequential", "strided", "random", "mixed", "few"] {
        assert!(
            kinds(kind) > 0,
            "no file is {kind}: the test tests too little"
        );
    }

    let output = Command::new(python_interpreter())
        .arg("tests/analysis_sql.py")
        .arg("../docs/analysis")
        .arg(bench.path("*/run"))
        .output()
        .expect("Python; `./x test` installs it");
    assert!(
        output.status.success(),
        "Spark needs Java 17: {}",
        stderr(&output)
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    for engine in ["duckdb", "spark"] {
        let rows = answer[engine]["file_patterns"].as_array().unwrap();
        let expected: usize = hosts.iter().map(|(_, files)| files.len()).sum();
        assert_eq!(rows.len(), expected, "{engine}");
        for (path, files) in &hosts {
            let run = path.canonicalize().unwrap();
            for file in files {
                let is_it = |r: &&Value| {
                    r["run"] == run.to_str().unwrap() && r["file_id"] == file.file.file_id
                };
                check_file(rows.iter().find(is_it).unwrap(), file);
            }
        }
        let paths = answer[engine]["path_patterns"].as_array().unwrap();
        let of =
            |host: usize, id: u32| hosts[host].1.iter().find(|f| f.file.file_id == id).unwrap();
        check_path(paths, "/data/1.wt", &[of(0, 1), of(1, 1)]);
        check_path(paths, "/data/two-4.wt", &[of(1, 4)]);
    }
}
