use seekscope_run::{DiskAbility, FileRole, IoLimit, LayoutFile, TokenBucket};

use super::DIRECTLY;
use crate::testing::{Call, Recording, flash, shuffled};

fn limit(recording: &mut Recording, what: &str, per_s: u64) {
    recording.host().surroundings.io_limits.push(IoLimit {
        cgroup: "/db".into(),
        device: "254:0".into(),
        what: what.into(),
        per_s,
    });
}

/// Assumes a typical disk with buckets of 3,000 requests and 125 MB per second.
fn typical(recording: &mut Recording) {
    let mut model = flash(7e-4);
    model.disk = "typical cloud volume".into();
    let bucket = |per_s| Some(TokenBucket { per_s, burst: 0.0 });
    (model.iops_bucket, model.bytes_bucket) = (bucket(3000.0), bucket(125e6));
    (model.bytes_per_s_max, model.sequential_bytes_per_s) = (125e6, 125e6);
    (model.buffered_bytes_per_s, model.ns_per_byte) = (125e6, 8.0);
    model.request_bytes_max = 256 << 10;
    recording.examination().disk = Some(DiskAbility {
        source: model.disk.clone(),
        model,
        ..DiskAbility::default()
    });
}

/// Records this many reads per second of this many KiB that take `each_ms` in the disk.
fn counted(recording: &mut Recording, reads_per_s: f64, kib: f64, each_ms: f64) {
    for (name, per_s) in [
        ("reads", reads_per_s),
        ("writes", 0.0),
        ("read_bytes", reads_per_s * kib * 1024.0),
        ("write_bytes", 0.0),
        ("read_ms", reads_per_s * each_ms),
        ("queue_ms", reads_per_s * each_ms),
        ("busy_ms", (reads_per_s * each_ms).min(1000.0)),
    ] {
        recording.values("diskstats", name, |s| s * per_s);
    }
}

fn opinion(recording: &Recording) -> DiskAbility {
    recording
        .examine(|evidence, _| evidence.ability().cloned())
        .unwrap()
}

#[test]
fn nothing_is_read_ahead_of_direct_reads() {
    let mut recording = Recording::new();
    typical(&mut recording);
    let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("conn1");
    let call = |i: u32| Call {
        tid,
        file_id,
        at_s: f64::from(i) / 10.0,
        offset: u64::from(i) << 20,
        bytes: 32_768,
        latency_s: 0.001,
    };
    (0..300).for_each(|i| recording.miss(call(i)));
    assert!(!opinion(&recording).read_directly);
    (300..900).for_each(|i| recording.direct_read(call(i)));
    let found = opinion(&recording);
    assert!(found.read_directly);
    assert!(found.model.disk.ends_with(DIRECTLY), "{found:?}");
}

#[test]
fn a_disk_that_nobody_saw_is_a_typical_one() {
    let mut recording = Recording::new();
    typical(&mut recording);
    let found = opinion(&recording);
    assert_eq!(found.basis(), "of a typical disk");
    assert_eq!(found.model.disk, "typical cloud volume");
}

#[test]
fn limits_of_the_group_take_the_place_of_guesses() {
    let mut recording = Recording::new();
    typical(&mut recording);
    limit(&mut recording, "read IOPS", 150);
    limit(&mut recording, "read bytes/s", 150_000_000);
    recording.device().request_bytes_max = Some(1280 << 10);
    let found = opinion(&recording);
    assert_eq!(found.model.iops_bucket.unwrap().per_s, 150.0);
    assert_eq!(found.model.bytes_bucket.unwrap().per_s, 150e6);
    assert_eq!(found.model.sequential_bytes_per_s, 150e6);
    assert_eq!(found.model.request_bytes_max, 1280 << 10);
    assert_eq!(found.basis(), "as seen in this run");
    assert_eq!(
        found.model.disk,
        "typical cloud volume, limited to 150 read requests and 150 MB per second by the server's control group"
    );
}

#[test]
fn of_a_measured_rate_and_a_limit_the_lower_holds() {
    let mut recording = Recording::new();
    let mut model = flash(1e-4);
    let bucket = |per_s| Some(TokenBucket { per_s, burst: 0.0 });
    (model.iops_bucket, model.bytes_bucket) = (bucket(100.0), None);
    recording.ability(model);
    limit(&mut recording, "read IOPS", 150);
    limit(&mut recording, "read bytes/s", 150_000_000);
    let found = opinion(&recording);
    assert!(found.measured && found.model.sequential_bytes_per_s == 1e9);
    assert_eq!(found.model.iops_bucket.unwrap().per_s, 100.0);
    assert_eq!(found.model.bytes_bucket.unwrap().per_s, 150e6);
}

