//! Runs the transaction: all its commands on one collection.

use std::sync::Arc;

use seekscope_client::{
    Actor, ActorPlace, Failure, FailureKind, Operation, OperationId, Reply, Request, Verdict,
    Workload,
    request::{Transaction, Verb},
};
use seekscope_stats::SplitMix64;

use super::data::{C_CHARS, Id, collection_name, document, fill};
use super::expected::Changes;
use super::settings::{Ids, SettingsError, SysbenchSettings};
use super::steps::{self, IdRange, Step, steps_of};
use crate::generators::{JavaRandom, Zipf, floor_u64, stream_seed};

/// The run phase; clones share the record of their changes.
#[derive(Debug, Clone)]
pub struct SysbenchRun(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: SysbenchSettings,
    /// Names of the collections, from 0.
    names: Vec<String>,
    operations: Vec<Operation>,
    /// The steps of a transaction, with the operation that each counts as.
    steps: Vec<(Step, OperationId)>,
    transaction: OperationId,
    ids: IdChoice,
    documents: i32,
    changes: Changes,
}

/// The prepared ways of choosing ids.
#[derive(Debug, Clone)]
enum IdChoice {
    Uniform,
    Zipf(Zipf),
    /// The power that a uniform draw is raised to.
    Pareto(f64),
}

impl SysbenchRun {
    pub fn new(settings: SysbenchSettings) -> Result<Self, SettingsError> {
        settings.check()?;
        let mut all = steps_of(&settings.steps);
        if settings.is_transaction {
            all.push(Step::Commit);
        }
        let (mut operations, mut steps) = (Vec::<Operation>::new(), Vec::new());
        for step in all {
            let known = operations.iter().position(|op| op.name == step.name());
            let at = known.unwrap_or(operations.len());
            if known.is_none() {
                operations.push(Operation {
                    name: step.name().into(),
                    is_transaction: false,
                });
            }
            steps.push((step, OperationId::try_from(at).unwrap_or(0)));
        }
        let transaction = OperationId::try_from(operations.len()).unwrap_or(0);
        operations.push(Operation {
            name: "transaction".into(),
            is_transaction: true,
        });
        Ok(Self(Arc::new(Shared {
            names: (1..=settings.collections).map(collection_name).collect(),
            operations,
            steps,
            transaction,
            ids: match settings.ids {
                Ids::Uniform => IdChoice::Uniform,
                Ids::Zipfian { theta } => Zipf::new(theta, settings.documents.into())
                    .map_or(IdChoice::Uniform, IdChoice::Zipf),
                Ids::Pareto { h } => IdChoice::Pareto(h.ln() / (1.0 - h).ln()),
            },
            documents: i32::try_from(settings.documents).unwrap_or(i32::MAX),
            changes: Changes::new(settings.collections),
            settings,
        })))
    }

    pub fn settings(&self) -> &SysbenchSettings {
        &self.0.settings
    }

    /// Returns what was deleted and inserted so far.
    pub fn changes(&self) -> &Changes {
        &self.0.changes
    }
}

impl Workload for SysbenchRun {
    fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    fn actor(&self, place: ActorPlace) -> Box<dyn Actor> {
        let shared = Arc::clone(&self.0);
        let index = i64::try_from(place.index).unwrap_or(i64::MAX);
        let seed = shared.settings.seed.wrapping_add(index);
        Box::new(Writer {
            random: JavaRandom::new(seed),
            skew: SplitMix64::new(stream_seed(&[seed.cast_unsigned()])),
            next: shared.steps.len(),
            shared,
            collection: 0,
            latest: Step::Commit,
            id: 1,
        })
    }
}

struct Writer {
    shared: Arc<Shared>,
    random: JavaRandom,
    /// Random numbers for ids that are not uniform.
    skew: SplitMix64,
    /// Index from 0.
    collection: usize,
    /// The next step of the transaction, and the one that was sent.
    next: usize,
    latest: Step,
    /// Id of the latest step; an insert uses that of the deleted document.
    id: i32,
}

