//! A made-up server: who does what, what it costs the disk, and how it goes over time.

use seekscope_pattern::{AnalysisOptions, ThreadRole, TraceAnalyser, TraceAnalysis};
use seekscope_run::{
    BlockRequest, FileRecord, FileRole, IoEvent, IoFlags, IoOp, PathState, ThreadRecord,
};

const PAGE: u64 = 4096;
const TABLE: u32 = 1;
const JOURNAL: u32 = 2;
const OTHER_TABLE: u32 = 3;

fn call(t_ns: u64, tid: u32, file_id: u32, op: IoOp, offset: u64, pages: u64) -> IoEvent {
    IoEvent {
        t_ns,
        pid: 1,
        tid,
        file_id,
        op,
        flags: IoFlags::default(),
        offset: Some(offset),
        length: (pages * PAGE) as u32,
        latency_ns: 10,
        result: (pages * PAGE) as i32,
        device_read_bytes: 0,
        request: None,
    }
}

fn request(t_ns: u64, op: IoOp, flags: u16, offset: Option<u64>, pages: u64) -> IoEvent {
    IoEvent {
        flags: IoFlags(flags),
        offset,
        latency_ns: 50,
        request: Some(BlockRequest {
            disk_major: 254,
            disk_minor: 16,
            sector: offset.unwrap_or(1 << 30) / 512,
        }),
        ..call(t_ns, 1, TABLE, op, 0, pages)
    }
}

fn file(file_id: u32, path: &str, role: FileRole) -> FileRecord {
    FileRecord {
        file_id,
        path: path.into(),
        path_state: PathState::Known,
        device_major: 254,
        device_minor: 16,
        inode: u64::from(file_id),
        size_bytes: 0,
        role,
        namespace: None,
        member: None,
    }
}

fn thread(tid: u32, name: &str) -> ThreadRecord {
    ThreadRecord {
        tid,
        pid: 1,
        name: name.into(),
    }
}

fn analyse(events: &[IoEvent], options: AnalysisOptions) -> TraceAnalysis {
    let mut analyser = TraceAnalyser::new(options);
    for event in events {
        analyser.push(event);
    }
    analyser.finish(
        &[
            file(TABLE, "/data/collection-1.wt", FileRole::Collection),
            file(
                JOURNAL,
                "/data/journal/WiredTigerLog.0000000001",
                FileRole::Journal,
            ),
            file(OTHER_TABLE, "/data/index-2.wt", FileRole::Index),
        ],
        &[
            thread(1, "conn7"),
            thread(2, "mongod"),
            thread(3, "mongod"),
            thread(4, "mongod"),
        ],
    )
}

#[test]
fn roles_by_name_and_by_behaviour() {
    let sync = |t_ns, tid, file_id| IoEvent {
        offset: None,
        result: 0,
        ..call(t_ns, tid, file_id, IoOp::Fdatasync, 0, 0)
    };
    let mut events = Vec::new();
    for i in 0..10 {
        let t_ns = i * 1000;
        events.push(call(t_ns, 1, TABLE, IoOp::Pread, i * PAGE, 1));
        events.push(call(t_ns + 100, 2, JOURNAL, IoOp::Pwrite, i * PAGE, 1));
        events.push(sync(t_ns + 200, 2, JOURNAL));
        for (n, file) in [TABLE, OTHER_TABLE].into_iter().enumerate() {
            let later = t_ns + 300 + n as u64 * 100;
            events.push(call(later, 3, file, IoOp::Pwrite, i * PAGE, 1));
            events.push(sync(later + 50, 3, file));
        }
        events.push(call(t_ns + 600, 4, OTHER_TABLE, IoOp::Pwrite, i * PAGE, 2));
    }
    let analysis = analyse(&events, AnalysisOptions::default());
    let found = |tid| {
        let found = analysis
            .threads
            .iter()
            .find(|t| t.thread.tid == tid)
            .unwrap();
        (found.role, found.role_from_name)
    };
    assert_eq!(found(1), (ThreadRole::Application, true));
    assert_eq!(found(2), (ThreadRole::Journal, false));
    assert_eq!(found(3), (ThreadRole::Checkpoint, false));
    assert_eq!(found(4), (ThreadRole::Eviction, false));
    let checkpoint = analysis
        .roles
        .iter()
        .find(|r| r.role == ThreadRole::Checkpoint)
        .unwrap();
    assert_eq!(
        (
            checkpoint.threads,
            checkpoint.writes.calls,
            checkpoint.syncs.calls
        ),
        (1, 20, 20)
    );
    assert_eq!(
        (analysis.syncs.calls, analysis.syncs.latency_ns.p50),
        (30, 10)
    );
    assert_eq!(analysis.roles.len(), 4);
}

