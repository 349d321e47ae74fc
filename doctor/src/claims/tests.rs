use proptest::prelude::*;
use seekscope_run::{
    FileRole, FilterSeen, Gain, IoLimit, LayoutFile, LoggedOperations, PredictedScan, ScanOrder,
};

use super::*;
use crate::evidence::waiting::{SYNC_US, SYNCS};
use crate::ranking::PER_HOUR;
use crate::testing::{Call, OBSERVED_S, Recording, flash, shuffled};

fn finding(id: &str, saves: f64) -> Finding {
    Finding {
        id: id.into(),
        saves_s_per_hour: Some(saves),
        gain: Some(Gain {
            value: saves,
            low: 0.0,
            high: saves,
            unit: PER_HOUR.into(),
        }),
        ..Finding::default()
    }
}

fn saved(recording: &Recording, mut findings: Vec<Finding>) -> Vec<f64> {
    recording.examine(|evidence, _| share_out(evidence, &mut findings));
    let saved = findings.iter().filter_map(|f| f.saves_s_per_hour);
    saved.map(f64::round).collect()
}

/// 1000 s of reads and 500 s of syncs per hour.
fn counted() -> Recording {
    let mut recording = Recording::new();
    let read = "wiredTiger.cache.application threads page read from disk to cache";
    recording.rising(&format!("{read} time (usecs)"), 1e9 / 3600.0);
    recording.rising(&format!("{read} count"), 100.0);
    recording.rising(SYNCS, 10.0);
    recording.rising(SYNC_US, 0.5e9 / 3600.0);
    recording
}

#[test]
fn each_kind_is_shared_out_once() {
    let claims = vec![
        finding("disk.slow", 800.0),
        finding("journal.slow-sync", 450.0),
        finding("disk.saturated", 900.0),
        finding("disk.saturated", 5000.0),
    ];
    assert_eq!(saved(&counted(), claims), [800.0, 450.0, 180.0, 20.0]);
}

#[test]
fn checkpoints_claim_of_all_that_they_hold_up() {
    let claims = vec![
        finding("checkpoint.long", 750.0),
        finding("disk.slow", 1000.0),
        finding("journal.slow-sync", 500.0),
    ];
    assert_eq!(saved(&counted(), claims), [750.0, 500.0, 250.0]);
}

#[test]
fn nothing_is_claimed_of_what_nobody_waited() {
    let claims = vec![finding("disk.slow", 3000.0), finding("unheard-of", 9000.0)];
    assert_eq!(saved(&counted(), claims), [1000.0, 500.0]);
    let idle = saved(&Recording::new(), vec![finding("disk.slow", 10.0)]);
    assert_eq!(idle, [0.0]);
}

/// A regression: the whole time of two scans was to be saved by indexes while others had taken the CPUs.
#[test]
fn waiting_for_cpus_that_others_take_is_not_what_an_index_saves() {
    let mut recording = Recording::new();
    recording.rising("opLatencies.reads.latency", 2e6);
    recording.rising("opLatencies.reads.ops", 10.0);
    recording.values("process", "cpu_ns", |s| s * 0.2e9);
    let scans = || {
        vec![
            finding("query.collection-scan", 4500.0),
            finding("query.collection-scan", 2700.0),
        ]
    };
    assert_eq!(saved(&recording, scans())[0], 4500.0);
    recording.values("cpu", "busy_ns", |s| s * 7.98e9);
    recording.values("pressure", "cpu.some_us", |s| s * 0.95e6);
    let waited = recording.examine(|evidence, _| Waited::of(evidence));
    assert!((waited.processors - 6480.0).abs() < 0.1, "{waited:?}");
    assert!((waited.operations - 720.0).abs() < 0.1, "{waited:?}");
    let mut findings = vec![finding("cpu.saturated", 6480.0)];
    findings.extend(scans());
    recording.examine(|evidence, _| share_out(evidence, &mut findings));
    let saves: Vec<f64> = findings.iter().filter_map(|f| f.saves_s_per_hour).collect();
    assert!(saves.iter().sum::<f64>() <= 7200.1, "{saves:?}");
    assert!((saves[0] - 6480.0).abs() < 0.1, "{saves:?}");
    assert!((saves[1] - 450.0).abs() < 0.1, "a tenth: {saves:?}");
    let told = "about 90 % of the operations' time was spent waiting for a CPU";
    assert!(findings[1].evidence[0].contains(told), "{findings:?}");
}

