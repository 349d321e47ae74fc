//! `seekscope report` of a trace, from its directory alone.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use seekscope_run::{
    BLOCK_REQUESTS, CacheState, Disk, FileRecord, FileRole, IoEvent, IoFlags, IoOp, Outcome,
    PathState, Phase, RunDirectory, RunDocument, ThreadRecord, TraceCoverage, TraceFacts,
};
use seekscope_stats::SplitMix64;
use serde_json::Value;

use crate::schemas::assert_valid;
use crate::support::{Bench, as_nobody, assert_fails, install, stderr};

const START_NS: u64 = 1_000_000_000;
const BLOCK: u64 = 8192;
const READS: u64 = 400;

fn event(number: u64, file_id: u32, op: IoOp, offset: Option<u64>) -> IoEvent {
    let from_disk = number.is_multiple_of(4);
    IoEvent {
        t_ns: START_NS + number * 1_000_000,
        pid: 77,
        tid: 78,
        file_id,
        op,
        flags: IoFlags(if from_disk {
            IoFlags::WAITED | IoFlags::DEVICE_READ
        } else {
            0
        }),
        offset,
        length: 8192,
        latency_ns: if from_disk { 200_000 } else { 5_000 },
        result: if offset.is_some() { 8192 } else { 0 },
        device_read_bytes: if from_disk { 8192 } else { 0 },
        request: None,
    }
}

/// Makes a run of a file read in order, a quarter of it from the disk, and of a file written and synced whose
/// name contains terminal control sequences. `killed`: the run has no end; `lost`: the number of lost events.
fn make_run(folder: &Path, killed: bool, lost: u64) {
    let mut document = RunDocument::begin("trace", vec!["trace".into(), "-p".into(), "77".into()]);
    let events = READS + 200;
    document.phases.push(Phase {
        name: "trace".into(),
        activity: "process 77".into(),
        namespace: None,
        disk: Disk::Plain,
        cache: CacheState::AsFound {
            why: "it was running".into(),
        },
        started_ns: START_NS,
        ended_ns: if killed { 0 } else { START_NS + 1_000_000_000 },
        index_build: None,
        trace: (!killed).then(|| TraceFacts {
            backend: "tp_btf".into(),
            seen: events + lost,
            written: events,
            lost,
            lost_ring_full: lost,
            coverage: vec![TraceCoverage {
                group: "io_uring".into(),
                covered: false,
                how: "not asked for".into(),
            }],
            ..TraceFacts::default()
        }),
        process_io: None,
    });
    if !killed {
        document.outcome = Outcome::Ok;
        document.outcome_reason = None;
    }
    let directory = RunDirectory::create(folder, &document).unwrap();
    let mut writer = directory.io_writer().unwrap();
    for (file_id, path) in [(1, "/data/scan.wt"), (2, "/data/\u{1b}[2Jevil")] {
        let file = FileRecord {
            file_id,
            path: path.into(),
            path_state: PathState::Known,
            device_major: 8,
            device_minor: 1,
            inode: 3,
            size_bytes: 0,
            role: FileRole::Collection,
            namespace: None,
            member: None,
        };
        writer.file(&file).unwrap();
    }
    writer
        .thread(&ThreadRecord {
            tid: 78,
            pid: 77,
            name: "conn1".into(),
        })
        .unwrap();
    for i in 0..READS {
        writer
            .event(&event(i, 1, IoOp::Pread, Some(i * BLOCK)))
            .unwrap();
    }
    let mut rng = SplitMix64::new(3);
    for i in 0..100 {
        writer
            .event(&event(
                READS + i,
                2,
                IoOp::Pwrite,
                Some(rng.below(100) << 20),
            ))
            .unwrap();
        writer
            .event(&event(READS + i, 2, IoOp::Fdatasync, None))
            .unwrap();
    }
    writer.flush().unwrap();
    if !killed {
        drop(writer);
        directory.finish_records().unwrap();
    }
}

fn report(bench: &Bench, more: &[&str]) -> String {
    let output = bench
        .seekscope(&["report", "run"])
        .args(more)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_trace_is_shown_again_and_nothing_lost_is_silent() {
    let bench = Bench::new();
    make_run(&bench.path("run"), false, 30);
    let json: Value = serde_json::from_str(&report(&bench, &["--json"])).unwrap();
    assert_valid("trace", &json);
    let summary = &json["summary"];
    assert_eq!(
        (&summary["seen"], &summary["written"], &summary["lost"]),
        (&630.into(), &600.into(), &30.into())
    );
    let file = &summary["files"][0];
    assert_eq!(file["path"], "/data/scan.wt");
    assert_eq!(
        (&file["reads"], &file["read_bytes"]),
        (&READS.into(), &(READS * BLOCK).into())
    );
    assert_eq!(
        (&file["pattern"], &file["sequential_share"]),
        (&"sequential".into(), &1.0.into())
    );
    assert_eq!(file["hit_share"], 0.75);
    assert_eq!(file["cache"]["misses"], READS / 4);
    assert_eq!(
        file["disk_read_bytes"],
        Value::Null,
        "block requests were not traced"
    );
    let written = &summary["files"][1];
    assert_eq!(
        (&written["writes"], &written["syncs"]),
        (&100.into(), &100.into())
    );
    assert_eq!(
        (&written["pattern"], &written["hit_share"]),
        (&"random".into(), &Value::Null)
    );

    let text = report(&bench, &[]);
    let first = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.contains("Events were lost: 30 of 630"), "{text}");
    assert!(
        text.contains("scan.wt") && text.contains("sequential"),
        "{text}"
    );
    assert!(
        !text.contains('\u{1b}') && text.contains(r"\u{1b}[2Jevil"),
        "{text}"
    );
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("Events were lost: 30 of 630") && !page.contains('\u{1b}'));
}

