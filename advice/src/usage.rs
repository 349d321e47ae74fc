//! What a server has done for a collection, by its own counts.

use std::time::Instant;

use bson::{Document, doc};
use seekscope_run::CollectionUse;
use seekscope_server::{Namespace, Server, ServerError, number};

use crate::collection::{CacheUse, cache_use, index_pages_read, pages_read};

/// Entries of a reply, of which a router gives one for each shard.
const SHARDS_MAX: usize = 1_000;

/// The counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    at: Instant,
    reads: u64,
    writes: u64,
    reads_us: u64,
    /// What the cache did for the collection's file; `None` if the server does not say, as a router.
    cache: Option<CacheUse>,
    /// Pages read of the files of the collection and of its indexes, likewise.
    pages_read: Option<u64>,
}

impl Usage {
    /// Reads the counts.
    ///
    /// # Errors
    /// Fails if the server does, or does not answer within a second.
    pub async fn read(server: &Server, namespace: &Namespace) -> Result<Self, ServerError> {
        let (database, collection) = (namespace.database(), namespace.collection());
        let pipeline = vec![doc! { "$collStats": { "latencyStats": {} } }];
        let command = doc! { "aggregate": collection, "pipeline": pipeline, "cursor": {} };
        let shards = server
            .documents_in_time(database, command, SHARDS_MAX)
            .await?;
        let stats = server.command_in_time(database, doc! { "collStats": collection });
        Ok(Self::of(&shards, &stats.await.unwrap_or_default()))
    }

    fn of(shards: &[Document], stats: &Document) -> Self {
        let sum = |kind: &str, count: &str| {
            let of_shard = |shard: &Document| {
                let kind = shard.get_document("latencyStats").ok()?.get_document(kind);
                kind.ok()?.get(count).and_then(number)
            };
            let counts = shards.iter().filter_map(of_shard);
            counts.fold(0, u64::saturating_add)
        };
        let own = stats.get_document("wiredTiger").ok();
        let own_pages = own.and_then(pages_read).map(|read| read.pages);
        Self {
            at: Instant::now(),
            reads: sum("reads", "ops"),
            writes: sum("writes", "ops"),
            reads_us: sum("reads", "latency"),
            cache: own.and_then(cache_use),
            pages_read: own_pages.map(|pages| pages.saturating_add(index_pages_read(stats).pages)),
        }
    }

    /// Returns what was done since an earlier look; `None` if the counts have begun anew since, as they do when the
    /// server is restarted.
    pub fn since(&self, earlier: &Self) -> Option<CollectionUse> {
        let elapsed = self.at.saturating_duration_since(earlier.at);
        let pages_read = match (self.pages_read, earlier.pages_read) {
            (Some(now), Some(then)) => Some(now.checked_sub(then)?),
            _ => None,
        };
        Some(CollectionUse {
            elapsed_s: elapsed.as_secs_f64(),
            reads: self.reads.checked_sub(earlier.reads)?,
            writes: self.writes.checked_sub(earlier.writes)?,
            reads_s: self.reads_us.checked_sub(earlier.reads_us)? as f64 / 1e6,
            pages_read,
        })
    }

    /// Returns the share of the pages of the collection asked for since an earlier look that had to be read; `None` if
    /// too few were asked for.
    pub fn missed_share_since(&self, earlier: &Self) -> Option<f64> {
        self.cache?.since(earlier.cache?).missed_share()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_shards_and_of_indexes_are_added_up() {
        let shard = |reads: i64| {
            doc! { "latencyStats": { "reads": { "ops": reads, "latency": reads * 100 }, "writes": { "ops": 1_i64 } } }
        };
        let file = |pages: i32| {
            doc! { "cache": { "pages read into cache": pages, "bytes read into cache": 9, "pages requested from the cache": 500 } }
        };
        let stats = |own, index| {
            doc! { "wiredTiger": file(own), "indexDetails": { "_id_": file(index), "a_1": file(index) } }
        };
        let before = Usage::of(&[shard(10), shard(20)], &stats(100, 10));
        let after = Usage::of(&[shard(20), shard(30)], &stats(140, 15));
        let used = after.since(&before).unwrap();
        assert_eq!(before.since(&after), None, "the server was restarted");
        assert_eq!(
            (used.reads, used.writes, used.pages_read),
            (20, 0, Some(50))
        );
        assert_eq!(used.pages_per_read(), Some(2.5));
        assert_eq!(used.read_ns(), Some(100_000.0));
        assert_eq!(
            after.missed_share_since(&before),
            None,
            "no page was asked for"
        );
        let router = Usage::of(&[shard(40), shard(0)], &Document::new());
        let router = router.since(&before).unwrap();
        assert_eq!((router.reads, router.pages_per_read()), (10, None));
        assert_eq!(CollectionUse::default().read_ns(), None);
    }
}
