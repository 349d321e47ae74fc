//! What the target's server says of the collection: how its files were made, how much is on a page, how well its cache
//! serves them, and which indexes nobody uses.

use std::collections::BTreeMap;
use std::time::Duration;

use bson::{Bson, DateTime, Document, doc};
use seekscope_run::{IndexUseCounted, QueryShape};
use seekscope_server::examination::members_with_data;
use seekscope_server::{Namespace, Server, ServerError, float, number};

/// The setting that names the compressor of a table's blocks; its value is empty where they are not compressed.
pub(crate) const COMPRESSOR: &str = "block_compressor";
/// The setting of the size that blocks of leaves are to have.
pub(crate) const LEAF_PAGE_MAX: &str = "leaf_page_max";
/// Settings of WiredTiger's tables by which the same documents take other blocks.
const TABLE_SETTINGS: [&str; 4] = [
    COMPRESSOR,
    LEAF_PAGE_MAX,
    "internal_page_max",
    "leaf_value_max",
];
const SHARDS_MAX: usize = 1_000;
/// Time limit for connecting to a member of the set.
const MEMBER_PATIENCE: Duration = Duration::from_secs(5);
/// Fewer pages, unless the whole collection was read, say nothing of the others: how much is on a page differs by a half
/// and more from one stretch of a file to the next.
const PAGES_READ_MIN: u64 = 1_000;
/// The same of an index, whose keys are alike.
const INDEX_PAGES_READ_MIN: u64 = 100;
/// A small index of which at least this share of the file was read is known.
const INDEX_SHARE_MIN: f64 = 0.5;
/// Fewer pages asked for do not tell which share has to be read.
const PAGES_ASKED_MIN: u64 = 100;
/// Each page is read once after the server's start, whatever the cache. Where less than this many times the data was
/// read, most of it may have been that.
const TIMES_READ_MIN: u64 = 2;
/// A share that is so low leaves no doubt, first reads included, that the cache has nearly all that is asked for.
const LOW_SHARE: f64 = 0.05;

/// What is known of the collection's file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FileFacts {
    /// Options with which `create` makes a file of the same kind.
    pub create: Document,
    /// The compressor of its blocks; empty if they are not compressed, `None` if the server does not say.
    pub compressor: Option<String>,
    /// What the server's cache did for it.
    pub cache: Option<CacheUse>,
    /// Size of all documents as BSON.
    pub data_bytes: Option<u64>,
    /// Mean size of the pages that the server has read since it started, as they are in its cache, bytes. `None` if
    /// they are too few to speak for the file.
    pub page_bytes: Option<f64>,
    /// The same of its indexes, by name; those of which too little was read are missing.
    pub index_page_bytes: BTreeMap<String, f64>,
    /// The table of the storage engine that its documents are in.
    pub table: Option<String>,
}

/// Pages of a file that were asked for since the server started, and those that had to be read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUse {
    asked: u64,
    read: PagesRead,
}

impl CacheUse {
    /// Returns what was asked for and read since an earlier look.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            asked: self.asked.saturating_sub(earlier.asked),
            read: self.read.since(earlier.read),
        }
    }

    /// Returns the share of the pages asked for that had to be read; `None` if too few were asked for.
    pub fn missed_share(self) -> Option<f64> {
        let share = self.read.pages as f64 / self.asked.max(1) as f64;
        (self.asked >= PAGES_ASKED_MIN).then_some(share.min(1.0))
    }
}

impl FileFacts {
    /// Returns the share of the pages asked for since the server started that had to be read; `None` where that may be
    /// the share of a cache that was being filled.
    pub fn missed_share_since_start(&self) -> Option<f64> {
        let cache = self.cache?;
        let read_often = cache.read.bytes / TIMES_READ_MIN >= self.data_bytes?;
        let share = cache.missed_share()?;
        (read_often || share < LOW_SHARE).then_some(share)
    }
}

/// Pages that a server has read of a file since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PagesRead {
    pub pages: u64,
    /// Their size together, without compression.
    pub bytes: u64,
}

impl PagesRead {
    /// Returns the mean size of the pages.
    fn mean_bytes(self) -> f64 {
        self.bytes as f64 / self.pages.max(1) as f64
    }

