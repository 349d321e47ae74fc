//! Why a server refuses something, told from what the driver says.

use std::time::Duration;

use mongodb::error::{ErrorKind, WriteFailure};
use seekscope_run::{Kinded, Lacking};

use super::Server;
use crate::driver_error::plain;
use crate::examination::rights;
use crate::hello::Hello;
use crate::redact::redact_text;
use crate::sightings::{NoServer, NoServerKind};

const UNAUTHORIZED: i32 = 13;
const AUTHENTICATION_FAILED: i32 = 18;
const WRITE_CONCERN_FAILED: i32 = 64;
/// ShutdownInProgress, PrimarySteppedDown, NotWritablePrimary, InterruptedAtShutdown, InterruptedDueToReplStateChange,
/// NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary.
const ROLE_LOST: [i32; 7] = [91, 189, 10_107, 11_600, 11_602, 13_435, 13_436];
/// NotWritablePrimary, NotPrimaryNoSecondaryOk: a member that is at work says so as well, if it is not the one to ask.
const NOT_PRIMARY: [i32; 2] = [10_107, 13_435];
/// What a mongos says whose shard is away: HostUnreachable, HostNotFound, NetworkTimeout,
/// FailedToSatisfyReadPreference, NetworkInterfaceExceededTimeLimit, SocketException.
const SHARD_LOST: [i32; 6] = [6, 7, 89, 133, 202, 9001];
/// LockTimeout, MaxTimeMSExpired, ExceededTimeLimit.
const TIME_OVER: [i32; 3] = [24, 50, 262];

/// The reason why a server, or one of its commands, refused us. Never holds credentials.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("connection string {uri}: {why}; use one that mongosh accepts")]
    BadUri { uri: String, why: String },
    #[error("cannot connect to {uri}: {why}; {remedy}")]
    Unreachable {
        uri: String,
        why: String,
        remedy: &'static str,
    },
    /// It answers, but belongs to others, or its age or kind is not the required one.
    #[error("{uri} cannot be used: {why}; {remedy}")]
    Unsuitable {
        uri: String,
        why: String,
        remedy: String,
    },
    /// The process that somebody named as the server's is another one.
    #[error(
        "process {pid} is not the server at {uri}: {why}; name the number that this host has for the server's \
         process (pgrep -a mongod), also if it runs in a container"
    )]
    OtherProcess { uri: String, pid: u32, why: String },
    #[error("{uri} refused the login: {why}; check user, password, authSource and authMechanism")]
    LoginRefused { uri: String, why: String },
    #[error("{} on {uri}; {}", not_authorised(command, *has_user), rights::grant(command, *has_user))]
    NotAuthorised {
        uri: String,
        command: String,
        /// Whether the connection string names a user.
        has_user: bool,
    },
    #[error("{uri} did not answer {command} in time: {why}; ask again when it has less to do")]
    TimeOver {
        uri: String,
        command: String,
        why: String,
    },
    #[error(
        "{uri}: the member asked for {command} shuts down, is primary no more, or is in no state to answer ({why}); ask again \
         once rs.status() shows it at work and a primary"
    )]
    RoleLost {
        uri: String,
        command: String,
        why: String,
    },
    /// It has been a secondary all the time, so nothing is wrong with it.
    #[error("{uri} is a secondary of {set}, which takes no {command}; {}", .primary.as_ref().map_or_else(
        || "name the whole set".into(), |primary| format!("its primary is {primary}: name that or the whole set")))]
    Secondary {
        uri: String,
        command: String,
        set: String,
        primary: Option<String>,
    },
    #[error(
        "too few members of the set acknowledged {command} on {uri} in time; see with rs.status() which of them are \
         down or far behind, and go on when they are back"
    )]
    Unacknowledged { uri: String, command: String },
    #[error("{command} failed on {uri}: {why}")]
    Failed {
        uri: String,
        command: String,
        why: String,
    },
}

