//! Servers that are frozen, killed or started again in the middle.

use std::sync::atomic::Ordering;
use std::time::Duration;

use seekscope_client::{EndReason, FailureKind, Job};

use crate::server::TestServer;
use crate::workload::{closed, constant, inserts, pings, run_beside, sleep};

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_frozen_server_shows_in_response_times_and_everything_due_is_sent() {
    let server = TestServer::start();
    let outcome = run_beside(&server.raw(), &pings(), &constant(100.0, 8, 10), |_| {
        sleep(2.0);
        server.freeze();
        sleep(4.0);
        server.thaw();
    });
    assert_eq!(
        (outcome.ended.transactions, outcome.ended.backlog),
        (1000, 0)
    );
    // Some servers reset the connections on which they were frozen.
    assert_eq!(outcome.done(0) + outcome.errors(0), 1000);
    assert!(outcome.errors(0) <= 8, "only what was in flight");
    let response = outcome.response();
    assert_eq!(response.len(), 1000);
    // About 400 were due while it was frozen.
    let long = response.count_between(SECOND_NS, u64::MAX);
    assert!(
        (200..=800).contains(&long),
        "{long} waited a second or more"
    );
    assert!(response.value_at_quantile(0.99) > 3 * SECOND_NS);
    assert!(outcome.seconds.iter().any(|second| second.backlog > 100));
}

#[test]
fn in_a_closed_loop_only_what_was_in_flight_sees_the_frozen_server() {
    let server = TestServer::start();
    let job = Job {
        duration: Some(Duration::from_secs(8)),
        ..closed(4)
    };
    let outcome = run_beside(&server.raw(), &pings(), &job, |_| {
        sleep(1.0);
        server.freeze();
        sleep(4.0);
        server.thaw();
    });
    let long = outcome.service().count_between(3 * SECOND_NS, u64::MAX);
    // Some servers reset the connections on which they were frozen.
    assert_eq!(long + outcome.errors(0), 4);
    assert_eq!(
        outcome.done(0) + outcome.errors(0),
        outcome.ended.transactions
    );
    let frozen = outcome.seconds.iter().filter(|s| s.operations[0].done == 0);
    assert!(
        frozen.count() >= 2,
        "seconds without any end are handed over too"
    );
}

#[test]
fn a_server_that_is_gone_ends_the_work_with_what_is_known() {
    let mut server = TestServer::start();
    let client = server.raw();
    let job = Job {
        failures_in_a_row_max: Some(40),
        ..closed(8)
    };
    let outcome = run_beside(&client, &inserts(), &job, |_| {
        sleep(1.0);
        server.kill();
    });
    assert_eq!(outcome.ended.reason, EndReason::Failing);
    let kinds: Vec<_> = outcome.ended.failures.iter().map(|f| f.kind).collect();
    assert!(kinds.contains(&Some(FailureKind::Connection)), "{kinds:?}");
    assert!(outcome.errors(0) >= 40);
    assert!(outcome.done(0) > 0);
    // What was on its way when the connection broke.
    assert!((1..=8).contains(&outcome.ended.in_doubt));
}

#[test]
fn a_server_that_is_restarted_is_found_again() {
    let mut server = TestServer::start();
    let client = server.raw();
    let mut server_after = None;
    let outcome = run_beside(&client, &inserts(), &constant(100.0, 4, 12), |_| {
        sleep(1.0);
        server.restart();
        server_after = Some(server);
    });
    assert_eq!(outcome.ended.reason, EndReason::Time);
    assert!(outcome.errors(0) > 0);
    let last = &outcome.seconds[outcome.seconds.len() - 2];
    assert!(last.operations[0].done > 0, "it goes on after the restart");
    assert_eq!(
        outcome.done(0) + outcome.errors(0),
        outcome.ended.transactions
    );
    // Each arrival had its turn, and waited no shorter than the outage.
    assert_eq!(outcome.ended.transactions + outcome.ended.backlog, 1200);
    let counted = server_after.unwrap().count();
    // A killed server may have lost what it had not yet written to its journal.
    assert!(counted <= outcome.done(0) + outcome.ended.in_doubt);
}

#[test]
fn no_answer_in_time_is_a_failure_and_the_flag_ends_a_frozen_run() {
    let server = TestServer::start();
    let job = Job {
        timeout: Duration::from_millis(300),
        ..closed(4)
    };
    let outcome = run_beside(&server.raw(), &inserts(), &job, |stop| {
        sleep(0.5);
        server.freeze();
        sleep(2.0);
        stop.store(true, Ordering::Relaxed);
        sleep(1.0);
        server.thaw();
    });
    assert_eq!(outcome.ended.reason, EndReason::Stopped);
    assert!(outcome.failed("Timeout") >= 4);
    assert!(outcome.ended.in_doubt >= 4);
}

#[test]
fn stopping_does_not_wait_for_a_frozen_server() {
    let server = TestServer::start();
    let workload = inserts();
    for in_flight in [1, 4] {
        let outcome = run_beside(&server.raw(), &workload, &closed(in_flight), |stop| {
            sleep(0.5);
            server.freeze();
            sleep(0.5);
            stop.store(true, Ordering::Relaxed);
        });
        // The job's time limit is a minute, so nothing but the flag can have ended it.
        let count = in_flight as u64;
        assert_eq!(outcome.ended.reason, EndReason::Stopped);
        assert_eq!(
            (outcome.failed("Abandoned"), outcome.ended.in_doubt),
            (count, count)
        );
        assert_eq!(outcome.done(0) + count, outcome.ended.transactions);
        server.thaw();
    }
}
