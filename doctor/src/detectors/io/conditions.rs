//! Tests whole conditions of a server: is the right finding the first?
//!
//! Each is a made-up recording with everything that such a condition shows: trace, disk counters, the
//! server's own counters, layout. A benchmark tests a real server in the same conditions.

use seekscope_run::{FileRole, IoLimit, LayoutFile, PredictedScan, ScanOrder};

use crate::testing::{Call, Recording, flash, shuffled};

const PAGE: u32 = 32_768;

/// Threads that read pages one after another, each waiting `latency_s`.
struct Load {
    threads: u32,
    latency_s: f64,
    /// The disk's own latency; less than the calls wait where they are held back before it.
    disk_s: f64,
}

impl Load {
    /// Reads these pages of `shop.orders` in turn, as often as fits into a minute; returns reads per second.
    fn read(&self, recording: &mut Recording, pages: &[u32]) -> f64 {
        let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
        let threads: Vec<u32> = (0..self.threads)
            .map(|i| recording.thread(&format!("conn{i}")))
            .collect();
        let per_s = f64::from(self.threads) / self.latency_s;
        for (i, page) in pages.iter().cycle().enumerate() {
            let at_s = i as f64 / per_s;
            if at_s > 59.9 {
                break;
            }
            recording.miss(Call {
                tid: threads[i % threads.len()],
                file_id,
                at_s,
                offset: u64::from(*page) * u64::from(PAGE),
                bytes: PAGE,
                latency_s: self.latency_s,
            });
        }
        self.count(recording, per_s);
        per_s
    }

    /// Records what kernel and server count meanwhile.
    fn count(&self, recording: &mut Recording, per_s: f64) {
        let disk_ms = per_s * self.disk_s * 1000.0;
        for (name, rate) in [
            ("reads", per_s),
            ("reads_merged", 0.0),
            ("writes", 1.0),
            ("read_bytes", per_s * f64::from(PAGE)),
            ("write_bytes", 4096.0),
            ("read_ms", disk_ms),
            ("write_ms", 0.1),
            ("queue_ms", disk_ms),
            ("busy_ms", disk_ms.min(1000.0)),
        ] {
            recording.values("diskstats", name, |s| s * rate);
        }
        recording.values("process", "read_bytes", |s| s * per_s * f64::from(PAGE));
        recording.values("process", "write_bytes", |s| s * 4096.0);
        recording.values("process", "cpu_ns", |s| s * 0.2e9);
        let read = "wiredTiger.cache.application threads page read from disk to cache";
        recording.rising(
            &format!("{read} time (usecs)"),
            per_s * self.latency_s * 1e6,
        );
        recording.rising(&format!("{read} count"), per_s);
        recording.rising("wiredTiger.cache.bytes read into cache", per_s * 1e5);
        recording.rising(
            "wiredTiger.block-manager.bytes read",
            per_s * f64::from(PAGE),
        );
        recording.rising("wiredTiger.cache.pages read into cache", per_s);
        recording.rising(
            "wiredTiger.cache.pages requested from the cache",
            per_s * 4.0,
        );
        recording.steady("wiredTiger.cache.maximum bytes configured", 1e8);
        recording.steady("wiredTiger.cache.bytes currently in the cache", 8e7);
    }
}

fn top(recording: &Recording) -> String {
    recording.diagnosis().findings.remove(0).id
}

/// A collection whose leaves are out of order, with the predicted scan times now and in order.
fn walked(now_s: f64, ordered_s: f64, sequential_share: f64) -> LayoutFile {
    LayoutFile {
        file: "collection-7.wt".into(),
        namespace: Some("shop.orders".into()),
        leaf_pages: 20_000,
        leaf_bytes: 20_000 * u64::from(PAGE),
        documents: Some(600_000),
        order: Some(ScanOrder {
            window_bytes: 131_072,
            sequential_share,
            seeks: 18_000,
            seeks_best: 1,
            ..ScanOrder::default()
        }),
        predicted_scan: Some(PredictedScan {
            now_s,
            ordered_s,
            now_low_s: now_s * 0.9,
            now_high_s: now_s * 1.1,
            device_requests: 19_000,
            ..PredictedScan::default()
        }),
        ..LayoutFile::default()
    }
}

#[test]
fn healthy() {
    let mut recording = Recording::new();
    recording.ability(flash(2e-4));
    let load = Load {
        threads: 1,
        latency_s: 0.05,
        disk_s: 2.5e-4,
    };
    // Twenty reads a second, quickly.
    load.count(&mut recording, 20.0);
    let file_id = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
    let tid = recording.thread("conn1");
    for (i, page) in shuffled(1200).into_iter().enumerate() {
        recording.miss(Call {
            tid,
            file_id,
            at_s: i as f64 / 20.0,
            offset: u64::from(page) * u64::from(PAGE),
            bytes: PAGE,
            latency_s: 3e-4,
        });
    }
    recording.layout(walked(6.0, 4.0, 0.6));
    assert_eq!(top(&recording), "disk.not-the-problem");
}

