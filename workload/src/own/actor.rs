//! Implements a role's virtual users.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use seekscope_client::request::{Transaction, Verb};
use seekscope_client::{
    Actor, ActorPlace, Failure, Operation, OperationId, Reply, Request, Verdict, Workload,
};
use seekscope_stats::SplitMix64;

use super::keys::Chooser;
use super::language::Reaction;
use super::plan::{Mix, RolePlan, Step, StepAction, TransactionPlan};
use super::values::{Context, Shape};
use crate::generators::stream_seed;

impl Workload for RolePlan {
    fn operations(&self) -> &[Operation] {
        &self.mix.operations
    }

    fn actor(&self, place: ActorPlace) -> Box<dyn Actor> {
        let random = SplitMix64::new(stream_seed(&[self.mix.seed, place.index as u64]));
        Box::new(User {
            mix: Arc::clone(&self.mix),
            state: State::new(random),
        })
    }
}

/// One virtual user.
struct User {
    mix: Arc<Mix>,
    state: State,
}

impl Actor for User {
    fn begin(&mut self) -> Option<OperationId> {
        self.state.begin(&self.mix)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        self.state.request(&self.mix, request)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        self.state.reply(&self.mix, outcome)
    }
}

/// The state of a user.
struct State {
    random: SplitMix64,
    /// Index of the current transaction in the mix.
    transaction: usize,
    next: Next,
    /// The current record, and the number that determines fresh values.
    context: Context,
    /// Records of the batch being loaded.
    loading: Range<u64>,
    /// Steps and ordinals of records that were inserted, but are not yet known to exist.
    pending: Vec<(usize, u64)>,
    /// Remaining tries for this transaction, once one has failed.
    retries: Option<u32>,
    /// State of the random numbers at the start of this transaction: another try draws the same.
    began: SplitMix64,
    /// Whether a multi-document transaction has been started on the server.
    is_open: bool,
}

/// The current request, or the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A request of a step, with its repetition.
    Step(usize, u32),
    Commit,
    Abort {
        again: bool,
    },
    Nothing,
}

/// Names of faults that the server does not report as errors.
const NOT_FOUND: &str = "NOT_FOUND";
const INCOMPLETE: &str = "INCOMPLETE";
const FAILED: &str = "FAILED";

impl State {
    fn new(random: SplitMix64) -> Self {
        Self {
            began: random.clone(),
            random,
            transaction: 0,
            next: Next::Nothing,
            context: Context { record: 0, draw: 1 },
            loading: 0..0,
            pending: Vec::new(),
            retries: None,
            is_open: false,
        }
    }

    fn begin(&mut self, mix: &Mix) -> Option<OperationId> {
        if mix.stopped.load(Ordering::Relaxed) {
            return None;
        }
        self.transaction = mix.choice.draw(&mut self.random);
        let plan = &mix.transactions[self.transaction];
        let first = &plan.steps[0];
        if let (StepAction::Load { batch, .. }, Some(records)) = (&first.action, &first.records) {
            self.loading = records.claim_load(*batch)?;
        }
        self.next = Next::Step(0, 0);
        self.retries = None;
        self.began = self.random.clone();
        Some(plan.operation)
    }

    fn request(&mut self, mix: &Mix, request: &mut Request) -> Option<OperationId> {
        let plan = &mix.transactions[self.transaction];
        match self.next {
            Next::Nothing => None,
            Next::Step(at, _) => {
                let step = &plan.steps[at];
                self.choose(step);
                if plan.atomic.is_some() {
                    request.in_transaction = match self.is_open {
                        true => Transaction::Continue,
                        false => Transaction::Start,
                    };
                    self.is_open = true;
                }
                self.write(at, step, request);
                Some(step.operation)
            }
            Next::Commit => {
                end_transaction("commitTransaction", request);
                plan.atomic.map(|ends| ends.commit)
            }
            Next::Abort { .. } => {
                end_transaction("abortTransaction", request);
                plan.atomic.map(|ends| ends.abort)
            }
        }
    }

    fn reply(&mut self, mix: &Mix, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        let plan = &mix.transactions[self.transaction];
        if let Next::Abort { again } = self.next {
            self.is_open = false;
            self.start_again(again);
            return if outcome.is_ok() {
                Verdict::Good
            } else {
                Verdict::Bad(FAILED)
            };
        }
        let done = match outcome {
            Ok(reply) => reply.matched,
            Err(failure) => failure.done,
        };
        if plan.atomic.is_none() {
            self.settle(plan, done);
        }
        if let (StepAction::Load { .. }, Some(records)) =
            (&plan.steps[0].action, &plan.steps[0].records)
        {
            records.loaded(done);
        }
        let bad = match (outcome, self.next) {
            (Err(failure), _) => Some((mix.reactions.to_failure(failure.kind), FAILED)),
            (Ok(reply), Next::Step(at, _)) => plan.steps[at]
                .fault(reply, &self.loading)
                .map(|name| (mix.reactions.to_missing(), name)),
            _ => None,
        };
        if let Some((reaction, name)) = bad {
            return self.react(mix, reaction, name);
        }
        if self.next == Next::Commit {
            self.is_open = false;
            self.settle(plan, u64::MAX);
        }
        self.next = self.after(plan);
        Verdict::Good
    }