    /// Returns what was read since an earlier look.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            pages: self.pages.saturating_sub(earlier.pages),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            pages: self.pages.saturating_add(other.pages),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// Returns what a server says that it has read of a file, by its statistics of that file.
pub(crate) fn pages_read(file: &Document) -> Option<PagesRead> {
    let cache = file.get_document("cache").ok()?;
    let count = |name: &str| cache.get(name).and_then(number);
    Some(PagesRead {
        pages: count("pages read into cache")?,
        bytes: count("bytes read into cache")?,
    })
}

/// Returns what a server says that it has read of all indexes of a collection, by its statistics of that.
pub(crate) fn index_pages_read(stats: &Document) -> PagesRead {
    let read = index_details(stats).filter_map(|(_, index)| pages_read(index));
    read.fold(PagesRead::default(), PagesRead::and)
}

/// Returns the statistics of the files of a collection's indexes by the indexes' names.
fn index_details(stats: &Document) -> impl Iterator<Item = (&String, &Document)> {
    let details = stats.get_document("indexDetails").into_iter().flatten();
    details.filter_map(|(name, index)| Some((name, index.as_document()?)))
}

/// Returns the mean size of the pages of an index that were read, if they speak for all.
fn index_page_bytes(index: &Document) -> Option<f64> {
    let read = pages_read(index)?;
    let file = index.get_document("block-manager").ok()?;
    let file_bytes = number(file.get("checkpoint size")?)?;
    let is_known = read.bytes as f64 >= INDEX_SHARE_MIN * file_bytes as f64;
    let speaks_for_all = read.pages >= INDEX_PAGES_READ_MIN || is_known;
    (speaks_for_all && read.pages > 1 && read.bytes > 0).then(|| read.mean_bytes())
}

/// Returns what a server's cache has done for a file, by its statistics of that file.
pub(crate) fn cache_use(file: &Document) -> Option<CacheUse> {
    let cache = file.get_document("cache").ok()?;
    let asked = number(cache.get("pages requested from the cache")?)?;
    let read = pages_read(file)?;
    Some(CacheUse { asked, read })
}

/// Reads what is known of the collection's file. `options` are those of `listCollections`.
///
/// # Errors
/// Fails if the server does.
pub async fn file_facts(
    server: &Server,
    namespace: &Namespace,
    options: &Document,
) -> Result<FileFacts, ServerError> {
    let command = doc! { "collStats": namespace.collection() };
    let stats = server
        .command_in_time(namespace.database(), command)
        .await?;
    Ok(of_stats(&stats, options))
}

fn of_stats(stats: &Document, options: &Document) -> FileFacts {
    let table = stats.get_document("wiredTiger").ok();
    let created = table.and_then(|table| table.get_str("creationString").ok());
    let created = created.unwrap_or_default();
    let settings = TABLE_SETTINGS.iter().filter_map(|name| {
        let value = setting(created, name)?;
        Some(format!("{name}={value}"))
    });
    let settings: Vec<String> = settings.collect();
    let mut create = Document::new();
    if let Some(collation) = options.get("collation") {
        create.insert("collation", collation.clone());
    }
    if !settings.is_empty() {
        let text = settings.join(",");
        create.insert(
            "storageEngine",
            doc! { "wiredTiger": { "configString": text } },
        );
    }
    let read = table.and_then(pages_read);
    let data_bytes = stats.get("size").and_then(number);
    let enough = read.filter(|read| {
        let is_whole = data_bytes.is_some_and(|data_bytes| read.bytes >= data_bytes);
        let speaks_for_all = read.pages >= PAGES_READ_MIN || is_whole;
        speaks_for_all && read.pages > 0 && read.bytes > 0
    });
    let uri = table.and_then(|table| table.get_str("uri").ok());
    let named = uri.and_then(|uri| uri.strip_prefix("statistics:table:"));
    FileFacts {
        create,
        table: named.map(Into::into),
        compressor: setting(created, COMPRESSOR).map(Into::into),
        cache: table.and_then(cache_use),
        data_bytes,
        page_bytes: enough.map(PagesRead::mean_bytes),
        index_page_bytes: index_details(stats)
            .filter_map(|(name, index)| Some((name.clone(), index_page_bytes(index)?)))
            .collect(),
    }
}

/// Returns the value of a setting in WiredTiger's own text, if it is a plain word or number.
pub(crate) fn setting<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let entry = text.split(',').find_map(|entry| {
        let (found, value) = entry.split_once('=')?;
        (found == name).then_some(value)
    })?;
    let is_plain = entry
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_plain.then_some(entry)
}

