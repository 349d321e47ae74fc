//! Run directories written, crashed, reopened, and read by an independent library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test helper that fails is a failed test"
)]

mod crash;
mod foreign_reader;
mod round_trip;

use seekscope_run::{FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState};

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
    }
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
