//! Questions to one server: each has a time limit on both sides, and all together have a deadline.

use std::time::Duration;

use mongodb::bson::Document;
use seekscope_run::Untold;
use seekscope_run::document::Limitation;
use tokio::time::{Instant, timeout};

use super::rights;
use crate::server::{Server, ServerError, lacking, milliseconds, not_authorised};

/// How long the server may work on one command (`maxTimeMS`), and how much later we give up: the answer takes
/// time to arrive, and a server that hangs does not check the limit.
const COMMAND_LIMIT: Duration = Duration::from_secs(2);
const ANSWER_LIMIT: Duration = Duration::from_millis(2_500);

const LATE_ROUTER: &str = "check that all shards and config servers answer, because a mongos waits \
                           for them; if they do, try again when they are less busy";

/// Asks one server and records what it would not answer.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) server: Server,
    /// Name of the member, if several are asked.
    name: Option<String>,
    deadline: Instant,
    /// Whether it asks a router, which has others answer.
    pub(super) is_of_router: bool,
    pub(super) missing: Vec<Limitation>,
    /// What of that is missing because a login or a right is.
    pub(super) untold: Vec<Untold>,
    /// Commands sent so far.
    pub(super) commands: u64,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("{}", not_authorised(command, *has_user))]
    NotAllowed { command: String, has_user: bool },
    #[error(transparent)]
    Refused(ServerError),
    #[error("{command} was not answered in time")]
    Late { command: String },
    #[error("{command} was not sent: the time allowed for commands was used up")]
    NoTime { command: String },
}

impl From<ServerError> for NoAnswer {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::NotAuthorised {
                command, has_user, ..
            } => Self::NotAllowed { command, has_user },
            // The server's own limit is the shorter one.
            ServerError::TimeOver { command, .. } => Self::Late { command },
            other => Self::Refused(other),
        }
    }
}

impl NoAnswer {
    /// Returns whether the server does not know the command, or not in this form; another command may work.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Refused(ServerError::Failed { .. }))
    }

    /// Returns whether the server did not finish in time.
    pub(super) fn is_late(&self) -> bool {
        matches!(self, Self::Late { .. } | Self::NoTime { .. })
    }
}

impl Asker {
    /// Creates an asker. `name` precedes what is missing; all questions must be answered within `time`.
    pub(super) fn new(server: &Server, name: Option<&str>, time: Duration) -> Self {
        Self {
            server: server.clone(),
            name: name.map(String::from),
            deadline: Instant::now() + time,
            is_of_router: false,
            missing: Vec::new(),
            untold: Vec::new(),
            commands: 0,
        }
    }

    /// Gives all further questions together this much time.
    pub(super) fn allow(&mut self, time: Duration) {
        self.deadline = Instant::now() + time;
    }

    /// Returns whether there is time for another question.
    pub(super) fn has_time(&self) -> bool {
        Instant::now() < self.deadline
    }

    /// Runs one command.
    pub(super) async fn ask(
        &mut self,
        database: &str,
        mut command: Document,
    ) -> Result<Document, NoAnswer> {
        let (name, left) = self.begin(&mut command)?;
        let answer = self.server.command(database, command);
        match timeout(ANSWER_LIMIT.min(left), answer).await {
            Ok(reply) => Ok(reply?),
            Err(_) => Err(NoAnswer::Late { command: name }),
        }
    }

    /// Runs a command whose answer may come in parts, and takes at most `most` documents of it.
    pub(super) async fn ask_for_all(
        &mut self,
        database: &str,
        mut command: Document,
        most: usize,
    ) -> Result<Vec<Document>, NoAnswer> {
        let (name, left) = self.begin(&mut command)?;
        let answer = self.server.documents(database, command, most);
        match timeout(ANSWER_LIMIT.min(left), answer).await {
            Ok(all) => Ok(all?),
            Err(_) => Err(NoAnswer::Late { command: name }),
        }
    }

