use seekscope_run::FileRole;

use super::dirty_limit::{CACHE_BYTES_MAX, DIRTY_BYTES};
use super::*;
use crate::testing::{Call, GIB, Recording};

fn answer(recording: &Recording) -> Option<CheckpointAnswer> {
    recording.examine(|_, answers| answers.checkpoints.clone())
}

/// One checkpoint from second 20 to 32, with journal syncs all the time.
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
    // 1.2 GiB in 12 s: 0.2 GiB in 2 s, 2.5 % of 8 GiB; the nearest possible setting is 2 %.
    let limit = answer.dirty_limit.unwrap();
    assert_eq!(limit.percent_of_cache, 2.0);
    assert!((limit.checkpoint_s - 1.6).abs() < 0.05, "{limit:?}");
    assert_eq!(
        limit.setting,
        "eviction_dirty_target=1,eviction_dirty_trigger=2"
    );
}

/// An 8 GiB cache holds more dirty data than 2 s would write; of a larger one, 2 % is the smallest possible setting.
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

/// Counters as in WiredTiger: a checkpoint begins at `from_s`, when the number rises, and ends at `to_s`; the
/// one before took a tenth of a second.
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

/// Converts to a second of the observation.
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
        assert!(answer.longest_is_under_way(), "it took at least so long");
    }
}

/// Sets a counter's value by second: it keeps each until the next.
fn steps(recording: &mut Recording, name: &str, steps: &[(f64, f64)]) {
    recording.values("serverStatus", name, |s| {
        let value = steps.iter().rev().find(|(from_s, _)| s >= *from_s);
        value.map_or(0.0, |(_, value)| *value)
    });
}

/// The trace of a checkpoint of 18.66 s whose long syncs were recorded as 4.29 s each, so that it falls to
/// pieces, the longest of 6.6 s. The server ends it within the second before 39.
fn cut_off() -> Recording {
    let mut recording = Recording::new();
    let table = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("WTCheck.tThread");
    for (at_s, latency_s, is_sync) in [
        (20.0, 2.3, false),
        (22.3, 4.29, true),
        (31.0, 4.29, true),
        (38.6, 0.06, true),
    ] {
        let call = Call {
            tid,
            file_id: table,
            at_s,
            offset: 0,
            bytes: 1 << 20,
            latency_s,
        };
        match is_sync {
            true => recording.sync(call),
            false => recording.write(call),
        }
    }
    recording.steady(CACHE_BYTES_MAX, GIB as f64);
    // A fifth of the cache is dirty when it begins, and less than half of that otherwise.
    recording.values("serverStatus", DIRTY_BYTES, |s| {
        if (18.0..22.0).contains(&s) {
            0.2 * GIB as f64
        } else {
            0.08 * GIB as f64
        }
    });
    let [number, last_ms, total_ms, state] = NAMES[0];
    steps(&mut recording, number, &[(0.0, 7.0), (20.0, 8.0)]);
    steps(&mut recording, last_ms, &[(0.0, 100.0), (39.0, 18_660.0)]);
    steps(&mut recording, total_ms, &[(0.0, 700.0), (39.0, 19_360.0)]);
    steps(
        &mut recording,
        state,
        &[(0.0, 0.0), (20.0, 1.0), (39.0, 0.0)],
    );
    recording
}

#[test]
fn the_server_says_how_long_and_the_trace_what_was_written() {
    let answer = answer(&cut_off()).unwrap();
    assert_eq!(
        (answer.source.as_str(), answer.checkpoints.len()),
        ("serverStatus", 1)
    );
    assert!(
        (answer.longest_s - 18.66).abs() < 0.001,
        "{}",
        answer.longest_s
    );
    let found = answer.checkpoints[0];
    // The counters show when it ended to within a second, the trace exactly.
    assert!((second(found.ended_ns) - 38.66).abs() < 0.01);
    assert_eq!((found.written_bytes, found.syncs), (1 << 20, 3));
    let said = answer.disagreement.unwrap();
    assert!(said.contains("18.7 s") && said.contains("6.59 s"), "{said}");
}

