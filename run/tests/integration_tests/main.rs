//! Run directories written, crashed, reopened, and read by an independent library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test helper that fails is a failed test"
)]

mod crash;
mod foreign_reader;
mod latency_log;
mod round_trip;
mod trials;

use std::path::PathBuf;
use std::process::Command;

use seekscope_run::{
    CounterSample, FileRecord, FileRole, Interval, IoEvent, IoFlags, IoOp, LatencySummary,
    PathState,
};

/// Event number `n` of an endless made-up trace that uses every field.
pub fn event(n: u64) -> IoEvent {
    IoEvent {
        t_ns: 1_000 + n,
        pid: 7,
        tid: u32::try_from(8 + n % 3).unwrap(),
        file_id: u32::try_from(n % 2).unwrap(),
        op: IoOp::ALL[usize::try_from(n % 10).unwrap()],
        flags: IoFlags(u16::try_from(n % 128).unwrap()),
        offset: (!n.is_multiple_of(5)).then_some(n * 4096 + (1 << 41)),
        length: u32::MAX - u32::try_from(n).unwrap(),
        latency_ns: n * n,
        result: if n.is_multiple_of(7) {
            -5
        } else {
            i32::try_from(n).unwrap()
        },
        device_read_bytes: u32::try_from(n % 4).unwrap() * 4096,
        request: None,
    }
}

/// Interval number `n`: every second one has a schedule and so a response time.
pub fn interval(n: u64) -> Interval {
    let latency = LatencySummary {
        count: 100 + n,
        min_ns: n,
        mean_ns: n as f64 + 0.25,
        p50_ns: 10 * n,
        p90_ns: 20 * n,
        p99_ns: 30 * n,
        p999_ns: 40 * n,
        max_ns: u64::MAX - n,
    };
    Interval {
        step: format!("ramp {}", n / 2),
        operation: if n.is_multiple_of(2) { "read" } else { "write" }.into(),
        t_ns: n * 1_000_000_000,
        duration_ns: 1_000_000_000 + n,
        count: 100 + n,
        errors: n % 3,
        bytes: n << 40,
        latency,
        response: n.is_multiple_of(2).then_some(LatencySummary {
            p50_ns: 7 * n,
            ..latency
        }),
    }
}

/// Counter number `n`: values as servers send them, from small fractions to what a double just holds.
pub fn counter(n: u64) -> CounterSample {
    CounterSample {
        t_ns: u64::MAX - n,
        source: if n.is_multiple_of(2) {
            "serverStatus"
        } else {
            "process"
        }
        .into(),
        name: format!("wiredTiger.cache.\"bytes\" {}", n % 5),
        value: [0.0, -1.5, 1e-9, 9_007_199_254_740_991.0][usize::try_from(n % 4).unwrap()],
    }
}

/// What an independent reader of the file formats prints: JSON. `./x test` installs the readers
/// into the cache folder and names the interpreter.
pub fn python(script: &str, argument: &std::path::Path) -> serde_json::Value {
    let interpreter = std::env::var_os("SEEKSCOPE_TEST_PYTHON").map_or_else(
        || {
            PathBuf::from(std::env::var_os("HOME").unwrap())
                .join(".cache/seekscope/python/bin/python")
        },
        PathBuf::from,
    );
    let output = Command::new(interpreter)
        .args(["-c", script])
        .arg(argument)
        .output()
        .expect("python with duckdb and hdrhistogram; `./x test` installs it");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Two files, one with a name that is hostile to quoting.
pub fn files() -> Vec<FileRecord> {
    let record = |file_id, path: &str, namespace: Option<&str>| FileRecord {
        file_id,
        path: path.into(),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 1 << 20,
        inode: u64::MAX - 1,
        size_bytes: 1 << 42,
        role: FileRole::Collection,
        namespace: namespace.map(Into::into),
        member: namespace.map(|_| "shard0@db1:27018".into()),
    };
    let unresolved = record(1, "inode 17 on 254:0", None);
    vec![
        record(0, "/data/collection-7.wt", Some("db.\"x\n' --\u{202e}")),
        FileRecord {
            path_state: PathState::Unresolved,
            role: FileRole::Other,
            ..unresolved
        },
    ]
}
