//! Generates others' load on the collection while an index is built: reads, updates of an indexed number,
//! inserts, and deletes of what was inserted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use seekscope_client::request::Verb;
use seekscope_client::{
    Actor, ActorPlace, Failure, Operation, OperationId, Reply, Request, Verdict, Workload,
};
use seekscope_stats::SplitMix64;

use super::documents::{IndexedDocuments, random_int};
use crate::load::Documents;
use crate::sdu::id;

const READ: OperationId = 0;
const UPDATE: OperationId = 1;
const INSERT: OperationId = 2;
const DELETE: OperationId = 3;
/// Cumulative percentages of reads, updates and inserts; the rest are deletes.
const SHARES: [u64; 3] = [50, 80, 90];

/// The load that runs beside an index build.
#[derive(Debug)]
pub struct PointOperations {
    operations: Vec<Operation>,
    shared: Arc<Shared>,
}

/// State shared by virtual users.
#[derive(Debug)]
struct Shared {
    collection: String,
    documents: IndexedDocuments,
    /// Documents 0 to this exist throughout.
    count: u64,
    seed: u64,
    next_insert: AtomicU64,
    /// Documents that were inserted and not yet deleted, oldest first.
    inserted: Mutex<VecDeque<u64>>,
}

impl PointOperations {
    /// Creates the load for a collection that holds `count` of these documents.
    pub fn new(collection: &str, documents: IndexedDocuments, count: u64, seed: u64) -> Self {
        let operation = |name: &str| Operation {
            name: name.into(),
            is_transaction: false,
        };
        Self {
            operations: ["read", "update", "insert", "delete"]
                .map(operation)
                .to_vec(),
            shared: Arc::new(Shared {
                collection: collection.into(),
                documents,
                count: count.max(1),
                seed,
                next_insert: AtomicU64::new(count.max(1)),
                inserted: Mutex::default(),
            }),
        }
    }
}

impl Workload for PointOperations {
    fn operations(&self) -> &[Operation] {
        &self.operations
    }

    fn actor(&self, place: ActorPlace) -> Box<dyn Actor> {
        let seed =
            SplitMix64::new(place.index as u64 ^ self.shared.seed.rotate_left(32)).next_u64();
        Box::new(User {
            shared: Arc::clone(&self.shared),
            random: SplitMix64::new(seed),
            operation: READ,
            number: 0,
            asked: false,
        })
    }
}

impl Shared {
    fn inserted(&self) -> std::sync::MutexGuard<'_, VecDeque<u64>> {
        self.inserted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A virtual user.
struct User {
    shared: Arc<Shared>,
    random: SplitMix64,
    /// The current operation, and its document.
    operation: OperationId,
    number: u64,
    asked: bool,
}

impl Actor for User {
    fn begin(&mut self) -> Option<OperationId> {
        let shared = Arc::clone(&self.shared);
        let draw = self.random.below(100);
        let drawn = [READ, UPDATE, INSERT]
            .into_iter()
            .zip(SHARES)
            .find(|(_, below)| draw < *below);
        let (operation, number) = match drawn.map_or(DELETE, |(operation, _)| operation) {
            INSERT => (INSERT, shared.next_insert.fetch_add(1, Ordering::Relaxed)),
            // Nothing to delete yet: a read keeps the rate constant.
            DELETE => match shared.inserted().pop_front() {
                Some(number) => (DELETE, number),
                None => (READ, self.random.below(shared.count)),
            },
            operation => (operation, self.random.below(shared.count)),
        };
        (self.operation, self.number, self.asked) = (operation, number, false);
        Some(operation)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        if std::mem::replace(&mut self.asked, true) {
            return None;
        }
        let shared = &self.shared;
        let (verb, command) = match self.operation {
            INSERT => (Verb::Insert, "insert"),
            UPDATE => (Verb::Update, "update"),
            DELETE => (Verb::Delete, "delete"),
            _ => (Verb::Find, "find"),
        };
        request.verb = verb;
        request.body.begin().string(command, &shared.collection);
        let number = id(self.number);
        let statement = &mut request.statements;
        match self.operation {
            INSERT => {
                statement.raw(shared.documents.document(self.number).as_bytes());
            }
            UPDATE => {
                statement
                    .begin()
                    .begin_document("q")
                    .int64("_id", number)
                    .end();
                statement.begin_document("u").begin_document("$set");
                let value = random_int(&mut self.random);
                statement
                    .int32(shared.documents.number_field(), value)
                    .end()
                    .end()
                    .end();
            }
            DELETE => {
                statement
                    .begin()
                    .begin_document("q")
                    .int64("_id", number)
                    .end();
                statement.int32("limit", 1).end();
            }
            _ => {
                request
                    .body
                    .begin_document("filter")
                    .int64("_id", number)
                    .end();
                request.body.int32("limit", 1).boolean("singleBatch", true);
            }
        }
        request.body.end();
        request.statement_count = u32::from(verb != Verb::Find);
        Some(self.operation)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        match (self.operation, outcome) {
            (_, Err(_)) => Verdict::Good,
            (READ, Ok(reply)) if reply.returned == 1 => Verdict::Good,
            (INSERT, Ok(reply)) if reply.matched == 1 => {
                self.shared.inserted().push_back(self.number);
                Verdict::Good
            }
            (UPDATE | DELETE, Ok(reply)) if reply.matched == 1 => Verdict::Good,
            _ => Verdict::Bad("NOT_FOUND"),
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::Document;

    use super::super::BigIndexDocuments;
    use super::*;

    fn user(count: u64) -> Box<dyn Actor> {
        let documents = IndexedDocuments::BigIndex(BigIndexDocuments { seed: 1 });
        PointOperations::new("c", documents, count, 7).actor(ActorPlace { index: 0, count: 1 })
    }

    #[test]
    fn the_mix_is_kept_and_only_inserted_documents_are_deleted() {
        let mut user = user(100);
        let (mut counts, mut inserted) = ([0; 4], Vec::new());
        let mut request = Request::default();
        for _ in 0..10_000 {
            let operation = user.begin().unwrap();
            request.clear();
            assert_eq!(user.request(&mut request), Some(operation));
            let head = Document::from_reader(request.body.bytes()).unwrap();
            let names = ["find", "update", "insert", "delete"];
            assert_eq!(head.get_str(names[usize::from(operation)]).unwrap(), "c");
            counts[usize::from(operation)] += 1;
            if operation != READ {
                assert_eq!(request.statement_count, 1);
                let statement = Document::from_reader(request.statements.bytes()).unwrap();
                let of = statement.get_document("q").unwrap_or(&statement);
                let number = of.get_i64("_id").unwrap();
                match operation {
                    INSERT => inserted.push(number),
                    DELETE => assert_eq!(number, inserted.remove(0)),
                    _ => assert!(number < 100),
                }
            }
            let reply = Reply {
                returned: 1,
                matched: 1,
                ..Reply::default()
            };
            assert_eq!(user.reply(Ok(&reply)), Verdict::Good);
            assert_eq!(user.request(&mut request), None);
        }
        for (count, expected) in counts.into_iter().zip([5000, 3000, 1000, 1000]) {
            assert!(i32::abs(count - expected) < 300, "{counts:?}");
        }
    }

    #[test]
    fn a_document_that_is_not_there_is_no_success() {
        let mut user = user(1);
        user.begin();
        assert_eq!(user.reply(Ok(&Reply::default())), Verdict::Bad("NOT_FOUND"));
    }
}
