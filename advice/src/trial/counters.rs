//! Counts the blocks that a server has read of a collection's files since its start, and what pages they became.

use bson::{Bson, Document, doc};
use seekscope_server::{Server, number};

use crate::AdviceError;
use crate::collection::{PagesRead, index_pages_read, pages_read};

const FILE_BYTES: (&str, &str) = ("block-manager", "checkpoint size");
const LEAF_BYTES: (&str, &str) = ("btree", "maximum leaf page size");

/// Blocks read since the server started, and the file that they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    pub collection: u64,
    /// The size of the collection's blocks as pages, after decompression.
    pub collection_bytes: u64,
    /// Pages read from all its indexes.
    pub indexes: PagesRead,
    /// Bytes of the collection's file that are in use.
    pub file_bytes: u64,
}

/// Reads the counters.
///
/// # Errors
/// Fails if the server does, or does not count for each file.
pub(super) async fn read(
    server: &Server,
    database: &str,
    collection: &str,
) -> Result<Blocks, AdviceError> {
    let stats = server
        .command(database, doc! { "collStats": collection })
        .await?;
    let table = stats.get_document("wiredTiger");
    let table = table.map_err(|_| AdviceError::NoCounters)?;
    let own = pages_read(table).ok_or(AdviceError::NoCounters)?;
    Ok(Blocks {
        collection: own.pages,
        collection_bytes: own.bytes,
        indexes: index_pages_read(&stats),
        file_bytes: count(table, FILE_BYTES)?,
    })
}

/// Returns a count of a file's statistics by its group and name.
fn count(file: &Document, (group, name): (&str, &str)) -> Result<u64, AdviceError> {
    let group = file.get_document(group).ok();
    let count = group.and_then(|group| number(group.get(name)?));
    count.ok_or(AdviceError::NoCounters)
}

/// Pages of an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct IndexPages {
    /// Those read since the server started.
    pub pages_read: u64,
    /// How many leaves it has, by the size of its file.
    pub leaves: f64,
}

/// Reads the counters of the index on `_id`, which opens it.
///
/// # Errors
/// Fails if the server does, or does not count for each file.
pub(super) async fn id_index(
    server: &Server,
    database: &str,
    collection: &str,
) -> Result<IndexPages, AdviceError> {
    let none = doc! { "find": collection, "filter": { "_id": Bson::MinKey } };
    server.command(database, none).await?;
    index(server, database, collection, "_id_").await
}

/// Reads the counters of an index, which has been opened.
///
/// # Errors
/// Fails if the server does, or does not count for each file.
pub(super) async fn index(
    server: &Server,
    database: &str,
    collection: &str,
    name: &str,
) -> Result<IndexPages, AdviceError> {
    let stats = server
        .command(database, doc! { "collStats": collection })
        .await?;
    let details = stats.get_document("indexDetails").ok();
    let index = details.and_then(|details| details.get_document(name).ok());
    let index = index.ok_or(AdviceError::NoCounters)?;
    let leaf_bytes = count(index, LEAF_BYTES)?;
    Ok(IndexPages {
        pages_read: pages_read(index).ok_or(AdviceError::NoCounters)?.pages,
        leaves: count(index, FILE_BYTES)? as f64 / leaf_bytes.max(1) as f64,
    })
}
