use proptest::prelude::*;
use seekscope_stats::shuffled::distinct;
use seekscope_wiredtiger::tree::LeafKind;

use super::*;
use crate::typical_disks;

const LEAF_BYTES: u32 = 32_768;

fn leaves(places: impl IntoIterator<Item = u64>) -> Vec<Leaf> {
    let leaf = |place| Leaf {
        offset: 4096 + place * u64::from(LEAF_BYTES),
        length: LEAF_BYTES,
        kind: LeafKind::Plain,
    };
    places.into_iter().map(leaf).collect()
}

fn file_bytes(leaves: &[Leaf]) -> u64 {
    let ends = leaves
        .iter()
        .map(|leaf| leaf.offset + u64::from(leaf.length));
    ends.max().unwrap_or(4096)
}

fn on_hdd(leaves: &[Leaf]) -> PredictedScan {
    let options = ScanOptions::with_memory(8 << 30);
    predict_scan(
        &typical_disks::hdd().model,
        leaves,
        file_bytes(leaves),
        &options,
    )
}

#[test]
fn in_order_it_streams_and_shuffled_it_seeks() {
    let ordered = on_hdd(&leaves(0..4000));
    // 131 MB at 150 MB/s.
    assert!((0.85..1.0).contains(&ordered.now_s), "{ordered:?}");
    assert!(
        (ordered.now_s - ordered.ordered_s).abs() < 0.02,
        "{ordered:?}"
    );
    assert!((ordered.now_s - ordered.after_compact_s).abs() < 0.02);
    assert_eq!(ordered.simulated_leaf_pages, 4000);

    // 120 seeks a second, in a file so sparse that no two leaves are neighbours.
    let shuffled = on_hdd(&leaves(distinct(1 << 20, 4000, 1)));
    assert!((30.0..36.0).contains(&shuffled.now_s), "{shuffled:?}");
    assert!((0.85..1.0).contains(&shuffled.ordered_s), "{shuffled:?}");
    assert!(shuffled.after_compact_s > 20.0, "{shuffled:?}");
    assert!((3900..4100).contains(&shuffled.device_requests));
}

/// Where nothing is read ahead, order saves nothing but the disk's own seeks.
#[test]
fn past_the_page_cache_each_page_is_a_request() {
    let shuffled = leaves(distinct(1 << 20, 4000, 1));
    let model = typical_disks::sata_ssd().model;
    let scan = |direct: bool| {
        let options = ScanOptions {
            direct,
            ..ScanOptions::with_memory(8 << 30)
        };
        predict_scan(&model, &shuffled, file_bytes(&shuffled), &options)
    };
    let (buffered, direct) = (scan(false), scan(true));
    assert_eq!(direct.device_requests, 4000);
    assert!(direct.ordered_s > 0.9 * direct.now_s, "{direct:?}");
    assert!(
        direct.now_s < 1.5 * buffered.now_s,
        "{direct:?} {buffered:?}"
    );
    assert!(buffered.ordered_s < 0.5 * buffered.now_s, "{buffered:?}");
}

/// Every second leaf of a file twice as large: each is a jump until compact closes the holes.
#[test]
fn compact_closes_the_holes() {
    let holes = on_hdd(&leaves((0..4000).map(|i| 2 * i)));
    assert!(holes.now_s > 30.0, "{holes:?}");
    assert!(
        (holes.after_compact_s - holes.ordered_s).abs() < 0.02,
        "{holes:?}"
    );
}

/// In order, with deleted ranges between them as long as what is left: read-ahead that is larger than both reads all.
#[test]
fn a_large_read_ahead_reads_what_lies_between_runs() {
    let leaves = leaves((0..100).flat_map(|run| run * 80..run * 80 + 40));
    let model = DeviceModel {
        read_ahead_bytes: 8 << 20,
        ..typical_disks::sata_ssd().model
    };
    let options = ScanOptions::with_memory(8 << 30);
    let scan = predict_scan(&model, &leaves, file_bytes(&leaves), &options);
    let asked = u64::from(LEAF_BYTES) * leaves.len() as u64;
    assert!(scan.device_bytes > asked + asked / 2, "{scan:?}");
    assert!(scan.now_s > 1.25 * scan.ordered_s, "{scan:?}");
    assert!(scan.after_compact_s < 1.1 * scan.ordered_s, "{scan:?}");
}

