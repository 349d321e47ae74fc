use seekscope_run::FileRole;

use super::dirty_limit::{CACHE_BYTES_MAX, DIRTY_BYTES};
use super::*;
use crate::testing::{Call, GIB, Recording};

fn answer(recording: &Recording) -> Option<CheckpointAnswer> {
    recording.examine(|_, answers| answers.checkpoints.clone())
}

/// One checkpoint from second 20 to 32, with syncs of the journal all the time.
fn traced() -> Recording {
    let mut recording = Recording::new();
    let table = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let log = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
    let checkpoint = recording.thread("WTCheck.tThread");
    let journal = recording.thread("WTJourn.Flusher");
    let mut call = Call {
        tid: checkpoint,
        file_id: table,
        at_s: 20.0,
        offset: 0,
        bytes: 1 << 20,
        latency_s: 0.1,
    };
    for i in 0..120 {
        call.at_s = 20.0 + f64::from(i) / 10.0;
        recording.write(call);
    }
    for second in 0..60 {
        let at_s = f64::from(second) + 0.5;
        let slow = (20.0..32.0).contains(&at_s);
        recording.sync(Call {
            tid: journal,
            file_id: log,
            at_s,
            latency_s: if slow { 0.4 } else { 0.004 },
            ..call
        });
    }
    recording
}

#[test]
fn of_a_trace() {
    let mut recording = traced();
    recording.steady(CACHE_BYTES_MAX, 8.0 * GIB as f64);
    recording.steady(DIRTY_BYTES, 1.2 * GIB as f64);
    recording.values("serverStatus", "opcounters.insert", |s| {
        s * 100.0 - (s - 20.0).clamp(0.0, 12.0) * 50.0
    });
    let answer = answer(&recording).unwrap();
    assert_eq!(
        (answer.source.as_str(), answer.checkpoints.len()),
        ("trace", 1)
    );
    assert!(
        (answer.longest_s - 12.0).abs() < 0.1,
        "{}",
        answer.longest_s
    );
    assert_eq!(answer.checkpoints[0].written_bytes, 120 << 20);
    assert_eq!(answer.journal_during_p99_ns, Some(400_000_000));
    assert_eq!(answer.journal_otherwise_p99_ns, Some(4_000_000));
    assert_eq!(answer.reads_during_p99_ns, None);
    let ratio = answer.throughput_ratio.unwrap();
    assert!((0.45..0.6).contains(&ratio), "{ratio}");
    // 1.2 GiB in 12 s: 0.2 GiB in 2 s, 2.5 % of 8 GiB.
    let limit = answer.dirty_limit.unwrap();
    assert!((limit.percent_of_cache - 2.5).abs() < 0.1, "{limit:?}");
    assert_eq!(
        limit.setting,
        "eviction_dirty_target=1,eviction_dirty_trigger=2"
    );
}

#[test]
fn of_counters() {
    for (last, number) in [
        (
            "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
            "wiredTiger.transaction.transaction checkpoint generation",
        ),
        (
            "wiredTiger.checkpoint.most recent time (msecs)",
            "wiredTiger.checkpoint.total succeed number of checkpoints",
        ),
    ] {
        let mut recording = Recording::new();
        let name = number;
        recording.values("serverStatus", name, |s| if s < 30.0 { 7.0 } else { 8.0 });
        recording.values(
            "serverStatus",
            last,
            |s| if s < 30.0 { 100.0 } else { 9000.0 },
        );
        let answer = answer(&recording).unwrap();
        assert_eq!(
            (answer.source.as_str(), answer.checkpoints.len()),
            ("serverStatus", 1)
        );
        assert!((answer.longest_s - 9.0).abs() < 1e-9);
        assert!(
            answer.dirty_limit.is_none(),
            "nothing says how much was dirty"
        );
    }
}

#[test]
fn none_ran() {
    assert_eq!(answer(&Recording::new()), None);
    let mut recording = Recording::new();
    recording.steady(
        "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
        9000.0,
    );
    recording.steady(
        "wiredTiger.transaction.transaction checkpoint generation",
        7.0,
    );
    assert_eq!(
        answer(&recording),
        None,
        "the last was before the observation"
    );
}
