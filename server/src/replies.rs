//! Reads the replies of servers. Any field may be missing or of another type: servers differ, and a reply is
//! not trusted.

use mongodb::bson::{Bson, Document, doc};
use seekscope_run::StorageFacts;

/// Returns the value at a path of field names.
pub(crate) fn at<'a>(document: &'a Document, path: &[&str]) -> Option<&'a Bson> {
    let (last, folders) = path.split_last()?;
    let inner = folders
        .iter()
        .try_fold(document, |d, name| d.get_document(name).ok())?;
    inner.get(last)
}

/// Returns a count or size: servers send int32, int64 or double, of which the fraction is cut off. `None` for what is
/// no number, is negative or is beyond 9e18.
pub fn number(value: &Bson) -> Option<u64> {
    match *value {
        Bson::Int32(n) => u64::try_from(n).ok(),
        Bson::Int64(n) => u64::try_from(n).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked just before"
        )]
        Bson::Double(n) if (0.0..9.0e18).contains(&n) => Some(n as u64),
        _ => None,
    }
}

/// Returns a number of any of the types that servers and shells mix; `None` for what is none, and for a Decimal128.
/// Whole numbers beyond 2^53 are rounded.
pub fn float(value: &Bson) -> Option<f64> {
    match *value {
        Bson::Int32(n) => Some(f64::from(n)),
        Bson::Int64(n) => Some(n as f64),
        Bson::Double(n) => Some(n),
        _ => None,
    }
}

/// Returns the documents of the first batch of a reply with a cursor; none if it has no cursor. It is for questions
/// whose whole answer is in there; [`crate::Server::documents`] reads all batches.
pub fn first_batch(reply: &Document) -> impl Iterator<Item = &Document> {
    let batch = at(reply, &["cursor", "firstBatch"]).and_then(Bson::as_array);
    batch.into_iter().flatten().filter_map(Bson::as_document)
}

/// Returns the version from `buildInfo`, e.g. "4.2.2".
pub(crate) fn version(build_info: &Document) -> Option<String> {
    build_info.get_str("version").ok().map(String::from)
}

/// Returns the data directory from `getCmdLineOpts`, if it was configured; it may be in `argv` if it is not in
/// `parsed`.
pub(crate) fn dbpath(options: &Document) -> Option<String> {
    if let Some(Bson::String(path)) = at(options, &["parsed", "storage", "dbPath"]) {
        return Some(path.clone());
    }
    let argv = options.get_array("argv").ok()?;
    let argv: Vec<String> = argv
        .iter()
        .filter_map(|a| a.as_str().map(String::from))
        .collect();
    crate::open_files::dbpath_argument(&argv).map(|path| path.to_string_lossy().into_owned())
}

/// Returns the configured WiredTiger cache from `serverStatus`, bytes.
pub(crate) fn cache_bytes(status: &Document) -> Option<u64> {
    number(at(
        status,
        &["wiredTiger", "cache", "maximum bytes configured"],
    )?)
}

/// Returns "mongod" or "mongos" from `serverStatus`, and the process number in the server's own PID namespace.
pub(crate) fn process(status: &Document) -> (Option<String>, Option<u32>) {
    let name = status.get_str("process").ok().map(String::from);
    let pid = status
        .get("pid")
        .and_then(number)
        .and_then(|pid| u32::try_from(pid).ok());
    (name, pid)
}

/// Returns the statistics from the answer to `aggregate` with `$collStats`, one document for each shard.
pub(crate) fn storage_stats(entries: &[Document]) -> Vec<Document> {
    let stats = entries.iter();
    stats
        .filter_map(|entry| entry.get_document("storageStats").ok().cloned())
        .collect()
}

/// Returns the storage facts from `collStats`, or from the `storageStats` of `$collStats`. Anything missing
/// from the reply counts as zero.
pub(crate) fn storage(stats: &Document) -> StorageFacts {
    let field = |name: &str| stats.get(name).and_then(number).unwrap_or(0);
    StorageFacts {
        documents: field("count"),
        data_bytes: field("size"),
        storage_bytes: field("storageSize"),
        index_bytes: field("totalIndexSize"),
        directory_bytes: None,
    }
}

