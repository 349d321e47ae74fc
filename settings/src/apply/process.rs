//! Binds what is set in a running server to its process: with that it ends, and in another one, whether of the same
//! server or of another member of its set, there is nothing of it to be put back.

use mongodb::bson::{Document, doc};
use seekscope_server::{Server, ServerError, number};
use serde::{Deserialize, Serialize};

use super::{Applier, ApplyError};

/// Readings of one process's start agree to within this, also where the clock is set meanwhile.
const START_SLACK_MS: u64 = 60_000;

/// What tells a server's process from the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerProcess {
    /// Made up by each process when it starts, from MongoDB 4.4 on; elsewhere the rest has to do.
    id: Option<String>,
    pid: Option<u64>,
    started_unix_ms: Option<u64>,
}

impl ServerProcess {
    async fn of(server: &Server) -> Result<Self, ServerError> {
        if let Some(id) = server.hello().await?.process_id {
            return Ok(Self {
                id: Some(id.to_string()),
                ..Self::default()
            });
        }
        // What it does not say, or not to this login, tells no process from another.
        let status = server.command_in_time("admin", doc! { "serverStatus": 1 });
        Ok(Self::read(&status.await.unwrap_or_default()))
    }

    fn read(status: &Document) -> Self {
        let number = |name: &str| status.get(name).and_then(number);
        let now = status.get_datetime("localTime").ok();
        let now_ms = now.and_then(|now| u64::try_from(now.timestamp_millis()).ok());
        let age_ms = number("uptimeMillis");
        Self {
            id: None,
            pid: number("pid"),
            started_unix_ms: now_ms.zip(age_ms).map(|(now, age)| now.saturating_sub(age)),
        }
    }

    /// Returns whether the other one is known to be another process.
    fn is_other_than(&self, other: &Self) -> bool {
        if self.id.is_some() || other.id.is_some() {
            return self.id != other.id;
        }
        let is_apart = |a: Option<u64>, b: Option<u64>, slack: u64| {
            a.zip(b).is_some_and(|(a, b)| a.abs_diff(b) > slack)
        };
        is_apart(self.pid, other.pid, 0)
            || is_apart(self.started_unix_ms, other.started_unix_ms, START_SLACK_MS)
    }
}

/// What became of the process in which settings were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Runs,
    /// Another one answers in its place.
    Ended,
    /// Nothing answers there, for this reason.
    Unknown(String),
}

impl Applier {
    /// Records in which process settings are about to be made. One that does not answer is not set: what follows fails,
    /// or a restart brings it back.
    pub(super) async fn note_process(&mut self) -> Result<(), ApplyError> {
        let Some(server) = &self.means.server else {
            return Ok(());
        };
        let Ok(found) = ServerProcess::of(server).await else {
            return Ok(());
        };
        let noted = self.originals.process.as_ref();
        if noted.is_some_and(|noted| !found.is_other_than(noted)) {
            return Ok(());
        }
        self.originals.process = Some(found);
        Ok(self.originals.save(&self.folder)?)
    }

    /// Finds out what became of the process in which settings were made.
    pub(super) async fn fate(&self) -> Fate {
        let (Some(noted), Some(server)) = (&self.originals.process, &self.means.server) else {
            return Fate::Runs;
        };
        match ServerProcess::of(server).await {
            Ok(found) if found.is_other_than(noted) => Fate::Ended,
            Ok(_) => Fate::Runs,
            Err(error) => Fate::Unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::DateTime;

    use super::*;

    fn named(id: &str) -> ServerProcess {
        ServerProcess {
            id: Some(id.into()),
            ..ServerProcess::default()
        }
    }

    /// A server that does not name its process, by its pid and its clock.
    fn unnamed(pid: i32, now_ms: i64, age_ms: i64) -> ServerProcess {
        let now = DateTime::from_millis(now_ms);
        ServerProcess::read(&doc! { "pid": pid, "localTime": now, "uptimeMillis": age_ms })
    }

    #[test]
    fn a_process_is_known_by_its_name_or_its_pid_and_start() {
        assert!(!named("a").is_other_than(&named("a")));
        assert!(named("a").is_other_than(&named("b")));
        // A server that was replaced by a version that names its process.
        assert!(named("a").is_other_than(&unnamed(1, 1_000_000, 1000)));
        let first = unnamed(1, 1_000_000, 10_000);
        assert!(!unnamed(1, 2_000_000, 1_010_001).is_other_than(&first));
        assert!(unnamed(2, 2_000_000, 1_010_000).is_other_than(&first));
        // In a container each has the same pid.
        assert!(unnamed(1, 2_000_000, 10_000).is_other_than(&first));
        // Its clock was set a little.
        assert!(!unnamed(1, 2_005_000, 1_010_000).is_other_than(&first));
    }

    #[test]
    fn what_is_not_said_tells_no_process_from_another() {
        let silent = ServerProcess::read(&doc! { "pid": "odd", "uptimeMillis": 5 });
        assert_eq!(silent, ServerProcess::default());
        assert!(!silent.is_other_than(&unnamed(1, 1, 1)));
    }
}
