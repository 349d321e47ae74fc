//! What changed in the original is brought over to the copy, in rounds.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bson::{Document, RawDocumentBuf, doc};

use crate::ReorderError;
use crate::checksum::Checksum;
use crate::copy::insert;
use crate::follow::{ids, key_document};
use crate::site::Site;
use crate::spool::{Spool, key_of};
use crate::state::is_duplicate;

/// Keys that are brought over together.
const CHUNK_KEYS: usize = 1_000;
const CHUNK_BYTES: usize = 1 << 20;
/// Documents that are inserted together.
const BATCH_BYTES: usize = 12 << 20;
/// Rounds in which every key was left unsettled although nobody writes any more.
const STUCK_MAX: u32 = 3;
const STUCK_WAIT: Duration = Duration::from_millis(100);

/// What a round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Round {
    /// Keys brought over.
    pub(crate) changes: u64,
    /// Those of them that must be brought over once more.
    pub(crate) unsettled: u64,
}

/// Where bringing over has come to.
#[derive(Debug)]
pub(crate) struct CatchUp {
    spool: Spool,
    at: u64,
    seed: u64,
    pub(crate) applied_changes: u64,
}

impl CatchUp {
    pub(crate) fn new(spool: Spool, seed: u64) -> Self {
        Self {
            spool,
            at: 0,
            seed,
            applied_changes: 0,
        }
    }

    /// Brings over what had come when it began.
    pub(crate) async fn round(&mut self, site: &Site) -> Result<Round, ReorderError> {
        let end = self.spool.end();
        let mut round = Round::default();
        while self.at < end {
            let keys = self.next_keys(end)?;
            let unsettled = self.bring_over(site, &keys).await?;
            round.changes += keys.len() as u64;
            round.unsettled += unsettled.len() as u64;
            for key in unsettled {
                self.spool.append(key.as_bytes())?;
            }
        }
        self.applied_changes += round.changes - round.unsettled;
        Ok(round)
    }

    /// Rounds until nothing is left. Nobody may write any more.
    pub(crate) async fn settle(&mut self, site: &Site) -> Result<(), ReorderError> {
        let mut stuck = 0;
        while self.at < self.spool.end() {
            let round = self.round(site).await?;
            stuck = if round.unsettled == round.changes {
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

    /// The next keys, each once.
    fn next_keys(&mut self, end: u64) -> Result<Vec<RawDocumentBuf>, ReorderError> {
        let mut keys = Vec::new();
        let (mut known, mut bytes) = (HashSet::new(), 0);
        while self.at < end && keys.len() < CHUNK_KEYS && bytes < CHUNK_BYTES {
            let key = self.spool.read(self.at)?;
            let length = key.as_bytes().len();
            self.at += length as u64;
            if known.insert(key.as_bytes().to_vec()) {
                bytes += length;
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Makes the copy's documents of these keys those of the original. They are deleted and inserted,
    /// never replaced: that serves whatever fields and types a document has, frees values that a unique
    /// index holds, and costs the copy's order no more. Returns keys for which it did not succeed,
    /// because a document that is yet to come holds such a value.
    async fn bring_over(
        &self,
        site: &Site,
        keys: &[RawDocumentBuf],
    ) -> Result<Vec<RawDocumentBuf>, ReorderError> {
        // By the collection's own collation, as the index on _id has it.
        let of_keys = doc! { "_id": { "$in": ids(keys) } };
        let deleted = site.copy().delete_many(of_keys.clone()).await;
        deleted.map_err(|e| site.failed("delete", &e))?;
        let mut wanted = self.insert_current(site, &of_keys).await?;
        let failed = |e| site.failed("find", &e);
        let mut found = site.copy().find(of_keys).await.map_err(failed)?;
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

    /// Inserts the original's documents; returns the hash of each by its key.
    async fn insert_current(
        &self,
        site: &Site,
        of_keys: &Document,
    ) -> Result<HashMap<Vec<u8>, u128>, ReorderError> {
        let failed = |e| site.failed("find", &e);
        let mut cursor = site.target().find(of_keys.clone()).await.map_err(failed)?;
        let mut hashes = HashMap::new();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while cursor.advance().await.map_err(failed)? {
            let document = cursor.current();
            let length = document.as_bytes().len();
            if bytes + length > BATCH_BYTES && !batch.is_empty() {
                insert_tolerant(site, &batch).await?;
                batch.clear();
                bytes = 0;
            }
            if let Some(key) = key_of(document).map(key_document) {
                let hash = Checksum::hash(self.seed, document.as_bytes());
                hashes.insert(key.into_bytes(), hash);
            }
            batch.push(document.to_owned());
            bytes += length;
        }
        if !batch.is_empty() {
            insert_tolerant(site, &batch).await?;
        }
        Ok(hashes)
    }
}

/// What a unique index refuses for now is found missing afterwards.
async fn insert_tolerant(site: &Site, batch: &[RawDocumentBuf]) -> Result<(), ReorderError> {
    match insert(site, batch).await {
        Err(error) if !is_duplicate(&error) => Err(site.failed("insert", &error)),
        _ => Ok(()),
    }
}
