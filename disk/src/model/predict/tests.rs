//! Tests predictions against hand-made sequences, measurements, and properties that must always
//! hold.

use proptest::prelude::*;
use seekscope_run::{DepthPoint, SyncPoint, TokenBucket};

use super::*;
use crate::model::access::{Order, Region};

const BLOCK: u64 = 32 * 1024;

fn depth(depth: u32, iops: f64) -> DepthPoint {
    DepthPoint {
        block_bytes: BLOCK,
        depth,
        iops,
        p50_ns: 0,
        p99_ns: 0,
    }
}

/// The disk that section 8 of the measurements throttles: 150 requests and 150 MB per second.
fn throttled() -> DeviceModel {
    DeviceModel {
        direct: true,
        l0_ns: 6.58e6,
        depths: vec![depth(1, 152.0), depth(128, 152.0)],
        sequential_bytes_per_s: 150e6,
        read_ahead_bytes: 8 << 20,
        request_bytes_max: 1280 << 10,
        iops_bucket: Some(TokenBucket {
            per_s: 152.0,
            burst: 0.0,
        }),
        ..DeviceModel::default()
    }
}

fn solid() -> DeviceModel {
    DeviceModel {
        l0_ns: 80_000.0,
        ns_per_byte: 1.0,
        depths: vec![depth(1, 8_800.0), depth(32, 25_000.0)],
        sequential_bytes_per_s: 850e6,
        read_ahead_bytes: 128 << 10,
        request_bytes_max: 1280 << 10,
        ..DeviceModel::default()
    }
}

fn region(blocks: u64) -> Region {
    Region {
        file: 1,
        offset: 0,
        blocks,
        block_bytes: BLOCK,
    }
}

fn roomy() -> PredictOptions {
    PredictOptions::with_memory(16 << 30)
}

fn elapsed_ns(model: &DeviceModel, reads: &[Access]) -> u64 {
    predict(model, reads, &roomy()).elapsed_ns
}

/// Blocks of 32 KiB per second in a region of 300 MB, cold, measured on the throttled disk with
/// Linux 6.18: first when a request could have 1280 KiB, then 4 MiB. Medians; the shuffled
/// reads stopped before they left enough history for read-ahead to find.
#[test]
fn agrees_with_the_throttled_disk() {
    let earlier = [
        (Order::Shuffled, 151.0),
        (Order::Runs(64), 2937.0),
        (Order::Sequential, 3968.0),
    ];
    let later = [
        (Order::Shuffled, 152.0),
        (Order::Runs(8), 1547.0),
        (Order::Runs(64), 4510.0),
        (Order::Sequential, 4694.0),
    ];
    let all = earlier.map(|row| (1280, row)).into_iter();
    for (request_kib, (order, measured)) in all.chain(later.map(|row| (4096, row))) {
        let model = DeviceModel {
            request_bytes_max: request_kib << 10,
            ..throttled()
        };
        let mut reads = region(300_000_000 / BLOCK).reads(order, 7);
        if order == Order::Shuffled {
            reads.truncate(1000);
        }
        let per_s = reads.len() as f64 * 1e9 / elapsed_ns(&model, &reads) as f64;
        assert!(
            (per_s / measured - 1.0).abs() < 0.25,
            "{order:?}: {per_s} predicted, {measured} measured"
        );
    }
}

/// One run of eight in a cold file: 8 pages alone, then windows of 32, 128 and 256 pages, the
/// last from page 4168 and cut to end at a multiple of 16.
#[test]
fn a_run_overshoots() {
    let run = &region(1000).reads(Order::Sequential, 0)[500..508];
    let options = PredictOptions {
        file_bytes: HashMap::from([(1, 1 << 30)]),
        ..roomy()
    };
    let prediction = predict(&throttled(), run, &options);
    assert_eq!(prediction.device_requests, 4);
    assert_eq!(prediction.device_bytes, (8 + 32 + 128 + 248) * PAGE_BYTES);
    // Only the first block and the first of the window were missing.
    assert_eq!(prediction.cached_bytes, 6 * BLOCK);
    let [class] = &prediction.by_class[..] else {
        panic!("{prediction:?}");
    };
    assert_eq!((class.class, class.accesses), ("short runs", 8));
    // The pages after it are now in the cache.
    let reads = [run, &region(1000).reads(Order::Sequential, 0)[520..524]].concat();
    let more = predict(&throttled(), &reads, &options);
    assert_eq!(more.cached_bytes, 10 * BLOCK);
}

