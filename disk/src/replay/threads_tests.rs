use super::super::{Op, PlanFacts, Skipped};
use super::*;

const MIB: u64 = 1 << 20;

fn op(start_ns: u64, action: Action, offset: u64, length: u32) -> Op {
    Op {
        start_ns,
        latency_ns: 1_000,
        offset,
        length,
        action,
        direct: false,
        file: 0,
    }
}

fn plan(streams: &[Vec<Op>]) -> Plan {
    let streams = (1u32..).zip(streams);
    let streams = streams.map(|(tid, ops)| Stream {
        tid,
        ops: ops.clone(),
    });
    let mut plan = Plan {
        streams: streams.collect(),
        facts: PlanFacts::default(),
    };
    plan.facts.skipped = Skipped {
        failed: [3, 0, 1],
        ..Skipped::default()
    };
    plan
}

fn options(speed: Option<f64>, pacing: Loop) -> PlayOptions {
    PlayOptions {
        speed,
        pacing,
        time_limit: None,
        limits: None,
        seed: 1,
    }
}

/// A file of one MiB to write on.
fn own_file(folder: &tempfile::TempDir) -> TestFile {
    let cancel = AtomicBool::new(false);
    let fill = crate::FillOptions::new(crate::Contents::Random { seed: 1 });
    TestFile::create(folder.path(), MIB, fill, &mut |_| {}, &cancel).unwrap()
}

fn play_all(plan: &Plan, file: &TestFile, options: &PlayOptions) -> (ReplayOutcome, Ended) {
    play(plan, file, options, &mut |_| {}, &AtomicBool::new(false)).unwrap()
}

#[test]
fn both_sides_count_what_was_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_file(&folder);
    let reads: Vec<Op> = (0..1500)
        .map(|n| op(n, Action::Read, n * 512, 512))
        .collect();
    let writer = vec![
        op(0, Action::Write, 0, 100),
        op(10, Action::Fsync, 0, 0),
        op(20, Action::Fdatasync, 0, 0),
    ];
    let plan = plan(&[reads, writer]);
    let mut seconds = [0; 3];
    let count = &mut |second: &ReplaySecond<'_>| {
        seconds[second.operation as usize] += second.service.len();
        assert_eq!(second.recorded.len(), second.service.len());
        assert!(second.response.is_none());
    };
    let options = options(None, Loop::Closed);
    let (outcome, ended) = play(&plan, &file, &options, count, &AtomicBool::new(false)).unwrap();
    assert!(matches!(ended, Ended::Complete), "{ended:?}");
    assert_eq!(seconds, [1500, 1, 2], "the seconds add up");
    let sides = outcome
        .operations()
        .map(|(_, c)| (c.recorded.count, c.replayed.count, c.replayed.bytes));
    assert_eq!(sides, [(1500, 1500, 1500 * 512), (1, 1, 100), (2, 2, 0)]);
    assert_eq!(
        (outcome.reads.recorded.errors, outcome.syncs.recorded.errors),
        (3, 1)
    );
    assert_eq!(outcome.reads.recorded.latency.unwrap().max_ns, 1_000);
    assert_eq!(outcome.recorded_elapsed_ns, 1499 + 1_000);
    assert_eq!((outcome.played(), outcome.late_starts), (1503, 0));
}

#[test]
fn an_open_loop_counts_late_starts_and_a_closed_one_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_file(&folder);
    // All at once: every operation but the first is due while its thread is busy.
    let burst: Vec<Op> = (0..50)
        .map(|n| op(0, Action::Read, n * 4096, 4096))
        .collect();
    let plan = plan(&[burst]);
    let (open, _) = play_all(&plan, &file, &options(Some(1.0), Loop::Open));
    assert_eq!(open.late_starts, 49);
    let response = open.reads.replayed.response.unwrap();
    assert!(
        response.max_ns >= open.latest_start_ns / 1000 * 999,
        "{open:?}"
    );
    assert!(
        response.mean_ns > open.reads.replayed.latency.unwrap().mean_ns,
        "{open:?}"
    );
    let (closed, _) = play_all(&plan, &file, &options(Some(1.0), Loop::Closed));
    assert_eq!(
        (closed.late_starts, closed.reads.replayed.response),
        (0, None)
    );
}

#[test]
fn recorded_times_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_file(&folder);
    let ms = 1_000_000;
    let spread: Vec<Op> = (0..5)
        .map(|n| op(n * 20 * ms, Action::Read, 0, 512))
        .collect();
    let plan = plan(&[spread]);
    let elapsed = |speed, pacing| play_all(&plan, &file, &options(speed, pacing)).0.elapsed_ns;
    for pacing in [Loop::Closed, Loop::Open] {
        assert!(elapsed(Some(1.0), pacing) >= 79 * ms);
        assert!(elapsed(Some(2.0), pacing) >= 39 * ms);
    }
}

#[test]
fn a_failure_ends_it_and_keeps_what_was_played() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    std::fs::write(&path, vec![7; 8192]).unwrap();
    let file = TestFile::open_existing(&path).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(4096)
        .unwrap();
    let plan = plan(&[vec![
        op(0, Action::Read, 0, 4096),
        op(0, Action::Read, 4096, 4096),
        op(0, Action::Read, 0, 4096),
    ]]);
    let (outcome, ended) = play_all(&plan, &file, &options(None, Loop::Closed));
    assert!(
        matches!(ended, Ended::Failed(DiskError::Shrunk { offset: 4096 })),
        "{ended:?}"
    );
    let reads = outcome.reads;
    assert_eq!(
        (
            reads.replayed.count,
            reads.replayed.errors,
            reads.recorded.count
        ),
        (1, 1, 1)
    );
}

#[test]
fn time_limit_and_cancel_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = own_file(&folder);
    let hour = 3_600_000_000_000;
    let plan = plan(&[vec![
        op(0, Action::Read, 0, 512),
        op(hour, Action::Read, 0, 512),
    ]]);
    let mut limited = options(Some(1.0), Loop::Closed);
    limited.time_limit = Some(Duration::from_millis(50));
    let (outcome, ended) = play_all(&plan, &file, &limited);
    assert!(matches!(ended, Ended::TimeLimit), "{ended:?}");
    assert_eq!(outcome.played(), 1);
    let cancel = AtomicBool::new(true);
    let options = options(Some(1.0), Loop::Closed);
    let (outcome, ended) = play(&plan, &file, &options, &mut |_| {}, &cancel).unwrap();
    assert!(matches!(ended, Ended::Interrupted), "{ended:?}");
    assert_eq!(outcome.played(), 0);
}

#[test]
fn a_throttle_gives_each_operation_a_place_in_time() {
    let throttle = Throttle::new(RateLimits {
        requests_per_s: 100.0,
        bytes_per_s: 1e6,
        pressure_max: 1.0,
    });
    let read = |length| op(0, Action::Read, 0, length);
    assert_eq!(throttle.place_ns(&read(512), 1_000), 1_000);
    assert_eq!(
        throttle.place_ns(&read(20_000), 1_000),
        10_001_000,
        "10 ms each"
    );
    assert_eq!(
        throttle.place_ns(&read(1), 0),
        30_001_000,
        "20,000 bytes take 20 ms"
    );
    assert_eq!(throttle.place_ns(&read(1), 90_000_000), 90_000_000);
}
