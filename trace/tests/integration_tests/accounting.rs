//! seen = written + lost, whatever happens.

use std::time::Instant;

use seekscope_trace::source::DRAIN_INTERVAL;
use seekscope_trace::{BackendChoice, EventSource, LiveSource, TraceOptions};

use crate::jobs::FAST_READS;
use crate::support::{BOTH, Collector, Worker, alone, attach, finish, trace};

#[test]
fn a_full_ring_is_accounted_for_exactly() {
    let _turn = alone();
    for backend in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start("fast_reads", folder.path());
        let source = attach(&worker, backend, 64 << 10);
        worker.work(); // nobody drains meanwhile
        let (facts, traced) = finish(source);
        assert_eq!(facts.seen, FAST_READS, "{facts:?}");
        assert_eq!(facts.written, traced.events.len() as u64);
        assert_eq!(facts.seen, facts.written + facts.lost);
        assert!(facts.lost > 0 && facts.written >= 1000, "{facts:?}");
        assert_eq!((facts.lost, facts.lost_start), (facts.lost_ring_full, 0));
    }
}

#[test]
fn nothing_is_lost_at_full_speed() {
    let _turn = alone();
    for backend in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let (facts, traced, _) = trace("fast_reads", folder.path(), backend);
        assert_eq!(
            (facts.seen, traced.events.len() as u64),
            (FAST_READS, FAST_READS)
        );
        // Two runs per event, and those of other processes; estimated from a sample.
        assert!(facts.cost.program_runs > FAST_READS * 3 / 2, "{facts:?}");
        assert!(
            (50.0..20_000.0).contains(&facts.cost.ns_per_event),
            "{facts:?}"
        );
        eprintln!(
            "{}: {:.0} ns per event",
            facts.backend, facts.cost.ns_per_event
        );
    }
}

/// Room for 1170 records, which the child fills in a fraction of the drain interval: timed drains
/// alone would come too late.
#[test]
fn a_ring_that_fills_early_wakes_the_reader() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start("fast_reads", folder.path());
    let mut source = attach(&worker, BackendChoice::Auto, 64 << 10);
    let mut sink = Collector::default();
    let early = std::thread::scope(|scope| {
        let work = scope.spawn(|| worker.work());
        let mut early = 0;
        while !work.is_finished() {
            let before = Instant::now();
            source.wait();
            early += usize::from(before.elapsed() < DRAIN_INTERVAL / 2);
            source.drain(&mut sink).unwrap();
        }
        early
    });
    // Nothing but a wake-up ends the wait before its time.
    assert!(early >= 5, "{early} waits ended early");
    let facts = source.finish(&mut sink).unwrap();
    assert_eq!(
        (facts.seen, facts.written + facts.lost),
        (FAST_READS, FAST_READS)
    );
}

#[test]
fn threads_that_clash_in_a_start_slot_are_accounted_for() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut worker = Worker::start("ten_calls", folder.path());
    let source = LiveSource::attach_with_slots(&TraceOptions::new(worker.pid()), 1).unwrap();
    worker.work();
    let (facts, traced) = finish(source);
    assert_eq!(facts.seen, facts.written + facts.lost, "{facts:?}");
    assert_eq!(facts.written, traced.events.len() as u64);
    assert!(facts.lost_start > 0, "{facts:?}");
}
