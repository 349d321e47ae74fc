//! Checks the server's disk for room for a second copy of the collection.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bson::doc;
use seekscope_run::units::whole;
use seekscope_server::{ProcFs, number};

use crate::ReorderError;
use crate::site::Site;

/// Factor on the original's size: new files grow in steps, and the log needs some.
const MARGIN: f64 = 1.2;
/// Bytes left free while the copy grows: a server whose disk is full dies.
const RESERVE_BYTES: u64 = 256 << 20;
const INTERVAL: Duration = Duration::from_secs(5);

/// Returns the bytes that a copy with its indexes may need.
pub(crate) async fn needed(site: &Site) -> Result<u64, ReorderError> {
    let stats = site
        .command(doc! { "collStats": site.target_name() })
        .await?;
    let bytes = |name: &str| stats.get(name).and_then(number).unwrap_or(0) as f64;
    Ok(whole(
        (bytes("storageSize") + bytes("totalIndexSize")) * MARGIN,
    ))
}

/// Checks whether there is room, as far as that is known.
pub(crate) async fn check(site: &Site) -> Result<(), ReorderError> {
    let needed_bytes = needed(site).await?.saturating_add(RESERVE_BYTES);
    match free(site, data_folder(site).await.as_deref()).await {
        Some(free_bytes) if free_bytes < needed_bytes => Err(ReorderError::NoSpace {
            free_bytes,
            needed_bytes,
        }),
        _ => Ok(()),
    }
}

/// Watches the free space and returns only when room runs out.
pub(crate) async fn watch(site: &Site) -> ReorderError {
    let folder = data_folder(site).await;
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Some(free_bytes) = free(site, folder.as_deref()).await
            && free_bytes < RESERVE_BYTES
        {
            return ReorderError::NoSpace {
                free_bytes,
                needed_bytes: RESERVE_BYTES,
            };
        }
    }
}

/// Returns the free bytes where the server keeps its data: by the file system of this host, else as reported
/// by the server (since 3.6), which has to look at every collection for that. `None` where neither is known.
async fn free(site: &Site, folder: Option<&Path>) -> Option<u64> {
    if let Some(found) = folder.and_then(|folder| rustix::fs::statvfs(folder).ok()) {
        return Some(found.f_bavail.saturating_mul(found.f_frsize));
    }
    let stats = site.command(doc! { "dbStats": 1 }).await.ok()?;
    let bytes = |name: &str| stats.get(name).and_then(number);
    let total_bytes = bytes("fsTotalSize").filter(|bytes| *bytes > 0)?;
    Some(total_bytes.saturating_sub(bytes("fsUsedSize").unwrap_or(0)))
}

/// Returns the server's data folder, if it is on this host.
async fn data_folder(site: &Site) -> Option<PathBuf> {
    let facts = site.server.facts(&ProcFs::host()).await.target;
    facts.pid.and(facts.dbpath).map(PathBuf::from)
}
