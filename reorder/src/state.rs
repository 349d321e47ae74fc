//! Records each step on the server before it takes effect: one record for each reordering.

use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, Document, doc};
use mongodb::change_stream::event::ResumeToken;
use mongodb::error::{ErrorKind, WriteFailure};
use mongodb::options::WriteConcern;
use seekscope_server::Server;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::checksum::Checksum;
use crate::site::{STATE, Site};
use crate::worker::Worker;
use crate::writes::WriteCounts;
use crate::{By, Definition, ReorderError};

/// A worker that cannot be seen and was silent for this long is considered dead.
const SILENCE_MAX_S: i64 = 30;
const DUPLICATE_KEY: i32 = 11_000;

/// Recorded progress of a reordering. A phase is recorded when everything before it is done and durable.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Phase {
    /// The copy is incomplete; it is started over on resume.
    Copying,
    /// All documents are in the copy.
    Copied,
    /// The copy was found to hold what was read.
    Verified,
    /// It has its indexes, too.
    Indexed,
    /// The copy took the original's name, or is about to take it.
    Swapping,
}

impl Phase {
    /// Returns the name as recorded.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A document of the collection [`STATE`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the original.
    #[serde(rename = "_id")]
    pub(crate) collection: String,
    pub(crate) phase: Phase,
    pub(crate) worker: Worker,
    /// Time of the last heartbeat by the server's clock.
    pub(crate) heartbeat: DateTime,
    pub(crate) started: DateTime,
    /// Key pattern and name of the index that gives the order; `None` for the order of record ids.
    pub(crate) by: Option<Packed>,
    /// [`Site::identity`] of the original, and of the copy once that is created.
    pub(crate) original: String,
    pub(crate) copy: Option<String>,
    pub(crate) options: Packed,
    pub(crate) indexes: Vec<Packed>,
    /// Seed of the sums of documents.
    pub(crate) seed: i64,
    pub(crate) documents: i64,
    pub(crate) bytes: i64,
    /// Sum of what was read, as 32 hexadecimal digits.
    pub(crate) sum: String,
    /// Every change before this position in the change stream is in the copy.
    pub(crate) token: Option<ResumeToken>,
    /// The counts of writes to the original when the copy began, if there is no stream.
    pub(crate) writes: Option<WriteCounts>,
    /// The server was told to refuse writes.
    pub(crate) blocked: bool,
    /// The control of the writers was told to stop them.
    #[serde(default)]
    pub(crate) paused: bool,
    /// The copy is being dropped and is no longer of use.
    #[serde(default)]
    pub(crate) dropping: bool,
    /// The copy takes the original's place whatever its order.
    #[serde(default)]
    pub(crate) forced: bool,
    /// The most bytes of documents copied per second. Versions that did not record it have no limit here.
    #[serde(default)]
    pub(crate) max_rate: Option<i64>,
}

/// A document as bytes. Servers before 5.0 cannot store field names that begin with a dollar, as those of
/// validators do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Packed(Binary);

impl Packed {
    pub(crate) fn new(document: &Document) -> Result<Self, bson::error::Error> {
        Ok(Self(Binary {
            subtype: BinarySubtype::Generic,
            bytes: document.to_vec()?,
        }))
    }

    pub(crate) fn document(&self) -> Result<Document, bson::error::Error> {
        Document::from_reader(self.0.bytes.as_slice())
    }
}

impl Record {
    /// Returns a record for a new reordering.
    pub(crate) fn new(
        site: &Site,
        by: &By,
        definition: &Definition,
        worker: Worker,
    ) -> Result<Self, ReorderError> {
        let odd = |error: bson::error::Error| site.refused(error.to_string());
        let [a, b, c, d, e, f, g, h, ..] = bson::Uuid::new().bytes();
        Ok(Self {
            collection: site.target_name().into(),
            phase: Phase::Copying,
            worker,
            heartbeat: DateTime::now(),
            started: DateTime::now(),
            by: match by {
                By::Natural => None,
                By::Index(keys) => Some(Packed::new(keys).map_err(odd)?),
            },
            original: definition.identity.clone(),
            copy: None,
            options: Packed::new(&definition.options).map_err(odd)?,
            indexes: definition
                .indexes
                .iter()
                .map(|index| Packed::new(index).map_err(odd))
                .collect::<Result<_, _>>()?,
            seed: i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            documents: 0,
            bytes: 0,
            sum: String::new(),
            token: None,
            writes: None,
            blocked: false,
            paused: false,
            dropping: false,
            forced: false,
            max_rate: None,
        })
    }

