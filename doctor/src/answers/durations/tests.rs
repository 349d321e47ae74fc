use seekscope_run::{CollectionFacts, IndexFacts, LayoutFile, OplogFacts, PredictedScan};

use super::*;
use crate::testing::{Recording, flash};

fn orders(documents: u64) -> CollectionFacts {
    CollectionFacts {
        namespace: "shop.orders".into(),
        documents,
        data_bytes: documents * 1000,
        storage_bytes: documents * 500,
        reusable_bytes: Some(0),
        indexes: vec![IndexFacts {
            name: "_id_".into(),
            bytes: documents * 20,
            ..IndexFacts::default()
        }],
        ..CollectionFacts::default()
    }
}

fn jobs(recording: &Recording) -> Vec<JobDuration> {
    recording.examine(|_, answers| answers.durations.clone())
}

fn job<'a>(jobs: &'a [JobDuration], name: &str) -> &'a JobDuration {
    jobs.iter().find(|job| job.job == name).unwrap()
}

#[test]
fn the_layout_decides_where_it_was_walked() {
    let mut recording = Recording::new();
    recording.ability(flash(1e-4));
    recording.examined().collections = vec![orders(1_000_000)];
    recording.layout(LayoutFile {
        namespace: Some("shop.orders".into()),
        file_bytes: 500_000_000,
        predicted_scan: Some(PredictedScan {
            now_s: 80.0,
            now_low_s: 60.0,
            now_high_s: 90.0,
            ordered_s: 2.0,
            ..PredictedScan::default()
        }),
        ..LayoutFile::default()
    });
    let jobs = jobs(&recording);
    let scan = job(&jobs, "collection scan");
    assert_eq!((scan.low_s, scan.now_s, scan.high_s), (60.0, 80.0, 90.0));
    assert_eq!(scan.basis, "layout walked, disk measured");
    let build = job(&jobs, "index build");
    // 1,000,000 keys of 5 µs, and 20 MB at half of 1 GB/s.
    assert!(
        (build.now_s - (80.0 + 5.0 + 0.04)).abs() < 0.01,
        "{build:?}"
    );
    assert!((build.ordered_s.unwrap() - 7.04).abs() < 0.01, "{build:?}");
    assert!(build.phases.starts_with("reading 94 %"), "{}", build.phases);
}

#[test]
fn without_a_layout_the_range_is_from_order_to_none() {
    let mut recording = Recording::new();
    assert_eq!(jobs(&recording), []);
    recording.ability(flash(1e-4));
    recording.examined().collections = vec![orders(1_000_000)];
    let jobs = jobs(&recording);
    let scan = job(&jobs, "collection scan");
    // 500 MB at 1 GB/s; or 30,518 leaves of 16 KiB (half of 32) at 0.1 ms and 16 µs.
    assert!((scan.low_s - 0.5).abs() < 1e-6, "{scan:?}");
    assert!((scan.high_s - 30_518.0 * 116.4e-6).abs() < 0.01, "{scan:?}");
    assert!(scan.low_s < scan.now_s && scan.now_s < scan.high_s);
    assert!(scan.basis.contains("order on disk is not known"));
}

#[test]
fn a_resync_is_held_against_the_oplog() {
    let mut recording = Recording::new();
    recording.ability(flash(1e-4));
    let mut internal = orders(1_000_000_000);
    internal.namespace = "local.oplog.rs".into();
    recording.examined().collections = vec![orders(10_000_000), internal];
    recording.examined().oplog = Some(OplogFacts {
        window_s: 300.0,
        ..OplogFacts::default()
    });
    let jobs = jobs(&recording);
    let resync = job(&jobs, "resync");
    assert_eq!(resync.namespace, "*");
    // 10 GB of documents at 50 MB/s are 200 s, their keys 50 s.
    assert!((250.0..300.0).contains(&resync.now_s), "{resync:?}");
    assert_eq!(
        resync.stays_within_oplog(),
        Some(false),
        "600 s at its slowest"
    );
    assert!(!jobs.iter().any(|job| job.namespace.starts_with("local.")));
    let oplog = recording.examined().oplog.as_mut().unwrap();
    (oplog.size_bytes, oplog.used_bytes) = (1000, 10);
    let jobs = self::jobs(&recording);
    let resync = job(&jobs, "resync");
    assert_eq!(
        resync.oplog_window_s,
        Some(30_000.0),
        "a hundredth is filled"
    );
}
