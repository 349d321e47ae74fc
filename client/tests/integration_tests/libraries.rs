//! The same semantics with somebody else's client: here the official driver.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use seekscope_client::{ClientSpec, DriverTarget, EndReason, Job};

use crate::server::TestServer;
use crate::workload::{closed, constant, inserts, pings, run_all, run_beside, sleep};

fn driver(server: &TestServer) -> ClientSpec {
    let uri = format!("{}&retryReads=false&retryWrites=false", server.uri());
    ClientSpec::Async(Arc::new(DriverTarget::new(&uri, "test")))
}

#[test]
fn a_closed_loop_does_each_thing_once() {
    let server = TestServer::start();
    let outcome = run_all(&driver(&server), &inserts().limit(300), &closed(8));
    assert_eq!(outcome.ended.reason, EndReason::Done);
    assert_eq!((outcome.ended.transactions, outcome.done(0)), (300, 300));
    assert_eq!(outcome.ended.failures, []);
    assert_eq!(server.count(), 300);
}

#[test]
fn a_frozen_server_shows_in_response_times() {
    let server = TestServer::start();
    let job = constant(50.0, 8, 6);
    let outcome = run_beside(&driver(&server), &pings(), &job, |_| {
        sleep(1.0);
        server.freeze();
        sleep(3.0);
        server.thaw();
    });
    assert_eq!(outcome.ended.transactions + outcome.ended.backlog, 300);
    assert_eq!(outcome.response().len(), outcome.ended.transactions);
    assert!(outcome.response().value_at_quantile(0.99) > 2_000_000_000);
    let service = outcome.service().count_between(2_000_000_000, u64::MAX);
    assert!(service <= 8, "only what was in flight: {service}");
    assert!(outcome.errors(0) <= 8);
}

#[test]
fn no_answer_in_time_is_a_failure_and_the_flag_ends_a_frozen_run() {
    let server = TestServer::start();
    let job = Job {
        timeout: Duration::from_millis(300),
        ..closed(2)
    };
    let outcome = run_beside(&driver(&server), &inserts(), &job, |stop| {
        sleep(1.0);
        server.freeze();
        sleep(1.5);
        stop.store(true, Ordering::Relaxed);
        sleep(2.0);
        server.thaw();
    });
    assert_eq!(outcome.ended.reason, EndReason::Stopped);
    assert!(outcome.done(0) > 0);
    assert!(
        outcome.failed("Timeout") >= 2,
        "{:?}",
        outcome.ended.failures
    );
    assert!(outcome.ended.in_doubt >= 2);
}