#[test]
fn a_sample_stands_for_the_whole() {
    let many = leaves(distinct(1 << 20, 50_000, 4));
    let whole = on_hdd(&many);
    let options = ScanOptions {
        simulated_pages_max: 5000,
        ..ScanOptions::with_memory(8 << 30)
    };
    let model = typical_disks::hdd().model;
    let sampled = predict_scan(&model, &many, file_bytes(&many), &options);
    assert!((4900..=5000).contains(&sampled.simulated_leaf_pages));
    assert!(
        (sampled.now_s / whole.now_s - 1.0).abs() < 0.05,
        "{sampled:?} {whole:?}"
    );
    assert!((sampled.ordered_s / whole.ordered_s - 1.0).abs() < 0.1);
    let requests = sampled.device_requests as f64 / whole.device_requests as f64;
    assert!((requests - 1.0).abs() < 0.05);
}

#[test]
fn what_scans_skip_costs_nothing() {
    let mut with_deleted = leaves(0..100);
    with_deleted.push(Leaf {
        kind: LeafKind::Deleted,
        ..leaves(5000..5001)[0]
    });
    let options = ScanOptions::with_memory(8 << 30);
    let predict =
        |leaves: &[Leaf]| predict_scan(&typical_disks::nvme().model, leaves, 1 << 30, &options);
    assert_eq!(predict(&with_deleted), predict(&leaves(0..100)));
    assert_eq!(predict(&[]).now_s, 0.0);
}

/// A file in order, but in pieces of one leaf all over the device.
#[test]
fn pieces_on_the_device_are_seeks() {
    let leaves = leaves(0..1000);
    let places = distinct(1 << 20, 1001, 6).into_iter();
    let extents: Vec<DeviceExtent> = places
        .zip(0..)
        .map(|(place, number)| DeviceExtent {
            file_offset: number * u64::from(LEAF_BYTES),
            device_offset: place << 20,
            bytes: u64::from(LEAF_BYTES),
            encoded: false,
        })
        .collect();
    let options = ScanOptions {
        extents: &extents,
        ..ScanOptions::with_memory(8 << 30)
    };
    let model = typical_disks::hdd().model;
    let scan = predict_scan(&model, &leaves, file_bytes(&leaves), &options);
    assert!((1000..1200).contains(&scan.device_requests), "{scan:?}");
    assert!(scan.now_s > 10.0 * scan.ordered_s, "{scan:?}");
}

/// Measured on a virtual machine that gives free memory back to its host: 2 ns for each byte of a stream, on a
/// disk that streams 900 MB/s. Nobody knows whether the next scan pays for it.
#[test]
fn memory_that_nobody_used_is_in_the_range_alone() {
    let used = typical_disks::nvme().model;
    let fresh = DeviceModel {
        stream_ns_per_byte: 2.0,
        read_ahead_bytes: 8 << 20,
        ..used.clone()
    };
    let used = DeviceModel {
        read_ahead_bytes: 8 << 20,
        ..used
    };
    let leaves = leaves(0..9000);
    let options = ScanOptions::with_memory(8 << 30);
    let predict = |model| predict_scan(model, &leaves, file_bytes(&leaves), &options);
    let (used, fresh) = (predict(&used), predict(&fresh));
    assert_eq!(
        (used.now_s, used.now_low_s, used.ordered_s),
        (fresh.now_s, fresh.now_low_s, fresh.ordered_s)
    );
    // 295 MB at 2 ns a byte.
    assert!(fresh.now_high_s > used.now_high_s + 0.5, "{fresh:?}");
    assert!(fresh.ordered_s <= fresh.now_s, "{fresh:?}");
}

#[test]
fn the_range_is_widest_in_between() {
    assert_eq!(error_factor(0.0, 0.0), 1.25);
    assert_eq!(error_factor(0.5, 0.1), 1.40);
    assert_eq!(error_factor(7.0, 0.1), 1.25);
    assert_eq!(error_factor(1.0, 0.9), 1.9);
}

#[test]
fn the_readers_own_time_counts() {
    let options = ScanOptions {
        reader_ns_per_byte: 100.0,
        ..ScanOptions::with_memory(8 << 30)
    };
    let leaves = leaves(0..1000);
    let slow = predict_scan(
        &typical_disks::nvme().model,
        &leaves,
        file_bytes(&leaves),
        &options,
    );
    assert!((3.2..3.5).contains(&slow.now_s), "{slow:?}");
}

