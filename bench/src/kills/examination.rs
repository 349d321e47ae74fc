//! What is there: names and definitions, and every document against what may be.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result};
use bson::{Bson, Document, RawDocumentBuf, doc};
use futures_util::TryStreamExt;
use seekscope_server::{Server, number};

use super::documents::{COLLECTION, DATABASE, document};
use super::expected::{Expected, Version};

const EXPIRES: &str = "expireAfterSeconds";
/// Databases in which servers create collections of their own, some minutes after their start or at the first
/// transaction.
const OF_SERVER: [&str; 2] = ["config", "local"];

/// What must be the same before and after: names of collections, and options and indexes of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Definitions {
    /// The collections of all databases, as `database.collection`.
    collections: BTreeSet<String>,
    options: Option<Document>,
    indexes: BTreeMap<String, Document>,
    uuid: Option<Bson>,
}

impl Definitions {
    pub async fn read(server: &Server) -> Result<Self> {
        let mut found = Self {
            collections: BTreeSet::new(),
            options: None,
            indexes: BTreeMap::new(),
            uuid: None,
        };
        for database in server.client().list_database_names().await? {
            for collection in first_batch(server, &database, doc! { "listCollections": 1 }).await? {
                let name = collection.get_str("name")?;
                if !OF_SERVER.contains(&database.as_str()) {
                    found.collections.insert(format!("{database}.{name}"));
                }
                if (database.as_str(), name) == (DATABASE, COLLECTION) {
                    found.options = Some(collection.get_document("options")?.clone());
                    found.uuid = collection.get_document("info")?.get("uuid").cloned();
                }
            }
        }
        if found.options.is_some() {
            let list = doc! { "listIndexes": COLLECTION };
            for mut index in first_batch(server, DATABASE, list).await? {
                // mongod's collMod keeps the same seconds in another type.
                if let Some(&Bson::Int32(seconds)) = index.get(EXPIRES) {
                    index.insert(EXPIRES, i64::from(seconds));
                }
                found
                    .indexes
                    .insert(index.get_str("name")?.to_owned(), index);
            }
        }
        Ok(found)
    }

    /// Returns whether it is another collection of the same name.
    pub fn replaced(&self, before: &Self) -> bool {
        self.uuid != before.uuid
    }

    /// Each difference as a sentence.
    pub fn differences(&self, before: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for name in self.collections.difference(&before.collections) {
            found.push(format!("stray collection {name}"));
        }
        for name in before.collections.difference(&self.collections) {
            found.push(format!("missing collection {name}"));
        }
        if self.options != before.options {
            found.push(format!(
                "options {:?}, were {:?}",
                self.options, before.options
            ));
        }
        if self.indexes != before.indexes {
            found.push(format!(
                "indexes {:?}, were {:?}",
                self.indexes, before.indexes
            ));
        }
        found
    }
}

async fn first_batch(server: &Server, database: &str, mut list: Document) -> Result<Vec<Document>> {
    list.insert("cursor", doc! { "batchSize": 10_000 });
    let reply = server.command(database, list).await?;
    let batch = reply.get_document("cursor")?.get_array("firstBatch")?;
    let documents = batch.iter().map(|one| one.as_document().cloned());
    documents
        .collect::<Option<_>>()
        .context("not a document in a list")
}

/// What came of the documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents {
    pub present: u64,
    /// Documents that were acknowledged, but are missing.
    pub lost: u64,
    /// Documents that are there more than once.
    pub doubled: u64,
    /// Documents that are there although they were deleted, or never written.
    pub undead: u64,
    /// Documents in another version than the last acknowledged one, or with other bytes.
    pub wrong: u64,
    /// Indexes whose entries are not those of the documents.
    pub broken_indexes: u64,
    /// Some of what is wrong, a sentence each.
    pub said: Vec<String>,
}

const SAID_MAX: usize = 5;

impl Documents {
    pub fn sound(&self) -> bool {
        self.lost + self.doubled + self.undead + self.wrong + self.broken_indexes == 0
    }

    fn say(&mut self, what: String) {
        if self.said.len() < SAID_MAX {
            self.said.push(what);
        }
    }

    /// Reads everything. Afterwards `expected` knows what is there, right or wrong, so that the next
    /// trial is judged by itself.
    pub async fn examine(server: &Server, expected: &mut [&mut Expected]) -> Result<Self> {
        let mut result = Self::default();
        let mut found = scan(server, &mut result).await?;
        let writers = expected.len();
        for share in expected.iter_mut() {
            let possible: Vec<(i64, Vec<Version>)> = share
                .iter()
                .map(|(id, versions)| (id, versions.to_vec()))
                .collect();
            for (id, versions) in possible {
                let now = found.remove(&id);
                result.judge(id, now.as_ref(), &versions);
                let version = now.as_ref().and_then(|d| d.get_i64("v").ok());
                share.is(id, version);
            }
        }
        for (id, _) in found {
            result.undead += 1;
            result.say(format!("{id} was never written"));
            let owner = usize::try_from(id).unwrap_or(0) % writers.max(1);
            // Unknown to its writer, it would be inserted again and refused.
            expected[owner].is(id, None);
        }
        result.check_indexes(server).await?;
        Ok(result)
    }

    fn judge(&mut self, id: i64, now: Option<&RawDocumentBuf>, possible: &[Version]) {
        let version: Version = now.and_then(|d| d.get_i64("v").ok());
        self.present += u64::from(now.is_some());
        if !possible.contains(&version) {
            let count = match (now, possible) {
                (None, _) => &mut self.lost,
                (Some(_), [None]) => &mut self.undead,
                (Some(_), _) => &mut self.wrong,
            };
            *count += 1;
            self.say(format!("{id} is {version:?}, may be {possible:?}"));
        } else if let (Some(now), Some(version)) = (now, version)
            && now.as_bytes() != document(id, version).as_bytes()
        {
            self.wrong += 1;
            self.say(format!(
                "{id} in version {version} has other bytes: {now:?}"
            ));
        }
    }

    /// An index that was built before a document came, or not told of it, has another count.
    async fn check_indexes(&mut self, server: &Server) -> Result<()> {
        for index in ["_id_", "v_1", "unique", "expiry"] {
            let count = doc! { "count": COLLECTION, "query": {}, "hint": index };
            let counted = server.command(DATABASE, count).await;
            let present = counted
                .ok()
                .and_then(|reply| reply.get("n").and_then(number));
            if present != Some(self.present) {
                self.broken_indexes += 1;
                self.say(format!(
                    "{index} has {present:?} of {} documents",
                    self.present
                ));
            }
        }
        Ok(())
    }
}

async fn scan(server: &Server, result: &mut Documents) -> Result<HashMap<i64, RawDocumentBuf>> {
    let collection = server
        .database(DATABASE)
        .collection::<RawDocumentBuf>(COLLECTION);
    let mut cursor = collection
        .find(doc! {})
        .hint(mongodb::options::Hint::Keys(doc! { "$natural": 1 }))
        .await?;
    let mut found = HashMap::new();
    while let Some(document) = cursor.try_next().await? {
        let id = document
            .get_i64("_id")
            .context("a document without our _id")?;
        if found.insert(id, document).is_some() {
            result.doubled += 1;
            result.say(format!("{id} is there twice"));
        }
    }
    Ok(found)
}
