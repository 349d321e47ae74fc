//! Workloads made of a function that writes requests, and a job to run them by.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use seekscope_client::request::Verb;
use seekscope_client::{
    Actor, ActorPlace, ClientSpec, Ended, Failure, Job, Operation, OperationId, Reply, Request,
    Retries, ScheduleKind, Second, Verdict, Workload, run,
};

/// Writes the request `step` of transaction `number`, if it has this many.
type Write = fn(&mut Request, step: u32, number: u64) -> Option<OperationId>;
type Judge = fn(&Reply<'_>) -> Verdict;

/// A workload whose transactions are numbered over all virtual users.
pub(crate) struct Scripted {
    operations: Vec<Operation>,
    /// What a whole transaction counts as.
    whole: OperationId,
    write: Write,
    judge: Judge,
    next: Arc<AtomicU64>,
    limit: u64,
}

impl Scripted {
    pub(crate) fn new(names: &[(&str, bool)], write: Write) -> Self {
        let operations: Vec<Operation> = names
            .iter()
            .map(|&(name, is_transaction)| Operation {
                name: name.into(),
                is_transaction,
            })
            .collect();
        let whole = operations
            .iter()
            .position(|operation| operation.is_transaction);
        Self {
            whole: OperationId::try_from(whole.unwrap_or(0)).unwrap(),
            operations,
            write,
            judge: |_| Verdict::Good,
            next: Arc::default(),
            limit: u64::MAX,
        }
    }

    pub(crate) fn judged_by(self, judge: Judge) -> Self {
        Self { judge, ..self }
    }

    pub(crate) fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripted")
    }
}

impl Workload for Scripted {
    fn operations(&self) -> &[Operation] {
        &self.operations
    }

    fn actor(&self, _: ActorPlace) -> Box<dyn Actor> {
        Box::new(ScriptedActor {
            whole: self.whole,
            write: self.write,
            judge: self.judge,
            next: Arc::clone(&self.next),
            limit: self.limit,
            number: 0,
            step: 0,
        })
    }
}

struct ScriptedActor {
    whole: OperationId,
    write: Write,
    judge: Judge,
    next: Arc<AtomicU64>,
    limit: u64,
    number: u64,
    step: u32,
}

impl Actor for ScriptedActor {
    fn begin(&mut self) -> Option<OperationId> {
        self.number = self.next.fetch_add(1, Ordering::Relaxed);
        self.step = 0;
        (self.number < self.limit).then_some(self.whole)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        self.step += 1;
        (self.write)(request, self.step - 1, self.number)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        outcome.map_or(Verdict::Bad("failed"), self.judge)
    }
}

/// The cheapest round trip.
pub(crate) fn pings() -> Scripted {
    Scripted::new(&[("ping", false)], |request, step, _| {
        (step == 0).then(|| {
            request.verb = Verb::Command;
            request.body.begin().int32("ping", 1).end();
            0
        })
    })
}

/// Documents `{_id: number}`.
pub(crate) fn inserts() -> Scripted {
    Scripted::new(&[("insert", false)], |request, step, number| {
        (step == 0).then(|| {
            request.verb = Verb::Insert;
            request.body.begin().string("insert", "c").end();
            let id = i64::try_from(number).unwrap();
            request.statements.begin().int64("_id", id).end();
            request.statement_count = 1;
            0
        })
    })
}

pub(crate) fn closed(in_flight: usize) -> Job {
    Job {
        schedule: ScheduleKind::Closed,
        in_flight,
        threads: 2,
        transactions: None,
        duration: None,
        timeout: Duration::from_secs(60),
        start_at_ns: None,
        retries: Retries::default(),
        failures_in_a_row_max: None,
    }
}

pub(crate) fn constant(per_s: f64, in_flight: usize, seconds: u64) -> Job {
    Job {
        schedule: ScheduleKind::Constant { per_s },
        duration: Some(Duration::from_secs(seconds)),
        ..closed(in_flight)
    }
}

/// All that was handed over, and how it ended.
pub(crate) struct Outcome {
    pub(crate) seconds: Vec<Second>,
    pub(crate) ended: Ended,
}

impl Outcome {
    pub(crate) fn done(&self, operation: usize) -> u64 {
        self.sum(|second| second.operations[operation].done)
    }

    pub(crate) fn errors(&self, operation: usize) -> u64 {
        self.sum(|second| second.operations[operation].error_count())
    }

    pub(crate) fn sum(&self, of: impl Fn(&Second) -> u64) -> u64 {
        self.seconds.iter().map(of).sum()
    }

    /// Failures under a name, over all operations.
    pub(crate) fn failed(&self, name: &str) -> u64 {
        let failures = self.ended.failures.iter();
        failures.filter(|f| f.name == name).map(|f| f.count).sum()
    }

    pub(crate) fn service(&self) -> hdrhistogram::Histogram<u64> {
        let mut all = seekscope_run::latency_histogram();
        for second in &self.seconds {
            all.add(&second.operations[0].service).unwrap();
        }
        all
    }

    pub(crate) fn response(&self) -> hdrhistogram::Histogram<u64> {
        let mut all = seekscope_run::latency_histogram();
        for second in &self.seconds {
            all.add(second.operations[0].response.as_ref().unwrap())
                .unwrap();
        }
        all
    }
}

pub(crate) fn run_all(client: &ClientSpec, workload: &Scripted, job: &Job) -> Outcome {
    run_beside(client, workload, job, |_| ())
}

/// Runs while `meanwhile` does something to the server; it gets the stop flag.
pub(crate) fn run_beside(
    client: &ClientSpec,
    workload: &Scripted,
    job: &Job,
    meanwhile: impl FnOnce(&AtomicBool) + Send,
) -> Outcome {
    let stop = AtomicBool::new(false);
    let mut seconds = Vec::new();
    let ended = thread::scope(|scope| {
        scope.spawn(|| meanwhile(&stop));
        run(client, workload, job, &stop, &mut |second| {
            seconds.push(second)
        })
        .unwrap()
    });
    Outcome { seconds, ended }
}

pub(crate) fn sleep(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
