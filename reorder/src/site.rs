//! Names the collections that a reordering works on, and how they are read and written.

use std::convert::Infallible;
use std::time::Duration;

use bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::Collection;
use mongodb::options::{
    Acknowledgment, CollectionOptions, ReadConcern, ReadPreference, SelectionCriteria, WriteConcern,
};
use seekscope_server::examination::rights;
use seekscope_server::{Namespace, Server, first_batch};

use crate::ReorderError;
use crate::replies::says;

/// The collection of records, in the database of the collections they describe.
pub(crate) const STATE: &str = "seekscope_reorder";
/// Prefix of a copy's name.
const COPY_PREFIX: &str = "seekscope_reorder.";

/// Time between two questions that make idle shards log something.
const AWAKE_EVERY: Duration = Duration::from_millis(250);

/// A collection on a server, with the names that belong to its reordering.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) namespace: Namespace,
    copy: Namespace,
    /// Whether it is a member of a replica set. If so, reads see only what no failover undoes.
    pub(crate) replica_set: bool,
    /// Whether it is reached through mongos.
    pub(crate) router: bool,
    /// Whether it has a validator. Documents in it may violate that, and are copied all the same, which takes a right
    /// of its own.
    pub(crate) has_validator: bool,
}

impl Site {
    /// Asks the server about its kind.
    pub(crate) async fn open(server: &Server, namespace: &Namespace) -> Result<Self, ReorderError> {
        let refused = |why: String| ReorderError::Refused {
            namespace: namespace.to_string(),
            why,
        };
        if namespace.collection() == STATE || namespace.collection().starts_with(COPY_PREFIX) {
            return Err(refused("it is one of seekscope's own".into()));
        }
        let copy = format!("{COPY_PREFIX}{}", namespace.collection());
        let copy = Namespace::new(namespace.database(), &copy)
            .map_err(|error| refused(format!("its copy could not be named: {error}")))?;
        let hello = server.hello().await?;
        Ok(Self {
            server: server.clone(),
            namespace: namespace.clone(),
            copy,
            replica_set: hello.set.is_some(),
            router: hello.is_router(),
            has_validator: false,
        })
    }

    /// Makes idle shards behind a router log something now and again, as long as it is polled: see
    /// [`Self::wake_idle_shards`].
    pub(crate) async fn keep_shards_awake(&self) -> Infallible {
        if !self.router {
            return std::future::pending().await;
        }
        loop {
            self.wake_idle_shards().await;
            tokio::time::sleep(AWAKE_EVERY).await;
        }
    }

    /// Makes every shard log something. A router passes on a change only when no shard can have an earlier one, and
    /// of a shard without writes it learns that from the no-op that the shard logs every ten seconds. A shard logs
    /// one at once when it is asked for a state as of a time that it has not reached. Where that fails, the no-op
    /// is waited for.
    async fn wake_idle_shards(&self) {
        let admin = |command| self.server.command_in_time("admin", command);
        let now = admin(doc! { "ping": 1 }).await;
        let Some(now) = now
            .ok()
            .and_then(|reply| reply.get_timestamp("operationTime").ok())
        else {
            return;
        };
        // Any question that goes to all shards; nobody's operation has this number.
        let question = vec![doc! { "$currentOp": {} }, doc! { "$match": { "opid": -1 } }];
        let concern = doc! { "level": "local", "afterClusterTime": now };
        let ask = doc! {
            "aggregate": 1, "pipeline": question, "cursor": {}, "readConcern": concern,
        };
        let _ = admin(ask).await;
    }

    pub(crate) fn database(&self) -> &str {
        self.namespace.database()
    }

    /// Returns the name of the original.
    pub(crate) fn target_name(&self) -> &str {
        self.namespace.collection()
    }

    pub(crate) fn copy_name(&self) -> &str {
        self.copy.collection()
    }

    pub(crate) fn copy_namespace(&self) -> &Namespace {
        &self.copy
    }

    /// Returns the original, for reading.
    pub(crate) fn target(&self) -> Collection<RawDocumentBuf> {
        self.collection(self.target_name(), Acknowledgment::Nodes(1))
    }

    /// Returns the copy, for reading and filling it. Writes are acknowledged by one member: before they are
    /// relied on, a record is written that a majority acknowledges, and everything before it in the log is
    /// then safe too.
    pub(crate) fn copy(&self) -> Collection<RawDocumentBuf> {
        self.collection(self.copy_name(), Acknowledgment::Nodes(1))
    }

    /// Returns the copy, for applying changes: they are checked at once, by reads that see only what a
    /// majority has.
    pub(crate) fn copy_for_changes(&self) -> Collection<RawDocumentBuf> {
        self.collection(self.copy_name(), Acknowledgment::Majority)
    }

