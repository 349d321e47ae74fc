//! Undoes what a reordering has created on the server.

use bson::{Bson, doc};
use seekscope_server::ServerError;

use crate::site::Site;
use crate::state::Record;
use crate::under_way::{SETTLE, Sought, is_under_way};
use crate::{Phase, ReorderError, RolledBack};

/// How often to check for the copy.
const ATTEMPTS: u32 = 240;
/// How often a server may refuse to drop it for an unknown reason: one that still builds the index of a
/// command whose client went away may call that busy, or a conflict.
const REFUSALS: u32 = 20;

/// Returns whether the copy has taken the original's name. While both names exist, it has not, or not completely.
pub(crate) async fn is_swapped(site: &Site, record: &Record) -> Result<bool, ReorderError> {
    let target = site.identity(site.target_name()).await?;
    Ok(record.phase == Phase::Swapping
        && record.copy.is_some()
        && target == record.copy
        && site.listed(site.copy_name()).await?.is_none())
}

/// Removes the copy, if the record is this worker's. The record stays, because it is what tells that writers
/// may have to be told to continue.
pub(crate) async fn undo(site: &Site, record: &mut Record) -> Result<RolledBack, ReorderError> {
    match Record::read(site).await? {
        Some(found) if found.worker.token == record.worker.token => {}
        Some(_) => return Err(site.aborted("another seekscope works on it now")),
        None => return Ok(RolledBack::Original),
    }
    if is_swapped(site, record).await? {
        return Ok(RolledBack::AlreadySwapped);
    }
    let target = site.identity(site.target_name()).await?;
    if record.phase == Phase::Swapping && target.as_ref() != Some(&record.original) {
        return Err(site.refused(
            "the original is gone, since the server was interrupted while it swapped; the copy was \
             verified: use --resume",
        ));
    }
    drop_copy(site, record).await?;
    // A rename whose answer was lost may have been completed meanwhile.
    match is_swapped(site, record).await? {
        true => Ok(RolledBack::AlreadySwapped),
        false => Ok(RolledBack::Original),
    }
}

/// Drops the copy, if there is one, and makes sure that it stays away: a write that was in progress when its
/// client died may create it again.
pub(crate) async fn drop_copy(site: &Site, record: &mut Record) -> Result<(), ReorderError> {
    let (mut was_absent, mut was_dropped, mut refusals) = (false, false, 0);
    for _ in 0..ATTEMPTS {
        let found = site.identity(site.copy_name()).await?;
        if let (Some(copy), Some(found)) = (&record.copy, &found)
            && copy != found
            && !record.dropping
        {
            return Err(site.refused(format!(
                "{} is not the copy that was made; look at it, and drop it yourself",
                site.copy_namespace()
            )));
        }
        // A collection that gets that name from here on is not the copy that was made, but is ours all the
        // same; also for a later resume.
        if record.copy.is_some() && !record.dropping {
            record.dropping = true;
            record.save(site).await?;
        }
        if found.is_none() {
            if was_absent && is_under_way(site, Sought::Makers).await? != Some(true) {
                return Ok(());
            }
            was_absent = true;
            tokio::time::sleep(SETTLE).await;
            continue;
        }
        was_absent = false;
        if was_dropped {
            tokio::time::sleep(SETTLE).await;
        }
        let dropped = site.copy().drop().await;
        if let Err(error) = dropped.map_err(|e| site.failed("drop", &e)) {
            // Before 4.4 an index build in progress must be completed.
            let is_building = error.to_string().contains("BackgroundOperationInProgress");
            refusals += u32::from(!is_building);
            let is_gone = matches!(error, ReorderError::Server(ServerError::Unreachable { .. }));
            if is_gone || refusals > REFUSALS {
                return Err(error);
            }
            tokio::time::sleep(SETTLE).await;
        } else {
            was_dropped = true;
        }
    }
    Err(site.aborted(format!("{} cannot be dropped", site.copy_namespace())))
}

/// Returns the names of databases.
pub(crate) async fn databases(
    server: &seekscope_server::Server,
) -> Result<Vec<String>, ReorderError> {
    let reply = server
        .command("admin", doc! { "listDatabases": 1, "nameOnly": true })
        .await?;
    let databases = reply
        .get_array("databases")
        .map(Vec::as_slice)
        .unwrap_or_default();
    let name = |d: &Bson| d.as_document()?.get_str("name").ok().map(str::to_owned);
    Ok(databases.iter().filter_map(name).collect())
}
