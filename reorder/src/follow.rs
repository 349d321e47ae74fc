//! Follows changes to the original in the change stream. Only keys are kept; the documents are read when they
//! are applied, so that the last state wins.

use std::time::Duration;

use bson::{Bson, RawBsonRef, RawDocument, RawDocumentBuf, doc, oid::ObjectId};
use mongodb::change_stream::ChangeStream;
use mongodb::change_stream::event::ResumeToken;
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;

use crate::ReorderError;
use crate::site::{STATE, Site};
use crate::spool::Spool;

/// Time after which the server answers even without events.
const AWAIT: Duration = Duration::from_millis(250);
/// A mark must come through the stream within this time; secondaries may lag.
const BARRIER_LIMIT: Duration = Duration::from_secs(300);
/// Keys are handed over at this size, or when none arrived for a while.
const KEYS_BYTES: usize = 64 << 10;

/// What came through the stream so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// Number of changes to documents of the original; and of those that are not deletions.
    pub(crate) changes: u64,
    pub(crate) not_deletions: u64,
    /// Every change before this position is in the first `spooled_bytes` of the spool.
    pub(crate) token: Option<ResumeToken>,
    pub(crate) spooled_bytes: u64,
    /// The last mark that arrived.
    barrier: Option<ObjectId>,
    end: Option<End>,
}

/// The reason why nothing more will arrive.
#[derive(Debug, Clone)]
enum End {
    /// Somebody else's operation on the original.
    Foreign(String),
    /// The copy took the original's name.
    Swapped,
    /// The stream broke off.
    Broken(mongodb::error::Error),
    Failed(String),
}

/// A task that reads the stream; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    seen: watch::Receiver<Seen>,
    spool: Spool,
    task: JoinHandle<()>,
}