#[test]
fn a_loss_too_small_to_matter_is_a_limitation_and_no_alarm() {
    let bench = Bench::new();
    make_run(&bench.path("run"), false, 3);
    let text = report(&bench, &[]);
    let first = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(
        first.starts_with("Complete run")
            && first.contains("3 lost")
            && !first.contains("were lost"),
        "{text}"
    );
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    let limitations = page.split_once("id=\"limitations\"").unwrap().1;
    assert!(limitations.contains("3 of 603"), "{limitations}");
}

#[test]
fn requests_that_were_traced_and_did_not_occur_are_zero() {
    let bench = Bench::new();
    make_run(&bench.path("run"), false, 0);
    let record = bench.path("run/run.json");
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(&record).unwrap()).unwrap();
    document["phases"][0]["trace"]["coverage"][0] = serde_json::to_value(TraceCoverage {
        group: BLOCK_REQUESTS.into(),
        covered: true,
        how: "tp_btf block_rq_issue and block_rq_complete".into(),
    })
    .unwrap();
    std::fs::write(&record, document.to_string()).unwrap();
    let json: Value = serde_json::from_str(&report(&bench, &["--json"])).unwrap();
    let file = &json["summary"]["files"][0];
    assert_eq!(
        (&file["disk_read_bytes"], &file["disk_write_bytes"]),
        (&0.into(), &0.into())
    );
    assert_eq!(file["read_amplification"], 0.0);
}

/// Records of earlier versions ended at 4.29 s and said so in a flag.
#[test]
fn a_latency_that_an_earlier_version_cut_off_is_a_lower_bound() {
    let bench = Bench::new();
    make_run(&bench.path("run"), false, 0);
    let (directory, _) = RunDirectory::open(&bench.path("run")).unwrap();
    let mut events = Vec::new();
    directory
        .for_each_event(|event| events.push(*event))
        .unwrap();
    let files = directory.files().unwrap();
    drop(directory);
    let slow = events.iter_mut().find(|e| e.op == IoOp::Fdatasync).unwrap();
    slow.latency_ns = u64::from(u32::MAX);
    slow.flags.0 |= IoFlags::LATENCY_SATURATED;
    std::fs::rename(bench.path("run"), bench.path("template")).unwrap();
    let document = std::fs::read_to_string(bench.path("template/run.json")).unwrap();
    let directory = RunDirectory::create(
        &bench.path("run"),
        &serde_json::from_str(&document).unwrap(),
    )
    .unwrap();
    let mut writer = directory.io_writer().unwrap();
    files.iter().for_each(|file| writer.file(file).unwrap());
    events.iter().for_each(|event| writer.event(event).unwrap());
    writer.flush().unwrap();
    drop(writer);
    directory.finish_records().unwrap();
    drop(directory);
    let text = report(&bench, &[]);
    let page = std::fs::read_to_string(bench.path("run/report.html")).unwrap();
    assert!(page.contains("at least 4.29 s"), "{text}");
    let json: Value = serde_json::from_str(&report(&bench, &["--json"])).unwrap();
    assert_valid("trace", &json);
    assert_eq!(json["summary"]["latencies_cut_off"], 1);
}

#[test]
fn a_killed_trace_is_shown_and_says_so() {
    let bench = Bench::new();
    make_run(&bench.path("run"), true, 0);
    let json: Value = serde_json::from_str(&report(&bench, &["--json"])).unwrap();
    assert_valid("trace", &json);
    let summary = &json["summary"];
    assert_eq!(
        (&summary["seen"], &summary["lost"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        (&summary["written"], &summary["truncated"]),
        (&600.into(), &true.into())
    );
    assert!(
        json["limitations"][0]["what"]
            .as_str()
            .unwrap()
            .contains("has no trailer")
    );
    let text = report(&bench, &[]);
    assert!(
        text.starts_with("Partial run") && text.contains("cut off"),
        "{text}"
    );
}

/// Without its calls, it used to look like a complete run in which nothing was called.
#[test]
fn a_run_whose_calls_are_gone_is_refused() {
    let bench = Bench::new();
    for (gone, words) in [
        ("io.parquet", "io.parquet is missing, in which"),
        ("files.parquet", "files.parquet is missing, without which"),
    ] {
        let folder = bench.path(gone);
        make_run(&folder, false, 0);
        std::fs::remove_file(folder.join(gone)).unwrap();
        let output = bench.seekscope(&["report", gone]).output().unwrap();
        assert_fails(&output, 5, &[words]);
    }
}

#[test]
fn a_run_that_may_only_be_read_is_shown_as_a_copy() {
    // In /tmp, because a normal user cannot enter root's folders; the program is copied there too.
    let folder = tempfile::tempdir().unwrap();
    let everybody = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let program = folder.path().join("seekscope");
    install(Bench::new().seekscope(&[]).get_program(), &program);
    make_run(&folder.path().join("run"), false, 0);
    let report = |more: &[&str]| {
        let mut command = as_nobody(&program);
        command.args(["report", "run"]).args(more);
        command.current_dir(folder.path()).output().unwrap()
    };
    assert_fails(&report(&[]), 4, &["may not be written to", "--out DIR"]);
    let shown = report(&["--out", "copy"]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(folder.path().join("copy/report.html").exists());
    assert!(!folder.path().join("run/report.html").exists());
}
