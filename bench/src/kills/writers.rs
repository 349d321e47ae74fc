//! Concurrent writers, each with documents of its own, who note what became of every write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bson::{RawDocumentBuf, doc};
use mongodb::Collection;
use mongodb::error::{Error, ErrorKind, WriteFailure};
use seekscope_server::Server;
use seekscope_stats::SplitMix64;
use tokio::task::JoinHandle;

use super::documents::{COLLECTION, DATABASE, changing, document};
use super::expected::{Expected, Version};
use super::pause::Gate;

/// A server that is down is not asked without end.
const AFTER_FAILURE: Duration = Duration::from_millis(20);
/// The pause between two writes of one writer: copying must be able to catch up.
const BETWEEN_WRITES: Duration = Duration::from_millis(2);
/// A write of which this share of the ids is new appends.
const APPENDED_PERCENT: u64 = 10;

/// What one writer knows and did.
#[derive(Debug, Clone, Default)]
pub struct Record {
    pub expected: Expected,
    /// Acknowledged writes.
    pub done: u64,
    pub in_doubt: u64,
    /// Writes that the server refused, so that they were not done.
    pub refused: u64,
    /// What a writer itself saw that cannot be, such as an update that found nothing.
    pub impossible: Vec<String>,
    next_id: i64,
    version: i64,
}

/// Writers at work; they are stopped by [`Writers::stop`].
#[derive(Debug)]
pub struct Writers {
    stop: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<Record>>,
}

/// The most messages kept for each writer and trial.
const SAID_MAX: usize = 3;

impl Record {
    fn say(&mut self, what: String) {
        if self.impossible.len() < SAID_MAX {
            self.impossible.push(what);
        }
    }

    /// Returns for each of `writers` its share of the documents `0..count`, in version 0.
    pub fn shares(count: i64, writers: i64) -> Vec<Self> {
        let share = |writer| {
            let mut record = Self {
                next_id: writer,
                ..Self::default()
            };
            for id in (writer..count).step_by(usize::try_from(writers).unwrap_or(1)) {
                record.expected.is(id, Some(0));
                record.next_id = id + writers;
            }
            record
        };
        (0..writers).map(share).collect()
    }
}

impl Writers {
    /// One task per record, each with a connection of its own.
    pub async fn start(uri: &str, records: Vec<Record>, gate: &Gate, seed: u64) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let writers = i64::try_from(records.len())?;
        let mut tasks = Vec::new();
        for (number, record) in records.into_iter().enumerate() {
            let server = Server::connect(uri).await?;
            let writer = Writer {
                collection: server.database(DATABASE).collection(COLLECTION),
                number: i64::try_from(number)?,
                writers,
                random: SplitMix64::new(seed << 8 | number as u64),
                record,
            };
            tasks.push(tokio::spawn(writer.run(gate.clone(), stop.clone())));
        }
        Ok(Self { stop, tasks })
    }

    /// Waits for the writes under way.
    pub async fn stop(self) -> Result<Vec<Record>> {
        self.stop.store(true, Ordering::Relaxed);
        let mut records = Vec::new();
        for task in self.tasks {
            records.push(task.await.context("a writer failed")?);
        }
        Ok(records)
    }
}

struct Writer {
    collection: Collection<RawDocumentBuf>,
    number: i64,
    writers: i64,
    random: SplitMix64,
    record: Record,
}

impl Writer {
    async fn run(mut self, gate: Gate, stop: Arc<AtomicBool>) -> Record {
        while !stop.load(Ordering::Relaxed) {
            let answered = {
                let _open = gate.read().await;
                self.write().await
            };
            tokio::time::sleep(if answered {
                BETWEEN_WRITES
            } else {
                AFTER_FAILURE
            })
            .await;
        }
        self.record
    }

    /// One write of a document about which nothing is in doubt. False if there was no answer.
    async fn write(&mut self) -> bool {
        let id = self.choose();
        let Some(now) = self.record.expected.certain(id) else {
            return true;
        };
        self.record.version += 1;
        let version = self.record.version;
        let (wanted, found): (Version, Result<u64, Error>) = match (now, self.random.below(4)) {
            (None, _) => {
                let inserted = self.collection.insert_one(document(id, version)).await;
                (Some(version), inserted.map(|_| 1))
            }
            (Some(_), 0) => {
                let deleted = self.collection.delete_one(doc! { "_id": id }).await;
                (None, deleted.map(|r| r.deleted_count))
            }
            (Some(_), 1) => {
                let whole = document(id, version);
                let replaced = self.collection.replace_one(doc! { "_id": id }, whole).await;
                (Some(version), replaced.map(|r| r.matched_count))
            }
            (Some(_), _) => {
                let set = bson::Document::try_from(changing(id, version)).unwrap_or_default();
                let update = self
                    .collection
                    .update_one(doc! { "_id": id }, doc! { "$set": set });
                (Some(version), update.await.map(|r| r.matched_count))
            }
        };
        self.note(id, now, wanted, found)
    }

    fn choose(&mut self) -> i64 {
        let record = &mut self.record;
        if self.random.below(100) < APPENDED_PERCENT || record.next_id < self.writers {
            record.next_id += self.writers;
            return record.next_id - self.writers;
        }
        let existing = (record.next_id / self.writers).cast_unsigned();
        self.random.below(existing).cast_signed() * self.writers + self.number
    }

    fn note(&mut self, id: i64, now: Version, wanted: Version, found: Result<u64, Error>) -> bool {
        let record = &mut self.record;
        match found {
            Ok(1) => {
                record.done += 1;
                record.expected.is(id, wanted);
            }
            Ok(found) => {
                let said = format!("a write of {id} (version {now:?}) found {found} documents");
                record.say(said);
                record.expected.is(id, None);
            }
            Err(error) if is_refusal(&error) => {
                record.refused += 1;
                if error.to_string().contains("E11000") {
                    let said = format!("inserting {id}, which was absent: {error}");
                    record.say(said);
                    record.expected.may_be(id, wanted);
                }
            }
            Err(_) => {
                record.in_doubt += 1;
                record.expected.may_be(id, wanted);
                return false;
            }
        }
        true
    }
}

/// Errors of a server that is shutting down or no longer the primary, or of a mongos that has lost its shard: whatever
/// it was doing may be done.
const INTERRUPTED: [i32; 9] = [91, 189, 11_600, 11_602, 6, 7, 89, 202, 9_001];

/// The server answered, and did nothing.
fn is_refusal(error: &Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Command(said) => !INTERRUPTED.contains(&said.code),
        ErrorKind::Write(WriteFailure::WriteError(said)) => !INTERRUPTED.contains(&said.code),
        _ => false,
    }
}