#[test]
fn the_dirty_limit_follows_from_the_servers_own_time() {
    // A fifth of the cache was written in 18.66 s, so 2 s write 2.1 %.
    let limit = answer(&cut_off()).unwrap().dirty_limit.unwrap();
    assert_eq!(
        limit.setting,
        "eviction_dirty_target=1,eviction_dirty_trigger=2"
    );
    assert!((limit.checkpoint_s - 1.866).abs() < 0.01, "{limit:?}");
}

/// Reproduces mongod 4.4.6 under random updates, where the limit had no effect.
#[test]
fn no_limit_is_promised_where_evicted_pages_are_flushed() {
    let with_own = |own_bytes_per_s: f64| {
        let mut recording = cut_off();
        let written = "wiredTiger.block-manager.bytes written";
        recording.rising(written, 40e6);
        recording.rising(&format!("{written} for checkpoint"), own_bytes_per_s);
        answer(&recording).unwrap()
    };
    let flushing = with_own(0.4e6);
    assert_eq!(flushing.dirty_limit, None);
    assert!((flushing.own_share.unwrap() - 0.01).abs() < 1e-6);
    // Half of it was their own: a tenth of that half may be dirty.
    let limit = with_own(20e6).dirty_limit.unwrap();
    assert!(
        (limit.checkpoint_s - 18.66 * 0.55).abs() < 0.01,
        "{limit:?}"
    );
}

#[test]
fn trace_and_counters_that_agree_say_nothing() {
    let mut recording = traced();
    let [_, last_ms, total_ms, _] = NAMES[0];
    steps(&mut recording, last_ms, &[(0.0, 100.0), (33.0, 12_100.0)]);
    steps(&mut recording, total_ms, &[(0.0, 700.0), (33.0, 12_800.0)]);
    let answer = answer(&recording).unwrap();
    assert_eq!((answer.longest_s, answer.disagreement), (12.1, None));
}

#[test]
fn one_that_began_before_the_watch() {
    let mut recording = Recording::new();
    let [_, last_ms, total_ms, state] = NAMES[0];
    steps(&mut recording, last_ms, &[(0.0, 9_000.0), (5.0, 15_000.0)]);
    steps(
        &mut recording,
        total_ms,
        &[(0.0, 50_000.0), (5.0, 65_000.0)],
    );
    steps(&mut recording, state, &[(0.0, 1.0), (5.0, 0.0)]);
    let answer = answer(&recording).unwrap();
    assert_eq!((answer.longest_s, answer.last_is_under_way), (15.0, false));
}

#[test]
fn several_in_one_step_are_told_apart() {
    let mut recording = Recording::new();
    let [number, last_ms, total_ms, _] = NAMES[0];
    steps(&mut recording, number, &[(0.0, 7.0), (30.0, 10.0)]);
    steps(&mut recording, last_ms, &[(0.0, 100.0), (30.0, 300.0)]);
    steps(&mut recording, total_ms, &[(0.0, 700.0), (30.0, 1_400.0)]);
    let answer = answer(&recording).unwrap();
    let lengths: Vec<f64> = answer.checkpoints.iter().map(seconds).collect();
    assert_eq!(lengths, [0.2, 0.2, 0.3]);
    let ends = answer.checkpoints.iter().map(|c| second(c.ended_ns));
    assert_eq!(ends.collect::<Vec<f64>>(), [29.5, 29.7, 30.0]);
}

#[test]
fn a_trace_serves_where_the_server_does_not_count() {
    let mut recording = traced();
    recording.rising("opcounters.insert", 100.0);
    recording.document.phases[0].ended_ns = crate::testing::START_NS + 30_000_000_000;
    let source = answer(&recording).unwrap().source;
    assert_eq!(source, "trace", "nothing else counts them");
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
