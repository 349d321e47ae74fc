//! Manages a database that benchmarks own, and that records this itself.
//!
//! Before the first document of a data set is written, an entry in the collection [`OWNER`] records what it
//! is and which collections it consists of. A database that holds a document in anything that no entry lists
//! is refused. Entries also store what a later run must know of the data, such as the number of the next
//! insert.
//!
//! An empty collection may have been prepared for a load, e.g. sharded. It is used as it is, unless it is
//! capped: that would not keep what is loaded. Only what
//! entries list and seekscope created is ever dropped; a collection that was prepared, or is sharded by now,
//! is emptied instead, because dropping it would undo what its owner decided. What seekscope sharded itself it drops.

use std::collections::BTreeMap;

use bson::{Bson, Document, doc};
use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::options::{Acknowledgment, CollectionOptions, WriteConcern};
use seekscope_run::units::format_list;
use seekscope_server::{Namespace, Server, ServerError, first_batch};
use serde::{Deserialize, Serialize};

use crate::WorkloadError;

/// The default database of benchmarks.
pub const DEFAULT_DATABASE: &str = "seekscope_bench";
/// The collection of entries, in the database itself.
pub const OWNER: &str = "seekscope_owner";

/// Databases that belong to the server itself.
const RESERVED: [&str; 3] = ["admin", "local", "config"];
/// Returns whether the database with that name is the server's own. No benchmark may write there.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Number of foreign collections' names that an error shows.
const NAMES_SHOWN: usize = 5;
/// The most entries that are read; no database of ours has more.
const ENTRIES_MAX: i64 = 1_000;

/// The description of a data set: an entry of [`OWNER`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataSet {
    /// Unique in the database, e.g. "ycsb", "sysbench-mongodb", "index lab".
    #[serde(rename = "_id")]
    pub name: String,
    /// The collections that it consists of; no other data set may have them.
    pub collections: Vec<String>,
    /// The collections among them that existed, empty, before the first load: they are emptied and never dropped.
    #[serde(default)]
    pub prepared: Vec<String>,
    /// The collections among them that seekscope creates sharded: they are dropped like any other of its own.
    #[serde(default)]
    pub sharded: Vec<String>,
    /// What determines its documents: the edition of the workload, and every setting that changes them.
    pub edition: String,
    pub settings: BTreeMap<String, String>,
    pub records: u64,
    pub seed: u64,
    /// Number of the next record that a run inserts; `records` when none has inserted yet.
    pub next_insert: u64,
    /// Whether all records were loaded.
    pub loaded: bool,
    /// The version of seekscope that made it.
    pub made_by: String,
}

