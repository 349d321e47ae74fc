//! Describes a collection: its options and indexes, and whether it can be reordered.

use bson::{Document, doc};
use seekscope_server::{Namespace, Server, ServerError, first_batch, float};

use crate::obstacles::{self, Obstacle};
use crate::replies::{is_set, says};
use crate::same::same_value;
use crate::site::Site;
use crate::{By, ReorderError};

/// Databases that belong to the server itself.
const RESERVED: [&str; 3] = ["admin", "local", "config"];

/// Options, indexes and identity of a collection, as reported by the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub namespace: Namespace,
    pub(crate) identity: String,
    pub(crate) options: Document,
    pub(crate) indexes: Vec<Document>,
    /// Names of the original's indexes that hold a document several times.
    pub(crate) multikey: Vec<String>,
    /// Why it cannot be reordered in any way.
    pub(crate) obstacle: Option<Obstacle>,
    /// Whether a change stream can tell what is written while it is copied. A standalone server has none, and nobody may
    /// write to the collection there.
    pub(crate) can_be_followed: bool,
}

impl Definition {
    /// Reads the definition from the server. Returns an error if the collection does not exist.
    pub async fn read(server: &Server, namespace: &Namespace) -> Result<Self, ReorderError> {
        let site = Site::open(server, namespace).await?;
        if site.listed(site.target_name()).await?.is_none() {
            let namespace = namespace.to_string();
            return Err(ReorderError::NoCollection { namespace });
        }
        Self::with_obstacles(&site).await
    }

    /// Reads the original's definition with its obstacles; some servers take long to report these.
    pub(crate) async fn with_obstacles(site: &Site) -> Result<Self, ReorderError> {
        let mut definition = Self::of(site, site.target_name()).await?;
        if definition.obstacle.is_none() {
            definition.obstacle = obstacle_of_sharding(site, site.target_name()).await?;
            definition.multikey =
                multikey_indexes(site, site.target_name(), &definition.indexes).await;
        }
        Ok(definition)
    }

    /// Reads the definition of a collection in the site's database, either the original or the copy.
    pub(crate) async fn of(site: &Site, name: &str) -> Result<Self, ReorderError> {
        let listed = site.listed(name).await?;
        let listed = listed.ok_or_else(|| site.refused("there is no collection of that name"))?;
        let options = listed.get_document("options").cloned().unwrap_or_default();
        let mut definition = Self {
            namespace: site.namespace.clone(),
            identity: String::new(),
            obstacle: obstacle_of_kind(site.database(), name, &listed, &options),
            can_be_followed: site.replica_set || site.router,
            options,
            indexes: Vec::new(),
            multikey: Vec::new(),
        };
        if definition.obstacle.is_some() {
            return Ok(definition);
        }
        let gone = || site.aborted("somebody dropped or renamed it");
        definition.identity = site.identity(name).await?.ok_or_else(gone)?;
        let reply = site.command(doc! { "listIndexes": name }).await?;
        definition.indexes = first_batch(&reply).cloned().collect();
        Ok(definition)
    }

    /// Returns why the collection cannot be reordered like that, as a sentence; `None` if it can. `quiesced`:
    /// nobody writes to it.
    pub fn refusal(&self, by: &By, quiesced: bool) -> Option<String> {
        if let Some(obstacle) = &self.obstacle {
            return Some(obstacle.why.clone());
        }
        let id = self.indexes.iter().any(|i| says(i, "name", "_id_"));
        let clustered = self.options.contains_key("clusteredIndex");
        if !id && !clustered {
            return Some("it has no index on _id, by which changes are found again".into());
        }
        if self.options.contains_key("expireAfterSeconds") {
            return Some(
                "the server expires its documents by its clustered index, and would do so \
                 in the copy as well"
                    .into(),
            );
        }
        if is_set(&self.options, "capped") {
            if *by != By::Natural {
                return Some("it is capped: the order of its documents is their age".into());
            }
            if self.can_be_followed && !quiesced {
                return Some(
                    "it is capped, so changes cannot be brought over in their order; \
                     stop its writers and use --quiesced"
                        .into(),
                );
            }
        }
        match by {
            By::Natural => None,
            By::Index(_) if clustered => {
                Some("its documents are clustered by the server, in the order of _id".into())
            }
            By::Index(keys) => self.index_for(keys).err(),
        }
    }