/// A regression: change streams that waited for news were said to wait for CPUs, minutes per hour one day and not at all
/// the next.
#[test]
fn what_the_kernel_counts_is_believed_before_the_estimate() {
    let processors = |busy: f64, counted: Option<f64>| {
        let mut recording = Recording::new();
        recording.rising("opLatencies.reads.latency", 3e6);
        recording.rising("opLatencies.reads.ops", 10.0);
        recording.values("process", "cpu_ns", |s| s * 1e9);
        recording.values("cpu", "busy_ns", |s| s * busy * 1e9);
        recording.values("pressure", "cpu.some_us", |s| s * 0.95e6);
        if let Some(per_s) = counted {
            recording.values("process", "run_delay_ns", |s| s * per_s * 1e9);
        }
        recording.examine(|evidence, _| Waited::of(evidence).processors.round())
    };
    assert_eq!(processors(7.98, None), 7200.0);
    assert_eq!(processors(7.98, Some(0.1)), 360.0);
    let all = processors(7.98, Some(9.0));
    assert_eq!(all, 10_800.0, "what operations took");
    assert_eq!(processors(5.0, Some(0.1)), 0.0, "there are CPUs to spare");
}

/// What each write waits for syncs is estimated: what is left of its time is not taken for waiting for a CPU.
#[test]
fn writes_that_wait_for_syncs_are_not_said_to_wait_for_cpus() {
    let mut recording = Recording::new();
    recording.rising(SYNCS, 40.0);
    recording.rising(SYNC_US, 0.9e6);
    recording.rising("opLatencies.writes.latency", 7.5e6);
    recording.rising("opLatencies.writes.ops", 120.0);
    recording.values("process", "cpu_ns", |s| s * 0.03e9);
    recording.values("cpu", "busy_ns", |s| s * 7.98e9);
    recording.values("pressure", "cpu.some_us", |s| s * 0.95e6);
    let waited = recording.examine(|evidence, _| Waited::of(evidence));
    assert_eq!(waited.processors, 0.0, "{waited:?}");
    assert!(waited.operations > 3600.0, "{waited:?}");
}

/// A regression: two scans of five minutes that ended within a minute were 10 s of operations per second.
#[test]
fn what_operations_took_before_the_watch_does_not_count() {
    let mut recording = Recording::new();
    recording.rising("opLatencies.reads.latency", 10e6);
    recording.rising("opLatencies.reads.ops", 2.0 / f64::from(OBSERVED_S));
    recording.rising("opLatencies.writes.latency", 0.5e6);
    recording.rising("opLatencies.writes.ops", 100.0);
    let waited = recording.examine(|evidence, _| Waited::of(evidence));
    assert!((waited.operations - 9000.0).abs() < 0.1, "{waited:?}");
    let claims = vec![finding("query.collection-scan", 36_000.0)];
    assert_eq!(saved(&recording, claims), [9000.0]);
}

/// Operations on shop.orders by a field, of which the log tells that they took this long per hour.
fn logged(recording: &mut Recording, field: &str, s_per_hour: u64) -> OperationSeen {
    recording.examined().slow_log_s = Some(3600.0);
    let operation = OperationSeen {
        kind: "query".into(),
        namespace: Some("shop.orders".into()),
        filter: Some(FilterSeen {
            fields: vec![field.into()],
            ..FilterSeen::default()
        }),
        logged: Some(LoggedOperations {
            count: 10,
            took_us: s_per_hour * 1_000_000,
            ..LoggedOperations::default()
        }),
        ..OperationSeen::default()
    };
    recording.examined().operations.push(operation.clone());
    operation
}

/// A regression: what an index saves of one kind of operation was deducted from what another saves of another kind.
#[test]
fn time_that_the_log_tells_of_operations_is_theirs_alone() {
    let mut recording = counted();
    let by_status = logged(&mut recording, "status", 2000);
    let by_day = logged(&mut recording, "day", 3000);
    logged(&mut recording, "region", 5000);
    let about = |operation: &OperationSeen, saves: f64| Finding {
        operations: OperationKind::of_all([operation]),
        ..finding("query.collection-scan", saves)
    };
    let (status, day) = (about(&by_status, 2000.0), about(&by_day, 2900.0));
    let both = saved(&recording, vec![day.clone(), status.clone()]);
    assert_eq!(both, [2900.0, 2000.0]);
    // What several claim of one kind, and what the log does not tell, is shared as everything else is: of 9,500 s of
    // reads and operations 6,600 are left, and then 4,600.
    let again = about(&by_day, 950.0);
    let shared = saved(&recording, vec![day.clone(), again]);
    assert_eq!(shared, [2900.0, 660.0]);
    let untold = finding("query.collection-scan", 950.0);
    assert_eq!(saved(&recording, vec![day, status, untold])[2], 460.0);
}