impl Follower {
    /// Opens the stream after a position in it, or from now on.
    pub(crate) async fn open(
        site: &Site,
        after: Option<ResumeToken>,
        spool: Spool,
    ) -> Result<Self, mongodb::error::Error> {
        let target = site.target_name();
        let wanted = doc! { "$match": { "$or": [
            { "ns.coll": { "$in": [target, STATE] } },
            { "to.coll": target },
            { "operationType": { "$in": ["dropDatabase", "invalidate"] } },
        ] } };
        let fields =
            doc! { "$project": { "operationType": 1, "ns": 1, "documentKey": 1, "to": 1 } };
        let database = site.server.database(site.database());
        let stream = database
            .watch()
            .pipeline([wanted, fields])
            .resume_after(after)
            .max_await_time(AWAIT)
            .read_concern(ReadConcern::majority())
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .await?
            .with_type::<RawDocumentBuf>();
        let (sender, seen) = watch::channel(Seen::default());
        let reading = Reading {
            target: target.to_owned(),
            copy: site.copy_name().to_owned(),
            spool: spool.clone(),
            keys: Vec::new(),
            seen: Seen::default(),
        };
        let task = tokio::spawn(reading.run(stream, sender));
        Ok(Self { seen, spool, task })
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Waits for a condition; returns `None` if the task ended first.
    async fn wait(&self, until: impl FnMut(&Seen) -> bool) -> Option<Seen> {
        let mut seen = self.seen.clone();
        let seen = seen.wait_for(until).await;
        seen.ok().map(|seen| seen.clone())
    }

    /// Waits for a condition that what was written just now fulfils, for [`BARRIER_LIMIT`] at most.
    async fn wait_soon(
        &self,
        site: &Site,
        until: impl FnMut(&Seen) -> bool,
    ) -> Result<Option<Seen>, Elapsed> {
        tokio::select! {
            seen = tokio::time::timeout(BARRIER_LIMIT, self.wait(until)) => seen,
            never = site.keep_shards_awake() => match never {},
        }
    }

    /// Writes a mark and waits until it comes through the stream; everything acknowledged before has then
    /// arrived too.
    pub(crate) async fn barrier(&self, site: &Site) -> Result<Seen, ReorderError> {
        let mark = ObjectId::new();
        let document = doc! { "_id": mark, "barrier_of": site.target_name() };
        let records = site.records();
        let written = records.insert_one(document).await;
        written.map_err(|e| site.failed("insert", &e))?;
        let came = self.wait_soon(site, |s| s.barrier == Some(mark) || s.end.is_some());
        let seen = came.await;
        let seen = seen.map_err(|_| site.aborted("the change stream has stalled"))?;
        let seen = seen.ok_or_else(|| site.aborted("the change stream ended"))?;
        let removed = records.delete_one(doc! { "_id": mark }).await;
        removed.map_err(|e| site.failed("delete", &e))?;
        match ended(site, &seen) {
            Some(error) => Err(error),
            None => Ok(seen),
        }
    }

    /// Returns when something happened that makes the copy useless.
    pub(crate) async fn ended(&self, site: &Site) -> ReorderError {
        let seen = self.wait(|s| s.end.is_some()).await;
        let error = seen.and_then(|seen| ended(site, &seen));
        error.unwrap_or_else(|| site.aborted("the change stream ended"))
    }

    /// Returns some of the keys between two positions of the spool, for people.
    pub(crate) fn keys(&self, from: u64, to: u64, most: usize) -> Result<Vec<Bson>, ReorderError> {
        let (mut at, mut keys) = (from, Vec::new());
        while at < to && keys.len() < most {
            let key = self.spool.read(at)?;
            at += key.as_bytes().len() as u64;
            keys.push(key);
        }
        Ok(ids(&keys))
    }

    /// Waits for the swap and returns what came before it.
    pub(crate) async fn until_swapped(&self, site: &Site) -> Option<Seen> {
        let seen = self.wait_soon(site, |s| s.end.is_some()).await.ok()??;
        (!matches!(seen.end, Some(End::Broken(_) | End::Failed(_)))).then_some(seen)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ended(site: &Site, seen: &Seen) -> Option<ReorderError> {
    Some(match seen.end.as_ref()? {
        End::Foreign(what) => site.aborted(what.clone()),
        End::Swapped => site.aborted("somebody else swapped it"),
        End::Broken(error) => site.failed("watch", error),
        End::Failed(why) => site.aborted(format!("the change stream failed: {why}")),
    })
}

/// State of the reading task.
#[derive(Debug)]
struct Reading {
    target: String,
    copy: String,
    spool: Spool,
    /// Keys not yet in the spool.
    keys: Vec<u8>,
    seen: Seen,
}

impl Reading {
    async fn run(mut self, mut stream: ChangeStream<RawDocumentBuf>, sender: watch::Sender<Seen>) {
        while self.seen.end.is_none() {
            let hand_over = match stream.next_if_any().await {
                Ok(Some(event)) => self.take(&event) || self.keys.len() > KEYS_BYTES,
                Ok(None) if !stream.is_alive() => {
                    self.seen.end = Some(End::Failed("the server closed it".into()));
                    true
                }
                Ok(None) => true,
                Err(error) => {
                    self.seen.end = Some(End::Broken(error));
                    true
                }
            };
            if hand_over {
                if let Err(error) = self.spool.append(&self.keys) {
                    self.seen.end = Some(End::Failed(error.to_string()));
                }
                self.keys.clear();
                self.seen.spooled_bytes = self.spool.end();
                self.seen.token = stream.resume_token();
                if sender.send(self.seen.clone()).is_err() {
                    return;
                }
            }
        }
    }

    /// Takes an event and returns whether it is to be reported at once.
    fn take(&mut self, event: &RawDocument) -> bool {
        let collection = |field: &str| event.get_document(field).and_then(|ns| ns.get_str("coll"));
        let of = |field: &str, name: &str| collection(field).is_ok_and(|c| c == name);
        let kind = event.get_str("operationType").unwrap_or_default();
        let key = event.get_document("documentKey").ok();
        let foreign = |what: &str| Some(End::Foreign(what.into()));
        match kind {
            "insert" | "update" | "replace" | "delete" if of("ns", &self.target) => {
                self.seen.changes += 1;
                self.seen.not_deletions += u64::from(kind != "delete");
                match key.and_then(|key| key.get("_id").ok().flatten()) {
                    Some(id) => self.keys.extend_from_slice(key_document(id).as_bytes()),
                    None => self.seen.end = Some(End::Failed("an event has no key".into())),
                }
                return self.seen.end.is_some();
            }
            "insert" if of("ns", STATE) => {
                let mark = key.and_then(|key| key.get_object_id("_id").ok());
                self.seen.barrier = mark.or(self.seen.barrier);
                return mark.is_some();
            }
            "rename" if of("ns", &self.copy) && of("to", &self.target) => {
                self.seen.end = Some(End::Swapped);
            }
            "rename" => self.seen.end = foreign("somebody renamed it, or another to its name"),
            "drop" if of("ns", &self.target) => self.seen.end = foreign("somebody dropped it"),
            "dropDatabase" => self.seen.end = foreign("somebody dropped its database"),
            "invalidate" => self.seen.end = foreign("somebody dropped or renamed it"),
            _ => {}
        }
        self.seen.end.is_some()
    }
}

/// Returns `{_id: …}`, as stored in the spool.
pub(crate) fn key_document(id: RawBsonRef<'_>) -> RawDocumentBuf {
    let mut key = RawDocumentBuf::new();
    key.append(bson::raw::cstr!("_id"), id);
    key
}

/// Returns keys as values, for a query.
pub(crate) fn ids(keys: &[RawDocumentBuf]) -> Vec<Bson> {
    let value = |key: &RawDocumentBuf| -> Option<Bson> {
        Bson::try_from(key.get("_id").ok().flatten()?).ok()
    };
    keys.iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;

    use super::*;

    fn after(events: &[RawDocumentBuf]) -> (Seen, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut reading = Reading {
            target: "c".into(),
            copy: "seekscope_reorder.c".into(),
            spool: Spool::create(folder.path()).unwrap(),
            keys: Vec::new(),
            seen: Seen::default(),
        };
        for event in events {
            reading.take(event);
        }
        (reading.seen, reading.keys.len())
    }

    #[test]
    fn changes_marks_and_ends_are_told_apart() {
        let event = |kind: &str, ns: &str, id: i32| {
            rawdoc! { "operationType": kind, "ns": { "db": "d", "coll": ns }, "documentKey": { "_id": id } }
        };
        let (seen, bytes) = after(&[event("insert", "c", 1), event("delete", "c", 1)]);
        assert_eq!((seen.changes, seen.not_deletions), (2, 1));
        assert_eq!(bytes, 2 * rawdoc! { "_id": 1 }.as_bytes().len());
        assert!(seen.end.is_none());
        assert_eq!(
            after(&[event("update", STATE, 1), event("insert", "x", 1)])
                .0
                .changes,
            0
        );
        assert!(matches!(
            after(&[event("drop", "c", 1)]).0.end,
            Some(End::Foreign(_))
        ));
        assert!(after(&[event("drop", STATE, 1)]).0.end.is_none());
        let rename = |from: &str| {
            rawdoc! { "operationType": "rename", "ns": { "coll": from }, "to": { "coll": "c" } }
        };
        assert!(matches!(
            after(&[rename("seekscope_reorder.c")]).0.end,
            Some(End::Swapped)
        ));
        assert!(matches!(after(&[rename("x")]).0.end, Some(End::Foreign(_))));
        let mark = ObjectId::new();
        let barrier = rawdoc! { "operationType": "insert", "ns": { "coll": STATE }, "documentKey": { "_id": mark } };
        assert_eq!(after(&[barrier]).0.barrier, Some(mark));
        let keyless = rawdoc! { "operationType": "update", "ns": { "coll": "c" } };
        assert!(matches!(after(&[keyless]).0.end, Some(End::Failed(_))));
    }
}