/// A stream through a file in pieces of four blocks: a window is fetched in as many requests as it
/// touches pieces.
#[test]
fn pieces_are_fetched_apart() {
    let reads = region(1000).reads(Order::Sequential, 1);
    let piece = |number: u64| Piece {
        file_offset: number * 4 * BLOCK,
        device_offset: (1000 - number) << 20,
        length: 4 * BLOCK,
    };
    let options = PredictOptions {
        pieces: HashMap::from([(1, (0..250).map(piece).collect())]),
        ..roomy()
    };
    let prediction = predict(&throttled(), &reads, &options);
    assert_eq!(prediction.device_bytes, 1000 * BLOCK);
    assert!(
        (250..270).contains(&prediction.device_requests),
        "{prediction:?}"
    );
    // Pieces that continue one another on the device are one piece to an arm.
    let arm = DeviceModel {
        l0_ns: 8e6,
        ns_per_byte: 7.0,
        iops_bucket: None,
        ..throttled()
    };
    let elapsed_ns = |device_offset: fn(u64) -> u64| {
        let piece = |number| Piece {
            device_offset: device_offset(number),
            ..piece(number)
        };
        let options = PredictOptions {
            pieces: HashMap::from([(1, (0..250).map(piece).collect())]),
            ..roomy()
        };
        predict(&arm, &reads, &options).elapsed_ns
    };
    let (apart, together) = (
        elapsed_ns(|n| (1000 - n) << 20),
        elapsed_ns(|n| 4 * BLOCK * n),
    );
    assert!(apart > 2 * together, "{apart} {together}");
}

#[test]
fn what_is_cached_needs_no_device() {
    let reads = region(64).reads(Order::Shuffled, 1);
    let options = PredictOptions {
        cached: vec![(1, 0..64 * BLOCK)],
        ..roomy()
    };
    let model = DeviceModel {
        cached_ns_per_byte: 0.125,
        ..solid()
    };
    let prediction = predict(&model, &reads, &options);
    assert_eq!(
        (prediction.device_bytes, prediction.cached_bytes),
        (0, 64 * BLOCK)
    );
    assert_eq!(prediction.elapsed_ns, 64 * BLOCK / 8);
    // A cache of one chunk, 256 KiB, forgets the first half before it is read again.
    let twice = [
        region(16).reads(Order::Sequential, 1),
        region(16).reads(Order::Sequential, 1),
    ];
    let small = PredictOptions {
        cache_bytes: 1,
        ..PredictOptions::with_memory(0)
    };
    let prediction = predict(&model, &twice.concat(), &small);
    assert!(prediction.device_bytes >= 2 * 16 * BLOCK, "{prediction:?}");
}

#[test]
fn caching_costs_the_reader() {
    let model = DeviceModel {
        miss_ns: 8000.0,
        ..solid()
    };
    let lone = &region(1000).reads(Order::Shuffled, 1)[..1];
    assert_eq!(elapsed_ns(&model, lone) - elapsed_ns(&solid(), lone), 8000);
    let stream = region(3000).reads(Order::Sequential, 1);
    let bound = DeviceModel {
        stream_ns_per_byte: 5.0,
        ..solid()
    };
    // Five times as long as the device needs: the CPU is the limit.
    let per_byte = elapsed_ns(&bound, &stream) as f64 / (3000 * BLOCK) as f64;
    assert!((4.9..5.1).contains(&per_byte), "{per_byte}");
}

fn direct(stream: u32, block: u64, operation: Operation) -> Access {
    Access {
        file: 1,
        stream,
        offset: block * BLOCK,
        length: BLOCK,
        operation,
        direct: true,
        think_ns: 0,
    }
}

#[test]
fn streams_overlap_and_think() {
    let alone: Vec<_> = (0..100)
        .map(|i| direct(1, i * 7, Operation::Read))
        .collect();
    let mut both = alone.clone();
    both.extend((0..100).map(|i| direct(2, 5000 + i * 7, Operation::Read)));
    let one = elapsed_ns(&solid(), &alone);
    let two = elapsed_ns(&solid(), &both);
    assert!(one < two && two < 2 * one, "{one} {two}");
    let mut thinking = alone.clone();
    for access in &mut thinking {
        access.think_ns = 1_000_000;
    }
    assert_eq!(elapsed_ns(&solid(), &thinking), one + 100_000_000);
}