impl Kinded for ServerError {
    fn kind(&self) -> Option<seekscope_run::ErrorKind> {
        Some(match self {
            // A privilege can be granted; a server that is away or a wrong login is another matter.
            Self::NotAuthorised { .. } => seekscope_run::ErrorKind::NotPermitted,
            Self::BadUri { .. } | Self::OtherProcess { .. } => seekscope_run::ErrorKind::Usage,
            _ => seekscope_run::ErrorKind::Target,
        })
    }
}

/// Says that a command was refused for want of a right, or of any login.
pub(crate) fn not_authorised(command: &str, has_user: bool) -> String {
    match has_user {
        true => format!("the user may not run {command}"),
        false => format!("nobody may run {command} without a login"),
    }
}

/// Returns what is missing where a command was refused so.
pub(crate) fn lacking(has_user: bool) -> Lacking {
    match has_user {
        true => Lacking::Right,
        false => Lacking::Login,
    }
}

/// Returns whether a write was made, but not acknowledged by as many members as were asked for.
fn is_unacknowledged(kind: &ErrorKind) -> bool {
    let concern = match kind {
        ErrorKind::Write(WriteFailure::WriteConcernError(concern)) => Some(concern),
        ErrorKind::InsertMany(failed) => failed.write_concern_error.as_ref(),
        _ => None,
    };
    concern.is_some_and(|concern| concern.code == WRITE_CONCERN_FAILED)
}

/// Returns whether a server that answers has lost the one that it asked for us.
fn has_lost_shard(kind: &ErrorKind) -> bool {
    let code = match kind {
        ErrorKind::Command(said) => Some(said.code),
        ErrorKind::Write(WriteFailure::WriteError(said)) => Some(said.code),
        ErrorKind::InsertMany(failed) => {
            let refused = failed.write_errors.as_deref().unwrap_or_default();
            refused.first().map(|first| first.code)
        }
        _ => None,
    };
    code.is_some_and(|code| SHARD_LOST.contains(&code))
}

fn broken_off(uri: String, command: &str, why: &str) -> ServerError {
    ServerError::Unreachable {
        uri,
        why: format!("the connection broke off during {command} ({why})"),
        remedy: "see in the server's log whether it still runs",
    }
}

impl Server {
    /// Classifies an error of the driver, without credentials. `command` names what was attempted.
    pub fn error(&self, command: &str, error: &mongodb::error::Error) -> ServerError {
        let (uri, command) = (self.shown_uri(), command.to_string());
        let why = redact_text(&plain(error), &self.uri);
        match error.kind.as_ref() {
            ErrorKind::Command(e) if e.code == UNAUTHORIZED => ServerError::NotAuthorised {
                uri,
                command,
                has_user: self.has_user(),
            },
            ErrorKind::Command(e) if e.code == AUTHENTICATION_FAILED => {
                ServerError::LoginRefused { uri, why }
            }
            ErrorKind::Command(e) if TIME_OVER.contains(&e.code) => {
                ServerError::TimeOver { uri, command, why }
            }
            ErrorKind::Command(e) if ROLE_LOST.contains(&e.code) => {
                match self.secondary().filter(|_| NOT_PRIMARY.contains(&e.code)) {
                    Some(Hello {
                        set: Some(set),
                        primary,
                        ..
                    }) => ServerError::Secondary {
                        uri,
                        command,
                        set,
                        primary,
                    },
                    _ => ServerError::RoleLost { uri, command, why },
                }
            }
            kind if has_lost_shard(kind) => ServerError::Unreachable {
                uri,
                why: format!("it could not reach a server that it needs for {command} ({why})"),
                remedy: "check that all shards have a primary",
            },
            kind if is_unacknowledged(kind) => ServerError::Unacknowledged { uri, command },
            ErrorKind::Authentication { .. } => ServerError::LoginRefused { uri, why },
            ErrorKind::ServerSelection { .. } => self.no_server(),
            // Another request has lost its connection, which the driver need not have seen of the server by itself yet.
            ErrorKind::ConnectionPoolCleared { .. } => match self.connecting.sightings.failure() {
                Some(no) => self.unusable(no),
                None => broken_off(
                    uri,
                    &command,
                    "it was closed when another request lost its connection",
                ),
            },
            ErrorKind::DnsResolve { .. } => ServerError::Unreachable {
                uri,
                why,
                remedy: NoServerKind::UnknownName.remedy(),
            },
            ErrorKind::Io(_) => broken_off(uri, &command, &why),
            _ => ServerError::Failed { uri, command, why },
        }
    }

