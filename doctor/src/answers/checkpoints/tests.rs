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
    // 1.2 GiB in 12 s: 0.2 GiB in 2 s, 2.5 % of 8 GiB; what can be set is 2 %.
    let limit = answer.dirty_limit.unwrap();
    assert_eq!(limit.percent_of_cache, 2.0);
    assert!((limit.checkpoint_s - 1.6).abs() < 0.05, "{limit:?}");
    assert_eq!(
        limit.setting,
        "eviction_dirty_target=1,eviction_dirty_trigger=2"
    );
}

/// Of 8 GiB more are dirty than 2 s would write, and the least that can be set is 2 % of a larger cache.
#[test]
fn a_limit_promises_what_it_can_keep() {
    let limit = |cache_gib: f64, dirty_gib: f64| {
        let mut recording = traced();
        recording.steady(CACHE_BYTES_MAX, cache_gib * GIB as f64);
        recording.steady(DIRTY_BYTES, dirty_gib * GIB as f64);
        answer(&recording).unwrap().dirty_limit
    };
    // 1.28 of 2.56 GiB: half of 12 s.
    let least = limit(64.0, 2.56).unwrap();
    assert_eq!(
        least.setting,
        "eviction_dirty_target=1,eviction_dirty_trigger=2"
    );
    assert!((least.checkpoint_s - 6.0).abs() < 0.1, "{least:?}");
    assert!((least.bytes as f64 / GIB as f64 - 1.28).abs() < 0.01);
    assert_eq!(limit(64.0, 1.2), None, "so much was never dirty");
}

const NAMES: [[&str; 4]; 2] = [
    [
        "wiredTiger.transaction.transaction checkpoints",
        "wiredTiger.transaction.transaction checkpoint most recent time (msecs)",
        "wiredTiger.transaction.transaction checkpoint total time (msecs)",
        "wiredTiger.transaction.transaction checkpoint currently running",
    ],
    [
        "wiredTiger.checkpoint.generation",
        "wiredTiger.checkpoint.most recent time (msecs)",
        "wiredTiger.checkpoint.total time (msecs)",
        "wiredTiger.checkpoint.progress state",
    ],
];

/// As WiredTiger counts: one begins at `from_s`, when the number rises, and ends at `to_s`; the one before
/// took a tenth of a second.
fn counted(names: [&str; 4], from_s: f64, to_s: f64) -> Recording {
    let mut recording = Recording::new();
    let [number, last_ms, total_ms, state] = names;
    let took_ms = (to_s - from_s) * 1000.0;
    let ended = |s: f64| s >= to_s;
    recording.values(
        "serverStatus",
        number,
        |s| {
            if s < from_s { 7.0 } else { 8.0 }
        },
    );
    recording.values("serverStatus", last_ms, |s| {
        if ended(s) { took_ms } else { 100.0 }
    });
    recording.values("serverStatus", total_ms, |s| {
        if ended(s) { 700.0 + took_ms } else { 700.0 }
    });
    recording.values("serverStatus", state, |s| {
        f64::from(u8::from(s >= from_s && !ended(s)))
    });
    recording
}

/// Second of the observation.
fn second(t_ns: u64) -> f64 {
    (t_ns - crate::testing::START_NS) as f64 / 1e9
}

#[test]
fn of_counters() {
    for names in NAMES {
        let answer = answer(&counted(names, 21.0, 30.0)).unwrap();
        assert_eq!(
            (answer.source.as_str(), answer.checkpoints.len()),
            ("serverStatus", 1)
        );
        let found = answer.checkpoints[0];
        assert_eq!(
            (second(found.started_ns), second(found.ended_ns)),
            (21.0, 30.0)
        );
        assert!(
            answer.dirty_limit.is_none(),
            "nothing says how much was dirty"
        );
    }
}

#[test]
fn one_that_has_not_ended() {
    for names in NAMES {
        let answer = answer(&counted(names, 21.0, 100.0)).unwrap();
        let found = answer.checkpoints[0];
        assert_eq!(
            (second(found.started_ns), second(found.ended_ns)),
            (21.0, 60.0)
        );
    }
}

#[test]
fn of_counters_where_the_trace_ended_early() {
    let mut recording = traced();
    recording.rising("opcounters.insert", 100.0);
    let source = |recording: &Recording| answer(recording).unwrap().source;
    let [_, _, total_ms, _] = NAMES[0];
    recording.values("serverStatus", total_ms, |s| {
        if s < 55.0 { 700.0 } else { 9700.0 }
    });
    assert_eq!(source(&recording), "trace");
    recording.document.phases[0].ended_ns = crate::testing::START_NS + 30_000_000_000;
    assert_eq!(source(&recording), "serverStatus");
    let mut without = traced();
    without.rising("opcounters.insert", 100.0);
    without.document.phases = recording.document.phases;
    assert_eq!(source(&without), "trace", "nothing else counts them");
}

#[test]
fn none_ran() {
    assert_eq!(answer(&Recording::new()), None);
    let mut recording = Recording::new();
    let [number, last_ms, total_ms, state] = NAMES[0];
    recording.steady(last_ms, 9000.0);
    recording.steady(total_ms, 9000.0);
    recording.steady(state, 0.0);
    // It rises also when there is nothing to write.
    recording.values("serverStatus", number, |s| (s / 20.0).floor());
    assert_eq!(
        answer(&recording),
        None,
        "the last was before the observation"
    );
}
