//! Applies changes of the original to the copy, in rounds.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};
use futures_util::future::try_join_all;

use seekscope_server::ServerError;

use crate::ReorderError;
use crate::checksum::Checksum;
use crate::copy::insert;
use crate::follow::{ids, key_document};
use crate::reader::BATCH_BYTES;
use crate::site::{MAJORITY_LIMIT, Site};
use crate::spool::{Spool, key_of};
use crate::state::is_duplicate;

/// Number of parts whose commands run on the server at the same time: a single one leaves one of its cores
/// idle while we wait, and more take memory and others' time.
const PARTS_TOGETHER: usize = 2;
/// Keys of a part, which are applied by one command of each kind, and of all parts together.
const PART_KEYS: usize = 1_000;
pub(crate) const CHUNK_KEYS: usize = PARTS_TOGETHER * PART_KEYS;
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes of a part's documents that are put into the copy by one command.
const PART_BYTES: usize = BATCH_BYTES / PARTS_TOGETHER;
/// The most rounds in which every key was left unsettled although nobody writes any more.
const STUCK_MAX: u32 = 3;
const STUCK_WAIT: Duration = Duration::from_millis(100);

/// The result of a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Changes that the stream reported since the round before, without those that are applied again.
    pub(crate) changes: u64,
    /// Documents that were copied, each counted once where changes were close together, including those that
    /// the round before left unsettled.
    pub(crate) documents: u64,
    /// Documents among them that must be copied again.
    pub(crate) unsettled: u64,
}

/// The progress of catching up.
#[derive(Debug)]
pub(crate) struct CatchUp {
    spool: Spool,
    at: u64,
    seed: u64,
    /// Keys in the spool that are to be applied again.
    again: u64,
    pub(crate) applied_changes: u64,
}

impl CatchUp {
    pub(crate) fn new(spool: Spool, seed: u64) -> Self {
        Self {
            spool,
            at: 0,
            seed,
            again: 0,
            applied_changes: 0,
        }
    }

    /// Applies what had arrived when it began.
    pub(crate) async fn round(&mut self, site: &Site) -> Result<Round, ReorderError> {
        let end = self.spool.end();
        let mut round = Round::default();
        let mut read = 0;
        while self.at < end {
            let (keys, with_repeated) = self.next_keys(end)?;
            let unsettled = self.bring_over(site, &keys).await?;
            read += with_repeated;
            round.documents += keys.len() as u64;
            round.unsettled += unsettled.len() as u64;
            for key in unsettled {
                self.spool.append(key.as_bytes())?;
            }
        }
        round.changes = read.saturating_sub(self.again);
        self.again = round.unsettled;
        // A key that changed its type counts as two unsettled ones.
        self.applied_changes += round.documents.saturating_sub(round.unsettled);
        Ok(round)
    }

    /// Runs rounds until nothing is left. All writers must have stopped.
    pub(crate) async fn settle(&mut self, site: &Site) -> Result<(), ReorderError> {
        let mut stuck = 0;
        while self.at < self.spool.end() {
            let round = self.round(site).await?;
            stuck = if round.unsettled == round.documents {
                stuck + 1
            } else {
                0
            };
            if stuck == STUCK_MAX {
                return Err(site.aborted(format!(
                    "{} changed documents cannot be made equal in the copy; \
                     is somebody still writing?",
                    round.unsettled
                )));
            }
            if stuck > 0 {
                tokio::time::sleep(STUCK_WAIT).await;
            }
        }
        Ok(())
    }

    /// Returns the next keys, each once, and their number including repetitions.
    fn next_keys(&mut self, end: u64) -> Result<(Vec<RawDocumentBuf>, u64), ReorderError> {
        let (mut keys, mut read) = (Vec::new(), 0);
        let (mut known, mut bytes) = (HashSet::new(), 0);
        while self.at < end && keys.len() < CHUNK_KEYS && bytes < CHUNK_BYTES {
            let key = self.spool.read(self.at)?;
            let length = key.as_bytes().len();
            self.at += length as u64;
            read += 1;
            if known.insert(key.as_bytes().to_vec()) {
                bytes += length;
                keys.push(key);
            }
        }
        Ok((keys, read))
    }

    /// Makes the copy's documents with these keys equal to the original's. Returns the keys for which it did
    /// not succeed.
    ///
    /// Several parts are written at the same time, and all of them before any is checked: two keys that
    /// differ as bytes may be equal to the server (1 and 1.0, or two texts under a collation), and of two
    /// parts the one that read the older document may write last.
    async fn bring_over(
        &self,
        site: &Site,
        keys: &[RawDocumentBuf],
    ) -> Result<Vec<RawDocumentBuf>, ReorderError> {
        let part_keys = keys.len().div_ceil(PARTS_TOGETHER).max(1);
        let put = keys.chunks(part_keys).map(|part| self.put_all(site, part));
        let put = try_join_all(put).await?;
        let parts = keys.chunks(part_keys).zip(put);
        let looks = parts.map(|(part, hashes)| self.differing(site, part, hashes));
        Ok(try_join_all(looks).await?.concat())
    }

    /// Writes the original's documents with these keys into the copy, and returns the hash of each by its
    /// key. They are replaced, which only affects the indexes whose keys changed and keeps a document's
    /// position. What is rejected is deleted and inserted: that works whatever fields a document has, and
    /// frees values that a unique index holds. It may be rejected again, because a document that is yet to
    /// come holds such a value.
    async fn put_all(
        &self,
        site: &Site,
        keys: &[RawDocumentBuf],
    ) -> Result<HashMap<Vec<u8>, u128>, ReorderError> {
        let mut put = self.put(site, of(keys), Put::Replace).await?;
        let is_gone = |key: &&RawDocumentBuf| !put.hashes.contains_key(key.as_bytes());
        let mut removed: Vec<_> = keys.iter().filter(is_gone).cloned().collect();
        removed.extend_from_slice(&put.refused);
        if !removed.is_empty() {
            let deleted = site.copy_for_changes().delete_many(of(&removed)).await;
            deleted.map_err(|e| site.failed("delete", &e))?;
        }
        if !put.refused.is_empty() {
            let again = self.put(site, of(&put.refused), Put::Insert).await?;
            put.hashes.extend(again.hashes);
        }
        Ok(put.hashes)
    }