#[test]
fn writes() {
    let synced = direct(1, 0, Operation::SyncedWrite);
    let buffered = Access {
        direct: false,
        ..direct(1, 9, Operation::Write)
    };
    let reread = Access {
        operation: Operation::Read,
        ..buffered
    };
    let prediction = predict(&solid(), &[synced, buffered, reread], &roomy());
    assert_eq!(prediction.unmodelled.len(), 2, "{prediction:?}");
    assert_eq!(prediction.cached_bytes, BLOCK);
    let mut measured = solid();
    let point = |writers, mean_ns| SyncPoint {
        block_bytes: 4096,
        writers,
        per_s: 0.0,
        latency: seekscope_run::LatencySummary {
            mean_ns,
            ..Default::default()
        },
    };
    measured.sync = vec![point(8, 9e9), point(1, 2e6)];
    let prediction = predict(&measured, &[synced], &roomy());
    assert_eq!(prediction.elapsed_ns, 2_000_000);
    assert!(prediction.unmodelled.is_empty());
}

#[test]
fn nothing_and_nonsense() {
    let nothing = predict(&solid(), &[], &roomy());
    assert_eq!((nothing.elapsed_ns, nothing.device_requests), (0, 0));
    let nonsense = DeviceModel {
        l0_ns: f64::NAN,
        ns_per_byte: -1.0,
        sequential_bytes_per_s: f64::INFINITY,
        depths: vec![depth(0, -1.0), depth(1, f64::NAN)],
        ..DeviceModel::default()
    };
    let last = Access {
        offset: u64::MAX - 10,
        length: 4096,
        direct: false,
        ..direct(1, 0, Operation::Read)
    };
    let empty = Access { length: 0, ..last };
    let reads = [last, empty, direct(1, 0, Operation::Read)];
    assert_eq!(predict(&nonsense, &reads, &roomy()).by_class[0].accesses, 3);
    // The longest call, in a cache and with windows without bound.
    let boundless = DeviceModel {
        read_ahead_bytes: u64::MAX,
        request_bytes_max: u64::MAX,
        ..solid()
    };
    let longest = Access {
        offset: 0,
        length: crate::model::CALL_BYTES_MAX,
        ..last
    };
    let options = PredictOptions {
        cache_bytes: u64::MAX,
        file_bytes: HashMap::from([(1, u64::MAX)]),
        ..roomy()
    };
    let prediction = predict(&boundless, &[longest], &options);
    assert!(prediction.device_bytes <= 4 << 30, "{prediction:?}");
}

/// Numbers as in a damaged or hostile file.
fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(f64::MAX),
        any::<f64>(),
        0.0..1e9,
    ]
}

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(u64::MAX),
        any::<u64>(),
        0u64..1 << 24
    ]
}

fn any_bucket() -> impl Strategy<Value = Option<TokenBucket>> {
    let bucket = (any_number(), any_number());
    prop::option::of(bucket.prop_map(|(per_s, burst)| TokenBucket { per_s, burst }))
}

fn any_sync() -> impl Strategy<Value = SyncPoint> {
    (any_bytes(), any_number()).prop_map(|(block_bytes, mean_ns)| SyncPoint {
        block_bytes,
        writers: 0,
        per_s: 0.0,
        latency: seekscope_run::LatencySummary {
            mean_ns,
            ..Default::default()
        },
    })
}

prop_compose! {
    fn any_model()(
        numbers in prop::array::uniform8(any_number()),
        sizes in prop::array::uniform2(any_bytes()),
        depths in prop::collection::vec((any_bytes(), any::<u32>(), any_number()), 0..6),
        sync in prop::collection::vec(any_sync(), 0..3),
        buckets in prop::array::uniform2(any_bucket()),
    ) -> DeviceModel {
        let depths = depths.into_iter().map(|(block_bytes, depth, iops)| DepthPoint {
            block_bytes,
            depth,
            iops,
            p50_ns: 0,
            p99_ns: 0,
        });
        DeviceModel {
            l0_ns: numbers[0],
            ns_per_byte: numbers[1],
            sequential_bytes_per_s: numbers[2],
            bytes_per_s_max: numbers[3],
            buffered_bytes_per_s: numbers[4],
            cached_ns_per_byte: numbers[5],
            miss_ns: numbers[6],
            stream_ns_per_byte: numbers[7],
            read_ahead_bytes: sizes[0],
            request_bytes_max: sizes[1],
            depths: depths.collect(),
            sync,
            iops_bucket: buckets[0],
            bytes_bucket: buckets[1],
            ..DeviceModel::default()
        }
    }
}

