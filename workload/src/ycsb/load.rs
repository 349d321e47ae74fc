//! Performs the load: every row of a slice, in batches that virtual users claim as they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seekscope_client::{
    Actor, ActorPlace, BsonWriter, Failure, Operation, OperationId, Reply, Request, Verdict,
    Workload, request::Verb,
};

use super::{Rows, YcsbSettings};

/// Most bytes of documents in one batch: a message is limited to 48 MB.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// Inserts the rows `insert_start..insert_start + load_count`.
#[derive(Debug, Clone)]
pub struct YcsbLoad(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    operations: [Operation; 1],
    rows: Rows,
    table: String,
    batch: u64,
    upsert: bool,
    keep_going: bool,
    /// The first unclaimed row.
    next: AtomicU64,
    end: u64,
}

impl YcsbLoad {
    pub fn new(settings: &YcsbSettings) -> Self {
        let rows = Rows::new(settings);
        let fitting = BATCH_BYTES_MAX / rows.document_bytes_max();
        Self(Arc::new(Shared {
            operations: [Operation {
                name: "INSERT".into(),
                is_transaction: false,
            }],
            rows,
            table: settings.table.clone(),
            batch: settings.batch.clamp(1, (fitting as u64).max(1)),
            upsert: settings.upsert,
            keep_going: settings.keep_going,
            next: AtomicU64::new(settings.insert_start),
            end: settings.insert_start.saturating_add(settings.load_count),
        }))
    }

    /// Returns the number of rows of each request except the last.
    pub fn batch(&self) -> u64 {
        self.0.batch
    }
}

impl Workload for YcsbLoad {
    fn operations(&self) -> &[Operation] {
        &self.0.operations
    }

    fn actor(&self, _place: ActorPlace) -> Box<dyn Actor> {
        Box::new(Loader {
            shared: Arc::clone(&self.0),
            first: 0,
            end: 0,
            is_sent: false,
            has_given_up: false,
            key: String::new(),
            document: BsonWriter::default(),
        })
    }
}

struct Loader {
    shared: Arc<Shared>,
    /// First row of the current batch.
    first: u64,
    end: u64,
    is_sent: bool,
    has_given_up: bool,
    key: String,
    document: BsonWriter,
}

impl Actor for Loader {
    fn begin(&mut self) -> Option<OperationId> {
        if self.has_given_up {
            return None;
        }
        let Shared {
            next, end, batch, ..
        } = &*self.shared;
        self.first = next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |first| {
                (first < *end).then(|| first.saturating_add(*batch).min(*end))
            })
            .ok()?;
        self.end = self.first.saturating_add(*batch).min(*end);
        self.is_sent = false;
        Some(0)
    }

    fn request(&mut self, request: &mut Request) -> Option<OperationId> {
        if self.is_sent {
            return None;
        }
        self.is_sent = true;
        let Shared {
            rows,
            table,
            batch,
            upsert,
            ..
        } = &*self.shared;
        let (verb, name) = if *upsert {
            (Verb::Update, "update")
        } else {
            (Verb::Insert, "insert")
        };
        request.verb = verb;
        request.body.begin().string(name, table);
        request.body.boolean("ordered", *batch == 1).end();
        for record in self.first..self.end {
            rows.key(record, &mut self.key);
            if *upsert {
                self.document.clear();
                rows.document(record, &self.key, &mut self.document);
                super::run::replacement(&self.key, self.document.bytes(), &mut request.statements);
            } else {
                rows.document(record, &self.key, &mut request.statements);
            }
            request.statement_count += 1;
        }
        Some(0)
    }

    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict {
        match outcome {
            Ok(reply) if reply.matched == self.end - self.first => Verdict::Good,
            outcome => {
                self.has_given_up = !self.shared.keep_going;
                match outcome {
                    Ok(_) => Verdict::Bad("UNEXPECTED_STATE"),
                    Err(_) => Verdict::Bad("ERROR"),
                }
            }
        }
    }
}
