//! Loads the data: indexes first, then the documents.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use seekscope_client::{
    Actor, ActorPlace, BsonWriter, Failure, Operation, OperationId, Reply, Request, Verdict,
    Workload, request::Verb,
};

use super::SysbenchSettings;
use super::data::{Id, collection_name, document};
use crate::generators::JavaRandom;

/// Creates `{k: 1}` on every collection: before the data, like the original.
#[derive(Debug, Clone)]
pub struct SysbenchIndexes(Arc<Indexes>);

#[derive(Debug)]
struct Indexes {
    operations: [Operation; 1],
    collections: u32,
    /// Number of collections handed out.
    begun: AtomicU32,
}

impl SysbenchIndexes {
    pub fn new(settings: &SysbenchSettings) -> Self {
        Self(Arc::new(Indexes {
            operations: [operation("create index")],
            collections: settings.collections,
            begun: AtomicU32::new(0),
        }))
    }
}

fn operation(name: &str) -> Operation {
    Operation {
        name: name.into(),
        is_transaction: false,
    }
}

impl Workload for SysbenchIndexes {
    fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    fn actor(&self, _place: ActorPlace) -> Box<dyn Actor> {
        Box::new(Indexer {
            shared: Arc::clone(&self.0),
            collection: None,
        })
    }
}

struct Indexer {
    shared: Arc<Indexes>,
    /// Collection whose index is to be created.
    collection: Option<u32>,
}

impl Actor for Indexer {
    fn begin(&mut self) -> Option<OperationId> {
        self.collection = next_below(&self.shared.begun, self.shared.collections);
        self.collection.map(|_| 0)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        let collection = collection_name(self.collection.take()? + 1);
        request.verb = Verb::Command;
        let body = request.body.begin().string("createIndexes", &collection);
        body.begin_array("indexes").begin_document("0");
        body.begin_document("key").int32("k", 1).end();
        body.string("name", "k_1").end().end().end();
        Some(0)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        match outcome {
            Ok(_) => Verdict::Good,
            Err(_) => Verdict::Bad("ERROR"),
        }
    }
}

/// Returns the next number below an end; `None` once all are taken.
fn next_below(counter: &AtomicU32, end: u32) -> Option<u32> {
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
            (next < end).then_some(next + 1)
        })
        .ok()
}

/// Inserts the documents of all collections.
#[derive(Debug, Clone)]
pub struct SysbenchLoad(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    operations: [Operation; 1],
    settings: SysbenchSettings,
    collections: Vec<Mutex<Stream>>,
    /// Number of collections that a virtual user has taken for itself.
    taken: AtomicU32,
}

/// The remaining part of a collection.
#[derive(Debug)]
struct Stream {
    random: JavaRandom,
    next_id: u32,
}

impl SysbenchLoad {
    /// Creates the load; `settings` must have passed their check.
    pub fn new(settings: &SysbenchSettings) -> Self {
        let stream = |number: u32| {
            Mutex::new(Stream {
                random: JavaRandom::new(number.into()),
                next_id: 1,
            })
        };
        Self(Arc::new(Shared {
            operations: [operation("insert")],
            settings: settings.clone(),
            collections: (1..=settings.collections).map(stream).collect(),
            taken: AtomicU32::new(0),
        }))
    }
}

impl Workload for SysbenchLoad {
    fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    fn actor(&self, place: ActorPlace) -> Box<dyn Actor> {
        let collection = if self.0.settings.exact_original {
            self.0.take()
        } else {
            Some(place.index % self.0.collections.len())
        };
        Box::new(Loader {
            shared: Arc::clone(&self.0),
            collection,
            name: String::new(),
            finished: 0,
            count: 0,
            documents: BsonWriter::default(),
        })
    }
}

struct Loader {
    shared: Arc<Shared>,
    /// Index from 0.
    collection: Option<usize>,
    name: String,
    /// Number of consecutive collections that had nothing more.
    finished: usize,
    /// Documents of the current batch; 0 once it is sent.
    count: u32,
    documents: BsonWriter,
}

impl Shared {
    /// Takes a collection that no other user has.
    fn take(&self) -> Option<usize> {
        let number = next_below(&self.taken, self.settings.collections)?;
        usize::try_from(number).ok()
    }

    /// Writes the next batch of a collection and returns its number of documents.
    fn batch(&self, collection: usize, out: &mut BsonWriter) -> u32 {
        let mut stream = self.collections[collection]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Stream { random, next_id } = &mut *stream;
        let count = self
            .settings
            .batch
            .min(self.settings.loaded() + 1 - *next_id);
        let documents = i32::try_from(self.settings.documents).unwrap_or(i32::MAX);
        for id in *next_id..*next_id + count {
            document(Id::Loaded(id.into()), documents, random, out);
        }
        *next_id += count;
        count
    }
}

impl Actor for Loader {
    fn begin(&mut self) -> Option<OperationId> {
        self.finished = 0;
        while self.finished < self.shared.collections.len() {
            let collection = self.collection?;
            self.documents.clear();
            self.count = self.shared.batch(collection, &mut self.documents);
            if self.count > 0 {
                self.name = collection_name(u32::try_from(collection).unwrap_or(0) + 1);
                return Some(0);
            }
            self.finished += 1;
            self.collection = if self.shared.settings.exact_original {
                self.shared.take()
            } else {
                Some((collection + 1) % self.shared.collections.len())
            };
        }
        None
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        if self.documents.is_empty() {
            return None;
        }
        request.verb = Verb::Insert;
        request.body.begin().string("insert", &self.name);
        request.body.boolean("ordered", true).end();
        request.statement_count = self.count;
        // The request's empty buffer becomes the next batch's.
        std::mem::swap(&mut request.statements, &mut self.documents);
        self.documents.clear();
        Some(0)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        match outcome {
            Ok(reply) if reply.matched == u64::from(self.count) => Verdict::Good,
            Ok(_) => Verdict::Bad("UNEXPECTED_STATE"),
            Err(_) => Verdict::Bad("ERROR"),
        }
    }
}
