//! Gives the copy the original's name. Once begun this is not abandoned, but completed.

use std::time::Duration;

use bson::{Bson, doc};

use crate::follow::{Follower, Seen};
use crate::job::{Job, Watch};
use crate::site::Site;
use crate::state::Record;
use crate::{Phase, ReorderError, Step, undo};

/// Number of keys that an error shows.
const KEYS_SHOWN: usize = 10;
/// How often to ask whether a rename whose answer was lost has taken place.
const ATTEMPTS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(500);

impl Job<'_> {
    /// Renames the copy over the original. Writers must be stopped, and the two equal.
    pub(crate) async fn swap(&mut self, watch: &Watch) -> Result<(), ReorderError> {
        self.progress.step(Step::Swapping);
        let before = match watch {
            Watch::Stream(follower, _) => Some(follower.seen()),
            Watch::Counters => None,
        };
        self.reach(Phase::Swapping).await?;
        if let Err(error) = self.last_look(watch, before.as_ref()).await {
            // The record must not look as if the server might have begun to rename.
            self.reach(Phase::Indexed).await?;
            return Err(error);
        }
        rename(&self.site, &self.record).await?;
        self.progress.step(Step::CleaningUp);
        match (watch, before) {
            (Watch::Stream(follower, _), Some(before)) => lost(&self.site, follower, &before).await,
            _ => Ok(()),
        }
    }

    /// Checks that nothing arrived since, and that the original is still the same.
    async fn last_look(&self, watch: &Watch, before: Option<&Seen>) -> Result<(), ReorderError> {
        if let (Watch::Stream(follower, _), Some(before)) = (watch, before)
            && follower.barrier(&self.site).await?.changes != before.changes
        {
            return Err(self.site.aborted("somebody wrote to it in the last moment"));
        }
        self.site.check_target(&self.record.original).await
    }
}

/// Renames, and makes sure that it has taken place even if the answer was lost.
pub(crate) async fn rename(site: &Site, record: &Record) -> Result<(), ReorderError> {
    let command = doc! {
        "renameCollection": site.copy_namespace().to_string(),
        "to": site.namespace.to_string(),
        "dropTarget": true,
    };
    let mut renamed = site.server.command("admin", command).await;
    for _ in 0..ATTEMPTS {
        match undo::is_swapped(site, record).await {
            Ok(true) => return Ok(()),
            Ok(false) => break,
            // Continue only while the server does not answer.
            Err(error) if renamed.is_ok() => return Err(error),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    match std::mem::replace(&mut renamed, Ok(bson::Document::new())) {
        Err(error) => Err(error.into()),
        Ok(_) => Err(site.aborted("the server said that it renamed the copy, but it did not")),
    }
}

/// Reports writes that reached the original between the last check of the stream and the rename, and were
/// lost with it.
async fn lost(site: &Site, follower: &Follower, before: &Seen) -> Result<(), ReorderError> {
    let Some(seen) = follower.until_swapped(site).await else {
        return Ok(());
    };
    let count = seen.changes - before.changes;
    if count == 0 {
        return Ok(());
    }
    let keys = follower.keys(before.spooled_bytes, seen.spooled_bytes, KEYS_SHOWN)?;
    let keys: Vec<String> = keys.iter().map(Bson::to_string).collect();
    Err(ReorderError::WrittenDuringSwap {
        namespace: site.namespace.to_string(),
        count: usize::try_from(count).unwrap_or(usize::MAX),
        ids: keys.join(", "),
    })
}