    /// Waits for the answer to a question that has limits of its own; `command` is the one that is sent.
    pub(super) async fn wait_for<T>(
        &mut self,
        answer: impl Future<Output = Result<T, ServerError>>,
        command: &str,
    ) -> Result<T, NoAnswer> {
        let left = self.count(command)?;
        match timeout(left, answer).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(NoAnswer::Late {
                command: command.into(),
            }),
        }
    }

    /// Sets the server's limit. Returns the command's name and how much time is left for everything.
    fn begin(&mut self, command: &mut Document) -> Result<(String, Duration), NoAnswer> {
        let name = command.keys().next().cloned().unwrap_or_default();
        let left = self.count(&name)?;
        command.insert("maxTimeMS", milliseconds(COMMAND_LIMIT.min(left)));
        Ok((name, left))
    }

    /// Counts a command that is about to be sent. Returns how much time is left for everything.
    fn count(&mut self, command: &str) -> Result<Duration, NoAnswer> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(NoAnswer::NoTime {
                command: command.into(),
            });
        }
        self.commands += 1;
        Ok(left)
    }

    /// Runs one command; if there is no answer, `what` ("the oplog's window") is recorded as missing and the
    /// reply is empty.
    pub(super) async fn ask_or_note(
        &mut self,
        database: &str,
        command: Document,
        what: &str,
    ) -> Document {
        let name = command.keys().next().cloned().unwrap_or_default();
        match self.ask(database, command).await {
            Ok(reply) => reply,
            Err(error) => {
                self.note(what, &error, rights::remedy(&name));
                Document::new()
            }
        }
    }

    /// Records that something is missing, once.
    pub(super) fn note(&mut self, what: &str, why: &NoAnswer, remedy: String) {
        let missing = match &self.name {
            Some(name) => format!("not known for {name}: {what}"),
            None => format!("not known: {what}"),
        };
        if self.missing.iter().any(|known| known.what == missing) {
            return;
        }
        if let NoAnswer::NotAllowed { has_user, .. } = why {
            self.untold.push(Untold {
                what: what.into(),
                lacking: lacking(*has_user),
            });
        }
        let remedy = match (why, self.is_of_router) {
            (
                NoAnswer::NotAllowed {
                    has_user: false, ..
                },
                _,
            ) => rights::LOG_IN.into(),
            (why, true) if why.is_late() => LATE_ROUTER.into(),
            (why, false) if why.is_late() => "try again when the server is less busy".into(),
            _ => remedy,
        };
        self.missing.push(Limitation {
            what: missing,
            why: why.to_string(),
            remedy,
        });
    }
}

#[cfg(test)]
mod tests {
    use seekscope_run::Lacking;

    use super::*;

    #[test]
    fn an_answer_that_came_too_late_is_no_refusal() {
        let (uri, command, why) = (String::new(), "collStats".to_string(), String::new());
        let late = NoAnswer::from(ServerError::TimeOver {
            uri: uri.clone(),
            command: command.clone(),
            why: why.clone(),
        });
        assert!(late.is_late() && !late.is_unknown());
        let unknown = NoAnswer::from(ServerError::Failed {
            uri: uri.clone(),
            command: command.clone(),
            why,
        });
        assert!(!unknown.is_late() && unknown.is_unknown());
        let forbidden = |has_user| {
            NoAnswer::from(ServerError::NotAuthorised {
                uri: uri.clone(),
                command: command.clone(),
                has_user,
            })
        };
        assert!(!forbidden(true).is_late() && !forbidden(true).is_unknown());
        assert!(
            forbidden(true)
                .to_string()
                .starts_with("the user may not run")
        );
        assert!(forbidden(false).to_string().ends_with("without a login"));
    }

    #[tokio::test]
    async fn what_is_refused_is_noted_once_with_what_is_missing() {
        let server = Server::unasked("mongodb://127.0.0.1:1").await.unwrap();
        let mut asker = Asker::new(&server, None, ANSWER_LIMIT);
        let refused = NoAnswer::NotAllowed {
            command: "getParameter".into(),
            has_user: false,
        };
        let late = NoAnswer::Late {
            command: "top".into(),
        };
        asker.note("its parameters", &refused, String::new());
        asker.note("its parameters", &refused, String::new());
        asker.note("how busy collections are", &late, String::new());
        let untold = Untold {
            what: "its parameters".into(),
            lacking: Lacking::Login,
        };
        assert_eq!((asker.missing.len(), asker.untold), (2, vec![untold]));
    }
}
