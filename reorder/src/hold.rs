//! Keeps writers away from the collection for the last moment.

use std::time::{Duration, Instant};

use bson::{Bson, Document, doc};
use seekscope_server::Server;

use crate::site::Site;
use crate::state::Record;
use crate::{ReorderError, Writers};

const BLOCK: &str = "setUserWriteBlockMode";

/// Keeps writers away from `stop` to `go_on`.
#[derive(Debug)]
pub(crate) struct Hold<'a> {
    writers: &'a mut Writers,
    since: Option<Instant>,
    has_let_go: bool,
}

impl<'a> Hold<'a> {
    pub(crate) fn new(writers: &'a mut Writers) -> Self {
        Self {
            writers,
            since: None,
            has_let_go: false,
        }
    }

    pub(crate) fn is_quiesced(&self) -> bool {
        matches!(self.writers, Writers::Quiesced)
    }

    /// Returns whether it has let writers go on that were stopped.
    pub(crate) fn has_let_go(&self) -> bool {
        self.has_let_go
    }

    /// Returns why writers cannot be kept away as requested; `None` if they can.
    pub(crate) async fn refusal(&mut self, site: &Site) -> Result<Option<String>, ReorderError> {
        match self.writers {
            Writers::BlockedByServer => block_refusal(&site.server).await,
            _ => Ok(None),
        }
    }

    /// Stops writers and returns when nobody writes any more.
    pub(crate) async fn stop(
        &mut self,
        site: &Site,
        record: &mut Record,
    ) -> Result<(), ReorderError> {
        self.since = Some(Instant::now());
        match self.writers {
            Writers::Quiesced => {}
            Writers::BlockedByServer => {
                record.blocked = true;
                record.save(site).await?;
                let block = doc! { BLOCK: 1, "global": true };
                site.server.command("admin", block).await?;
            }
            Writers::Paused(control) => {
                record.paused = true;
                record.save(site).await?;
                let stopped = control.stop().await;
                stopped
                    .map_err(|why| site.aborted(format!("writers could not be stopped: {why}")))?;
            }
        }
        Ok(())
    }

    /// Lets writers continue that were stopped, by this run or by the interrupted one that it resumes.
    /// Returns how long this run stopped them.
    pub(crate) async fn go_on(
        &mut self,
        site: &Site,
        record: &mut Record,
    ) -> Result<Duration, ReorderError> {
        let still = |why| ReorderError::WritersStillStopped { why };
        if record.blocked {
            let unblocked = unblock(&site.server).await;
            unblocked.map_err(|error| still(error.to_string()))?;
            record.blocked = false;
            self.has_let_go = true;
        }
        if let (true, Writers::Paused(control)) = (record.paused, &mut *self.writers) {
            control.go_on().await.map_err(still)?;
            record.paused = false;
            self.has_let_go = true;
        }
        Ok(self.since.take().map_or(Duration::ZERO, |s| s.elapsed()))
    }
}

/// Lets the server accept writes again.
pub(crate) async fn unblock(server: &Server) -> Result<(), ReorderError> {
    server
        .command("admin", doc! { BLOCK: 1, "global": false })
        .await?;
    Ok(())
}

/// Returns why the server cannot block everybody else's writes, as [`Writers::BlockedByServer`] requires;
/// `None` if it can. Changes nothing.
///
/// # Errors
/// Returns an error if the server does not answer.
pub async fn block_refusal(server: &Server) -> Result<Option<String>, ReorderError> {
    let commands = server.command("admin", doc! { "listCommands": 1 }).await?;
    let commands = commands.get_document("commands");
    if !commands.is_ok_and(|commands| commands.contains_key(BLOCK)) {
        return Ok(Some(format!(
            "the server has no {BLOCK} (mongod has since 6.0); have writers paused by a command, or \
             stop them and use --quiesced"
        )));
    }
    let status = doc! { "connectionStatus": 1, "showPrivileges": true };
    let status = server.command("admin", status).await?;
    let granted = granted_actions(&status);
    let missing = ["setUserWriteBlockMode", "bypassWriteBlockingMode"]
        .into_iter()
        .find(|action| !granted.iter().any(|g| g == action));
    Ok(missing.map(|action| {
        format!(
            "{BLOCK} would not do: without authentication nobody is kept out, and the user needs the \
             privilege {action}; have writers paused by a command, or stop them and use --quiesced"
        )
    }))
}

fn granted_actions(status: &Document) -> Vec<String> {
    let info = status.get_document("authInfo").ok();
    let privileges = info.and_then(|i| i.get_array("authenticatedUserPrivileges").ok());
    let privileges = privileges
        .into_iter()
        .flatten()
        .filter_map(Bson::as_document);
    let actions = privileges
        .filter_map(|p| p.get_array("actions").ok())
        .flatten();
    actions
        .filter_map(|a| a.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn privileges_are_found_in_the_answer() {
        let status = doc! { "authInfo": { "authenticatedUserPrivileges": [
            { "resource": {}, "actions": ["find", "bypassWriteBlockingMode"] }, { "actions": 1 }, 5,
        ] } };
        assert_eq!(
            granted_actions(&status),
            ["find", "bypassWriteBlockingMode"]
        );
        assert!(granted_actions(&doc! {}).is_empty());
    }
}
