//! Counts the blocks that a server has read of a collection's files since its start, and what pages they became.

use bson::doc;
use seekscope_server::{Server, number};

use crate::AdviceError;
use crate::collection::pages_read;

/// Blocks read since the server started, and the file that they are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    pub collection: u64,
    /// The size of the collection's as pages, which are no longer compressed.
    pub collection_bytes: u64,
    /// Of all its indexes.
    pub indexes: u64,
    /// Bytes of the collection's file that are in use.
    pub file_bytes: u64,
    /// The size that blocks of leaves are to have.
    pub leaf_bytes: u64,
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
    let count = |group: &str, name: &str| {
        let group = table.get_document(group).ok();
        let count = group.and_then(|group| number(group.get(name)?));
        count.ok_or(AdviceError::NoCounters)
    };
    let indexes = stats.get_document("indexDetails").into_iter().flatten();
    let indexes = indexes.filter_map(|(_, index)| Some(pages_read(index.as_document()?)?.pages));
    Ok(Blocks {
        collection: own.pages,
        collection_bytes: own.bytes,
        indexes: indexes.fold(0, u64::saturating_add),
        file_bytes: count("block-manager", "checkpoint size")?,
        leaf_bytes: count("btree", "maximum leaf page size")?,
    })
}
