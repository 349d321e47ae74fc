//! fio itself reads what is exported, and what it writes is imported.

use std::path::Path;
use std::process::Command;

use seekscope_exchange::export::{FioVersion, FioWriter, Names};
use seekscope_exchange::{Format, detect};
use seekscope_run::{IoEvent, IoOp};

use crate::{call, file, read};

const FILE_BYTES: u64 = 4 << 20;

fn exported(events: &[IoEvent], version: FioVersion, path: &Path) -> (String, u64) {
    let names = Names::of(vec![file(0, path.to_str().unwrap())], Vec::new());
    let mut text = Vec::new();
    let mut writer = FioWriter::begin(&mut text, version, &names).unwrap();
    events.iter().for_each(|e| writer.event(e).unwrap());
    let left_out = writer.finish().unwrap();
    (String::from_utf8(text).unwrap(), left_out)
}

/// Returns events in order of completion, of which the first started last.
fn events() -> Vec<IoEvent> {
    let ms = 1_000_000;
    let mut events: Vec<IoEvent> = (0..200u64)
        .map(|i| {
            let op = if i % 4 == 0 {
                IoOp::Pwrite
            } else {
                IoOp::Pread
            };
            call(op, 5_000 * ms + i * ms / 2, i * 7919 % 1000 * 4096, 4096)
        })
        .collect();
    let first = IoEvent {
        latency_ns: 900 * ms,
        ..call(IoOp::Read, 4_000 * ms, 12_288, 8192)
    };
    events.push(first);
    events.push(IoEvent {
        offset: None,
        length: 0,
        result: 0,
        ..call(IoOp::Fdatasync, 6_000 * ms, 0, 0)
    });
    // None of these can be replayed.
    events.push(IoEvent {
        offset: None,
        ..call(IoOp::Read, 6_000 * ms, 0, 5)
    });
    events.push(IoEvent {
        result: -5,
        ..call(IoOp::Read, 6_000 * ms, 0, 5)
    });
    events.push(call(IoOp::BlockRead, 6_000 * ms, 0, 512));
    events
}

fn facts(events: &[IoEvent]) -> Vec<(bool, Option<u64>, u32)> {
    let fact = |e: &IoEvent| (e.op.is_write(), e.offset, e.length);
    events.iter().map(fact).collect()
}

#[test]
fn what_is_exported_is_imported_the_same() {
    let original = events();
    let mut expected = original[..202].to_vec();
    expected.sort_by_key(|e| e.t_ns);
    for version in [FioVersion::V2, FioVersion::V3] {
        let (text, left_out) = exported(&original, version, Path::new("/scratch/file"));
        assert_eq!(left_out, 3);
        assert_eq!(detect(text.as_bytes()), Some(Format::Fio));
        let (memory, _) = read(Format::Fio, &text);
        assert_eq!(facts(&memory.events), facts(&expected));
        assert_eq!(memory.events.last().unwrap().op, IoOp::Fdatasync);
        if version == FioVersion::V3 {
            let first_ns = expected[0].t_ns;
            for (before, after) in expected.iter().zip(&memory.events) {
                assert_eq!((before.t_ns - first_ns) / 1_000_000, after.t_ns / 1_000_000);
            }
        }
    }
}

/// `fio ARGUMENTS`, and the figures of its only job.
fn fio(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("fio")
        .args([
            "--name=test",
            "--output-format=json",
            "--ioengine=psync",
            "--thread",
        ])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("fio; `./x test` installs it");
    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{complaint}");
    let json = &text[text.find('{').unwrap()..];
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value["jobs"][0].clone()
}

#[test]
fn fio_replays_what_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    let scratch = folder.path().join("scratch");
    std::fs::File::create(&scratch)
        .unwrap()
        .set_len(FILE_BYTES)
        .unwrap();
    for version in [FioVersion::V2, FioVersion::V3] {
        let (text, _) = exported(&events(), version, &scratch);
        let iolog = folder.path().join("iolog");
        std::fs::write(&iolog, text).unwrap();
        let iolog = format!("--read_iolog={}", iolog.display());
        let job = fio(folder.path(), &[&iolog, "--replay_no_stall=1"]);
        let figures = (
            job["read"]["total_ios"].as_u64().unwrap(),
            job["read"]["io_bytes"].as_u64().unwrap(),
            job["write"]["total_ios"].as_u64().unwrap(),
            job["write"]["io_bytes"].as_u64().unwrap(),
            job["error"].as_u64().unwrap(),
        );
        assert_eq!(
            figures,
            (151, 150 * 4096 + 8192, 50, 50 * 4096, 0),
            "{version:?}"
        );
    }
}

#[test]
fn what_fio_records_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let job = fio(
        folder.path(),
        &[
            "--rw=randrw",
            "--bs=8k",
            "--size=1M",
            "--filename=data",
            "--write_iolog=recorded",
            "--fsync=16",
        ],
    );
    let text = std::fs::read_to_string(folder.path().join("recorded")).unwrap();
    assert_eq!(detect(text.as_bytes()), Some(Format::Fio));
    let (memory, _) = read(Format::Fio, &text);
    let count = |of: fn(IoOp) -> bool| memory.events.iter().filter(|e| of(e.op)).count() as u64;
    assert_eq!(job["read"]["total_ios"], count(IoOp::is_read));
    assert_eq!(job["write"]["total_ios"], count(IoOp::is_write));
    assert!(count(|op| op == IoOp::Fsync) > 0);
    let mut offsets: Vec<u64> = memory.events.iter().filter_map(|e| e.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..128).map(|i| i * 8192).collect::<Vec<u64>>());
}
