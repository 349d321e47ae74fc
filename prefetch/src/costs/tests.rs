use seekscope_layout::typical_disks;

use std::sync::Arc;

use super::*;

#[test]
fn the_transfer_is_no_part_of_a_request() {
    // One leaf of 28 KB at a time at 20 MB/s, and hardly anything else.
    let costs = DiskCosts {
        request_ns: 1.45e6,
        bytes_per_s: 90e6,
        depth: 4,
        ..DiskCosts::unknown()
    };
    let known = costs.with_rate(Some(20e6), 28_000.0);
    assert!((known.request_ns - 5e4).abs() < 1.0 && known.bytes_per_s == 20e6);
    assert_eq!(known.joining(1 << 20).gap_bytes, 1000);
    let quick = costs.with_rate(Some(10e6), 28_000.0);
    assert!(quick.request_ns > 0.0);
}

#[test]
fn calls_are_short_and_few_where_they_wait() {
    let mut costs = DiskCosts {
        request_ns: 1e5,
        bytes_per_s: 20e6,
        depth: 8,
        ..DiskCosts::unknown()
    };
    assert_eq!(costs.call_bytes(1 << 20), 200_000);
    assert_eq!(costs.call_bytes(4096), 4096);
    let mut depths = Vec::new();
    for call_ms in [50.0, 50.0, 50.0, 5.0, 0.5] {
        costs.adapt_depth(call_ms * 1e6, 8);
        depths.push(costs.depth);
    }
    assert_eq!(depths, [4, 2, 2, 2, 3]);
}

#[test]
fn slow_disks_bridge_long_gaps_and_fast_ones_read_in_parallel() {
    let costs = |name| DiskCosts::of_model(&typical_disks::by_name(name).unwrap().model).unwrap();
    let (hdd, cloud, nvme) = (costs("hdd"), costs("cloud"), costs("nvme"));
    // 220 IOPS at best and 150 MB/s: 680 KB.
    assert_eq!(hdd.joining(1 << 20).gap_bytes, 681_818);
    assert!((40_000..43_000).contains(&cloud.joining(1 << 20).gap_bytes));
    assert!(
        nvme.joining(1 << 20).gap_bytes < 16_000 && nvme.depth == DEPTH_MAX,
        "{nvme:?}"
    );
    assert_eq!(DiskCosts::of_model(&DeviceModel::default()), None);
}

#[test]
fn a_guess_is_not_recorded_as_measured() {
    let mut record = PrefetchRecord::default();
    DiskCosts::unknown().note_in(&mut record);
    assert_eq!((record.request_ns, record.bytes_per_s), (None, None));
    assert!(!record.disk_measured);
    let costs = DiskCosts {
        request_ns: 7e6,
        request_from: Source::Measured,
        ..DiskCosts::unknown()
    };
    costs.with_rate(None, 0.0).note_in(&mut record);
    assert_eq!((record.request_ns, record.bytes_per_s), (Some(7e6), None));
    assert!(record.disk_measured);
    costs.with_rate(Some(1e8), 0.0).note_in(&mut record);
    assert_eq!(record.bytes_per_s, Some(1e8));
    let model = typical_disks::by_name("hdd").unwrap().model;
    DiskCosts::of_model(&model).unwrap().note_in(&mut record);
    assert!(record.request_ns.is_some() && !record.disk_measured);
}

/// Counts how many readers are made: one for each thread of a trial.
#[test]
fn a_quick_disk_is_tried_with_as_many_reads_as_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![1; 64 * 4096]).unwrap();
    let file = Arc::new(std::fs::File::open(&path).unwrap());
    let leaves: Vec<Place> = (0..64)
        .map(|i| Place {
            offset: i * 4096,
            length: 4096,
        })
        .collect();
    for (named, expected) in [(Some(1), 1), (Some(3), 3), (None, TRIAL_DEPTH)] {
        let made = std::sync::atomic::AtomicUsize::new(0);
        let make_reader = || {
            made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            StretchReader::new(Arc::clone(&file), 1 << 20)
        };
        calibrate(&make_reader, &leaves, DiskCosts::unknown(), named).unwrap();
        assert_eq!(made.into_inner(), expected, "{named:?}");
    }
}

/// Internal pages lie at the beginning of many files, and walking the tree has brought them into memory.
#[test]
fn a_rate_is_not_taken_from_reads_that_memory_cuts_into_pieces() {
    const REQUEST_BYTES: u64 = 1 << 20;
    let mut reads = 0;
    let rate = measure_stream(REQUEST_BYTES, SEARCH_TIME, &mut |_| {
        reads += 1;
        let (requests, time_ms) = if reads <= 3 { (30, 60) } else { (2, 10) };
        std::thread::sleep(Duration::from_millis(time_ms));
        Some(Fetched {
            bytes: 2 * REQUEST_BYTES,
            requests,
        })
    });
    // 35 MB/s of the first, 210 MB/s of the others, less where the machine is busy.
    assert!((60e6..211e6).contains(&rate.unwrap()), "{rate:?}");
    let scattered = measure_stream(REQUEST_BYTES, SEARCH_TIME, &mut |_| {
        std::thread::sleep(Duration::from_millis(20));
        Some(Fetched {
            bytes: 32 << 10,
            requests: 1,
        })
    });
    assert_eq!(scattered, None);
}