    fn collection(&self, name: &str, written: Acknowledgment) -> Collection<RawDocumentBuf> {
        let concern = if self.replica_set || self.router {
            ReadConcern::majority()
        } else {
            ReadConcern::local()
        };
        let options = CollectionOptions::builder()
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .read_concern(concern)
            .write_concern(within_limit(written))
            .build();
        self.server
            .database(self.database())
            .collection_with_options(name, options)
    }

    /// Returns the collection of records; a write to them returns when it can no longer be lost.
    pub(crate) fn records(&self) -> Collection<Document> {
        records(&self.server, self.database())
    }

    /// Runs a command on the database.
    pub(crate) async fn command(&self, command: Document) -> Result<Document, ReorderError> {
        Ok(self.server.command(self.database(), command).await?)
    }

    /// Returns the error for a write to the copy: past a validator it takes another right than a plain one.
    pub(crate) fn not_written(&self, command: &str, error: &mongodb::error::Error) -> ReorderError {
        match self.has_validator {
            true => self.failed(rights::WRITE_PAST_VALIDATOR, error),
            false => self.failed(command, error),
        }
    }

    pub(crate) fn failed(&self, command: &str, error: &mongodb::error::Error) -> ReorderError {
        self.server.error(command, error).into()
    }

    pub(crate) fn aborted(&self, why: impl Into<String>) -> ReorderError {
        ReorderError::Aborted {
            namespace: self.namespace.to_string(),
            why: why.into(),
        }
    }

    pub(crate) fn refused(&self, why: impl Into<String>) -> ReorderError {
        ReorderError::Refused {
            namespace: self.namespace.to_string(),
            why: why.into(),
        }
    }

    /// Returns what `listCollections` says of a collection; `None` if there is none with that name.
    pub(crate) async fn listed(&self, name: &str) -> Result<Option<Document>, ReorderError> {
        let command = doc! { "listCollections": 1, "filter": { "name": name } };
        let reply = self.command(command).await?;
        let found = first_batch(&reply).find(|c| says(c, "name", name));
        Ok(found.cloned())
    }

    /// Returns what distinguishes a collection from another one that is given its name later; it stays with
    /// the collection when that is renamed. The UUID, or on servers before 3.6 the name of the table.
    pub(crate) async fn identity(&self, name: &str) -> Result<Option<String>, ReorderError> {
        let Some(listed) = self.listed(name).await? else {
            return Ok(None);
        };
        let uuid = listed.get_document("info").ok().and_then(|i| i.get("uuid"));
        if let Some(Bson::Binary(uuid)) = uuid {
            let hex = uuid.bytes.iter().map(|byte| format!("{byte:02x}"));
            return Ok(Some(hex.collect()));
        }
        let stats = self.command(doc! { "collStats": name }).await?;
        let table = stats
            .get_document("wiredTiger")
            .and_then(|w| w.get_str("uri"));
        match table {
            Ok(table) => Ok(Some(table.to_owned())),
            Err(_) => Err(self.refused("the server gives its collections no identity")),
        }
    }

    /// Returns the number of documents by the server's own count.
    pub(crate) async fn count(&self, name: &str) -> Result<u64, ReorderError> {
        Ok(self.server.count(self.database(), name).await?)
    }

    /// Checks that the original is still the same collection as at the start.
    pub(crate) async fn check_target(&self, identity: &str) -> Result<(), ReorderError> {
        match self.identity(self.target_name()).await? {
            Some(found) if found == identity => Ok(()),
            Some(_) => Err(self.aborted("somebody put another collection in its place")),
            None => Err(self.aborted("somebody dropped or renamed it")),
        }
    }
}

/// How long a majority of a set's members may take to acknowledge a write. Flow control (MongoDB 4.2) keeps it within ten
/// seconds of the primary, so one that takes longer is not there.
pub(crate) const MAJORITY_LIMIT: Duration = Duration::from_secs(30);

fn within_limit(written: Acknowledgment) -> WriteConcern {
    let limit = (written == Acknowledgment::Majority).then_some(MAJORITY_LIMIT);
    WriteConcern::builder().w(written).w_timeout(limit).build()
}

/// Returns the records of a database.
pub(crate) fn records(server: &Server, database: &str) -> Collection<Document> {
    let mut concern = within_limit(Acknowledgment::Majority);
    concern.journal = Some(true);
    let options = CollectionOptions::builder()
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .write_concern(concern)
        .build();
    server
        .database(database)
        .collection_with_options(STATE, options)
}