    /// Returns the keys whose documents in the copy do not have these hashes.
    async fn differing(
        &self,
        site: &Site,
        keys: &[RawDocumentBuf],
        mut wanted: HashMap<Vec<u8>, u128>,
    ) -> Result<Vec<RawDocumentBuf>, ReorderError> {
        let failed = |e| site.failed("find", &e);
        let mut found = site.copy().find(of(keys)).await.map_err(failed)?;
        let mut unsettled = HashSet::new();
        while found.advance().await.map_err(failed)? {
            let document = found.current();
            let Some(key) = key_of(document).map(key_document) else {
                continue;
            };
            let hash = Checksum::hash(self.seed, document.as_bytes());
            if wanted.remove(key.as_bytes()) != Some(hash) {
                unsettled.insert(key.into_bytes());
            }
        }
        unsettled.extend(wanted.into_keys());
        let parse = |key| RawDocumentBuf::from_bytes(key).map_err(|e| site.aborted(e.to_string()));
        unsettled.into_iter().map(parse).collect()
    }

    /// Writes the original's documents that match a filter into the copy.
    async fn put(
        &self,
        site: &Site,
        filter: Document,
        how: Put,
    ) -> Result<PutDocuments, ReorderError> {
        let failed = |e| site.failed("find", &e);
        let mut cursor = site.target().find(filter).await.map_err(failed)?;
        let mut put = PutDocuments::default();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while cursor.advance().await.map_err(failed)? {
            let document = cursor.current();
            let length = document.as_bytes().len();
            if bytes + length > PART_BYTES && !batch.is_empty() {
                put.refused.extend(how.send(site, &batch).await?);
                batch.clear();
                bytes = 0;
            }
            if let Some(key) = key_of(document).map(key_document) {
                let hash = Checksum::hash(self.seed, document.as_bytes());
                put.hashes.insert(key.into_bytes(), hash);
            }
            batch.push(document.to_owned());
            bytes += length;
        }
        if !batch.is_empty() {
            put.refused.extend(how.send(site, &batch).await?);
        }
        Ok(put)
    }
}

/// What was sent to the copy.
#[derive(Debug, Default)]
struct PutDocuments {
    /// The hash of each document by its key.
    hashes: HashMap<Vec<u8>, u128>,
    /// Keys of the documents that the server rejected.
    refused: Vec<RawDocumentBuf>,
}

/// How documents are written to the copy.
#[derive(Debug, Clone, Copy)]
enum Put {
    /// Replaces documents with the same key, or inserts new ones.
    Replace,
    /// Inserts. What a unique index rejects for now is found missing afterwards.
    Insert,
}

impl Put {
    /// Sends documents and returns the keys of those that were rejected.
    async fn send(
        self,
        site: &Site,
        batch: &[RawDocumentBuf],
    ) -> Result<Vec<RawDocumentBuf>, ReorderError> {
        match self {
            Self::Replace => replace(site, batch).await,
            Self::Insert => match insert(site, &site.copy_for_changes(), batch).await {
                Err(error) if !is_duplicate(&error) => Err(site.not_written("insert", &error)),
                _ => Ok(Vec::new()),
            },
        }
    }
}

/// Replaces many documents at a time by the `update` command; on servers before 8.0 the driver can only do it
/// one by one. A majority must acknowledge, as with [`Site::copy_for_changes`].
async fn replace(
    site: &Site,
    batch: &[RawDocumentBuf],
) -> Result<Vec<RawDocumentBuf>, ReorderError> {
    let keys: Vec<_> = batch
        .iter()
        .filter_map(|document| key_of(document).map(key_document))
        .collect();
    let updates: RawArrayBuf = keys
        .iter()
        .zip(batch)
        .map(|(key, document)| rawdoc! { "q": key.clone(), "u": document.clone(), "upsert": true })
        .collect();
    let limit_ms = i64::try_from(MAJORITY_LIMIT.as_millis()).unwrap_or(i64::MAX);
    let command = rawdoc! {
        "update": site.copy_name(),
        "updates": updates,
        "ordered": false,
        "bypassDocumentValidation": site.has_validator,
        "writeConcern": { "w": "majority", "wtimeout": limit_ms },
    };
    let database = site.server.database(site.database());
    let reply = database.run_raw_command(command).await;
    let reply = reply.map_err(|e| site.not_written("update", &e))?;
    // The driver leaves it to whoever sends a command as it is.
    if reply.contains_key("writeConcernError") {
        let (uri, command) = (site.server.shown_uri(), "update".into());
        return Err(ServerError::Unacknowledged { uri, command }.into());
    }
    let errors = reply.get_array("writeErrors").map(Vec::as_slice);
    let index = |error: &Bson| usize::try_from(error.as_document()?.get_i32("index").ok()?).ok();
    let refused = errors.unwrap_or_default().iter().filter_map(index);
    Ok(refused.filter_map(|at| keys.get(at).cloned()).collect())
}

/// Returns a filter for these keys, under the collection's own collation, as used by the index on `_id`.
fn of(keys: &[RawDocumentBuf]) -> Document {
    doc! { "_id": { "$in": ids(keys) } }
}
