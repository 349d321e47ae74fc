//! A known list of calls, compared one by one with the trace.

use seekscope_run::{IoFlags, IoOp};
use seekscope_trace::BackendChoice;

use crate::jobs::{ROUNDS, THREADS};
use crate::support::{alone, trace};

fn every_call_is_there(backend: BackendChoice) {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let (facts, traced, mut expected) = trace("ten_calls", folder.path(), backend);
    // Each thread fills its file with one write before its known calls.
    let fillings = |e: &&seekscope_run::IoEvent| e.op == IoOp::Write && e.length == 1 << 20;
    assert_eq!(traced.events.iter().filter(fillings).count(), THREADS);
    let mut found: Vec<String> = traced
        .events
        .iter()
        .filter(|e| !fillings(e))
        .map(|e| {
            let offset = e.offset.map_or("unknown".into(), |o| o.to_string());
            format!(
                "{} {} {} {offset} {} {}",
                traced.path(e),
                e.tid,
                e.op as u8,
                e.length,
                e.result
            )
        })
        .collect();
    found.sort();
    expected.sort();
    assert_eq!(found.len(), THREADS * ROUNDS * 16);
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these
            .iter()
            .filter(|line| those.binary_search(line).is_err())
            .take(5)
            .cloned()
            .collect()
    };
    assert_eq!(
        (only(&found, &expected), only(&expected, &found)),
        (vec![], vec![])
    );
    assert_eq!(found, expected);
    assert_eq!(facts.in_flight_at_end, 0);
    assert!(
        facts.in_flight_at_start <= 1,
        "only the child's read of a pipe was in flight: {facts:?}"
    );
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
