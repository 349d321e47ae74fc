//! Performs the load: every row of a slice, in batches that virtual users claim as they go.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use seekscope_client::{
    Actor, ActorPlace, BsonWriter, Failure, Operation, OperationId, Reply, Request, Verdict,
    Workload, request::Verb,
};

use super::{Rows, YcsbSettings};

/// The most bytes of documents in one batch: a message is limited to 48 MB.
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
    start: u64,
    end: u64,
    /// Rows that were claimed and not acknowledged.
    failed: Mutex<Vec<Range<u64>>>,
}

/// The rows of a load that the server acknowledged.
#[derive(Debug, Clone, Default)]
pub struct Acknowledged {
    start: u64,
    /// The first row that nobody claimed.
    end: u64,
    /// Rows before it that were refused, or whose answer never came; in order.
    failed: Vec<Range<u64>>,
}

impl Acknowledged {
    /// Returns their number.
    pub fn count(&self) -> u64 {
        let failed: u64 = self.failed.iter().map(|rows| rows.end - rows.start).sum();
        self.claimed().saturating_sub(failed)
    }

    /// Returns the number of rows that were claimed, acknowledged or not; they follow the first one.
    pub fn claimed(&self) -> u64 {
        self.end - self.start
    }

    /// Returns whether this row was acknowledged.
    pub fn has(&self, row: u64) -> bool {
        let after = self.failed.partition_point(|rows| rows.end <= row);
        let is_failed = self
            .failed
            .get(after)
            .is_some_and(|rows| rows.contains(&row));
        (self.start..self.end).contains(&row) && !is_failed
    }

    /// Returns the number of rows of batches that were not acknowledged as a whole: some of them may be there.
    pub fn uncertain(&self) -> u64 {
        let batches = self.failed.iter().map(|rows| rows.end - rows.start);
        batches.filter(|rows| *rows > 1).sum()
    }
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
            start: settings.insert_start,
            end: settings.insert_start.saturating_add(settings.load_count),
            failed: Mutex::default(),
        }))
    }

    /// Returns the number of rows of each request except the last.
    pub fn batch(&self) -> u64 {
        self.0.batch
    }

    /// Returns what was acknowledged, once the step has ended.
    pub fn acknowledged(&self) -> Acknowledged {
        let failed = self.0.failed.lock();
        let mut failed = failed.unwrap_or_else(PoisonError::into_inner).clone();
        failed.sort_unstable_by_key(|rows| rows.start);
        Acknowledged {
            start: self.0.start,
            end: self.0.next.load(Ordering::Relaxed).min(self.0.end),
            failed,
        }
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
            is_open: false,
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
    /// The batch is claimed and not acknowledged.
    is_open: bool,
    is_sent: bool,
    has_given_up: bool,
    key: String,
    document: BsonWriter,
}

impl Loader {
    /// Notes that the batch was not acknowledged, if it was not.
    fn give_up_batch(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let failed = self.shared.failed.lock();
            let mut failed = failed.unwrap_or_else(PoisonError::into_inner);
            failed.push(self.first..self.end);
        }
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.give_up_batch();
    }
}

impl Actor for Loader {
    fn begin(&mut self) -> Option<OperationId> {
        self.give_up_batch();
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
        (self.is_open, self.is_sent) = (true, false);
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
            Ok(reply) if reply.matched == self.end - self.first => {
                self.is_open = false;
                Verdict::Good
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_acknowledged_counts() {
        let rows = Acknowledged {
            start: 10,
            end: 30,
            failed: vec![12..13, 20..25],
        };
        assert_eq!((rows.count(), rows.uncertain()), (14, 5));
        let there: Vec<u64> = (0..40).filter(|row| rows.has(*row)).collect();
        let expected = (10..12).chain(13..20).chain(25..30);
        assert_eq!(there, expected.collect::<Vec<u64>>());
        assert_eq!(Acknowledged::default().count(), 0);
    }
}