    /// Returns what follows the current request if it succeeds.
    fn after(&self, plan: &TransactionPlan) -> Next {
        match self.next {
            Next::Step(step, repeat) if repeat + 1 < plan.steps[step].repeat => {
                Next::Step(step, repeat + 1)
            }
            Next::Step(step, _) if step + 1 < plan.steps.len() => Next::Step(step + 1, 0),
            Next::Step(..) if plan.atomic.is_some() => Next::Commit,
            _ => Next::Nothing,
        }
    }

    /// Chooses the record of a step's request.
    fn choose(&mut self, step: &Step) {
        // 0 would stand for a record's original values.
        self.context.draw = self.random.next_u64() | 1;
        if let (Some(records), false) = (&step.records, matches!(step.chooser, Chooser::Same)) {
            let place = step.chooser.choose(&mut self.random, records.choosable());
            self.context.record = records.at(place);
        }
    }

    fn write(&mut self, at: usize, step: &Step, request: &mut Request) {
        match &step.action {
            StepAction::Load { head, document, .. } => {
                write_body(request, Verb::Insert, head, self.context);
                for record in self.loading.clone() {
                    append(request, document, record);
                }
            }
            StepAction::Insert {
                head,
                document,
                batch,
                again,
            } => {
                write_body(request, Verb::Insert, head, self.context);
                if *again {
                    append(request, document, self.context.record);
                } else {
                    self.write_new(at, step, document, *batch, request);
                }
            }
            StepAction::Statement {
                verb,
                head,
                statement,
            } => {
                write_body(request, *verb, head, self.context);
                statement.write_document(self.context, &mut request.statements);
                request.statement_count = 1;
            }
            StepAction::Body { verb, body } => write_body(request, *verb, body, self.context),
        }
    }

    /// Writes new records; the step after this one can refer to the last of them.
    fn write_new(
        &mut self,
        at: usize,
        step: &Step,
        document: &Shape,
        batch: u64,
        request: &mut Request,
    ) {
        let Some(records) = &step.records else { return };
        for _ in 0..batch {
            let Some(ordinal) = records.claim_insert() else {
                return;
            };
            self.pending.push((at, ordinal));
            self.context.record = records.number(ordinal);
            append(request, document, self.context.record);
        }
    }

    /// Settles the pending inserts: the first `done` exist, the others do not (or that is unknown).
    fn settle(&mut self, plan: &TransactionPlan, done: u64) {
        for (place, (step, ordinal)) in self.pending.drain(..).enumerate() {
            if let Some(records) = &plan.steps[step].records {
                records.inserted(ordinal, (place as u64) < done);
            }
        }
    }

    /// Returns the consequence of a failure.
    fn react(&mut self, mix: &Mix, reaction: Reaction, name: &'static str) -> Verdict {
        let plan = &mix.transactions[self.transaction];
        if reaction == Reaction::Ignore && !self.is_open {
            self.next = self.after(plan);
            return Verdict::Good;
        }
        if reaction == Reaction::Stop {
            mix.stopped.store(true, Ordering::Relaxed);
        }
        let again = self.may_retry(reaction);
        if self.is_open {
            self.settle(plan, 0);
            self.next = Next::Abort { again };
            return Verdict::Bad(name);
        }
        if again {
            self.start_again(true);
            return Verdict::Bad(name);
        }
        if plan.go_on && reaction != Reaction::Stop {
            self.next = self.after(plan);
            return Verdict::Bad(name);
        }
        self.next = Next::Nothing;
        Verdict::Abort(name)
    }

    fn may_retry(&mut self, reaction: Reaction) -> bool {
        let Reaction::Retry(times) = reaction else {
            return false;
        };
        let left = self.retries.unwrap_or(times);
        self.retries = Some(left.saturating_sub(1));
        left > 0
    }

    fn start_again(&mut self, again: bool) {
        self.next = Next::Nothing;
        if again {
            self.next = Next::Step(0, 0);
            self.random = self.began.clone();
        }
    }
}

impl Step {
    /// Returns why an answer without an error is wrong, if it is.
    fn fault(&self, reply: &Reply<'_>, loading: &Range<u64>) -> Option<&'static str> {
        match &self.action {
            StepAction::Load { .. } => {
                (reply.matched < loading.end - loading.start).then_some(INCOMPLETE)
            }
            StepAction::Insert { batch, .. } => (reply.matched < *batch).then_some(INCOMPLETE),
            StepAction::Statement { .. } => {
                (self.must_find && reply.matched == 0).then_some(NOT_FOUND)
            }
            StepAction::Body { .. } => (self.must_find && reply.returned == 0).then_some(NOT_FOUND),
        }
    }
}

fn write_body(request: &mut Request, verb: Verb, body: &Shape, context: Context) {
    request.verb = verb;
    body.write_document(context, &mut request.body);
}

fn append(request: &mut Request, document: &Shape, record: u64) {
    document.write_document(Context { record, draw: 0 }, &mut request.statements);
    request.statement_count += 1;
}

fn end_transaction(command: &str, request: &mut Request) {
    request.verb = Verb::Command;
    request.in_transaction = Transaction::End;
    request.body.begin().int32(command, 1).end();
}