    /// Returns whether it is on shards, which is all that keeps a copy from taking its place.
    pub fn is_on_shards(&self) -> bool {
        let obstacle = self.obstacle.as_ref();
        obstacle.is_some_and(|obstacle| obstacle.is_of_shards)
    }

    /// Returns index definitions as reported by `listIndexes`.
    pub fn indexes(&self) -> &[Document] {
        &self.indexes
    }

    /// Returns whether the server checks documents when they are written.
    pub(crate) fn has_validator(&self) -> bool {
        self.options.contains_key("validator")
    }

    /// Returns options as reported by `listCollections`.
    pub fn options(&self) -> &Document {
        &self.options
    }

    /// Returns all keys of the index that gives the order; `None` for the natural order, and where there is none.
    pub fn order_keys(&self, by: &By) -> Option<&Document> {
        match by {
            By::Natural => None,
            By::Index(keys) => self.index_for(keys).ok()?.get_document("key").ok(),
        }
    }

    /// Returns an index whose keys begin with these and which holds every document once.
    fn index_for(&self, keys: &Document) -> Result<&Document, String> {
        let directions = keys.values().all(|d| matches!(float(d), Some(1.0 | -1.0)));
        if keys.is_empty() || !directions {
            return Err(format!(
                "{keys} is not a key pattern of ascending (1) and descending (-1) fields"
            ));
        }
        let begins = |index: &&Document| {
            let own = index.get_document("key");
            own.is_ok_and(|own| {
                own.len() >= keys.len()
                    && own
                        .iter()
                        .zip(keys)
                        .all(|((a, x), (b, y))| a == b && same_value(x, y))
            })
        };
        let mut why = format!("it has no index that begins with {keys}");
        for index in self.indexes.iter().filter(begins) {
            match self.unfit(index) {
                None => return Ok(index),
                Some(unfit) => why = format!("its index {} {unfit}", name(index)),
            }
        }
        Err(why)
    }

    /// Returns the name of that index.
    pub(crate) fn index_name_for(&self, keys: &Document) -> Result<&str, String> {
        self.index_for(keys).map(name)
    }

    /// Returns why an index does not give the order of all documents.
    fn unfit(&self, index: &Document) -> Option<&'static str> {
        let set = |name: &str| is_set(index, name);
        let keys = index.get_document("key").ok()?;
        if set("sparse") || index.contains_key("partialFilterExpression") {
            Some("does not hold every document")
        } else if index
            .get_str("name")
            .is_ok_and(|name| self.multikey.iter().any(|multikey| multikey == name))
        {
            Some(
                "holds elements of arrays (it is multikey), so a document has several places in it",
            )
        } else if set("hidden") {
            Some("is hidden from queries")
        } else if keys.values().any(|v| float(v).is_none())
            || keys.keys().any(|k| k.contains("$**"))
        {
            Some("is hashed, text, wildcard or geographic and has no order of values")
        } else if index.get("collation") != self.options.get("collation") {
            Some("has a different collation from the collection")
        } else {
            None
        }
    }
}

fn obstacle_of_kind(
    database: &str,
    name: &str,
    listed: &Document,
    options: &Document,
) -> Option<Obstacle> {
    let kind = listed.get_str("type").unwrap_or("collection");
    let why = if RESERVED.contains(&database) {
        "the database is the server's own"
    } else if kind == "view" || options.contains_key("viewOn") {
        "it is a view and holds no documents"
    } else if kind == "timeseries" || options.contains_key("timeseries") {
        "it is a time-series collection: the server arranges its buckets, and a copy would be \
         bucketed anew"
    } else if name.starts_with("system.") {
        "it is one of the server's own"
    } else if options.contains_key("encryptedFields") {
        "it has encrypted fields: their state collections belong to its identity"
    } else if is_set(options, "temp") {
        "it is temporary"
    } else {
        return None;
    };
    Some(Obstacle::new(why))
}

/// Returns obstacles that only the server knows: shards, indexes under construction.
async fn obstacle_of_sharding(site: &Site, name: &str) -> Result<Option<Obstacle>, ReorderError> {
    let stats = site.command(doc! { "collStats": name }).await?;
    let is_shard = match site.server.is_shard().await {
        // Every shard is a replica set: a rename must not happen on one only because the question was not
        // permitted.
        Err(ServerError::NotAuthorised { .. }) if !site.replica_set => false,
        asked => asked?,
    };
    Ok(obstacles::obstacle(&stats, is_shard))
}

fn name(index: &Document) -> &str {
    index.get_str("name").unwrap_or_default()
}