/// One table of WiredTiger and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableUse {
    /// Table name without "table:", e.g. `collection-7-123` or `db/index/8-123`.
    pub(crate) ident: String,
    /// `database.collection`.
    pub(crate) namespace: String,
    /// Name of the index; `None` for the collection itself.
    pub(crate) index: Option<String>,
}

/// Returns the fields that [`catalog_tables`] reads.
pub(crate) fn catalog_fields() -> Document {
    doc! { "ns": 1, "db": 1, "name": 1, "ident": 1, "idxIdent": 1 }
}

/// Returns the tables in one entry of `$listCatalog`.
pub(crate) fn catalog_tables(entry: &Document) -> Vec<TableUse> {
    let namespace = entry.get_str("ns").ok().map(String::from).or_else(|| {
        Some(format!(
            "{}.{}",
            entry.get_str("db").ok()?,
            entry.get_str("name").ok()?
        ))
    });
    let Some(namespace) = namespace else {
        return Vec::new();
    };
    let mut tables = Vec::new();
    if let Ok(ident) = entry.get_str("ident") {
        tables.push(table(ident, &namespace, None));
    }
    for (index, ident) in entry.get_document("idxIdent").into_iter().flatten() {
        if let Bson::String(ident) = ident {
            tables.push(table(ident, &namespace, Some(index.clone())));
        }
    }
    tables
}

/// Returns the tables from the reply of `collStats`, for servers without `$listCatalog`.
pub(crate) fn collection_stats_tables(stats: &Document, namespace: &str) -> Vec<TableUse> {
    let mut tables = Vec::new();
    if let Some(Bson::String(uri)) = at(stats, &["wiredTiger", "uri"]) {
        tables.push(table(uri, namespace, None));
    }
    for (index, details) in stats.get_document("indexDetails").into_iter().flatten() {
        if let Some(uri) = details.as_document().and_then(|d| d.get_str("uri").ok()) {
            tables.push(table(uri, namespace, Some(index.clone())));
        }
    }
    tables
}

/// Returns whether a reply to `collStats` names the table of each part of the collection; a server that cannot open a
/// table gives an error in the place of its name. A collection that is not there has no parts.
pub(crate) fn names_all_tables(stats: &Document) -> bool {
    let indexes = stats.get_document("indexDetails").into_iter().flatten();
    let indexes = indexes.filter(|(_, details)| !is_clustered_index(details));
    let parts = stats.get("wiredTiger").into_iter();
    let mut parts = parts.chain(indexes.map(|(_, details)| details));
    parts.all(|part| {
        part.as_document()
            .is_some_and(|part| part.get_str("uri").is_ok())
    })
}

/// Returns whether a reply to `collStats` is that of a clustered collection (5.3 and later). Only the details of its
/// indexes say so.
pub(crate) fn is_clustered(stats: &Document) -> bool {
    let mut indexes = stats.get_document("indexDetails").into_iter().flatten();
    indexes.any(|(_, details)| is_clustered_index(details))
}

/// Returns whether these are the details of the index of a clustered collection, which is the collection's own table
/// and has none.
fn is_clustered_index(details: &Bson) -> bool {
    let details = details.as_document();
    details.is_some_and(|details| details.get_bool("clustered").unwrap_or(false))
}

