use seekscope_run::{FileRole, IoLimit};

use super::*;
use crate::detectors::io::application_eviction::PAGES;
use crate::testing::{Call, OBSERVED_S, Recording, START_NS, flash, shuffled};

/// 145 reads per second that take `latency_s`, of which the disk takes 0.2 ms.
fn reading(latency_s: f64) -> Recording {
    let mut recording = Recording::new();
    let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("conn1");
    for (i, place) in shuffled(8700).into_iter().enumerate() {
        recording.miss(Call {
            tid,
            file_id,
            at_s: i as f64 / 145.0,
            offset: u64::from(place) * 32_768,
            bytes: 32_768,
            latency_s,
        });
    }
    for (name, per_s) in [
        ("reads", 145.0),
        ("reads_merged", 0.0),
        ("writes", 0.0),
        ("read_bytes", 145.0 * 32_768.0),
        ("write_bytes", 0.0),
        ("read_ms", 29.0),
        ("write_ms", 0.0),
        ("queue_ms", 29.0),
    ] {
        recording.values("diskstats", name, |s| s * per_s);
    }
    recording.values("process", "cpu_ns", |s| s * 0.2e9);
    recording.ability(flash(1e-4));
    recording
}

fn limit(recording: &mut Recording, per_s: u64) {
    recording.host().surroundings.io_limits.push(IoLimit {
        cgroup: "/db".into(),
        device: "254:0".into(),
        what: "read IOPS".into(),
        per_s,
    });
}

#[test]
fn ill_by_a_known_limit() {
    let mut recording = reading(0.05);
    limit(&mut recording, 150);
    let found = recording.findings(&DETECTOR);
    let waiting = 145.0 * 0.05 * 3600.0;
    let saved = found[0].saves_s_per_hour.unwrap();
    assert!(
        saved > 0.98 * waiting && saved < waiting,
        "{saved} {waiting}"
    );
    assert!(
        found[0].title.contains("read IOPS 150/s"),
        "{}",
        found[0].title
    );
    assert_eq!(found[0].confidence, "high");
}

/// A neighbour in the group reads nearly all that it may.
#[test]
fn ill_by_a_limit_that_others_use_up() {
    let mut recording = reading(0.05);
    limit(&mut recording, 150);
    recording.values("cgroup", "reads", |s| s * 148.0);
    recording.values("cgroup", "read_bytes", |s| s * 148.0 * 32_768.0);
    recording.values("process", "read_bytes", |s| s * 2.0 * 32_768.0);
    let found = recording.findings(&DETECTOR);
    assert!(found[0].title.ends_with(BY_OTHERS), "{found:?}");
    assert_eq!(found[0].command, WHO_ELSE);
    recording.values("process", "read_bytes", |s| s * 140.0 * 32_768.0);
    let found = recording.findings(&DETECTOR);
    assert!(!found[0].title.contains("other processes"), "{found:?}");
}

/// A group that writes 15 MB/s all the time, as many as it may, while two threads make room in the cache.
fn writing() -> Recording {
    let mut recording = at_its_limit();
    recording.rising(EVICTING_US[0], 2e6);
    recording.rising(PAGES[0], 90.0);
    recording
}

/// A group that writes 15 MB/s all the time, as many as it may.
fn at_its_limit() -> Recording {
    let mut recording = Recording::new();
    for (name, per_s) in [
        ("reads", 0.0),
        ("writes", 300.0),
        ("read_bytes", 0.0),
        ("write_bytes", 15e6),
        ("read_ms", 0.0),
        ("write_ms", 60.0),
        ("queue_ms", 60.0),
    ] {
        recording.values("diskstats", name, |s| s * per_s);
    }
    recording.ability(flash(1e-4));
    recording.host().surroundings.io_limits.push(IoLimit {
        cgroup: "/db".into(),
        device: "254:0".into(),
        what: "write bytes/s".into(),
        per_s: 15_000_000,
    });
    recording
}

#[test]
fn a_limit_of_writes_is_why_room_in_the_cache_is_waited_for() {
    let found = writing().diagnosis().findings;
    assert_eq!(found[0].id, "disk.limited", "{found:#?}");
    assert!(
        found[0].evidence[1].contains("2.0 h per hour"),
        "{found:#?}"
    );
    assert!((found[0].saves_s_per_hour.unwrap() - 7200.0).abs() < 1.0);
    let eviction = "eviction.by-application-threads";
    assert!(found.iter().all(|finding| finding.id != eviction));
    let mut unlimited = writing();
    unlimited.host().surroundings.io_limits.clear();
    let found = unlimited.diagnosis().findings;
    assert_eq!(found[0].id, eviction, "{found:#?}");
}

/// The slower a disk, the fewer syncs there are: at 12 writes a second one takes a third of a second.
#[test]
fn a_few_syncs_that_fill_the_time_are_enough() {
    let mut recording = at_its_limit();
    recording.rising("wiredTiger.log.log sync operations", 1.2);
    recording.rising("wiredTiger.log.log sync time duration (usecs)", 980_000.0);
    recording.rising("opLatencies.writes.ops", 1.2);
    recording.rising("opLatencies.writes.latency", 990_000.0);
    let found = recording.diagnosis().findings;
    assert_eq!(found[0].id, "disk.limited", "{found:#?}");
    assert!(found[0].saves_s_per_hour.unwrap() > 3000.0, "{found:#?}");
    let mut unlimited = recording;
    unlimited.host().surroundings.io_limits.clear();
    let found = unlimited.diagnosis().findings;
    assert_eq!(found[0].id, "journal.slow-sync", "{found:#?}");
    assert!(found.iter().all(|f| f.id != "disk.not-the-problem"));
}