/// Returns the names of the indexes that hold elements of arrays, where the server reports it.
async fn multikey_indexes(site: &Site, name: &str, indexes: &[Document]) -> Vec<String> {
    let mut multikey = Vec::new();
    for index in indexes.iter().filter_map(|i| i.get_str("name").ok()) {
        let find = doc! { "find": name, "filter": {}, "hint": index };
        let explain = doc! { "explain": find, "verbosity": "queryPlanner" };
        // A hashed or text index has no such plan, and nothing is ordered by it.
        let explained = site.command(explain).await;
        if explained.is_ok_and(|reply| obstacles::is_multikey(&reply, index)) {
            multikey.push(index.to_owned());
        }
    }
    multikey
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(options: Document, index: Document) -> Definition {
        Definition {
            namespace: "a.b".parse().unwrap(),
            identity: "u".into(),
            options,
            indexes: vec![doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" }, index],
            multikey: Vec::new(),
            obstacle: None,
            can_be_followed: true,
        }
    }

    #[test]
    fn an_index_gives_an_order_only_if_it_holds_every_document_once() {
        let by = By::Index(doc! { "a": 1 });
        let with = |more: Document| {
            let mut index = doc! { "key": { "a": 1.0, "b": -1 }, "name": "i" };
            index.extend(more);
            definition(doc! {}, index).refusal(&by, false)
        };
        assert_eq!(with(doc! { "unique": true, "sparse": false }), None);
        let whole = definition(doc! {}, doc! { "key": { "a": 1.0, "b": -1 }, "name": "i" });
        assert_eq!(whole.order_keys(&by), Some(&doc! { "a": 1.0, "b": -1 }));
        assert_eq!(whole.order_keys(&By::Natural), None);
        for more in [
            doc! { "sparse": true },
            doc! { "partialFilterExpression": { "a": 1 } },
            doc! { "hidden": true },
            doc! { "key": { "a": "hashed" } },
            doc! { "key": { "b": 1, "a": 1 } },
            doc! { "key": { "a": -1 } },
            doc! { "key": { "a": 1, "c.$**": 1 } },
            doc! { "collation": { "locale": "de" } },
        ] {
            assert!(with(more.clone()).is_some(), "{more}");
        }
        let plain = definition(doc! {}, doc! { "key": { "a": 1 }, "name": "i" });
        for keys in [
            doc! {},
            doc! { "a": "x" },
            doc! { "a": 2 },
            doc! { "a": 1, "b": 1 },
        ] {
            assert!(
                plain.refusal(&By::Index(keys.clone()), true).is_some(),
                "{keys}"
            );
        }
    }

    #[test]
    fn an_index_of_array_elements_is_refused_with_the_reason() {
        let mut multikey = definition(doc! {}, doc! { "key": { "a": 1 }, "name": "i" });
        let by = By::Index(doc! { "a": 1 });
        assert_eq!(multikey.refusal(&by, true), None);
        multikey.multikey.push("i".into());
        let why = multikey.refusal(&by, true).unwrap();
        assert!(why.contains("index i") && why.contains("multikey"), "{why}");
        assert_eq!(multikey.refusal(&By::Natural, true), None);
    }

    #[test]
    fn capped_collections_keep_their_order() {
        let mut capped = definition(
            doc! { "capped": true },
            doc! { "key": { "a": 1 }, "name": "i" },
        );
        assert!(capped.refusal(&By::Natural, false).is_some());
        assert_eq!(capped.refusal(&By::Natural, true), None);
        assert!(capped.refusal(&By::Index(doc! { "a": 1 }), true).is_some());
        // Nothing is brought over there, whatever the collection.
        capped.can_be_followed = false;
        assert_eq!(capped.refusal(&By::Natural, false), None);
    }

    #[test]
    fn what_is_no_collection_of_documents_is_refused() {
        let kind =
            |database, name, listed, options| obstacle_of_kind(database, name, &listed, &options);
        assert_eq!(kind("a", "b", doc! {}, doc! {}), None);
        assert!(kind("config", "b", doc! {}, doc! {}).is_some());
        assert!(kind("a", "system.js", doc! {}, doc! {}).is_some());
        assert!(kind("a", "b", doc! { "type": "view" }, doc! {}).is_some());
        for option in ["timeseries", "encryptedFields", "viewOn"] {
            assert!(
                kind("a", "b", doc! {}, doc! { option: {} }).is_some(),
                "{option}"
            );
        }
    }
}
