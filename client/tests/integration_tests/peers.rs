//! Peers that break the protocol, or the connection.

use std::io::Write;
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use seekscope_client::{ClientError, FailureKind, Job, Retries, run};

use crate::peer::{self, Behaviour, ok};
use crate::server::raw;
use crate::workload::{Outcome, closed, inserts, pings, run_all};

fn with(behaviours: &'static [Behaviour]) -> Outcome {
    let job = Job {
        timeout: Duration::from_millis(400),
        transactions: Some(5),
        failures_in_a_row_max: Some(100),
        ..closed(1)
    };
    run_all(&raw(&peer::start(behaviours)), &inserts(), &job)
}

fn all_fail(behaviours: &'static [Behaviour], kind: FailureKind, name: &str) {
    let outcome = with(behaviours);
    assert_eq!((outcome.done(0), outcome.errors(0)), (0, 5));
    assert_eq!(outcome.failed(name), 5, "{:?}", outcome.ended.failures);
    assert_eq!(outcome.ended.failures[0].kind, Some(kind));
    assert_eq!(outcome.ended.in_doubt, 5);
}

#[test]
fn a_peer_that_answers_is_a_server() {
    let outcome = with(&[|stream, id| stream.write_all(&ok(id)).unwrap()]);
    assert_eq!((outcome.done(0), outcome.errors(0)), (5, 0));
}

#[test]
fn an_answer_in_pieces_is_put_together() {
    let outcome = with(&[|stream, id| {
        for byte in ok(id) {
            stream.write_all(&[byte]).unwrap();
        }
    }]);
    assert_eq!((outcome.done(0), outcome.errors(0)), (5, 0));
}

#[test]
fn garbage_is_malformed() {
    all_fail(
        &[|stream, _| stream.write_all(&[0xAB; 300]).unwrap()],
        FailureKind::Malformed,
        "MalformedReply",
    );
}

#[test]
fn an_answer_to_another_request_is_malformed() {
    all_fail(
        &[|stream, id| stream.write_all(&ok(id + 1)).unwrap()],
        FailureKind::Malformed,
        "MalformedReply",
    );
}

#[test]
fn half_an_answer_and_a_close_is_a_lost_connection() {
    all_fail(
        &[|stream, id| {
            stream.write_all(&ok(id)[..20]).unwrap();
            stream.shutdown(Shutdown::Both).unwrap();
        }],
        FailureKind::Connection,
        "ConnectionClosed",
    );
}

#[test]
fn no_answer_is_a_timeout() {
    all_fail(&[|_, _| ()], FailureKind::Timeout, "Timeout");
}

#[test]
fn a_promise_of_gigabytes_is_refused() {
    all_fail(
        &[|stream, _| stream.write_all(&i32::MAX.to_le_bytes()).unwrap()],
        FailureKind::Malformed,
        "MalformedReply",
    );
}

#[test]
fn what_may_pass_is_sent_again() {
    const CLOSE: Behaviour = |stream, _| stream.shutdown(Shutdown::Both).unwrap();
    let uri = peer::start(&[CLOSE, CLOSE, |stream, id| {
        stream.write_all(&ok(id)).unwrap()
    }]);
    let job = Job {
        transactions: Some(5),
        retries: Retries {
            count: 3,
            pause: Duration::from_millis(5),
        },
        ..closed(1)
    };
    let outcome = run_all(&raw(&uri), &inserts(), &job);
    assert_eq!((outcome.done(0), outcome.errors(0)), (5, 0));
    assert_eq!((outcome.ended.retried, outcome.ended.in_doubt), (2, 0));
}

fn start_error(uri: &str) -> String {
    let job = closed(2);
    let never = AtomicBool::new(false);
    let error = run(&raw(uri), &pings(), &job, &never, &mut |_| ()).unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { .. }), "{error}");
    error.to_string()
}

#[test]
fn nobody_there_is_said_before_any_work() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let text = start_error(&format!("mongodb://127.0.0.1:{port}/"));
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn a_listener_that_never_greets_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let text = start_error(&format!("mongodb://127.0.0.1:{port}/?connectTimeoutMS=300"));
    assert!(text.contains("greeting"), "{text}");
}