    /// Returns the most bytes of documents that are copied per second, if there is a limit.
    pub(crate) fn max_rate(&self) -> Option<u64> {
        self.max_rate.map(i64::cast_unsigned)
    }

    pub(crate) fn set_max_rate(&mut self, bytes_per_s: Option<u64>) {
        self.max_rate = bytes_per_s.map(u64::cast_signed);
    }

    pub(crate) fn by(&self, site: &Site) -> Result<By, ReorderError> {
        Ok(match &self.by {
            None => By::Natural,
            Some(keys) => By::Index(
                keys.document()
                    .map_err(|e| odd_record(site, &e.to_string()))?,
            ),
        })
    }

    pub(crate) fn definition(&self, site: &Site) -> Result<Definition, ReorderError> {
        let odd = |e: bson::error::Error| odd_record(site, &e.to_string());
        let indexes = self.indexes.iter().map(|i| i.document().map_err(odd));
        Ok(Definition {
            namespace: site.namespace.clone(),
            identity: self.original.clone(),
            options: self.options.document().map_err(odd)?,
            indexes: indexes.collect::<Result<_, _>>()?,
            multikey: Vec::new(),
            obstacle: None,
            can_be_followed: site.replica_set || site.router,
        })
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed.cast_unsigned()
    }

    /// Returns the sum of what was read.
    pub(crate) fn checksum(&self, site: &Site) -> Result<Checksum, ReorderError> {
        let sum = u128::from_str_radix(&self.sum, 16);
        Ok(Checksum {
            seed: self.seed(),
            documents: self.documents.cast_unsigned(),
            bytes: self.bytes.cast_unsigned(),
            sum: sum.map_err(|e| odd_record(site, &e.to_string()))?,
        })
    }

    pub(crate) fn set_checksum(&mut self, checksum: &Checksum) {
        self.documents = checksum.documents.cast_signed();
        self.bytes = checksum.bytes.cast_signed();
        self.sum = format!("{:032x}", checksum.sum);
    }

    /// Reads the record of a collection.
    pub(crate) async fn read(site: &Site) -> Result<Option<Self>, ReorderError> {
        let found = site
            .records()
            .find_one(doc! { "_id": site.target_name() })
            .await;
        let found = found.map_err(|e| site.failed("find", &e))?;
        found
            .map(|document| Self::parse(site, document))
            .transpose()
    }

    pub(crate) fn parse(site: &Site, document: Document) -> Result<Self, ReorderError> {
        bson::deserialize_from_document(document).map_err(|e| odd_record(site, &e.to_string()))
    }

    fn to_document(&self, site: &Site) -> Result<Document, ReorderError> {
        bson::serialize_to_document(self).map_err(|e| odd_record(site, &e.to_string()))
    }

    /// Writes the first record of a collection.
    pub(crate) async fn insert(&mut self, site: &Site) -> Result<(), ReorderError> {
        self.heartbeat = server_time(&site.server).await?;
        let document = self.to_document(site)?;
        match site.records().insert_one(document).await {
            Ok(_) => Ok(()),
            Err(error) if is_duplicate(&error) => Err(ReorderError::Unfinished {
                namespace: site.namespace.to_string(),
            }),
            Err(error) => Err(site.failed("insert", &error)),
        }
    }

    /// Removes a record whose insertion failed, and which the primary may have all the same. Does not wait for other
    /// members, which may be why it failed.
    pub(crate) async fn withdraw(&self, site: &Site) {
        let records = site.records();
        let own = doc! { "_id": &self.collection, "worker.token": self.worker.token };
        let concern = WriteConcern::nodes(1);
        let removed = records.delete_one(own).write_concern(concern.clone());
        // What cannot be removed now is removed by --rollback.
        if removed.await.is_ok() && matches!(records.find_one(doc! {}).await, Ok(None)) {
            let _ = records.drop().write_concern(concern).await;
        }
    }

    /// Overwrites the earlier record, which must be of the same worker.
    pub(crate) async fn save(&self, site: &Site) -> Result<(), ReorderError> {
        self.replace(site, self.worker.token).await
    }

    /// Makes this process the worker, in place of a dead one.
    pub(crate) async fn take_over(&mut self, site: &Site) -> Result<(), ReorderError> {
        if let Some(busy) = self.busy(site).await? {
            return Err(busy);
        }
        let before = self.worker.token;
        self.worker = Worker::this();
        self.replace(site, before).await
    }