/// A regression: in a watch of three seconds the limit, which was known, was to be searched for.
#[test]
fn ill_by_a_known_limit_in_a_short_watch() {
    let short = |per_s: u64| {
        let mut recording = reading(0.05);
        limit(&mut recording, per_s);
        recording.examine(|evidence, _| {
            let mut counters = evidence.counters.clone();
            counters.forget_before(START_NS + u64::from(OBSERVED_S - 3) * 1_000_000_000);
            let evidence = Evidence {
                counters: &counters,
                ..*evidence
            };
            detect(&evidence, &Answers::of(&evidence)).remove(0)
        })
    };
    let reached = short(150);
    let title = "cgroup /db read IOPS 150/s was reached in 97 % of the seconds";
    assert!(reached.title.ends_with(title), "{reached:?}");
    let near = short(200);
    assert!(near.title.contains("Something holds"), "{near:?}");
    let known = "The limit that is known, cgroup /db read IOPS 200/s, was not seen";
    assert!(near.evidence[2].starts_with(known), "{near:?}");
    assert!(
        near.command
            .starts_with("grep -s . /sys/fs/cgroup/db/io.max")
    );
}

/// A regression: four runs on one disk gave 0.3 to 4.8 ms for what takes 1.4 ms, each as a fact.
#[test]
fn what_the_limit_does_not_hold_back_tells_what_the_disk_takes() {
    let told = |held_back: u32| {
        let mut recording = at_its_limit();
        let file_id = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
        let tid = recording.thread("WTJourn.Flusher");
        for i in 0..600_u32 {
            recording.sync(Call {
                tid,
                file_id,
                at_s: f64::from(i) / 10.0,
                offset: 0,
                bytes: 0,
                latency_s: if i % 5 < held_back { 0.06 } else { 0.0014 },
            });
        }
        recording.rising("opLatencies.writes.ops", 20.0);
        recording.rising("opLatencies.writes.latency", 900_000.0);
        recording.findings(&DETECTOR).remove(0).evidence.remove(1)
    };
    let half = "half of them took at most 1.40 ms, which is about what the disk takes";
    assert!(told(2).contains(half), "{}", told(2));
    let all = told(5);
    assert!(all.contains("a sync may be several of them"), "{all}");
    assert!(!all.contains("without the limit the disk takes"), "{all}");
}

#[test]
fn what_lifts_the_limit_is_told() {
    let mut recording = reading(0.05);
    limit(&mut recording, 150);
    let found = recording.findings(&DETECTOR).remove(0);
    let lines: Vec<&str> = found.command.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "echo '254:0 riops=max' > /sys/fs/cgroup/db/io.max  # lifts it, with control groups v2",
            "echo '254:0 0' > /sys/fs/cgroup/blkio/db/blkio.throttle.read_iops_device  # lifts it, with v1",
        ]
    );
    assert!(found.risk.contains("only where it is yours"), "{found:?}");
}

#[test]
fn ill_by_a_limit_that_hides() {
    let found = reading(0.05).findings(&DETECTOR);
    assert_eq!((found.len(), found[0].confidence.as_str()), (1, "medium"));
    let mut busy = reading(0.05);
    busy.values("pressure", "cpu.some_us", |s| s * 900_000.0);
    assert_eq!(busy.findings(&DETECTOR), [], "it may be the CPU");
}

#[test]
fn without_pressure_the_cpus_in_use_tell() {
    let free = reading(0.05).findings(&DETECTOR);
    assert!(!free[0].evidence[1].contains("CPU"), "{free:?}");
    let mut busy = reading(0.05);
    busy.document.host.as_mut().unwrap().cpus = 0;
    assert_eq!(busy.findings(&DETECTOR), [], "nobody knows");
    busy.document.host.as_mut().unwrap().cpus = 8;
    busy.host().surroundings.cpu_quota = Some(0.3);
    assert_eq!(busy.findings(&DETECTOR), [], "it may be the CPU");
    let mut told = reading(0.05);
    told.values("pressure", "cpu.some_us", |s| s * 20_000.0);
    let sentence = &told.findings(&DETECTOR)[0].evidence[1];
    assert!(sentence.contains("a CPU in 2.0 % of"), "{sentence}");
}

#[test]
fn waiting_during_long_checkpoints_is_theirs() {
    let mut recording = reading(0.002);
    let file_id = recording.file("b.wt", FileRole::Collection, Some("shop.items"));
    let tid = recording.thread("conn2");
    let checkpoint = recording.thread("WTCheck.tThread");
    for i in 0..200 {
        let call = Call {
            tid: checkpoint,
            file_id,
            at_s: 20.0 + f64::from(i) / 10.0,
            offset: u64::try_from(i).unwrap() << 20,
            bytes: 1 << 20,
            latency_s: 0.09,
        };
        recording.write(call);
        for reader in 0..10_u64 {
            recording.miss(Call {
                tid,
                offset: call.offset + (reader << 32),
                bytes: 32_768,
                latency_s: 0.3,
                ..call
            });
        }
    }
    let saved = recording.findings(&DETECTOR)[0].saves_s_per_hour.unwrap();
    // 8700 reads of 2 ms are outside the checkpoint or as quick as ever while it runs.
    assert!(saved <= 8700.0 * 0.002 * 60.0, "{saved}");
}

#[test]
fn healthy() {
    let mut far = reading(0.0003);
    limit(&mut far, 3000);
    assert_eq!(far.findings(&DETECTOR), []);
    let mut near_but_quick = reading(0.0003);
    limit(&mut near_but_quick, 150);
    assert_eq!(
        near_but_quick.findings(&DETECTOR),
        [],
        "nobody waits for it"
    );
    assert_eq!(Recording::new().findings(&DETECTOR), []);
}