#[test]
fn what_the_disk_was_asked_for() {
    let miss = |t_ns, page, device_pages: u64| IoEvent {
        flags: IoFlags(IoFlags::WAITED | IoFlags::DEVICE_READ),
        latency_ns: 100,
        device_read_bytes: (device_pages * PAGE) as u32,
        ..call(t_ns, 1, TABLE, IoOp::Pread, page * PAGE, 1)
    };
    let events = [
        miss(0, 0, 8),
        request(10, IoOp::BlockRead, IoFlags::SYNCHRONOUS, Some(0), 2),
        request(20, IoOp::BlockRead, IoFlags::READ_AHEAD, Some(2 * PAGE), 6),
        call(200, 1, TABLE, IoOp::Pread, PAGE, 1),
        call(300, 1, TABLE, IoOp::Pread, 2 * PAGE, 1),
        miss(400, 1000, 1),
        request(
            410,
            IoOp::BlockRead,
            IoFlags::SYNCHRONOUS,
            Some(1000 * PAGE),
            1,
        ),
        request(500, IoOp::BlockRead, IoFlags::METADATA, None, 1),
        request(600, IoOp::BlockWrite, 0, None, 3),
        request(700, IoOp::BlockFlush, 0, None, 0),
        request(800, IoOp::BlockDiscard, 0, None, 5),
    ];
    let analysis = analyse(&events, AnalysisOptions::default());
    let table = &analysis.files[0];
    let source = table.read_bytes_by_source;
    assert_eq!((source.hit_bytes, source.miss_bytes), (2 * PAGE, 2 * PAGE));
    assert_eq!(
        (source.asked_bytes, source.device_read_bytes),
        (4 * PAGE, 9 * PAGE)
    );
    assert_eq!(source.read_amplification(), Some(9.0 / 4.0));
    let split = table.latency_by_outcome;
    assert_eq!(
        (split.hit_ns.max, split.miss_ns.min, split.miss_ns.count),
        (10, 100, 2)
    );
    let shape = table.reads.shape.as_ref().unwrap();
    assert_eq!(
        (shape.sequential_latency_ns.max, shape.seek_latency_ns.p50),
        (10, 100)
    );
    let device = table.device;
    assert_eq!((device.reads.calls, device.reads.bytes), (3, 9 * PAGE));
    assert_eq!(
        (device.read_ahead_bytes, device.never_asked_bytes),
        (6 * PAGE, 5 * PAGE)
    );
    assert_eq!(device.read_amplification, Some(9.0 / 4.0));
    assert_eq!((table.queue_depth.max, table.queue_depth.busy_ns), (1, 220));
    let [disk] = &analysis.disks[..] else {
        panic!("{:?}", analysis.disks);
    };
    assert_eq!((disk.major, disk.minor, disk.queue_depth.max), (254, 16, 2));
    let purpose = disk.read_bytes_by_purpose;
    assert_eq!(
        (purpose.file_bytes, purpose.metadata_bytes),
        (9 * PAGE, PAGE)
    );
    assert_eq!(
        (purpose.unknown_bytes, purpose.read_ahead_bytes),
        (0, 6 * PAGE)
    );
    assert_eq!(disk.write_bytes_by_purpose.unknown_bytes, 3 * PAGE);
    assert_eq!(
        (disk.flushes.calls, disk.discards, disk.discard_bytes),
        (1, 1, 5 * PAGE)
    );
    assert_eq!(
        disk.reads.pattern.as_ref().unwrap().contiguous_share,
        1.0 / 3.0
    );
    // The two layers are never added.
    assert_eq!((analysis.reads.calls, analysis.cache.misses), (4, 2));
}

#[test]
fn over_time() {
    // First a scan of 100 pages, then the same two pages again and again.
    let mut events: Vec<IoEvent> = (0..100)
        .map(|i| call(i * 1_000_000, 1, TABLE, IoOp::Pread, i * PAGE, 1))
        .collect();
    events.extend((100..1000).map(|i| call(i * 1_000_000, 1, TABLE, IoOp::Pread, i % 2 * PAGE, 1)));
    let options = AnalysisOptions {
        slice_ns: 1000,
        slices_max: 20,
        ..AnalysisOptions::default()
    };
    let analysis = analyse(&events, options);
    assert_eq!(
        analysis.slice_ns,
        1000 << 16,
        "doubled until 1 s fits 20 slices"
    );
    let slices = &analysis.files[0].slices;
    assert_eq!(slices.len(), 16);
    let reads = |slice: usize| slices[slice].reads.unwrap();
    assert_eq!(slices[3].started_ns, 3 * analysis.slice_ns);
    assert_eq!(reads(0).kind.name(), "sequential");
    assert_eq!(reads(5).kind.name(), "re-read");
    assert_eq!(
        (reads(0).new_bytes, reads(5).new_bytes),
        (reads(0).bytes, 0)
    );
    assert_eq!(reads(5).distinct_bytes, 2 * PAGE);
    assert_eq!(
        analysis.files[0].device.read_amplification, None,
        "not recorded"
    );
    let reuse = &analysis.files[0].reuse;
    assert_eq!((reuse.references, reuse.first_references), (1000, 100));
    // A cache of two pages serves all but the scan and the return to the start.
    assert!((reuse.miss_ratio(2 * PAGE).unwrap() - 0.102).abs() < 1e-9);
    assert!((reuse.miss_ratio(200 * PAGE).unwrap() - 0.1).abs() < 1e-9);
}