/// Tries a fast disk, where the model shows what order saves, and a limited one, where the number of requests
/// does.
#[test]
fn a_collection_out_of_order_is_scanned() {
    for limited in [false, true] {
        let mut recording = Recording::new();
        recording.ability(flash(if limited { 2e-4 } else { 2e-3 }));
        let load = Load {
            threads: 1,
            latency_s: if limited { 1.0 / 149.0 } else { 4e-3 },
            disk_s: if limited { 3e-4 } else { 3e-3 },
        };
        load.read(&mut recording, &shuffled(20_000));
        if limited {
            limit(&mut recording);
        }
        recording.layout(walked(8.0, 2.5, 0.05));
        recording.scanning();
        assert_eq!(
            top(&recording),
            "layout.key-order-lost",
            "limited: {limited}"
        );
    }
}

#[test]
fn random_reads_with_too_small_a_cache() {
    for disk_s in [1.5e-3, 1e-3] {
        let mut recording = Recording::new();
        recording.ability(flash(disk_s));
        let load = Load {
            threads: 1,
            latency_s: disk_s * 1.2,
            disk_s: disk_s * 1.1,
        };
        load.read(&mut recording, &shuffled(2000));
        // Some disorder, which does not affect single documents.
        recording.layout(walked(30.0, 12.0, 0.3));
        assert_eq!(top(&recording), "cache.too-small", "{disk_s}");
    }
}

#[test]
fn a_throttled_disk() {
    for model_s in [2e-4, 5e-5] {
        let mut recording = Recording::new();
        recording.ability(flash(model_s));
        let load = Load {
            threads: 8,
            latency_s: 8.0 / 149.0,
            disk_s: 3e-4,
        };
        load.read(&mut recording, &shuffled(20_000));
        limit(&mut recording);
        recording.layout(walked(30.0, 12.0, 0.3));
        assert_eq!(top(&recording), "disk.limited");
    }
}

/// The limit is not reported, and the disk below answers as quickly as ever.
#[test]
fn a_disk_throttled_from_outside() {
    let mut recording = Recording::new();
    recording.ability(flash(2e-4));
    let load = Load {
        threads: 8,
        latency_s: 8.0 / 149.0,
        disk_s: 3e-4,
    };
    load.read(&mut recording, &shuffled(20_000));
    assert_eq!(top(&recording), "disk.limited");
    let mut slow = Recording::new();
    slow.ability(flash(2e-4));
    Load {
        disk_s: 8.0 / 149.0,
        ..load
    }
    .read(&mut slow, &shuffled(20_000));
    assert_eq!(top(&slow), "disk.slow");
}

#[test]
fn writes_with_long_checkpoints() {
    let mut recording = Recording::new();
    recording.ability(flash(2e-4));
    let load = Load {
        threads: 1,
        latency_s: 1e-3,
        disk_s: 3e-4,
    };
    load.count(&mut recording, 30.0);
    let table = recording.file("collection-7.wt", FileRole::Collection, Some("shop.orders"));
    let log = recording.file("journal/WiredTigerLog.1", FileRole::Journal, None);
    let checkpoint = recording.thread("WTCheck.tThread");
    let journal = recording.thread("WTJourn.Flusher");
    let during = |s: f64| (s - 20.0).clamp(0.0, 15.0);
    for i in 0..150 {
        recording.write(Call {
            tid: checkpoint,
            file_id: table,
            at_s: 20.0 + f64::from(i) / 10.0,
            offset: u64::try_from(i).unwrap() << 20,
            bytes: 1 << 20,
            latency_s: 0.09,
        });
    }
    for i in 0..1200 {
        let at_s = f64::from(i) / 20.0;
        let slow = (20.0..35.0).contains(&at_s);
        recording.sync(Call {
            tid: journal,
            file_id: log,
            at_s,
            offset: 0,
            bytes: 0,
            latency_s: if slow { 0.045 } else { 0.0015 },
        });
    }
    // 1000 inserts a second of 0.4 ms; 400 of 5 ms while the checkpoint runs.
    recording.values("serverStatus", "opLatencies.writes.ops", |s| {
        s * 1000.0 - during(s) * 600.0
    });
    recording.values("serverStatus", "opLatencies.writes.latency", |s| {
        s * 4e5 + during(s) * 16e5
    });
    recording.values("serverStatus", "opcounters.insert", |s| {
        s * 1000.0 - during(s) * 600.0
    });
    recording.steady("wiredTiger.cache.tracked dirty bytes in the cache", 1.95e7);
    recording.values(
        "serverStatus",
        "wiredTiger.thread-yield.application thread time evicting (usecs)",
        |s| during(s) * 6e5 + s * 2e4,
    );
    recording.values(
        "serverStatus",
        "wiredTiger.thread-yield.application thread time waiting for cache (usecs)",
        |s| during(s) * 7e5 + s * 2.2e4,
    );
    assert_eq!(top(&recording), "checkpoint.long");
}

fn limit(recording: &mut Recording) {
    for (what, per_s) in [("read IOPS", 150), ("read bytes/s", 150_000_000)] {
        recording.host().surroundings.io_limits.push(IoLimit {
            cgroup: "/seekscope".into(),
            device: "254:0".into(),
            what: what.into(),
            per_s,
        });
    }
}