proptest! {
    /// Runs of leaves anywhere in the file, with internal pages among them or at its end, on any disk, in
    /// memory that was used before or not: order never costs anything.
    #[test]
    fn in_order_no_scan_is_slower(
        runs in prop::collection::vec((0u64..4000, 1u64..60), 1..20),
        fanout in 1u64..300,
        internal_at_end: bool,
        disk in 0usize..4,
        stream_ns_per_byte in prop_oneof![Just(0.0), Just(2.0)],
        read_ahead_kib in prop_oneof![Just(0u64), Just(128), Just(8192)],
        idle_is_paged_out: bool,
    ) {
        let mut leaves = leaves(runs.iter().flat_map(|&(start, length)| start..start + length));
        let mut seen = std::collections::HashSet::new();
        leaves.retain(|leaf| seen.insert(leaf.offset));
        let end = file_bytes(&leaves);
        let internal: Vec<InternalPage> = (0..leaves.len() as u64)
            .step_by(usize::try_from(fanout).unwrap())
            .map(|leaves_before| InternalPage {
                offset: if internal_at_end { end + leaves_before / fanout * 4096 } else { 4096 },
                length: 4096,
                leaves_before,
            })
            .collect();
        let model = DeviceModel {
            stream_ns_per_byte,
            read_ahead_bytes: read_ahead_kib << 10,
            ..typical_disks::all()[disk].model.clone()
        };
        let options = ScanOptions {
            internal: &internal,
            idle_is_paged_out,
            ..ScanOptions::with_memory(8 << 30)
        };
        let scan = predict_scan(&model, &leaves, end + internal.len() as u64 * 4096, &options);
        prop_assert!(scan.ordered_s <= scan.now_s, "{scan:?}");
        prop_assert!(scan.now_low_s <= scan.now_s && scan.now_s <= scan.now_high_s, "{scan:?}");
    }

    #[test]
    fn samples_are_disjoint_and_within(count in 0usize..10_000, most in 0usize..2000, seed: u64) {
        let sample = sampled_ordinals(count, most, seed);
        let mut end = 0;
        for stretch in &sample {
            prop_assert!(stretch.start >= end && stretch.end <= count);
            end = stretch.end;
        }
        let sampled: usize = sample.iter().map(|stretch| stretch.len()).sum();
        if count <= most {
            prop_assert_eq!(sampled, count);
        } else {
            prop_assert!(sampled > 0 && sampled <= most.max(STRETCHES_MIN));
        }
    }

    #[test]
    fn rewritten_files_have_no_holes(places in prop::collection::vec(0u64..1000, 1..50)) {
        let leaves = page_reads(&leaves(places), &[]);
        for offsets in [ordered_offsets(&leaves), compacted_offsets(&leaves)] {
            let mut sorted = offsets.clone();
            sorted.sort_unstable();
            let expected: Vec<u64> = (0..leaves.len() as u64).map(|i| 4096 + i * u64::from(LEAF_BYTES)).collect();
            prop_assert_eq!(sorted, expected);
        }
        prop_assert!(ordered_offsets(&leaves).is_sorted());
        let compacted = compacted_offsets(&leaves);
        for pair in 1..leaves.len() {
            if leaves[pair - 1].offset < leaves[pair].offset {
                prop_assert!(compacted[pair - 1] < compacted[pair]);
            }
        }
    }
}

const STRETCHES_MIN: usize = 16;

#[test]
fn the_engines_time_is_that_of_the_documents() {
    let of = |document_bytes| engine_ns_per_byte(Compressor::Snappy, document_bytes, 100);
    assert_eq!(of(Some(800)), 4.0 * of(Some(200)));
    // Half is taken to compress away where nothing is known.
    assert_eq!([of(None), of(Some(0))], [of(Some(200)); 2]);
    assert_eq!(of(Some(u64::MAX)), of(Some(2_800)));
    let of_keys = |document_bytes| engine_ns_per_byte(Compressor::None, document_bytes, 100);
    assert_eq!(of_keys(Some(700)), of_keys(None));
}

#[test]
fn what_compression_does_not_make_smaller_costs_no_decompression() {
    for compressor in [Compressor::Snappy, Compressor::Zlib] {
        let of = |document_bytes| engine_ns_per_byte(compressor, Some(document_bytes), 100);
        // A leaf has more than its documents.
        for stored_as_it_is in [of(5), of(90), of(100)] {
            assert_eq!(
                stored_as_it_is,
                engine_ns_per_byte(Compressor::None, None, 100)
            );
        }
        assert!(of(150) > 1.5 * of(90));
    }
}

#[test]
fn decompression_costs_what_was_measured() {
    // Expansion, and the least and the most of what was measured on MongoDB 4.4.6, ns per leaf byte.
    let measured = [
        (Compressor::Snappy, 250, 1.5, 3.0),
        (Compressor::Snappy, 1_400, 3.4, 11.4),
        (Compressor::Zstd, 190, 0.5, 1.6),
        (Compressor::Zstd, 1_400, 2.8, 13.9),
        (Compressor::Zlib, 170, 3.9, 9.1),
        (Compressor::Zlib, 400, 5.6, 11.4),
        (Compressor::Zlib, 1_200, 15.6, 30.4),
        (Compressor::Zlib, 2_800, 17.8, 64.9),
    ];
    for (compressor, document_bytes, least, most) in measured {
        let ns = engine_ns_per_byte(compressor, Some(document_bytes), 100);
        assert!((least..=most).contains(&ns), "{compressor:?}: {ns}");
    }
}
