//! A known list of calls, compared one by one with the trace.

use seekscope_run::{IoFlags, IoOp};
use seekscope_trace::BackendChoice;

use crate::jobs::{ROUNDS, THREADS};
use crate::known_program::{CALLS_BEFORE, CALLS_PER_ROUND, differences, event_line};
use crate::support::{BOTH, Worker, alone, attach, finish, trace};

fn every_call_is_there(backend: BackendChoice) {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (facts, traced, expected) = trace("ten_calls", folder.path(), backend);
    let line = |event| event_line(traced.path(event), event);
    let found: Vec<String> = traced.events.iter().map(line).collect();
    assert_eq!(
        found.len(),
        THREADS * (CALLS_BEFORE + ROUNDS * CALLS_PER_ROUND)
    );
    assert_eq!(
        differences(found.clone(), expected.clone()),
        Vec::<String>::new()
    );
    assert!(
        by_thread(found) == by_thread(expected),
        "a thread's calls are out of order"
    );
    assert_eq!(facts.in_flight_at_end, 0);
    assert!(
        facts.in_flight_at_start <= 1,
        "only the child's read of a pipe was in flight: {facts:?}"
    );
}

/// Each thread's lines in their order; the path, which comes first, is the thread's own.
fn by_thread(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
    lines
}

/// What is lost is missing, and nothing else is.
#[test]
fn an_overflow_loses_as_many_calls_of_64_threads_as_it_says() {
    let _turn = alone();
    for backend in BOTH {
        let folder = tempfile::tempdir().unwrap();
        let mut worker = Worker::start("ten_calls", folder.path());
        let source = attach(&worker, backend, 64 << 10);
        let expected = worker.work(); // nobody drains meanwhile
        let (facts, traced) = finish(source);
        let calls = THREADS * (CALLS_BEFORE + ROUNDS * CALLS_PER_ROUND);
        assert_eq!(facts.seen, calls as u64, "{facts:?}");
        assert_eq!(facts.seen, facts.written + facts.lost, "{facts:?}");
        assert_eq!(facts.written, traced.events.len() as u64);
        assert!(facts.lost > 10_000 && facts.written > 500, "{facts:?}");
        let line = |event| event_line(traced.path(event), event);
        let differences = differences(traced.events.iter().map(line).collect(), expected);
        assert_eq!(differences.len() as u64, facts.lost);
        assert!(
            differences
                .iter()
                .all(|line| line.starts_with("not traced"))
        );
    }
}

#[test]
fn every_call_is_there_with_typed_tracepoints() {
    every_call_is_there(BackendChoice::TpBtf);
}

#[test]
fn every_call_is_there_with_classic_tracepoints() {
    every_call_is_there(BackendChoice::Tracepoint);
}

#[test]
fn times_and_flags_are_plausible() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let before = seekscope_run::monotonic_ns();
    let (facts, traced, _) = trace("ten_calls", folder.path(), BackendChoice::Auto);
    let after = seekscope_run::monotonic_ns();
    assert_eq!(
        (facts.backend.as_str(), facts.in_flight_at_start),
        ("tp_btf", 0)
    );
    for event in &traced.events {
        assert!(before < event.t_ns && event.t_ns + event.latency_ns < after);
        assert!(event.latency_ns > 0);
        assert!(
            !event
                .flags
                .has(IoFlags::DIRECT | IoFlags::LATENCY_SATURATED)
        );
        let by_position = matches!(
            event.op,
            IoOp::Read | IoOp::Readv | IoOp::Write | IoOp::Writev
        );
        let either = matches!(event.op, IoOp::Preadv2 | IoOp::Pwritev2);
        assert!(either || event.flags.has(IoFlags::OFFSET_FROM_POSITION) == by_position);
        assert!(
            !event.flags.has(IoFlags::APPEND) || matches!(event.op, IoOp::Write | IoOp::Pwrite)
        );
    }
    let appended = traced
        .events
        .iter()
        .filter(|e| e.flags.has(IoFlags::APPEND))
        .count();
    assert_eq!(appended, THREADS * ROUNDS * 2);
}