prop_compose! {
    fn any_access()(
        file in 0u32..2,
        stream in 0u32..3,
        offset in prop_oneof![any_bytes(), 0u64..1 << 20],
        length in 0u64..1 << 20,
        operation in prop::sample::select(
            &[Operation::Read, Operation::Write, Operation::SyncedWrite][..]
        ),
        direct: bool,
        think_ns in any_bytes(),
    ) -> Access {
        Access { file, stream, offset, length, operation, direct, think_ns }
    }
}

proptest! {
    // A window of 1 GiB in requests of a page takes long to simulate.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_model_and_no_access_makes_it_fail(
        model in any_model(),
        accesses in prop::collection::vec(any_access(), 0..8),
        cache_bytes in any_bytes(),
        file_bytes in any_bytes(),
    ) {
        let options = PredictOptions {
            cache_bytes,
            file_bytes: HashMap::from([(0, file_bytes)]),
            cached: vec![(1, 0..1 << 20)],
            ..roomy()
        };
        let prediction = predict(&model, &accesses, &options);
        let completed: u64 = prediction.by_class.iter().map(|class| class.accesses).sum();
        prop_assert_eq!(completed, accesses.len() as u64);
    }
}

proptest! {
    #[test]
    fn direct_reads_take_their_transfer_time(
        blocks in prop::collection::vec((0u32..4, 0u64..1000), 1..200)
    ) {
        let reads: Vec<_> = blocks.iter().map(|&(stream, block)| direct(stream, block, Operation::Read)).collect();
        let bytes = reads.len() as u64 * BLOCK;
        let prediction = predict(&solid(), &reads, &roomy());
        prop_assert!(prediction.elapsed_ns as f64 >= bytes as f64 / 850e6 * 1e9);
        prop_assert_eq!(prediction.device_bytes, bytes);
    }

    #[test]
    fn order_never_harms(blocks in 1u64..600, run in 1u64..80, seed: u64) {
        for model in [solid(), throttled()] {
            let ordered = elapsed_ns(&model, &region(blocks).reads(Order::Sequential, seed));
            for other in [Order::Shuffled, Order::Backwards, Order::Runs(run)] {
                let reads = region(blocks).reads(other, seed);
                let prediction = predict(&model, &reads, &roomy());
                // Long runs may by luck have windows that end better.
                let luck = if matches!(other, Order::Runs(_)) { 1.1 } else { 1.0 };
                prop_assert!(ordered as f64 <= prediction.elapsed_ns as f64 * luck, "{:?}", other);
                // Each page comes from the device exactly once.
                prop_assert_eq!(prediction.device_bytes, blocks * BLOCK);
            }
        }
    }
}

/// Shuffled blocks of a small file: read-ahead finds history and fetches what comes later, unless
/// it is gone by then. In order nothing is lost.
#[test]
fn what_is_idle_may_be_lost() {
    let losing = PredictOptions {
        idle_is_paged_out: true,
        ..roomy()
    };
    let shuffled = region(9000).reads(Order::Shuffled, 3);
    let kept = predict(&throttled(), &shuffled, &roomy());
    let between = predict(&throttled(), &shuffled, &losing);
    assert_eq!(kept.elapsed_high_ns, kept.elapsed_ns);
    assert_eq!(between.elapsed_low_ns, kept.elapsed_ns);
    assert!(between.elapsed_ns > kept.elapsed_ns, "{between:?}");
    assert!(between.elapsed_high_ns > between.elapsed_ns, "{between:?}");
    // Hardly a block is spared its own read.
    let seconds = between.elapsed_high_ns as f64 / 1e9;
    assert!((seconds * 152.0 / 9000.0) > 0.85, "{seconds} s");
    let in_order = region(9000).reads(Order::Sequential, 3);
    assert_eq!(
        predict(&throttled(), &in_order, &losing),
        predict(&throttled(), &in_order, &roomy())
    );
}
