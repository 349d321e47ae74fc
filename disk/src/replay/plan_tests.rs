use proptest::prelude::*;

use super::super::Skipped;
use super::*;

fn event(tid: u32, op: IoOp, t_ns: u64, latency_ns: u64, offset: u64, bytes: i32) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 1,
        tid,
        file_id: 5,
        op,
        flags: IoFlags(0),
        offset: Some(offset),
        length: u32::try_from(bytes.max(0)).unwrap(),
        latency_ns,
        result: bytes,
        device_read_bytes: 0,
        request: None,
    }
}

fn planned(events: &[IoEvent], target_bytes: u64, writes: bool, threads_max: usize) -> Plan {
    let regions = Regions::lay_out([(5, 1 << 20), (6, 1 << 20)]);
    let mut planner = Planner::new(&regions, target_bytes, writes);
    events.iter().for_each(|event| planner.add(event));
    planner.finish(threads_max)
}

fn offsets(stream: &Stream) -> Vec<u64> {
    stream.ops.iter().map(|op| op.offset).collect()
}

#[test]
fn each_thread_keeps_its_order_and_times_count_from_the_first() {
    let plan = planned(
        &[
            event(2, IoOp::Pread, 1_100, 10, 0, 4096),
            event(1, IoOp::Read, 1_000, 500, 8192, 100),
            event(2, IoOp::Pwrite, 1_200, 10, 4096, 512),
            event(1, IoOp::Fsync, 1_600, 10, 0, 0),
            event(1, IoOp::Fdatasync, 1_700, 300, 0, 0),
            // Another file, a disk's request, a descriptor without a file's offset.
            IoEvent {
                file_id: 9,
                ..event(1, IoOp::Pread, 0, 1, 0, 1)
            },
            event(1, IoOp::BlockRead, 0, 1, 0, 4096),
        ],
        1 << 20,
        true,
        256,
    );
    let [first, second] = &plan.streams[..] else {
        panic!("{plan:?}")
    };
    assert_eq!((first.tid, second.tid), (1, 2));
    let brief = |stream: &Stream| -> Vec<_> {
        let ops = stream.ops.iter();
        ops.map(|op| (op.action, op.start_ns, op.latency_ns, op.offset, op.length))
            .collect()
    };
    assert_eq!(
        brief(first),
        [
            (Action::Read, 0, 500, 8192, 100),
            (Action::Fsync, 600, 10, 0, 0),
            (Action::Fdatasync, 700, 300, 0, 0),
        ]
    );
    assert_eq!(
        brief(second),
        [
            (Action::Read, 100, 10, 0, 4096),
            (Action::Write, 200, 10, 4096, 512)
        ]
    );
    let facts = plan.facts;
    assert_eq!(
        (facts.operations, facts.span_ns, facts.write_bytes),
        (5, 1_000, 512)
    );
    assert_eq!(
        (facts.recorded_threads, facts.threads, facts.folded),
        (2, 2, 0)
    );
    assert_eq!((facts.skipped.total(), facts.cache.hits), (0, 2));
    let thinks: Vec<u64> = plan
        .accesses()
        .iter()
        .map(|access| access.think_ns)
        .collect();
    assert_eq!(thinks, [0, 100, 90], "the model knows no syncs");
}

#[test]
fn events_without_time_stamps_stay_in_their_order() {
    let events: Vec<IoEvent> = (0..50)
        .map(|n| event(1, IoOp::Pread, 7, 0, (n * 37 % 50) * 4096, 4096))
        .collect();
    let plan = planned(&events, 1 << 20, false, 1);
    let wanted: Vec<u64> = events.iter().map(|e| e.offset.unwrap()).collect();
    assert_eq!(offsets(&plan.streams[0]), wanted);
}

#[test]
fn what_cannot_be_played_is_counted() {
    let events = [
        event(1, IoOp::Pwrite, 0, 1, 0, 4096),
        event(1, IoOp::Fsync, 0, 1, 0, 0),
        event(1, IoOp::SyncFileRange, 0, 1, 0, 0),
        IoEvent {
            offset: None,
            ..event(1, IoOp::Read, 0, 1, 0, 10)
        },
        event(1, IoOp::Pread, 0, 1, 0, 0),
        event(1, IoOp::Pread, 0, 1, 0, -5),
        event(1, IoOp::Pread, 0, 1, 0, 65 << 20),
        event(1, IoOp::MmapFault, 0, 1, 4096, 0),
    ];
    let plan = planned(&events, 1 << 20, false, 256);
    let expected = Skipped {
        writes: 1,
        syncs: 1,
        unknown_offset: 1,
        empty: 1,
        too_long: 1,
        other: 1,
        failed: [1, 0, 0],
    };
    assert_eq!(plan.facts.skipped, expected);
    assert_eq!((plan.facts.operations, plan.facts.adjusted.faults), (1, 1));
    assert_eq!(plan.streams[0].ops[0].length, 4096);
}