#[test]
fn what_the_log_tells_is_claimed_once() {
    let mut recording = Recording::new();
    let slow: Vec<OperationSeen> = ["a", "b", "c"]
        .into_iter()
        .map(|field| logged(&mut recording, field, 1000))
        .collect();
    let mut claims = vec![finding("query.collection-scan", 1500.0)];
    claims.extend(slow.iter().map(|operation| Finding {
        operations: OperationKind::of_all([operation]),
        ..finding("query.collection-scan", 1000.0)
    }));
    assert_eq!(saved(&recording, claims), [1500.0, 1000.0, 500.0, 0.0]);
}

/// What happens to a generated server.
#[derive(Debug, Clone)]
struct Story {
    threads: u32,
    read_s: f64,
    /// Time of the disk itself.
    disk_s: f64,
    pages: u32,
    sync_s: f64,
    syncs_per_s: u32,
    /// Time of all writes of the server together, per second; `None` where it does not report it.
    writing_s_per_s: Option<f64>,
    evicting_s_per_s: f64,
    checkpoint_s: f64,
    read_limit: Option<u64>,
    write_limit: Option<u64>,
    model_s: f64,
    aged: bool,
    scanned: bool,
    read_ahead: u32,
}

fn stories() -> impl Strategy<Value = Story> {
    let reads = (1u32..6, 1e-4..0.08f64, 0.02..1.0f64, 200u32..4000);
    let syncs = (1e-4..0.2f64, 2u32..12);
    let counters = (
        proptest::option::of(0.0..4.0f64),
        prop_oneof![Just(0.0), 0.0..0.9f64],
        prop_oneof![Just(0.0), 3.0..40.0f64],
    );
    let disk = (
        proptest::option::of(20u64..3000),
        proptest::option::of(20u64..3000),
        5e-5..1e-2f64,
    );
    let kinds = (any::<bool>(), any::<bool>(), 1u32..32);
    (reads, syncs, counters, disk, kinds).prop_map(|(reads, syncs, counters, disk, kinds)| Story {
        threads: reads.0,
        read_s: reads.1,
        disk_s: reads.1 * reads.2,
        pages: reads.3,
        sync_s: syncs.0,
        syncs_per_s: syncs.1,
        writing_s_per_s: counters.0,
        evicting_s_per_s: counters.1,
        checkpoint_s: counters.2,
        read_limit: disk.0,
        write_limit: disk.1,
        model_s: disk.2,
        aged: kinds.0,
        scanned: kinds.1,
        read_ahead: kinds.2,
    })
}

/// Returns the recording, and what was waited in it according to the story, s per hour, computed without the
/// doctor's code.
fn told(story: &Story) -> (Recording, f64) {
    let mut recording = Recording::new();
    recording.ability(flash(story.model_s));
    let seconds = f64::from(OBSERVED_S);
    let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
    let per_s = f64::from(story.threads) / story.read_s;
    let tids: Vec<u32> = (0..story.threads)
        .map(|i| recording.thread(&format!("conn{i}")))
        .collect();
    let places = shuffled(story.pages);
    let mut waited = 0.0;
    // No more events than is reasonable in a test; a longer pause between them instead.
    let pace = per_s.min(60.0);
    for i in 0..60_000u32 {
        let at_s = f64::from(i) / pace;
        if at_s + story.read_s >= seconds {
            break;
        }
        let place = places[i as usize % places.len()];
        let call = Call {
            tid: tids[i as usize % tids.len()],
            file_id,
            at_s,
            offset: u64::from(place) * 32_768,
            bytes: 32_768,
            latency_s: story.read_s,
        };
        recording.miss_with_read_ahead(call, 32_768 * story.read_ahead);
        waited += story.read_s;
    }
    let log = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
    let journal = recording.thread("WTJourn.Flusher");
    let mut syncing = 0.0;
    for i in 0..story.syncs_per_s * OBSERVED_S {
        let at_s = f64::from(i) / f64::from(story.syncs_per_s);
        if at_s + story.sync_s >= seconds {
            break;
        }
        recording.sync(Call {
            tid: journal,
            file_id: log,
            at_s,
            offset: 0,
            bytes: 0,
            latency_s: story.sync_s,
        });
        syncing += story.sync_s;
    }
    let mut waited = waited / seconds * 3600.0 + syncing / seconds * 3600.0;
    write_checkpoint(&mut recording, story);
    count(&mut recording, story, pace);
    waited += story.evicting_s_per_s * 3600.0;
    let writing = story.writing_s_per_s.unwrap_or(0.0) * 3600.0;
    (recording, waited.max(writing))
}