/// Returns specifications of indexes as they are written for a collection of these options. Directions are whole
/// numbers: the older mongo shell stored 1 as 1.0, which the server takes for the same index, and a comparison of
/// documents does not. The collection's collation is an index's own unless it names another.
pub fn as_written(indexes: &[Document], options: &Document) -> Vec<Document> {
    let default = options.get("collation");
    let written = |index: &Document| {
        let mut index = index.clone();
        if let Ok(keys) = index.get_document("key") {
            let keys: Document = keys.iter().map(plain_direction).collect();
            index.insert("key", keys);
        }
        match (default, index.get("collation")) {
            (Some(_), None) => drop(index.insert("collation", doc! { "locale": "simple" })),
            (Some(default), Some(own)) if own == default => drop(index.remove("collation")),
            _ => {}
        }
        index
    };
    indexes.iter().map(written).collect()
}

fn plain_direction((field, direction): (&String, &Bson)) -> (String, Bson) {
    let direction = match float(direction) {
        Some(direction) if direction < 0.0 => Bson::Int32(-1),
        Some(_) => Bson::Int32(1),
        None => direction.clone(),
    };
    (field.clone(), direction)
}

/// Indexes that no operation has used since the server began to count.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UnusedIndexes {
    /// Their key patterns as JSON.
    pub keys: Vec<String>,
    /// How long operations have been counted, s.
    pub for_s: Option<f64>,
    /// Who counted them.
    pub counted_by: IndexUseCounted,
    /// Why some were left out: any of them may be the one that a shard needs, as its shard key is not known. `None` if none
    /// were.
    pub left_out: Option<String>,
}

/// What is known of the fields by which a collection is spread over shards.
#[derive(Debug, Clone, PartialEq)]
enum ShardKey {
    /// The server is no shard.
    NotNeeded,
    Known(Document),
    /// Why it is not known.
    Unknown(String),
}

impl ShardKey {
    /// Asks the server, which keeps a copy of what the cluster's config servers know of collections that are spread.
    async fn read(server: &Server, namespace: &Namespace) -> Self {
        match server.is_shard().await {
            Ok(true) => {}
            // Nothing says that it is one.
            Ok(false) | Err(ServerError::NotAuthorised { .. }) => return Self::NotNeeded,
            Err(error) => return Self::Unknown(error.to_string()),
        }
        let find = doc! { "find": "cache.collections", "filter": { "_id": namespace.to_string() },
        "projection": { "key": 1 }, "limit": 1 };
        match server.documents_in_time("config", find, 1).await {
            Ok(found) => Self::of(found.first()),
            Err(error) => Self::Unknown(error.to_string()),
        }
    }

    /// Returns what a shard's own entry of the collection tells.
    fn of(entry: Option<&Document>) -> Self {
        let key = entry.and_then(|entry| entry.get_document("key").ok());
        match key.filter(|key| !key.is_empty()) {
            Some(key) => Self::Known(key.clone()),
            None => Self::Unknown("config.cache.collections of the shard does not have it".into()),
        }
    }

    /// Returns those of the unused indexes that the shard does not need, and why some are not told, if that is so.
    fn without_needed<'a>(&self, unused: Vec<&'a Document>) -> (Vec<&'a Document>, Option<String>) {
        match self {
            Self::NotNeeded => (unused, None),
            Self::Known(key) => {
                let needless = unused
                    .into_iter()
                    .filter(|index| !begins_with(index, key))
                    .collect();
                (needless, None)
            }
            Self::Unknown(why) => {
                let left_out = (!unused.is_empty()).then(|| why.clone());
                (Vec::new(), left_out)
            }
        }
    }
}

/// Returns whether an index begins with these fields, whatever their directions.
fn begins_with(index: &Document, fields: &Document) -> bool {
    index.get_document("key").is_ok_and(|keys| {
        let first = keys.keys().take(fields.len());
        first.eq(fields.keys())
    })
}

