//! A virtual user: an actor, what it is doing, and how that is counted. It knows nothing of connections.
//!
//! The owner of the connection asks [`VirtualUser::next`] what to do, reports when a request is sent and passes
//! on its outcome.

use std::sync::Mutex;
use std::time::Duration;

use super::recorder::{Bad, Record, Recorder, Yield, lock};
use super::shared::Shared;
use crate::request::{Transaction, Verb};
use crate::schedule::Claim;
use crate::{Actor, Failure, FailureKind, OperationId, Reply, Request, Verdict};

/// The place where a virtual user gets its work and leaves its counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Desk<'a> {
    pub(super) shared: &'a Shared,
    pub(super) recorder: &'a Mutex<Recorder>,
}

/// The next step of a virtual user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Send `request`.
    Send,
    /// Do nothing before this time, CLOCK_MONOTONIC ns.
    Wait(u64),
    /// Nothing is left to do.
    Over,
}

/// What follows an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// Ask for the next step.
    Next,
    /// Send the same request again, after a pause.
    Again(Duration),
}

/// A virtual user.
pub(super) struct VirtualUser {
    actor: Box<dyn Actor>,
    pub(super) request: Request,
    /// A claimed arrival whose transaction has not begun.
    arrival_ns: Option<u64>,
    open: Option<Open>,
    /// When its last work ended, or its connection was reopened.
    free_ns: u64,
}

/// A transaction that has begun.
#[derive(Debug)]
struct Open {
    operation: OperationId,
    arrival_ns: u64,
    first_sent_ns: Option<u64>,
    last_done_ns: u64,
    requests: u32,
    sum: Yield,
    /// The first bad outcome.
    failed: Option<(String, Option<FailureKind>, String)>,
    aborted: bool,
    asked: Option<Asked>,
}

/// A request that is waiting to be sent or answered.
#[derive(Debug, Default)]
struct Asked {
    operation: OperationId,
    scheduled_ns: u64,
    sent_ns: Option<u64>,
    is_in_flight: bool,
    /// Whether an attempt was sent whose answer never came.
    is_lost: bool,
    retries: u32,
}

impl VirtualUser {
    pub(super) fn new(actor: Box<dyn Actor>) -> Self {
        Self {
            actor,
            request: Request::default(),
            arrival_ns: None,
            open: None,
            free_ns: 0,
        }
    }

    /// Returns whether it has begun something that is not complete.
    pub(super) fn is_busy(&self) -> bool {
        self.open.is_some()
    }

    /// Completes, claims and begins whatever can be at this time.
    pub(super) fn next(&mut self, desk: Desk<'_>, now_ns: u64) -> Next {
        if let Some(open) = &mut self.open {
            if open.asked.is_some() || Self::prepare(open, &mut *self.actor, &mut self.request) {
                return Next::Send;
            }
            let was_empty = open.requests == 0;
            self.finish(desk);
            if was_empty {
                // Others get their turn before an actor that makes no request.
                return Next::Wait(now_ns);
            }
        }
        if desk.shared.is_over() {
            return Next::Over;
        }
        let arrival_ns = match self.arrival_ns {
            Some(arrival_ns) => arrival_ns,
            None => match desk.shared.claim(now_ns) {
                Claim::Now => now_ns,
                Claim::At(arrival_ns) => arrival_ns,
                Claim::Idle(until_ns) => return Next::Wait(until_ns),
                Claim::Over(_) => return Next::Over,
            },
        };
        if arrival_ns > now_ns {
            self.arrival_ns = Some(arrival_ns);
            return Next::Wait(arrival_ns);
        }
        self.arrival_ns = None;
        let Some(operation) = self.actor.begin() else {
            return Next::Over;
        };
        lock(desk.recorder).begun();
        let mut open = Open {
            operation,
            arrival_ns,
            first_sent_ns: None,
            last_done_ns: arrival_ns,
            requests: 0,
            sum: Yield::default(),
            failed: None,
            aborted: false,
            asked: None,
        };
        let has_request = Self::prepare(&mut open, &mut *self.actor, &mut self.request);
        self.open = Some(open);
        if has_request {
            Next::Send
        } else {
            Next::Wait(now_ns)
        }
    }

    /// Records that the connection had to be reopened for the waiting request.
    pub(super) fn connected(&mut self, now_ns: u64) {
        self.free_ns = now_ns;
    }

    /// Records that the request is sent now.
    pub(super) fn sending(&mut self, desk: Desk<'_>, now_ns: u64) {
        let Some(open) = &mut self.open else { return };
        let Some(asked) = &mut open.asked else { return };
        let mut recorder = lock(desk.recorder);
        recorder.sent(now_ns);
        asked.is_in_flight = true;
        if asked.sent_ns.is_none() {
            asked.sent_ns = Some(now_ns);
            if open.first_sent_ns.is_none() && desk.shared.is_open_loop() {
                let could_ns = asked.scheduled_ns.max(self.free_ns);
                recorder.lag(now_ns.saturating_sub(could_ns));
            }
            open.first_sent_ns.get_or_insert(now_ns);
        }
    }

