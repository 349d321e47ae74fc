//! What is counted and timed when all goes well.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bson::doc;
use rustix::process::{Resource, getrlimit};
use seekscope_client::request::Verb;
use seekscope_client::{ClientError, EndReason, Job, ScheduleKind, Verdict, Wanted, choose, run};

use crate::server::TestServer;
use crate::workload::{Scripted, closed, constant, inserts, pings, run_all, run_beside, sleep};

#[test]
fn a_closed_loop_does_each_thing_once() {
    let server = TestServer::start();
    let outcome = run_all(&server.raw(), &inserts().limit(500), &closed(8));
    assert_eq!(outcome.ended.reason, EndReason::Done);
    assert_eq!((outcome.ended.transactions, outcome.done(0)), (500, 500));
    assert_eq!(outcome.ended.failures, []);
    assert_eq!(outcome.service().len(), 500);
    assert_eq!(outcome.sum(|second| second.operations[0].documents), 500);
    assert!(outcome.sum(|second| second.operations[0].bytes) > 500 * 50);
    assert!(
        outcome
            .seconds
            .iter()
            .all(|s| s.operations[0].response.is_none())
    );
    assert!(outcome.seconds.iter().all(|s| s.in_flight <= 8.0));
    assert!(outcome.sum(|second| second.client_cpu_ns) > 0);
    assert_eq!(server.count(), 500);
}

#[test]
fn seconds_follow_each_other_without_gaps() {
    let server = TestServer::start();
    let job = Job {
        duration: Some(Duration::from_millis(3_500)),
        ..closed(1)
    };
    let outcome = run_all(&server.raw(), &pings(), &job);
    assert_eq!(outcome.ended.reason, EndReason::Time);
    let mut at_ns = outcome.ended.started_ns;
    for second in &outcome.seconds {
        assert_eq!(second.t_ns, at_ns);
        at_ns += second.duration_ns;
    }
    assert_eq!(at_ns, outcome.ended.ended_ns);
    assert!(outcome.seconds.len() >= 3);
    assert_eq!(outcome.done(0), outcome.ended.transactions);
}

#[test]
fn a_rate_brings_rate_times_time() {
    let server = TestServer::start();
    for schedule in [
        ScheduleKind::Constant { per_s: 200.0 },
        ScheduleKind::Replayed((0..600).map(|i| i * 5_000_000).collect()),
    ] {
        let job = Job {
            schedule,
            ..constant(1.0, 4, 3)
        };
        let outcome = run_all(&server.raw(), &pings(), &job);
        assert_eq!(outcome.ended.transactions + outcome.ended.backlog, 600);
        assert_eq!(outcome.done(0), outcome.ended.transactions);
        assert_eq!(outcome.response().len(), outcome.ended.transactions);
        let lags = outcome.sum(|second| second.lag.len());
        assert_eq!(lags, outcome.ended.transactions);
        // Never before its time.
        assert!(outcome.response().min() >= outcome.service().min());
    }
}

#[test]
fn a_count_ends_the_work() {
    let server = TestServer::start();
    let job = Job {
        transactions: Some(37),
        ..closed(5)
    };
    let outcome = run_all(&server.raw(), &pings(), &job);
    assert_eq!(outcome.ended.reason, EndReason::Done);
    assert_eq!((outcome.ended.transactions, outcome.done(0)), (37, 37));
}

fn read_and_write() -> Scripted {
    let names = [
        ("READ", false),
        ("UPDATE", false),
        ("READ-MODIFY-WRITE", true),
    ];
    Scripted::new(&names, |request, step, _| match step {
        0 => {
            request.body.begin().string("find", "c");
            request.body.begin_document("filter").int32("_id", 1).end();
            request
                .body
                .int32("limit", 1)
                .boolean("singleBatch", true)
                .end();
            Some(0)
        }
        1 => {
            request.verb = Verb::Update;
            request.body.begin().string("update", "c").end();
            request.statements.begin();
            request.statements.begin_document("q").int32("_id", 1).end();
            request
                .statements
                .begin_document("u")
                .begin_document("$inc");
            request.statements.int32("n", 1).end().end().end();
            request.statement_count = 1;
            Some(1)
        }
        _ => None,
    })
}

#[test]
fn a_transaction_counts_as_a_whole_and_in_parts() {
    let server = TestServer::start();
    server.insert(vec![doc! { "_id": 1, "n": 0 }]);
    let outcome = run_all(&server.raw(), &read_and_write().limit(50), &closed(3));
    assert_eq!([0, 1, 2].map(|operation| outcome.done(operation)), [50; 3]);
    let whole = outcome.sum(|second| second.operations[2].documents);
    assert_eq!(whole, 100, "one read and one written each");
}