/// Returns the indexes that no operation has used since the servers began to count, and that none of the queries would
/// use. The one on `_id`, unique ones and on a shard those that begin with its shard key have other uses. Each member of a
/// replica set counts what it was asked itself.
///
/// # Errors
/// Fails if a server refuses, or a member of the set does not answer.
pub async fn unused_indexes(
    server: &Server,
    namespace: &Namespace,
    indexes: &[Document],
    queries: &[QueryShape],
) -> Result<UnusedIndexes, ServerError> {
    let hello = server.hello().await?;
    let members = match hello.set.is_some() {
        // Hidden ones among them, if the login may see those.
        true => members_with_data(server)
            .await
            .unwrap_or(hello.data_members.clone()),
        false => Vec::new(),
    };
    let mut used = Vec::new();
    for member in &members {
        used.extend(index_use(&server.member(member, MEMBER_PATIENCE)?, namespace).await?);
    }
    if members.is_empty() {
        used = index_use(server, namespace).await?;
    }
    let shard_key = ShardKey::read(server, namespace).await;
    let counted_by = match members.len() {
        _ if hello.is_router() => IndexUseCounted::PrimariesOfShards,
        0 | 1 => IndexUseCounted::Server,
        _ => IndexUseCounted::AllMembers,
    };
    let is_used = |name: &str| {
        let mut of_index = used
            .iter()
            .filter(|entry| entry.get_str("name").is_ok_and(|n| n == name));
        of_index.any(|entry| {
            let accesses = entry.get_document("accesses").ok();
            accesses.and_then(|a| a.get("ops").and_then(number)) != Some(0)
        })
    };
    let serves = |index: &Document| {
        let keys = index.get_document("key").ok();
        let first = keys.and_then(|keys| keys.keys().next());
        first.is_some_and(|first| {
            queries
                .iter()
                .any(|query| query.fields().any(|f| f == first))
        })
    };
    let unused = indexes.iter().filter(|index| {
        let name = index.get_str("name").unwrap_or("_id_");
        let has_other_use = ["unique", "expireAfterSeconds"]
            .iter()
            .any(|o| index.contains_key(*o));
        name != "_id_" && !has_other_use && !is_used(name) && !serves(index)
    });
    let (unused, left_out) = shard_key.without_needed(unused.collect());
    let keys = unused
        .iter()
        .filter_map(|index| index.get_document("key").ok());
    // Of several servers, the one that began to count last: before, its operations left no trace.
    let since = used.iter().filter_map(|entry| {
        let since = entry.get_document("accesses").ok()?.get_datetime("since");
        since.ok().copied()
    });
    let ago = since
        .max()
        .map(|since| DateTime::now().saturating_duration_since(since));
    Ok(UnusedIndexes {
        keys: keys.map(ToString::to_string).collect(),
        for_s: ago.map(|ago| ago.as_secs_f64()),
        counted_by,
        left_out,
    })
}

