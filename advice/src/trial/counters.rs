//! Counts the blocks that a server has read of a collection's files since its start.

use bson::{Document, doc};
use seekscope_server::{Server, number};

use crate::AdviceError;

/// Blocks read since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    pub collection: u64,
    /// Of all its indexes.
    pub indexes: u64,
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
    let own = stats.get_document("wiredTiger").ok();
    let indexes = stats.get_document("indexDetails").into_iter().flatten();
    let indexes = indexes.filter_map(|(_, index)| pages_read(index.as_document()?));
    Ok(Blocks {
        collection: own.and_then(pages_read).ok_or(AdviceError::NoCounters)?,
        indexes: indexes.fold(0, u64::saturating_add),
    })
}

fn pages_read(file: &Document) -> Option<u64> {
    let cache = file.get_document("cache").ok()?;
    cache.get("pages read into cache").and_then(number)
}