impl Actor for Writer {
    fn begin(&mut self) -> Option<OperationId> {
        let collections = i32::try_from(self.shared.names.len()).unwrap_or(i32::MAX);
        self.collection = usize::try_from(self.random.next_int_below(collections)).unwrap_or(0);
        self.next = 0;
        Some(self.shared.transaction)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        let &(step, operation) = self.shared.steps.get(self.next)?;
        if self.shared.settings.is_transaction {
            request.in_transaction = match (self.next, step) {
                (_, Step::Commit) => Transaction::End,
                (0, _) => Transaction::Start,
                _ => Transaction::Continue,
            };
        }
        self.next += 1;
        self.latest = step;
        self.write(step, request);
        Some(operation)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        let changes = &self.shared.changes;
        let is_atomic = self.shared.settings.is_transaction;
        match (self.latest, outcome) {
            // The outcome of a transaction is known when it is committed.
            (Step::Delete | Step::Insert, Ok(_)) if is_atomic => (),
            (Step::Delete, Ok(reply)) => changes.deleted(self.collection, reply.matched),
            (Step::Delete, Err(failure)) if failure.leaves_doubt() && !is_atomic => {
                // If it was not done, there is one document more, as with every doubtful write.
                changes.deleted(self.collection, 1);
                changes.doubtful(self.collection, self.id);
            }
            (Step::Insert, Ok(reply)) => changes.inserted(self.collection, reply.matched),
            // Another user put the same document back.
            (Step::Insert, Err(failure)) if failure.kind == FailureKind::Duplicate => (),
            (Step::Insert, Err(_)) if !is_atomic => {
                changes.doubtful(self.collection, self.id);
            }
            _ => (),
        }
        // A document that another virtual user has just deleted cannot be found until it is put back, so that
        // counts as success.
        match outcome {
            Ok(_) => Verdict::Good,
            Err(_) => Verdict::Abort("ERROR"),
        }
    }
}

impl Writer {
    fn write(&mut self, step: Step, request: &mut Request) {
        if !matches!(step, Step::Insert | Step::Commit) {
            self.id = self.draw_id();
        }
        let Self {
            shared, random, id, ..
        } = self;
        let (name, id) = (shared.names[self.collection].as_str(), *id);
        let length = i32::try_from(shared.settings.range).unwrap_or(i32::MAX);
        let range = IdRange {
            first: id,
            last: id.saturating_add(length - 1),
        };
        match step {
            Step::PointSelect => steps::point_select(name, id, request),
            Step::SimpleRange => steps::range(name, range, false, request),
            Step::SumRange => steps::sum_range(name, range, request),
            Step::OrderRange => steps::range(name, range, true, request),
            Step::DistinctRange => steps::distinct_range(name, range, request),
            Step::IndexUpdate | Step::NonIndexUpdate => {
                steps::write(Verb::Update, name, request);
                let out = request.statements.begin().begin_document("q");
                out.int32("_id", id).end().begin_document("u");
                if step == Step::IndexUpdate {
                    out.begin_document("$inc").int32("k", 1);
                } else {
                    out.begin_document("$set");
                    fill(out.ascii("c", C_CHARS), random);
                }
                out.end().end().end();
            }
            Step::Delete => {
                steps::write(Verb::Delete, name, request);
                let out = request.statements.begin().begin_document("q");
                out.int32("_id", id).end().int32("limit", 1).end();
            }
            Step::Insert => {
                steps::write(Verb::Insert, name, request);
                document(
                    Id::PutBack(id),
                    shared.documents,
                    random,
                    &mut request.statements,
                );
            }
            Step::Commit => {
                request.verb = Verb::Command;
                request.body.begin().int32("commitTransaction", 1).end();
            }
        }
    }

    fn draw_id(&mut self) -> i32 {
        let documents = self.shared.documents;
        let below = match &self.shared.ids {
            IdChoice::Uniform => return self.random.next_int_below(documents) + 1,
            IdChoice::Zipf(zipf) => zipf.draw(&mut self.skew),
            IdChoice::Pareto(power) => {
                floor_u64(f64::from(documents) * self.skew.unit_f64().powf(*power))
            }
        };
        i32::try_from(below).map_or(documents, |below| below.saturating_add(1).min(documents))
    }
}