impl DataSet {
    /// Returns a data set that is yet to be loaded.
    pub fn new(
        name: &str,
        collections: Vec<String>,
        edition: &str,
        records: u64,
        seed: u64,
    ) -> Self {
        Self {
            name: name.into(),
            collections,
            prepared: Vec::new(),
            sharded: Vec::new(),
            edition: edition.into(),
            settings: BTreeMap::new(),
            records,
            seed,
            next_insert: records,
            loaded: false,
            made_by: format!("seekscope {}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// Returns whether the same documents would be loaded. The state of the data is ignored.
    pub fn is_same_data(&self, other: &Self) -> bool {
        let made_of = |d: &Self| {
            let mut collections = d.collections.clone();
            collections.sort();
            (
                d.name.clone(),
                collections,
                d.edition.clone(),
                d.settings.clone(),
                d.records,
                d.seed,
            )
        };
        made_of(self) == made_of(other)
    }
}

/// Refuses a shard: only a mongos may write what is spread over several, and know where it is.
///
/// # Errors
/// [`WorkloadError::Shard`], and those of a server that does not answer.
pub async fn refuse_shard(server: &Server) -> Result<(), WorkloadError> {
    match server.is_shard().await {
        // Its replies do not say that it is one.
        Ok(false) | Err(ServerError::NotAuthorised { .. }) => Ok(()),
        Ok(true) => Err(WorkloadError::Shard {
            uri: server.shown_uri(),
        }),
        Err(error) => Err(error.into()),
    }
}

/// A database that is entirely ours.
#[derive(Debug)]
pub struct OwnedDatabase {
    server: Server,
    name: String,
    data_sets: Vec<DataSet>,
}

impl OwnedDatabase {
    /// Checks that all documents in the database are ours, and that it is not a shard's. Changes nothing.
    pub async fn open(server: &Server, name: &str) -> Result<Self, WorkloadError> {
        let refused = |why: &str| WorkloadError::Database {
            name: name.chars().take(100).collect(),
            why: why.into(),
        };
        Namespace::new(name, OWNER).map_err(|error| refused(&error.to_string()))?;
        if is_reserved(name) {
            return Err(refused("it is one of the server's own"));
        }
        refuse_shard(server).await?;
        let mut database = Self {
            server: server.clone(),
            name: name.into(),
            data_sets: Vec::new(),
        };
        database.data_sets = database.read_entries().await?;
        let mut foreign = Vec::new();
        for collection in database.collection_names().await? {
            if !database.is_ours(&collection) && !database.is_empty(&collection).await? {
                foreign.push(collection);
            }
        }
        if foreign.is_empty() {
            return Ok(database);
        }
        foreign.sort_unstable();
        Err(WorkloadError::ForeignDatabase {
            name: name.into(),
            count: foreign.len(),
            collections: format_list(&foreign, NAMES_SHOWN, ", "),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the data sets in it.
    pub fn data_sets(&self) -> &[DataSet] {
        &self.data_sets
    }

    pub fn data_set(&self, name: &str) -> Option<&DataSet> {
        self.data_sets.iter().find(|d| d.name == name)
    }

    /// Writes a data set's entry, replacing any earlier one with that name. Call this before its first
    /// document is written; its collections must be new, empty, or belong to the earlier one.
    pub async fn record(&mut self, mut data_set: DataSet) -> Result<(), WorkloadError> {
        let refused = |collection: &str, why: &str| WorkloadError::Database {
            name: format!("{}.{collection}", self.name),
            why: why.into(),
        };
        let earlier = self.data_set(&data_set.name);
        let before = earlier.map_or(&[][..], |d| d.collections.as_slice());
        data_set.prepared = earlier.map_or_else(Vec::new, |d| d.prepared.clone());
        let existing = self.collection_names().await?;
        for collection in &data_set.collections {
            Namespace::new(&self.name, collection)
                .map_err(|error| refused(collection, &error.to_string()))?;
            if collection == OWNER {
                return Err(refused(collection, "seekscope records there what it owns"));
            }
            if collection.starts_with("system.") {
                return Err(refused(
                    collection,
                    "names that begin with system. are the server's own",
                ));
            }
            if existing.contains(collection) && !before.contains(collection) {
                if self.is_ours(collection) || !self.is_empty(collection).await? {
                    return Err(refused(
                        collection,
                        "it exists and does not belong to this data set",
                    ));
                }
                data_set.prepared.push(collection.clone());
            }
            if self.is_capped(collection).await? {
                let why = "it is capped, so the server would remove documents while others are \
                           being loaded (drop it if nobody needs it)";
                return Err(refused(collection, why));
            }
        }
        if let Some(forgotten) = before
            .iter()
            .find(|c| existing.contains(*c) && !data_set.collections.contains(*c))
        {
            return Err(refused(
                forgotten,
                "it also belongs to the earlier data set; drop that one first",
            ));
        }
        self.entries()
            .replace_one(doc! { "_id": &data_set.name }, &data_set)
            .upsert(true)
            .await
            .map_err(|error| self.server.error("update", &error))?;
        self.data_sets.retain(|d| d.name != data_set.name);
        self.data_sets.push(data_set);
        Ok(())
    }

    /// Records that all documents are loaded.
    pub async fn set_loaded(&mut self, name: &str) -> Result<(), WorkloadError> {
        self.change(name, doc! { "$set": { "loaded": true } }).await
    }

    /// Records that collections of a data set will be created sharded. Call this before they are.
    pub async fn set_sharded(
        &mut self,
        name: &str,
        collections: &[String],
    ) -> Result<(), WorkloadError> {
        let change = doc! { "$set": { "sharded": collections.to_vec() } };
        self.change(name, change).await
    }

    /// Returns whether a collection exists and would be there, emptied, after its data set was dropped.
    pub async fn stays(&self, collection: &str) -> Result<bool, WorkloadError> {
        let exists = self
            .collection_names()
            .await?
            .iter()
            .any(|c| c == collection);
        let listed = |data_set: &&DataSet| data_set.collections.iter().any(|c| c == collection);
        match self.data_sets.iter().find(listed) {
            Some(data_set) if exists => self.must_stay(data_set, collection).await,
            _ => Ok(exists),
        }
    }

    /// Records how far inserts have got. Several clients may do so; the highest number holds.
    pub async fn advance(&mut self, name: &str, next_insert: u64) -> Result<(), WorkloadError> {
        let next_insert = i64::try_from(next_insert).unwrap_or(i64::MAX);
        self.change(name, doc! { "$max": { "next_insert": next_insert } })
            .await
    }

    async fn change(&mut self, name: &str, update: bson::Document) -> Result<(), WorkloadError> {
        self.entries()
            .update_one(doc! { "_id": name }, update)
            .await
            .map_err(|error| self.server.error("update", &error))?;
        self.data_sets = self.read_entries().await?;
        Ok(())
    }

    /// Drops a data set's collections, or empties them if they must stay (see the module), then drops its
    /// entry; with the last one the database is gone, if nothing had to stay.
    pub async fn drop_data_set(&mut self, name: &str) -> Result<(), WorkloadError> {
        let Some(data_set) = self.data_set(name).cloned() else {
            return Ok(());
        };
        // From here on it is unfit for measurements, however far this gets.
        self.change(name, doc! { "$set": { "loaded": false } })
            .await?;
        let failed = |error| self.server.error("drop", &error);
        let database = self.server.database(&self.name);
        let existing = self.collection_names().await?;
        for collection in data_set.collections.iter().filter(|c| existing.contains(c)) {
            let must_stay = self.must_stay(&data_set, collection).await?;
            let collection = database.collection_with_options(collection, acknowledged());
            let collection: Collection<Document> = collection;
            if must_stay {
                let emptied = collection.delete_many(doc! {}).await;
                emptied.map_err(|error| self.server.error("delete", &error))?;
            } else {
                collection.drop().await.map_err(failed)?;
            }
        }
        let entries = self.entries();
        entries
            .delete_one(doc! { "_id": name })
            .await
            .map_err(failed)?;
        self.data_sets.retain(|d| d.name != name);
        if self.data_sets.is_empty() {
            entries.drop().await.map_err(failed)?;
            self.drop_entry_of_cluster().await?;
        }
        Ok(())
    }

    /// Makes a cluster forget the database once nothing is left in it. A server does so by itself; a cluster keeps the
    /// entry, and its primary shard could not be removed.
    async fn drop_entry_of_cluster(&self) -> Result<(), WorkloadError> {
        if self.server.hello().await?.is_router() && self.collection_names().await?.is_empty() {
            let dropped = self.server.database(&self.name).drop().await;
            dropped.map_err(|error| self.server.error("dropDatabase", &error))?;
        }
        Ok(())
    }

    /// Drops every data set.
    pub async fn drop_all(mut self) -> Result<(), WorkloadError> {
        let names: Vec<String> = self.data_sets.iter().map(|d| d.name.clone()).collect();
        for name in names {
            self.drop_data_set(&name).await?;
        }
        Ok(())
    }

    /// The connection string's write concern is for the benchmark; entries are always acknowledged.
    fn entries(&self) -> Collection<DataSet> {
        self.server
            .database(&self.name)
            .collection_with_options(OWNER, acknowledged())
    }

    async fn read_entries(&self) -> Result<Vec<DataSet>, WorkloadError> {
        let failed = |error: mongodb::error::Error| match error.kind.as_ref() {
            mongodb::error::ErrorKind::Bson(why) => WorkloadError::Database {
                name: format!("{}.{OWNER}", self.name),
                why: format!("it holds data that seekscope did not write ({why})"),
            },
            _ => self.server.error("find", &error).into(),
        };
        let entries = self.entries();
        let found = entries.find(doc! {}).limit(ENTRIES_MAX);
        let cursor = found.await.map_err(failed)?;
        cursor.try_collect().await.map_err(failed)
    }

    async fn collection_names(&self) -> Result<Vec<String>, WorkloadError> {
        let names = self
            .server
            .database(&self.name)
            .list_collection_names()
            .await;
        Ok(names.map_err(|error| self.server.error("listCollections", &error))?)
    }

    /// Returns whether it is a collection, not a view, and without any document. The primary answers.
    async fn is_empty(&self, collection: &str) -> Result<bool, WorkloadError> {
        let listed = self.listed(collection).await?;
        if listed.get_str("type").ok() != Some("collection") {
            return Ok(false);
        }
        let one = doc! { "find": collection, "limit": 1, "projection": { "_id": 1 } };
        Ok(self.first_of(one).await?.is_none())
    }

    async fn is_capped(&self, collection: &str) -> Result<bool, WorkloadError> {
        let listed = self.listed(collection).await?;
        let options = listed.get_document("options").ok();
        Ok(options.and_then(|options| options.get_bool("capped").ok()) == Some(true))
    }

    /// Returns what `listCollections` says of a collection: nothing if there is none.
    async fn listed(&self, collection: &str) -> Result<Document, WorkloadError> {
        let list = doc! { "listCollections": 1, "filter": { "name": collection } };
        Ok(self.first_of(list).await?.unwrap_or_default())
    }

    /// Returns the first document of a command's answer.
    async fn first_of(&self, command: Document) -> Result<Option<Document>, WorkloadError> {
        let reply = self.server.command(&self.name, command).await?;
        Ok(first_batch(&reply).next().cloned())
    }

    /// Returns whether it was there before us, or was sharded by somebody else.
    async fn must_stay(&self, data_set: &DataSet, collection: &str) -> Result<bool, WorkloadError> {
        if data_set.prepared.iter().any(|c| c == collection) {
            return Ok(true);
        }
        let is_ours = data_set.sharded.iter().any(|c| c == collection);
        Ok(!is_ours && self.is_sharded(collection).await?)
    }

    /// Returns whether it is sharded. Only a mongos reports this.
    async fn is_sharded(&self, collection: &str) -> Result<bool, WorkloadError> {
        let stats = doc! { "collStats": collection };
        let stats = self.server.command(&self.name, stats).await?;
        Ok(stats.get("sharded").and_then(Bson::as_bool) == Some(true))
    }

    /// Returns whether the collection is listed, or was created by the server beside one that is.
    fn is_ours(&self, collection: &str) -> bool {
        let listed = |name: &str| {
            let mut all = self.data_sets.iter().flat_map(|d| &d.collections);
            all.any(|c| c == name)
        };
        let behind = collection.strip_prefix("system.buckets.");
        let is_servers = ["system.views", "system.profile"].contains(&collection);
        collection == OWNER || is_servers || listed(collection) || behind.is_some_and(listed)
    }
}

/// Requires acknowledgement by one member, whatever the connection string's write concern.
fn acknowledged() -> CollectionOptions {
    let concern = WriteConcern::builder().w(Acknowledgment::Nodes(1)).build();
    CollectionOptions::builder().write_concern(concern).build()
}