fn write_checkpoint(recording: &mut Recording, story: &Story) {
    let table = recording.file("b.wt", FileRole::Collection, Some("shop.items"));
    let checkpoint = recording.thread("WTCheck.tThread");
    let mut at_s = 15.0;
    while at_s < 15.0 + story.checkpoint_s {
        recording.write(Call {
            tid: checkpoint,
            file_id: table,
            at_s,
            offset: 0,
            bytes: 1 << 20,
            latency_s: 0.4,
        });
        at_s += 0.5;
    }
}

fn count(recording: &mut Recording, story: &Story, reads_per_s: f64) {
    let syncs = f64::from(story.syncs_per_s);
    for (name, per_s) in [
        ("reads", reads_per_s),
        ("reads_merged", 0.0),
        ("writes", syncs),
        ("writes_merged", 0.0),
        (
            "read_bytes",
            reads_per_s * 32_768.0 * f64::from(story.read_ahead),
        ),
        ("write_bytes", syncs * 4096.0),
        ("read_ms", reads_per_s * story.disk_s * 1000.0),
        ("write_ms", syncs * 0.2),
        ("queue_ms", reads_per_s * story.disk_s * 1000.0),
        ("busy_ms", (reads_per_s * story.disk_s * 1000.0).min(1000.0)),
    ] {
        recording.values("diskstats", name, |s| s * per_s);
    }
    recording.values("process", "cpu_ns", |s| s * 0.2e9);
    if let Some(s_per_s) = story.writing_s_per_s {
        recording.rising("opLatencies.writes.latency", s_per_s * 1e6);
        recording.rising("opLatencies.writes.ops", 100.0);
    }
    recording.rising(EVICTING_US[0], story.evicting_s_per_s * 1e6);
    recording.steady("wiredTiger.cache.maximum bytes configured", 1e8);
    recording.steady("wiredTiger.cache.bytes currently in the cache", 9e7);
    for (what, limit) in [
        ("read IOPS", story.read_limit),
        ("write IOPS", story.write_limit),
    ] {
        if let Some(per_s) = limit {
            recording.host().surroundings.io_limits.push(IoLimit {
                cgroup: "/db".into(),
                device: "254:0".into(),
                what: what.into(),
                per_s,
            });
        }
    }
    if story.aged {
        recording.layout(aged());
    }
    if story.scanned {
        recording.scanning();
    }
}

fn aged() -> LayoutFile {
    LayoutFile {
        file: "collection-7.wt".into(),
        namespace: Some("shop.orders".into()),
        leaf_pages: 4000,
        leaf_bytes: 4000 * 32_768,
        documents: Some(100_000),
        order: Some(ScanOrder {
            window_bytes: 131_072,
            sequential_share: 0.05,
            seeks: 3800,
            seeks_best: 1,
            ..ScanOrder::default()
        }),
        predicted_scan: Some(PredictedScan {
            now_s: 30.0,
            ordered_s: 3.0,
            now_low_s: 25.0,
            now_high_s: 35.0,
            device_requests: 3900,
            ..PredictedScan::default()
        }),
        ..LayoutFile::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn findings_never_claim_more_than_was_waited(story in stories()) {
        let (recording, waited) = told(&story);
        let findings = recording.diagnosis().findings;
        let seen = findings.iter().filter(|finding| is_seen(finding));
        let claims: Vec<(String, f64)> = seen
            .filter_map(|f| Some((f.id.clone(), f.saves_s_per_hour?)))
            .collect();
        let claimed: f64 = claims.iter().map(|(_, s)| s).sum();
        prop_assert!(claimed <= waited * 1.01 + 1.0, "{claimed} of {waited}: {claims:?}");
    }
}