fn table(uri: &str, namespace: &str, index: Option<String>) -> TableUse {
    let ident = uri.strip_prefix("statistics:").unwrap_or(uri);
    let ident = ident.strip_prefix("table:").unwrap_or(ident);
    TableUse {
        ident: ident.into(),
        namespace: namespace.into(),
        index,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mongod_4_2_replies() {
        let options = doc! {
            "argv": ["/usr/bin/mongod", "--dbpath", "/data/db", "--port", "27200"],
            "parsed": { "net": { "port": 27200 }, "storage": { "dbPath": "/data/db" } }, "ok": 1.0,
        };
        assert_eq!(dbpath(&options).as_deref(), Some("/data/db"));
        assert_eq!(
            dbpath(&doc! { "argv": ["mongod", "--dbpath=/x"] }).as_deref(),
            Some("/x")
        );
        assert_eq!(dbpath(&doc! { "ok": 1.0 }), None);
        let status = doc! {
            "process": "mongod", "pid": 4006_i64,
            "wiredTiger": { "cache": { "maximum bytes configured": 268_435_456.0 } },
        };
        assert_eq!(cache_bytes(&status), Some(268_435_456));
        assert_eq!(process(&status), (Some("mongod".into()), Some(4006)));
        assert_eq!(
            version(&doc! { "version": "4.2.2" }).as_deref(),
            Some("4.2.2")
        );
    }

    /// Statistics as `appendCollectionStorageStats` of 5.3 and later writes them.
    #[test]
    fn the_index_of_a_clustered_collection_has_no_table() {
        let stats = doc! {
            "wiredTiger": { "uri": "statistics:table:collection-1" },
            "indexDetails": {
                "a_1": { "uri": "statistics:table:index-2" },
                "_id_": { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true, "clustered": true },
            },
        };
        assert!(is_clustered(&stats) && names_all_tables(&stats));
        assert_eq!(collection_stats_tables(&stats, "a.b").len(), 2);
        assert!(!is_clustered(
            &doc! { "indexDetails": { "_id_": { "uri": "x" } } }
        ));
    }

    #[test]
    fn a_table_that_cannot_be_opened_has_an_error_for_a_name() {
        let named = doc! { "uri": "statistics:table:index-1" };
        let refused = doc! { "error": "unable to retrieve statistics", "code": 43 };
        let stats = |own: &Document, index: &Document| {
            doc! { "wiredTiger": own, "indexDetails": { "_id_": index } }
        };
        assert!(names_all_tables(&stats(&named, &named)));
        assert!(!names_all_tables(&stats(&refused, &named)));
        assert!(!names_all_tables(&stats(&named, &refused)));
        assert!(names_all_tables(&doc! { "ns": "a.dropped", "size": 0 }));
        assert!(!names_all_tables(&doc! { "wiredTiger": 5 }));
    }

    #[test]
    fn mongod_4_2_collection_stats() {
        let stats = doc! {
            "ns": "sdu.aged",
            "wiredTiger": { "uri": "statistics:table:collection-14--5495675770773988953" },
            "indexDetails": {
                "_id_": { "uri": "statistics:table:index-15--5495675770773988953", "LSM": {} },
                "broken": 1,
            },
        };
        let tables = collection_stats_tables(&stats, "sdu.aged");
        assert_eq!(tables.len(), 2);
        assert_eq!(tables[0].ident, "collection-14--5495675770773988953");
        assert_eq!(tables[1].index.as_deref(), Some("_id_"));
    }

    #[test]
    fn mongod_4_2_storage() {
        let stats = doc! {
            "size": 3_803_083, "count": 1500, "avgObjSize": 2535, "storageSize": 3_506_176_i64,
            "capped": false, "nindexes": 2, "totalIndexSize": 53_248.0, "indexSizes": { "_id_": 36_864 },
        };
        let entries = [
            doc! { "ns": "sdu.append", "host": "db1:27017", "storageStats": stats.clone() },
            doc! { "ns": "sdu.append", "storageStats": 1 },
        ];
        assert_eq!(storage_stats(&entries), std::slice::from_ref(&stats));
        let expected = StorageFacts {
            documents: 1500,
            data_bytes: 3_803_083,
            storage_bytes: 3_506_176,
            index_bytes: 53_248,
            directory_bytes: None,
        };
        assert_eq!(storage(&stats), expected);
        let odd = doc! { "count": -1, "size": f64::NAN, "storageSize": "x" };
        assert_eq!(storage(&odd), StorageFacts::default());
    }

    #[test]
    fn hostile_replies_are_survived() {
        for value in [
            Bson::Null,
            Bson::Int32(-1),
            Bson::Double(f64::NAN),
            Bson::Double(1e300),
            Bson::String("5".into()),
        ] {
            assert_eq!(number(&value), None, "{value}");
            let status = doc! { "wiredTiger": { "cache": { "maximum bytes configured": value.clone() } }, "pid": value };
            assert_eq!((cache_bytes(&status), process(&status).1), (None, None));
        }
        assert_eq!(catalog_tables(&doc! { "ns": 5, "ident": "x" }), []);
        assert_eq!(
            catalog_tables(&doc! { "ns": "a.b", "ident": 1, "idxIdent": [1] }),
            []
        );
    }
}