#[test]
fn what_the_disk_showed_takes_the_place_of_guesses() {
    let mut recording = Recording::new();
    typical(&mut recording);
    counted(&mut recording, 5000.0, 4.0, 0.15);
    let found = opinion(&recording);
    let expected_ns = 0.15e6 - 8.0 * 4096.0; // 8 ns a byte are believable here
    assert!((found.model.l0_ns / expected_ns - 1.0).abs() < 0.01);
    assert_eq!(found.model.iops_bucket, None, "5,000 are beyond 3,000");
    assert_eq!(
        found.model.bytes_bucket, None,
        "no typical volume answers within 150 µs"
    );
    assert_eq!(
        found.model.disk,
        "the data's disk as seen in this run (150 µs per read of 4 KiB)"
    );
    let mut alike = Recording::new();
    typical(&mut alike);
    counted(&mut alike, 500.0, 4.0, 0.6);
    let alike = opinion(&alike).model;
    assert!(alike.iops_bucket.is_some() && alike.bytes_bucket.is_some());
    assert!(
        alike.disk.ends_with(
            "(600 µs per read of 4 KiB), at most 3000 read requests and 125 MB per second assumed as of a typical cloud volume"
        ),
        "{}",
        alike.disk
    );
    let mut quick = Recording::new();
    typical(&mut quick);
    counted(&mut quick, 5000.0, 4.0, 0.01);
    let quick = opinion(&quick).model;
    assert!(
        (quick.l0_ns - 5e3).abs() < 1.0 && quick.ns_per_byte < 1.3,
        "8 ns are not"
    );
    // Measurements take precedence over observation.
    recording.ability(flash(1e-3));
    assert_eq!(opinion(&recording).model.l0_ns, 1e6);
}

/// Another process reads blocks of 4 KiB beside a server whose leaf pages have 28 KiB: how quickly the disk transfers
/// those was not seen.
#[test]
fn small_reads_of_others_do_not_show_how_a_leaf_is_read() {
    let beside_reads_of = |kib: f64| {
        let mut recording = Recording::new();
        typical(&mut recording);
        recording.layout(LayoutFile {
            leaf_pages: 1000,
            leaf_bytes: 1000 * (28 << 10),
            ..LayoutFile::default()
        });
        counted(&mut recording, 40.0, kib, 0.1);
        opinion(&recording).model.disk
    };
    assert_eq!(beside_reads_of(4.0), "typical cloud volume");
    assert!(beside_reads_of(20.0).contains("as seen in this run"));
}

/// Values of a mongod whose pages hold incompressible data.
#[test]
fn reads_of_large_leaf_pages_show_the_disk_too() {
    let mut recording = Recording::new();
    typical(&mut recording);
    counted(&mut recording, 150.0, 118.0, 1.0);
    let found = opinion(&recording).model;
    assert!(
        found
            .disk
            .starts_with("the data's disk as seen in this run (1.00 ms per read of 118 KiB"),
        "{}",
        found.disk
    );
    let read_ns = found.l0_ns + found.ns_per_byte * 118.0 * 1024.0;
    assert!((read_ns / 1e6 - 1.0).abs() < 0.01, "{read_ns}");
}

/// Scans that take a part of every second.
#[test]
fn a_disk_moves_as_much_as_it_did_while_it_was_busy() {
    let rate_when_busy = |reads_per_s: f64, each_ms: f64| {
        let mut recording = Recording::new();
        typical(&mut recording);
        counted(&mut recording, reads_per_s, 200.0, each_ms);
        opinion(&recording).model.sequential_bytes_per_s
    };
    assert_eq!(rate_when_busy(400.0, 2.5), 125e6, "busy all the time");
    let twice_as_much = 2.0 * 400.0 * 200.0 * 1024.0;
    assert!((rate_when_busy(400.0, 1.25) / twice_as_much - 1.0).abs() < 0.01);
    assert_eq!(
        rate_when_busy(60.0, 1.25),
        125e6,
        "too short for the kernel's ticks"
    );
}

/// Inside a container, the host's limits are not visible.
#[test]
fn a_limit_that_nobody_names() {
    let mut recording = Recording::new();
    typical(&mut recording);
    counted(&mut recording, 150.0, 4.0, 0.15);
    let file_id = recording.file("a.wt", FileRole::Collection, Some("shop.orders"));
    let tids: Vec<u32> = (0..8)
        .map(|i| recording.thread(&format!("conn{i}")))
        .collect();
    for (i, place) in shuffled(8950).into_iter().enumerate() {
        recording.miss(Call {
            tid: tids[i % tids.len()],
            file_id,
            at_s: i as f64 / 150.0,
            offset: u64::from(place) * 4096,
            bytes: 4096,
            latency_s: 8.0 / 150.0,
        });
    }
    recording.values("process", "cpu_ns", |s| s * 0.1e9);
    let found = opinion(&recording);
    let limit = found.model.iops_bucket.unwrap();
    assert!((limit.per_s - 150.0).abs() < 1.0, "{limit:?}");
    assert!(
        found.model.disk.contains("something between"),
        "{}",
        found.model.disk
    );
}

/// The disk is described by the same words everywhere.
#[test]
fn answers_and_findings_agree() {
    let mut recording = Recording::new();
    typical(&mut recording);
    counted(&mut recording, 149.0, 4.0, 0.15);
    limit(&mut recording, "read IOPS", 150);
    recording.examine(|evidence, answers| {
        let load = answers.device_load.as_ref().unwrap();
        assert_eq!(load.ability_basis, "as seen in this run");
        let able = load.able_requests_per_s.unwrap();
        assert!(able > 1000.0, "others are not in the group: {able}");
        let opinion = evidence.ability().unwrap();
        assert_eq!(opinion.source, opinion.model.disk);
    });
}
