//! Detects whether a server works for others than us.

use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use seekscope_server::{Server, ServerError};

use crate::discovery::value_of;

const WATCHED: Duration = Duration::from_secs(1);
/// Counters of operations that only an application causes.
const COUNTERS: [&str; 4] = ["insert", "query", "update", "delete"];
/// Calls of `getMore` in a second that the members of a replica set may need to follow an idle primary.
const OF_MEMBERS_PER_S: f64 = 5.0;
/// Commands that are counted by [`COUNTERS`] and as `getmore`.
const COUNTED: [&str; 5] = ["insert", "find", "update", "delete", "getMore"];
/// Commands that clients, members and the servers of a cluster send although nobody works, and that monitoring sends.
const UPKEEP: [&str; 36] = [
    "_flushDatabaseCacheUpdates",
    "_flushRoutingTableCacheUpdates",
    "_isSelf",
    "_shardsvrGetStatsForBalancing",
    "authenticate",
    "buildInfo",
    "collStats",
    "connPoolStats",
    "connectionStatus",
    "currentOp",
    "dbStats",
    "endSessions",
    "features",
    "getCmdLineOpts",
    "getDefaultRWConcern",
    "getDiagnosticData",
    "getLog",
    "getParameter",
    "hello",
    "hostInfo",
    "isMaster",
    "killCursors",
    "listCollections",
    "listDatabases",
    "listIndexes",
    "logout",
    "ping",
    "refreshSessions",
    "replSetGetConfig",
    "replSetGetStatus",
    "replSetHeartbeat",
    "replSetUpdatePosition",
    "saslContinue",
    "saslStart",
    "serverStatus",
    "top",
];
/// Where a server does not count each command: ours between two replies, which are the second `serverStatus` and those of
/// the driver's monitoring.
const OUR_COMMANDS: f64 = 3.0;

/// Work that is not ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    pub operations_per_s: f64,
}

impl Traffic {
    /// Watches the server for a second, and for another if there were commands: on a busy host the driver's
    /// commands while connecting may come late, and are over by then.
    ///
    /// # Errors
    /// Returns an error if it does not answer, or refuses `serverStatus`.
    pub async fn of(server: &Server) -> Result<Self, ServerError> {
        let first = Self::of_a_second(server).await?;
        match first.is_busy() {
            true => Self::of_a_second(server).await,
            false => Ok(first),
        }
    }

    async fn of_a_second(server: &Server) -> Result<Self, ServerError> {
        let status = || server.command("admin", doc! { "serverStatus": 1 });
        let before = status().await?;
        let began = Instant::now();
        tokio::time::sleep(WATCHED).await;
        let after = status().await?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(Self {
            operations_per_s: operations_per_s(&before, &after, seconds),
        })
    }

    /// Returns whether anybody would notice what we do.
    pub fn is_busy(&self) -> bool {
        self.operations_per_s > 0.0
    }
}

fn operations_per_s(before: &Document, after: &Document, seconds: f64) -> f64 {
    let seconds = seconds.max(1e-3);
    let count = |status: &Document, name: &str| {
        let counters = status.get_document("opcounters").ok()?;
        value_of(counters.get(name)?)?.number()
    };
    let more = |name: &str, expected: f64| match (count(before, name), count(after, name)) {
        (Some(before), Some(after)) => (after - before - expected).max(0.0),
        _ => 0.0,
    };
    let counted: f64 = COUNTERS.iter().map(|name| more(name, 0.0)).sum();
    let of_members_per_s = match after.contains_key("repl") {
        true => OF_MEMBERS_PER_S,
        false => 0.0,
    };
    let cursors = more("getmore", of_members_per_s * seconds);
    let commands = other_commands(before, after).unwrap_or_else(|| more("command", OUR_COMMANDS));
    (counted + cursors + commands) / seconds
}

/// Returns the number of commands that are neither counted otherwise nor upkeep; `None` if the server does not count each
/// command.
fn other_commands(before: &Document, after: &Document) -> Option<f64> {
    let (before, after) = (commands(before)?, commands(after)?);
    let total = |commands: &Document, name: &str| {
        let command = commands.get_document(name).ok()?;
        value_of(command.get("total")?)?.number()
    };
    let more = after.keys().filter_map(|name| {
        let is_known = COUNTED.contains(&name.as_str()) || UPKEEP.contains(&name.as_str());
        let more = total(after, name)? - total(before, name).unwrap_or(0.0);
        (!is_known).then_some(more.max(0.0))
    });
    Some(more.sum())
}

fn commands(status: &Document) -> Option<&Document> {
    let metrics = status.get_document("metrics").ok()?;
    metrics.get_document("commands").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_commands_do_not_count() {
        let status = |query: i32, command: i64| {
            doc! { "opcounters": { "query": query, "command": command, "insert": "odd" } }
        };
        assert_eq!(operations_per_s(&status(5, 10), &status(5, 12), 1.0), 0.0);
        assert_eq!(operations_per_s(&status(5, 10), &status(9, 33), 2.0), 12.0);
        assert_eq!(operations_per_s(&status(9, 9), &status(1, 1), 0.0), 0.0);
        assert_eq!(operations_per_s(&doc! {}, &doc! {}, 1.0), 0.0);
    }

    #[test]
    fn clients_members_and_monitoring_are_no_work() {
        let status = |upkeep: i64, getmore: i64, find: i64, aggregate: i64| {
            let total = |total: i64| doc! { "failed": 0_i64, "total": total };
            let commands = doc! {
                "<UNKNOWN>": 0_i64, "hello": total(upkeep), "serverStatus": total(upkeep),
                "getMore": total(getmore), "find": total(find), "aggregate": total(aggregate),
                "_flushRoutingTableCacheUpdates": total(upkeep), "getDefaultRWConcern": total(upkeep),
            };
            doc! {
                "opcounters": { "query": find, "getmore": getmore, "command": 2 * upkeep + aggregate },
                "metrics": { "commands": commands },
                "repl": { "ismaster": true },
            }
        };
        let per_s = |after: &Document| operations_per_s(&status(10, 10, 10, 10), after, 1.0);
        assert_eq!(per_s(&status(90, 14, 10, 10)), 0.0);
        assert_eq!(per_s(&status(90, 14, 11, 10)), 1.0);
        assert_eq!(per_s(&status(90, 14, 10, 12)), 2.0);
        assert_eq!(per_s(&status(90, 100, 10, 10)), 85.0);
        let mut alone = status(90, 14, 10, 10);
        alone.remove("repl");
        assert_eq!(per_s(&alone), 4.0);
    }
}