    async fn replace(&self, site: &Site, worker: bson::oid::ObjectId) -> Result<(), ReorderError> {
        let mut set = self.to_document(site)?;
        set.remove("_id");
        set.remove("heartbeat");
        let update = doc! { "$set": set, "$currentDate": { "heartbeat": true } };
        let filter = doc! { "_id": &self.collection, "worker.token": worker };
        let replaced = site.records().update_one(filter, update).await;
        let replaced = replaced.map_err(|e| site.failed("update", &e))?;
        if replaced.matched_count == 1 {
            Ok(())
        } else {
            Err(taken_over(site))
        }
    }

    /// Records a heartbeat of the worker on the server.
    pub(crate) async fn beat(site: &Site, worker: &Worker) -> Result<(), ReorderError> {
        let filter = doc! { "_id": site.target_name(), "worker.token": worker.token };
        let update = doc! { "$currentDate": { "heartbeat": true } };
        let beaten = site.records().update_one(filter, update).await;
        match beaten.map_err(|e| site.failed("update", &e))?.matched_count {
            1 => Ok(()),
            _ => Err(taken_over(site)),
        }
    }

    /// Returns the error that names the present worker; `None` if there is none any more.
    pub(crate) async fn busy(&self, site: &Site) -> Result<Option<ReorderError>, ReorderError> {
        let silent_ms =
            server_time(&site.server).await?.timestamp_millis() - self.heartbeat.timestamp_millis();
        let silent_s = (silent_ms / 1000).max(0);
        if !self.worker.is_alive().unwrap_or(silent_s < SILENCE_MAX_S) {
            return Ok(None);
        }
        Ok(Some(ReorderError::Busy {
            namespace: site.namespace.to_string(),
            worker: self.worker.to_string(),
            age_s: silent_s.cast_unsigned(),
        }))
    }

    /// Removes the record; with the last one the collection of records is dropped as a whole, so that no
    /// crash leaves it behind empty.
    pub(crate) async fn remove(&self, site: &Site) -> Result<(), ReorderError> {
        let records = site.records();
        let name = &self.collection;
        let others = doc! { "$nor": [{ "_id": name }, { "barrier_of": name }] };
        let other = records.find_one(others).await;
        if other.map_err(|e| site.failed("find", &e))?.is_none() {
            return records.drop().await.map_err(|e| site.failed("drop", &e));
        }
        let marks = doc! { "barrier_of": name };
        let removed = records.delete_many(marks).await;
        removed.map_err(|e| site.failed("delete", &e))?;
        let own = doc! { "_id": name, "worker.token": self.worker.token };
        let removed = records.delete_one(own).await;
        removed.map(|_| ()).map_err(|e| site.failed("delete", &e))
    }
}

/// Returns the time of the server's clock.
async fn server_time(server: &Server) -> Result<DateTime, ReorderError> {
    let hello = server.command("admin", doc! { "isMaster": 1 }).await?;
    Ok(hello
        .get_datetime("localTime")
        .copied()
        .unwrap_or_else(|_| DateTime::now()))
}

fn odd_record(site: &Site, why: &str) -> ReorderError {
    site.refused(format!(
        "its record in {}.{STATE} is not what this seekscope writes ({why}); \
         use the version that began",
        site.database()
    ))
}

fn taken_over(site: &Site) -> ReorderError {
    site.aborted("another seekscope took over or rolled it back")
}

pub(crate) fn is_duplicate(error: &mongodb::error::Error) -> bool {
    match error.kind.as_ref() {
        ErrorKind::Write(WriteFailure::WriteError(e)) => e.code == DUPLICATE_KEY,
        ErrorKind::InsertMany(e) => {
            e.write_concern_error.is_none()
                && e.write_errors.as_ref().is_some_and(|errors| {
                    !errors.is_empty() && errors.iter().all(|e| e.code == DUPLICATE_KEY)
                })
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as an earlier version left it.
    fn earlier() -> Document {
        let worker = bson::serialize_to_document(&Worker::this()).unwrap();
        doc! {
            "_id": "orders", "phase": "copying", "worker": worker, "heartbeat": DateTime::now(),
            "started": DateTime::now(), "by": null, "original": "uuid", "copy": null,
            "options": Packed::new(&doc! {}).unwrap().0, "indexes": [], "seed": 1_i64, "documents": 0_i64,
            "bytes": 0_i64, "sum": "", "token": null, "writes": null, "blocked": false,
        }
    }

    #[test]
    fn the_rate_is_recorded_and_an_earlier_record_has_none() {
        let mut record: Record = bson::deserialize_from_document(earlier()).unwrap();
        assert_eq!((record.max_rate(), record.forced), (None, false));
        record.set_max_rate(Some(8_000_000));
        let document = bson::serialize_to_document(&record).unwrap();
        let again: Record = bson::deserialize_from_document(document).unwrap();
        assert_eq!(again.max_rate(), Some(8_000_000));
    }
}