#[test]
fn a_bad_part_makes_the_whole_bad() {
    let server = TestServer::start();
    let workload = read_and_write()
        .judged_by(|reply| {
            if reply.returned == 1 || reply.modified == 1 {
                Verdict::Good
            } else {
                Verdict::Abort("NOT_FOUND")
            }
        })
        .limit(20);
    let outcome = run_all(&server.raw(), &workload, &closed(3));
    assert_eq!([0, 1, 2].map(|operation| outcome.done(operation)), [0; 3]);
    assert_eq!(
        [0, 1, 2].map(|operation| outcome.errors(operation)),
        [20, 0, 20]
    );
    assert_eq!(outcome.failed("NOT_FOUND"), 40, "the read and the whole");
}

#[test]
fn a_cursor_is_read_to_its_end() {
    let server = TestServer::start();
    server.insert((0..250).map(|i| doc! { "_id": i }).collect());
    let scan = Scripted::new(&[("scan", false)], |request, step, _| {
        (step == 0).then(|| {
            request.body.begin().string("find", "c");
            request.body.begin_document("sort").int32("_id", 1).end();
            request.body.int32("batchSize", 100).end();
            0
        })
    })
    .judged_by(|reply| {
        let first = reply.first.and_then(|first| first.get_i32("_id").ok());
        let has_body = reply
            .body
            .is_some_and(|body| body.get_document("cursor").is_ok());
        if reply.returned == 250 && first == Some(0) && has_body {
            Verdict::Good
        } else {
            Verdict::Bad("WRONG")
        }
    });
    let outcome = run_all(&server.raw(), &scan.limit(20), &closed(4));
    assert_eq!(outcome.ended.failures, []);
    assert_eq!(
        outcome.sum(|second| second.operations[0].documents),
        20 * 250
    );
}

#[test]
fn errors_of_the_server_are_counted_by_name_and_never_as_done() {
    let server = TestServer::start();
    run_all(&server.raw(), &inserts().limit(10), &closed(1));
    let again = run_all(&server.raw(), &inserts().limit(30), &closed(4));
    assert_eq!((again.done(0), again.errors(0)), (20, 10));
    assert_eq!(again.failed("DuplicateKey"), 10);
    assert_eq!(again.ended.in_doubt, 0);
    assert_eq!(server.count(), 30);
}

#[test]
fn all_processes_start_at_the_same_time() {
    let server = TestServer::start();
    let start_at_ns = seekscope_run::monotonic_ns() + 1_500_000_000;
    let job = Job {
        start_at_ns: Some(start_at_ns),
        ..closed(2)
    };
    let outcome = run_all(&server.raw(), &pings().limit(10), &job);
    assert_eq!(outcome.ended.started_ns, start_at_ns);
    assert_eq!(outcome.done(0), 10);
}

#[test]
fn the_callers_flag_ends_a_closed_loop() {
    let server = TestServer::start();
    let outcome = run_beside(&server.raw(), &pings(), &closed(8), |stop| {
        // On a busy machine the connections alone take a second.
        sleep(3.0);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(outcome.ended.reason, EndReason::Stopped);
    assert_eq!(outcome.done(0), outcome.ended.transactions);
}

#[test]
fn too_many_connections_for_the_limit_are_refused_with_the_remedy() {
    let limit = getrlimit(Resource::Nofile)
        .current
        .expect("files are limited");
    let job = closed(usize::try_from(limit).unwrap());
    let uri = "mongodb://127.0.0.1:1/";
    let client = crate::server::raw(uri);
    let error = run(
        &client,
        &pings(),
        &job,
        &AtomicBool::new(false),
        &mut |_| (),
    )
    .unwrap_err();
    assert!(matches!(error, ClientError::FileDescriptors { .. }));
    let text = error.to_string();
    assert!(
        text.contains("ulimit -n") && text.contains(&limit.to_string()),
        "{text}"
    );
}

#[test]
fn auto_takes_the_driver_where_ours_cannot_do_it() {
    let kinds: BTreeMap<&str, bool> = ["mongodb://h/", "mongodb://h/?tls=true"]
        .into_iter()
        .map(|uri| (uri, choose(uri, "d", Wanted::Auto).unwrap().raw.is_some()))
        .collect();
    assert_eq!(kinds.into_values().collect::<Vec<_>>(), [true, false]);
    let error = choose("mongodb://h/?tls=true", "d", Wanted::Raw).unwrap_err();
    assert!(error.to_string().contains("--client driver"), "{error}");
}