    /// Handles the outcome of the request.
    pub(super) fn outcome(
        &mut self,
        desk: Desk<'_>,
        outcome: Result<&Reply<'_>, &Failure>,
        now_ns: u64,
    ) -> After {
        self.free_ns = now_ns;
        let Some(open) = &mut self.open else {
            return After::Next;
        };
        let Some(mut asked) = open.asked.take() else {
            return After::Next;
        };
        if asked.is_in_flight {
            lock(desk.recorder).answered(now_ns);
        }
        if let Err(failure) = outcome {
            asked.is_lost |= asked.is_in_flight && failure.leaves_doubt();
            if may_retry(desk.shared, &asked, &self.request, failure) {
                lock(desk.recorder).retried();
                asked.retries += 1;
                asked.is_in_flight = false;
                open.asked = Some(asked);
                return After::Again(desk.shared.retries.pause);
            }
        }
        let verdict = self.actor.reply(outcome);
        open.aborted |= matches!(verdict, Verdict::Abort(_));
        let judged = judge(verdict, outcome, &self.request);
        let mut recorder = lock(desk.recorder);
        if asked.is_lost && outcome.is_err() && self.request.is_write() {
            recorder.in_doubt(u64::from(self.request.statement_count.max(1)));
        }
        recorder.record(&Record {
            operation: asked.operation,
            scheduled_ns: asked.scheduled_ns,
            sent_ns: asked.sent_ns,
            done_ns: now_ns,
            outcome: judged,
        });
        drop(recorder);
        open.last_done_ns = now_ns;
        match judged {
            Ok(part) => {
                open.sum.documents += part.documents;
                open.sum.bytes += part.bytes;
                desk.shared.succeeded();
            }
            Err(bad) => {
                desk.shared.failed();
                open.failed
                    .get_or_insert_with(|| (bad.name.into(), bad.kind, bad.message.into()));
            }
        }
        After::Next
    }

    /// Gives up the work under way.
    pub(super) fn abandon(&mut self, desk: Desk<'_>, now_ns: u64) {
        let Some(open) = &mut self.open else { return };
        if open.asked.is_some() {
            // Nothing is retried after the end.
            let failure = Failure::of(
                FailureKind::Connection,
                "Abandoned",
                "abandoned when the work was stopped, before the server had answered",
            );
            self.outcome(desk, Err(&failure), now_ns);
        }
        if let Some(open) = &mut self.open {
            open.failed.get_or_insert_with(|| {
                let message = "abandoned halfway when the work was stopped";
                ("Abandoned".into(), None, message.into())
            });
            self.finish(desk);
        }
    }

    /// Lets the actor write the transaction's next request; returns false if there is none.
    fn prepare(open: &mut Open, actor: &mut dyn Actor, request: &mut Request) -> bool {
        if open.aborted {
            return false;
        }
        request.clear();
        let Some(operation) = actor.request(request) else {
            return false;
        };
        open.requests += 1;
        open.asked = Some(Asked {
            operation,
            scheduled_ns: open.last_done_ns,
            ..Asked::default()
        });
        true
    }

    /// Counts a complete transaction, under a name if it is counted separately.
    fn finish(&mut self, desk: Desk<'_>) {
        let Some(open) = self.open.take() else { return };
        if open.requests > 0 && open.failed.is_none() {
            lock(desk.recorder).transaction_done();
        }
        let counts = desk
            .shared
            .operations
            .get(usize::from(open.operation))
            .is_some_and(|operation| operation.is_transaction);
        if !counts || open.requests == 0 {
            return;
        }
        let outcome = match &open.failed {
            None => Ok(open.sum),
            Some((name, kind, message)) => Err(Bad {
                name,
                kind: *kind,
                message,
            }),
        };
        lock(desk.recorder).record(&Record {
            operation: open.operation,
            scheduled_ns: open.arrival_ns,
            sent_ns: open.first_sent_ns,
            done_ns: open.last_done_ns,
            outcome,
        });
    }
}

fn may_retry(shared: &Shared, asked: &Asked, request: &Request, failure: &Failure) -> bool {
    let may_pass = matches!(
        failure.kind,
        FailureKind::Connection
            | FailureKind::Timeout
            | FailureKind::NotPrimary
            | FailureKind::Transient
    );
    may_pass
        && asked.retries < shared.retries.count
        && request.in_transaction == Transaction::None
        && !shared.is_over()
}

/// Returns what is counted, according to the actor's verdict.
fn judge<'a>(
    verdict: Verdict,
    outcome: Result<&Reply<'_>, &'a Failure>,
    request: &Request,
) -> Result<Yield, Bad<'a>> {
    match (verdict, outcome) {
        (Verdict::Good, Ok(reply)) => Ok(Yield {
            documents: match request.verb {
                Verb::Insert | Verb::Update | Verb::Delete => reply.matched,
                Verb::Find | Verb::Aggregate | Verb::Command => reply.returned,
            },
            bytes: reply.bytes + (request.body.bytes().len() + request.sequence().len()) as u64,
        }),
        (Verdict::Good, Err(failure)) => Ok(Yield {
            documents: failure.done,
            bytes: 0,
        }),
        (Verdict::Bad(_) | Verdict::Abort(_), Err(failure)) => Err(Bad::of(failure)),
        (Verdict::Bad(name) | Verdict::Abort(name), Ok(_)) => Err(Bad {
            name,
            kind: None,
            message: "",
        }),
    }
}
