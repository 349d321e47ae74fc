//! Sends one virtual user's requests through the driver.

use std::sync::Arc;

use bson::{Document, RawDocument, RawDocumentBuf};
use mongodb::error::Error;
use mongodb::options::{SelectionCriteria, WriteConcern};
use mongodb::{Client, ClientSession, Collection, Database};
use seekscope_server::number;

use super::failure::Failures;
use super::unsupported;
use crate::request::{Transaction, Verb};
use crate::{AsyncClient, BoxFuture, Failure, OwnedReply, Request};

/// Commands that only read: they use the connection string's read preference.
const READING_COMMANDS: [&str; 3] = ["distinct", "count", "explain"];

/// Sends the requests of one virtual user.
pub(super) struct Sender {
    client: Client,
    pub(super) database: Database,
    pub(super) failures: Arc<Failures>,
    /// The session of the open transaction.
    pub(super) session: Option<ClientSession>,
}

impl AsyncClient for Sender {
    fn send<'a>(
        &'a mut self,
        request: &'a Request,
        reply: &'a mut OwnedReply,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(self.send_in_transaction(request, reply))
    }
}

impl Sender {
    pub(super) fn new(client: Client, database: Database, failures: Arc<Failures>) -> Self {
        Self {
            client,
            database,
            failures,
            session: None,
        }
    }

    async fn send_in_transaction(
        &mut self,
        request: &Request,
        reply: &mut OwnedReply,
    ) -> Result<(), Failure> {
        match request.in_transaction {
            // Dropping a session ends a transaction that was left open, e.g. after a request without an answer.
            Transaction::None => self.session = None,
            Transaction::Start => self.start_transaction().await?,
            Transaction::Continue if self.session.is_none() => {
                return Err(unsupported("there is no transaction to continue"));
            }
            Transaction::Continue => {}
            Transaction::End => return self.end_transaction(request).await,
        }
        match request.verb {
            Verb::Find => self.find(request, reply).await,
            Verb::Aggregate => self.aggregate(request, reply).await,
            Verb::Insert => self.insert(request, reply).await,
            Verb::Update => self.update(request, reply).await,
            Verb::Delete => self.delete(request, reply).await,
            Verb::Command => self.command(request, reply).await,
        }
    }

    async fn start_transaction(&mut self) -> Result<(), Failure> {
        self.session = None;
        let session = self.client.start_session().await;
        let mut session = session.map_err(|error| self.failures.of(&error, 0))?;
        let started = session.start_transaction().await;
        started.map_err(|error| self.failures.of(&error, 0))?;
        self.session = Some(session);
        Ok(())
    }

    async fn end_transaction(&mut self, request: &Request) -> Result<(), Failure> {
        let name = first_name(request.body.bytes());
        let Some(mut session) = self.session.take() else {
            return Err(unsupported("there is no transaction to end"));
        };
        let ended = match name.as_deref() {
            Some("commitTransaction") => session.commit_transaction().await,
            Some("abortTransaction") => session.abort_transaction().await,
            _ => {
                return Err(unsupported(
                    "a transaction must end with commitTransaction or abortTransaction",
                ));
            }
        };
        ended.map_err(|error| self.failures.of(&error, 0))
    }

    /// Sends any command without a cursor. The driver sends it unchanged, once.
    async fn command(&mut self, request: &Request, reply: &mut OwnedReply) -> Result<(), Failure> {
        let body = raw(request.body.bytes().to_vec())?;
        let name = first_name(body.as_bytes()).unwrap_or_default();
        let mut action = self.database.run_raw_command(body);
        if READING_COMMANDS.contains(&name.as_str())
            && self.session.is_none()
            && let Some(criteria) = self.selection_criteria()
        {
            action = action.selection_criteria(criteria);
        }
        let answer = in_session!(action, self.session);
        let answer = answer.map_err(|error| self.failed(&error, request))?;
        let body = RawDocumentBuf::try_from(&answer).ok();
        reply.matched = count(&answer, "n");
        reply.modified = count(&answer, "nModified");
        reply.bytes = body.as_ref().map_or(0, |b| b.as_bytes().len() as u64);
        reply.body = body;
        Ok(())
    }

    fn selection_criteria(&self) -> Option<SelectionCriteria> {
        self.database.selection_criteria().cloned()
    }

    pub(super) fn write_concern(&self) -> Option<WriteConcern> {
        self.database.write_concern().cloned()
    }

    pub(super) fn collection(&self, name: &str) -> Collection<RawDocumentBuf> {
        self.database.collection(name)
    }

    pub(super) fn failed(&self, error: &Error, request: &Request) -> Failure {
        self.failures.of(error, u64::from(request.statement_count))
    }
}

/// Returns the name of a document's first element.
fn first_name(document: &[u8]) -> Option<String> {
    let document = RawDocument::from_bytes(document).ok()?;
    let (name, _) = document.iter().next()?.ok()?;
    Some(name.to_string())
}

pub(super) fn raw(bytes: Vec<u8>) -> Result<RawDocumentBuf, Failure> {
    RawDocumentBuf::from_bytes(bytes)
        .map_err(|error| unsupported(format!("the request is not a valid BSON document: {error}")))
}

/// Returns a count from a reply; 0 if there is none.
pub(super) fn count(answer: &Document, name: &str) -> u64 {
    answer.get(name).and_then(number).unwrap_or(0)
}
