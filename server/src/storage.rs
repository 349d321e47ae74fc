//! The size of collections by the server's own statistics, and the size of a data directory on its disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mongodb::bson::{Document, doc};
use seekscope_run::StorageFacts;

use crate::cursor::SHARDS_MAX;
use crate::replies;
use crate::server::{Server, ServerError};

/// `directoryperdb` and `wiredTigerDirectoryForIndexes` create folders of this depth.
const DEPTH_MAX: usize = 4;
/// `st_blocks` counts blocks of this size (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// Returns the sums over collections of a database, and over all shards if they are sharded. A collection that
/// does not exist counts as nothing.
pub async fn storage_facts(
    server: &Server,
    database: &str,
    collections: &[&str],
) -> Result<StorageFacts, ServerError> {
    let mut sum = StorageFacts::default();
    for collection in collections {
        for stats in collection_stats(server, database, collection).await? {
            let facts = replies::storage(&stats);
            let mut documents = facts.documents;
            // Time-series collections do not say how many documents they hold.
            if !stats.contains_key("count") && facts.storage_bytes > 0 {
                let count = doc! { "count": collection };
                let reply = server.command(database, count).await?;
                documents = reply.get("n").and_then(replies::number).unwrap_or(0);
            }
            for (total, one) in [
                (&mut sum.documents, documents),
                (&mut sum.data_bytes, facts.data_bytes),
                (&mut sum.storage_bytes, facts.storage_bytes),
                (&mut sum.index_bytes, facts.index_bytes),
            ] {
                *total = total.saturating_add(one);
            }
        }
    }
    Ok(sum)
}

/// Returns one document for each shard that has the collection. `collStats` is used if the user may not
/// aggregate, or the collection does not exist.
async fn collection_stats(
    server: &Server,
    database: &str,
    collection: &str,
) -> Result<Vec<Document>, ServerError> {
    let stage = doc! { "$collStats": { "storageStats": {} } };
    let command = doc! { "aggregate": collection, "pipeline": [stage], "cursor": {} };
    if let Ok(entries) = server.documents(database, command, SHARDS_MAX).await {
        let stats = replies::storage_stats(&entries);
        if !stats.is_empty() {
            return Ok(stats);
        }
    }
    let command = doc! { "collStats": collection };
    Ok(vec![server.command(database, command).await?])
}

/// Returns the bytes that the files of tables (`*.wt`) below a data directory take on the disk; logs are not
/// included. `None` if the directory may not be read.
pub fn directory_bytes(directory: &Path) -> Option<u64> {
    let mut sum = 0_u64;
    let mut folders = vec![(directory.to_path_buf(), 1)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).ok()? {
            // A server may delete files meanwhile.
            let Some(facts) = entry.as_ref().ok().and_then(|e| e.metadata().ok()) else {
                continue;
            };
            let path = entry.map(|e| e.path()).unwrap_or_default();
            if facts.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if facts.is_file() && path.extension().is_some_and(|e| e == "wt") {
                sum = sum.saturating_add(facts.blocks().saturating_mul(BLOCK_BYTES));
            }
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_added_up_and_logs_are_not() {
        let root = tempfile::tempdir_in(".").unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("db/index")).unwrap();
        fs::create_dir(at("journal")).unwrap();
        for path in [
            "a.wt",
            "db/index/b.wt",
            "journal/WiredTigerLog.1",
            "WiredTiger.lock",
        ] {
            fs::write(at(path), vec![1; 8192]).unwrap();
        }
        std::os::unix::fs::symlink(at("a.wt"), at("link.wt")).unwrap();
        fs::File::open(at("a.wt")).unwrap().sync_all().unwrap();
        fs::File::open(at("db/index/b.wt"))
            .unwrap()
            .sync_all()
            .unwrap();
        assert_eq!(directory_bytes(root.path()), Some(2 * 8192));
        assert_eq!(directory_bytes(&at("nowhere")), None);
    }
}
