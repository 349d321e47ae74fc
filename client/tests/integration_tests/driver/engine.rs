//! The engine drives the driver as it drives our own client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::doc;
use seekscope_client::request::{Transaction, Verb};
use seekscope_client::{
    Actor, ActorPlace, ClientSpec, DriverTarget, EndReason, Ended, Failure, Job, Operation,
    OperationId, Reply, Request, Retries, ScheduleKind, Second, Verdict, Workload, run,
};

use super::fixture::{TestServer, done, number};

/// Numbers from 0, each inserted and read back, in a transaction if so wished.
#[derive(Debug)]
struct Numbers {
    operations: [Operation; 3],
    next: Arc<AtomicU64>,
    count: u64,
    in_transaction: bool,
}

impl Numbers {
    fn new(count: u64, in_transaction: bool) -> Self {
        let operation = |name: &str, is_transaction| Operation {
            name: name.into(),
            is_transaction,
        };
        Self {
            operations: [
                operation("INSERT AND READ", true),
                operation("INSERT", false),
                operation("READ", false),
            ],
            next: Arc::default(),
            count,
            in_transaction,
        }
    }
}

impl Workload for Numbers {
    fn operations(&self) -> &[Operation] {
        &self.operations
    }

    fn actor(&self, _place: ActorPlace) -> Box<dyn Actor> {
        Box::new(Counting {
            next: Arc::clone(&self.next),
            count: self.count,
            in_transaction: self.in_transaction,
            number: 0,
            step: 0,
        })
    }
}

struct Counting {
    next: Arc<AtomicU64>,
    count: u64,
    in_transaction: bool,
    number: u64,
    step: u8,
}

impl Actor for Counting {
    fn begin(&mut self) -> Option<OperationId> {
        self.number = self.next.fetch_add(1, Ordering::Relaxed);
        self.step = 0;
        (self.number < self.count).then_some(0)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        let id = i64::try_from(self.number).unwrap();
        let (operation, part) = match self.step {
            0 => {
                request.verb = Verb::Insert;
                request.body.begin().string("insert", "c").end();
                request.statements.begin().int64("_id", id).end();
                request.statement_count = 1;
                (1, Transaction::Start)
            }
            1 => {
                request.verb = Verb::Find;
                request.body.begin().string("find", "c");
                request.body.begin_document("filter").int64("_id", id).end();
                request.body.end();
                (2, Transaction::Continue)
            }
            2 if self.in_transaction => {
                request.verb = Verb::Command;
                request.body.begin().int32("commitTransaction", 1).end();
                (2, Transaction::End)
            }
            _ => return None,
        };
        if self.in_transaction {
            request.in_transaction = part;
        }
        self.step += 1;
        Some(operation)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        match outcome {
            Ok(reply) if self.step == 2 && reply.returned != 1 => Verdict::Bad("NOT_FOUND"),
            Ok(_) => Verdict::Good,
            Err(_) => Verdict::Abort("FAILED"),
        }
    }
}

fn job(in_flight: usize) -> Job {
    Job {
        schedule: ScheduleKind::Closed,
        in_flight,
        threads: 2,
        transactions: None,
        duration: None,
        timeout: Duration::from_secs(20),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: Some(1_000),
    }
}

/// The engine blocks, so it gets a thread of its own.
async fn run_driver(uri: String, workload: Numbers, job: Job) -> (Ended, Vec<Second>) {
    let work = move || {
        let spec = ClientSpec::Async(Arc::new(DriverTarget::new(&uri, "d")));
        let mut seconds = Vec::new();
        let stop = AtomicBool::new(false);
        let ended = run(&spec, &workload, &job, &stop, &mut |s| seconds.push(s));
        (ended.unwrap(), seconds)
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

#[tokio::test]
async fn every_row_is_counted_once_and_is_there() {
    for in_transaction in [false, true] {
        let server = TestServer::start(&[]);
        let mut other = server.client().await;
        let create = doc! { "create": "c" };
        done(&mut other, Verb::Command, create, &[]).await;
        let uri = server.uri("", "directConnection=true");
        let workload = Numbers::new(600, in_transaction);
        let (ended, seconds) = run_driver(uri, workload, job(12)).await;
        assert_eq!((ended.reason, &ended.failures), (EndReason::Done, &vec![]));
        let counted = |operation: usize| -> u64 {
            let of = |s: &Second| s.operations[operation].done;
            seconds.iter().map(of).sum()
        };
        let reads = if in_transaction { 1_200 } else { 600 };
        assert_eq!((counted(0), counted(1), counted(2)), (600, 600, reads));
        let group = doc! { "$group": { "_id": 0, "n": { "$sum": 1 } } };
        let body = doc! { "aggregate": "c", "pipeline": [group], "cursor": {} };
        let reply = done(&mut other, Verb::Aggregate, body, &[]).await;
        assert_eq!(number(&reply, "n"), 600);
    }
}

#[tokio::test]
async fn a_server_that_ends_in_the_middle_is_counted_as_such() {
    let server = TestServer::start(&[]);
    let uri = server.uri("", "directConnection=true&serverSelectionTimeoutMS=300");
    let mut job = job(4);
    job.failures_in_a_row_max = Some(20);
    let run = tokio::spawn(run_driver(uri, Numbers::new(u64::MAX, false), job));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    drop(server);
    let (ended, seconds) = run.await.unwrap();
    assert_eq!(ended.reason, EndReason::Failing);
    assert!(seconds.iter().any(|s| s.operations[1].done > 0));
    let kinds = ended.failures.iter().map(|f| f.kind.unwrap());
    let lost = seekscope_client::FailureKind::Connection;
    assert!(
        kinds.into_iter().all(|kind| kind == lost),
        "{:?}",
        ended.failures
    );
}