/// Returns what one server, or each shard behind a router, says of the use of each index.
async fn index_use(server: &Server, namespace: &Namespace) -> Result<Vec<Document>, ServerError> {
    let pipeline = vec![doc! { "$indexStats": {} }];
    let command = doc! { "aggregate": namespace.collection(), "pipeline": pipeline, "cursor": {} };
    let used = server.documents_in_time(namespace.database(), command, SHARDS_MAX);
    used.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shells_directions_are_those_of_others() {
        let given = [doc! { "name": "a", "key": { "a": 1.0, "b": -1_i64, "c": "hashed" } }];
        let expected = [doc! { "name": "a", "key": { "a": 1, "b": -1, "c": "hashed" } }];
        assert_eq!(as_written(&given, &Document::new()), expected);
    }

    #[test]
    fn an_index_without_a_collation_keeps_none_where_the_collection_has_one() {
        let german = || doc! { "locale": "de" };
        let index = |keys: Document, collation| doc! { "key": keys, "collation": collation };
        let given = [
            index(doc! { "a": 1 }, german()),
            doc! { "key": { "_fts": "text" } },
        ];
        let options = doc! { "collation": german() };
        let simple = index(doc! { "_fts": "text" }, doc! { "locale": "simple" });
        let expected = [doc! { "key": { "a": 1 } }, simple];
        assert_eq!(as_written(&given, &options), expected);
        assert_eq!(as_written(&given, &Document::new()), given);
    }

    #[test]
    fn a_shard_needs_the_index_of_its_shard_key() {
        let of_key = doc! { "name": "_id_hashed", "key": { "_id": "hashed" } };
        let longer = doc! { "name": "b", "key": { "_id": 1, "a": 1 } };
        let other = doc! { "name": "a", "key": { "a": 1, "_id": 1 } };
        let all = || vec![&of_key, &longer, &other];
        let entry = doc! { "_id": "d.c", "key": { "_id": "hashed" } };
        let known = ShardKey::of(Some(&entry));
        assert_eq!(known.without_needed(all()), (vec![&other], None));
        assert_eq!(ShardKey::NotNeeded.without_needed(all()), (all(), None));
        for unknown in [None, Some(&doc! { "_id": "d.c" })] {
            let unknown = ShardKey::of(unknown);
            let (told, left_out) = unknown.without_needed(all());
            assert!(told.is_empty() && left_out.is_some(), "{told:?}");
            assert_eq!(unknown.without_needed(Vec::new()), (Vec::new(), None));
        }
        assert!(begins_with(&other, &doc! { "a": "hashed" }));
        let shorter = doc! { "key": { "a": 1 } };
        assert!(!begins_with(&shorter, &doc! { "a": 1, "_id": 1 }));
    }

    #[test]
    fn a_cache_that_was_being_filled_tells_no_share() {
        let facts = |asked, pages, bytes| FileFacts {
            cache: Some(CacheUse {
                asked,
                read: PagesRead { pages, bytes },
            }),
            data_bytes: Some(1_000_000),
            ..FileFacts::default()
        };
        let once = facts(400, 100, 1_200_000);
        assert_eq!(once.missed_share_since_start(), None);
        let often = facts(4_000, 1_000, 12_000_000);
        assert_eq!(often.missed_share_since_start(), Some(0.25));
        let cached = facts(40_000, 100, 1_200_000);
        assert_eq!(cached.missed_share_since_start(), Some(0.0025));
        let since = |later: &FileFacts| later.cache.unwrap().since(once.cache.unwrap());
        assert_eq!(since(&once).missed_share(), None, "nobody asked for a page");
        assert_eq!(since(&often).missed_share(), Some(0.25));
        assert_eq!(since(&cached).missed_share(), Some(0.0));
    }

    #[test]
    fn files_of_the_same_kind_are_made() {
        let mut stats = doc! { "size": 5_000_000, "wiredTiger": {
            "creationString": "access_pattern_hint=none,app_metadata=(formatVersion=1),block_compressor=zstd,\
                leaf_page_max=16KB,leaf_value_max=64MB,internal_page_max=4(KB",
            "cache": {
                "pages requested from the cache": 800,
                "pages read into cache": 200_i64,
                "bytes read into cache": 6_000_000,
            },
        } };
        let facts = of_stats(
            &stats,
            &doc! { "collation": { "locale": "de" }, "validator": {} },
        );
        let text = "block_compressor=zstd,leaf_page_max=16KB,leaf_value_max=64MB";
        let expected = doc! {
            "collation": { "locale": "de" },
            "storageEngine": { "wiredTiger": { "configString": text } },
        };
        assert_eq!(facts.create, expected);
        assert_eq!(facts.compressor.as_deref(), Some("zstd"));
        assert_eq!(facts.page_bytes, Some(30_000.0));
        stats.insert("size", 7_000_000);
        let facts = of_stats(&stats, &Document::new());
        assert_eq!(facts.page_bytes, None, "a part of a small collection");
        let table = stats.get_document_mut("wiredTiger").unwrap();
        let cache = table.get_document_mut("cache").unwrap();
        cache.insert("pages read into cache", 1_000);
        let facts = of_stats(&stats, &Document::new());
        assert_eq!(facts.page_bytes, Some(6_000.0));
        assert_eq!(
            of_stats(&Document::new(), &Document::new()),
            FileFacts::default()
        );
    }
}
