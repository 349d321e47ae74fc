//! Detects whether a server works for others than us.

use std::time::{Duration, Instant};

use mongodb::bson::{Document, doc};
use seekscope_server::{Server, ServerError, first_batch};

use crate::discovery::value_of;

const WATCHED: Duration = Duration::from_secs(1);
/// Commands of our own between two replies: the second `serverStatus` itself, and those of the driver's
/// monitoring.
const OUR_COMMANDS: f64 = 3.0;
const COUNTERS: [&str; 6] = ["insert", "query", "update", "delete", "getmore", "command"];

/// Work that is not ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Traffic {
    pub operations_per_s: f64,
    /// Open connections of other programs; `None` if the server does not report their owners.
    pub connections: Option<u64>,
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
        let connections = connections(server).await;
        Ok(Self {
            operations_per_s: operations_per_s(&before, &after, seconds),
            connections,
        })
    }

    /// Would anybody notice what we do?
    pub fn is_busy(&self) -> bool {
        self.operations_per_s > 0.0
    }
}

fn operations_per_s(before: &Document, after: &Document, seconds: f64) -> f64 {
    let count = |status: &Document, name: &str| {
        let counters = status.get_document("opcounters").ok()?;
        value_of(counters.get(name)?)?.number()
    };
    let mut operations = 0.0;
    for name in COUNTERS {
        if let (Some(before), Some(after)) = (count(before, name), count(after, name)) {
            let ours = if name == "command" { OUR_COMMANDS } else { 0.0 };
            operations += (after - before - ours).max(0.0);
        }
    }
    operations / seconds.max(1e-3)
}

/// Counts connections that do not identify themselves as seekscope's.
async fn connections(server: &Server) -> Option<u64> {
    let command = doc! {
        "aggregate": 1,
        "pipeline": [
            { "$currentOp": { "allUsers": true, "idleConnections": true } },
            { "$match": { "client": { "$exists": true }, "appName": { "$ne": "seekscope" } } },
            { "$group": { "_id": "$connectionId" } },
            { "$count": "connections" },
        ],
        "cursor": {},
    };
    let reply = server.command("admin", command).await.ok()?;
    // A reply without a cursor has counted nothing.
    reply.get_document("cursor").ok()?;
    let Some(counted) = first_batch(&reply).next() else {
        return Some(0);
    };
    let number = value_of(counted.get("connections")?)?.number()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    Some(number as u64)
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
}