#[test]
fn what_lies_beyond_the_end_goes_on_at_the_start() {
    let at = |offset, bytes| event(1, IoOp::Pread, offset, 0, offset, bytes);
    let events = [
        at(0, 4096),
        at(36_864, 4096),
        at(40_960, 4096),
        at(61_440, 4096),
        at(77_824, 8192),
    ];
    // Ten pages and a bit.
    let plan = planned(&events, 41_000, false, 256);
    assert_eq!(offsets(&plan.streams[0]), [0, 36_864, 0, 20_480, 32_768]);
    assert_eq!(
        (plan.facts.adjusted.wrapped, plan.facts.adjusted.shortened),
        (3, 0)
    );
    let short = planned(&[at(8192, 4096)], 100, false, 256);
    assert_eq!(
        (
            short.streams[0].ops[0].offset,
            short.streams[0].ops[0].length
        ),
        (0, 100)
    );
    assert_eq!(
        (short.facts.adjusted.wrapped, short.facts.adjusted.shortened),
        (1, 1)
    );
}

#[test]
fn files_have_regions_of_their_own() {
    let other = IoEvent {
        file_id: 6,
        ..event(1, IoOp::Pread, 1, 0, 4096, 10)
    };
    let plan = planned(
        &[event(1, IoOp::Pread, 0, 0, 4096, 10), other],
        4 << 20,
        false,
        256,
    );
    assert_eq!(offsets(&plan.streams[0]), [4096, (1 << 20) + 4096]);
    assert_eq!(plan.streams[0].ops[1].file, 1);
}

#[test]
fn requests_in_flight_at_once_are_played_at_once() {
    let read = |start, took| event(1, IoOp::UringRead, start, took, start * 4096, 4096);
    // In order of completion.
    let plan = planned(
        &[read(1, 3), read(0, 10), read(2, 9), read(4, 9)],
        1 << 30,
        false,
        256,
    );
    assert_eq!(plan.streams.len(), 3);
    assert_eq!(offsets(&plan.streams[0]), [0]);
    assert_eq!(offsets(&plan.streams[1]), [4096, 4 * 4096]);
    assert_eq!(offsets(&plan.streams[2]), [2 * 4096]);
    assert_eq!((plan.facts.recorded_threads, plan.facts.threads), (1, 3));
    // Calls that seem to overlap because their time stamps are coarse.
    let coarse = |start| event(1, IoOp::Pread, start, 2, 0, 1);
    assert_eq!(
        planned(&[coarse(0), coarse(1)], 1 << 20, false, 256)
            .streams
            .len(),
        1
    );
}

#[test]
fn too_many_threads_share() {
    let read = |tid, start| event(tid, IoOp::Pread, start, 10, u64::from(tid) * 4096, 4096);
    // Thread 3 begins when 1 has ended; 4 when both others are busy.
    let events = [
        read(1, 0),
        read(2, 5),
        read(2, 30),
        read(3, 20),
        read(4, 25),
        read(4, 45),
    ];
    let plan = planned(&events, 1 << 20, false, 2);
    let facts = plan.facts;
    assert_eq!(
        (facts.recorded_threads, facts.threads, facts.folded),
        (4, 2, 1)
    );
    assert_eq!(offsets(&plan.streams[0]), [4096, 12_288, 16_384, 16_384]);
    assert_eq!(offsets(&plan.streams[1]), [8192, 8192]);
}

#[test]
fn direct_operations_must_be_aligned() {
    let direct = |offset, bytes| IoEvent {
        flags: IoFlags(IoFlags::DIRECT),
        ..event(1, IoOp::Pread, offset, 0, offset, bytes)
    };
    let events = [
        direct(0, 4096),
        direct(512, 512),
        event(1, IoOp::Pread, 9_000, 0, 4096, 4096),
    ];
    let settled = |caching, alignment| {
        let mut plan = planned(&events, 1 << 20, false, 256);
        plan.settle_direct(caching, alignment);
        let direct: Vec<bool> = plan.streams[0].ops.iter().map(|op| op.direct).collect();
        (direct, plan.facts.adjusted.unaligned)
    };
    assert_eq!(
        settled(Caching::AsRecorded, 512),
        (vec![true, true, false], 0)
    );
    assert_eq!(
        settled(Caching::AsRecorded, 4096),
        (vec![true, false, false], 1)
    );
    assert_eq!(settled(Caching::Direct, 4096), (vec![true, false, true], 1));
    assert_eq!(settled(Caching::Buffered, 4096), (vec![false; 3], 0));
}

proptest! {
    /// Whatever a trace contains: each operation lies within the target, each thread's operations
    /// are in order, and none is lost or invented.
    #[test]
    fn hostile_traces(
        raw in prop::collection::vec(
            (1u32..6, 1u8..26, any::<u64>(), any::<u64>(), any::<u64>(), any::<i32>()), 0..200),
        target_bytes in 1u64..1 << 40,
        writes: bool,
        threads_max in 1usize..9,
    ) {
        let events: Vec<IoEvent> = raw
            .iter()
            .map(|&(tid, op, t, latency, offset, bytes)| IoEvent {
                ..event(tid, IoOp::from_code(op).unwrap(), t, latency, offset, bytes)
            })
            .collect();
        let plan = planned(&events, target_bytes, writes, threads_max);
        prop_assert!(plan.streams.len() <= threads_max);
        for stream in &plan.streams {
            prop_assert!(stream.ops.is_sorted_by_key(|op| op.start_ns));
            for op in &stream.ops {
                prop_assert!(op.offset.checked_add(u64::from(op.length)).unwrap() <= target_bytes);
                prop_assert!(writes || op.action == Action::Read);
            }
        }
        let of_files = events.iter().filter(|e| e.op.layer() == IoLayer::File).count() as u64;
        prop_assert_eq!(plan.facts.operations + plan.facts.skipped.total(), of_files);
    }
}