    /// Returns what the one server that is talked to said of itself, if that was always that it is a secondary.
    fn secondary(&self) -> Option<Hello> {
        let sightings = &self.connecting.sightings;
        self.is_direct().then(|| sightings.only_secondary())?
    }

    /// Returns whether the connection string names a user.
    pub(crate) fn has_user(&self) -> bool {
        self.connecting.options.credential.is_some()
    }

    /// Returns what is known so far of why this server does not answer. The driver goes on trying for longer.
    pub(crate) fn failure_seen(&self) -> Option<String> {
        let seen = self.connecting.sightings.failure()?;
        Some(redact_text(&seen.why, &self.uri))
    }

    /// Returns the error for an answer that did not come within the time.
    pub(super) fn late(&self, command: &str, limit: Duration) -> ServerError {
        match self.connecting.sightings.all_fail() {
            Some(no) => self.unusable(no),
            None => ServerError::TimeOver {
                uri: self.shown_uri(),
                command: command.into(),
                why: format!("no answer within {} s", limit.as_secs_f64()),
            },
        }
    }

    /// Refuses a server that does not belong to the replica set that the connection string names, as the driver does
    /// where it chooses the server.
    pub(crate) fn check_set(&self, answer: &Hello) -> Result<(), ServerError> {
        let other_set = self.connecting.sightings.other_set(answer);
        other_set.map_or(Ok(()), |no| Err(self.unusable(no)))
    }

    /// Returns the reason why the driver has no server to send to.
    fn no_server(&self) -> ServerError {
        self.unusable(self.connecting.sightings.why_none())
    }

    fn unusable(&self, NoServer { kind, why }: NoServer) -> ServerError {
        let (uri, why) = (self.shown_uri(), redact_text(&why, &self.uri));
        match kind {
            NoServerKind::TlsFile => ServerError::BadUri { uri, why },
            NoServerKind::TooOld | NoServerKind::OtherSet => ServerError::Unsuitable {
                uri,
                why,
                remedy: kind.remedy().into(),
            },
            _ => ServerError::Unreachable {
                uri,
                why,
                remedy: kind.remedy(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;
    use mongodb::error::CommandError;

    use super::*;

    /// Returns what a command that fails with this code becomes.
    async fn sorted(code: i32) -> ServerError {
        let server = Server::unasked("mongodb://127.0.0.1:1").await.unwrap();
        let reply = doc! { "ok": 0.0, "code": code, "codeName": "x", "errmsg": "y" };
        let error: CommandError = mongodb::bson::deserialize_from_document(reply).unwrap();
        server.error("collStats", &ErrorKind::Command(error).into())
    }

    #[tokio::test]
    async fn time_that_is_over_and_shards_that_are_away_are_told_from_other_failures() {
        for code in [50, 262, 24] {
            let error = sorted(code).await;
            assert!(matches!(error, ServerError::TimeOver { .. }), "{error}");
        }
        let error = sorted(13).await;
        assert!(
            matches!(error, ServerError::NotAuthorised { .. }),
            "{error}"
        );
        for code in SHARD_LOST {
            let error = sorted(code).await;
            assert!(matches!(error, ServerError::Unreachable { .. }), "{error}");
        }
        let error = sorted(59).await;
        assert!(matches!(error, ServerError::Failed { .. }), "{error}");
    }
}
