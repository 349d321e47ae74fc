//! Clients that are a library by somebody else: MongoDB's official driver, Cassandra's protocol.
//!
//! The engine drives them on tokio with the schedule, clocks and counting of our own client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bson::RawDocumentBuf;
use seekscope_run::ClientKind;

use crate::{Failure, Reply, Request};

/// A future on the heap, so that traits with async methods can be objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A factory of clients; its settings are fixed.
pub trait AsyncClientFactory: fmt::Debug + Send + Sync {
    fn kind(&self) -> ClientKind;

    /// Creates one client for each virtual user; they may share underlying parts, such as a pool. Called once
    /// for each stretch of work, on the tokio runtime that lives as long as that stretch. The clients must be
    /// ready to send: connected and authenticated, as far as the library lets us know.
    fn connect(&self, count: usize) -> BoxFuture<'_, Result<Vec<Box<dyn AsyncClient>>, Failure>>;
}

/// Sends one request at a time.
pub trait AsyncClient: Send + 'static {
    /// Sends a request and waits for its outcome; `reply` is passed in cleared.
    ///
    /// The engine drops the future when the request's time is over, and sends the next request all the same.
    /// Retries are made by the engine (`Job::retries`), or by the library itself if its connection string says
    /// so.
    fn send<'a>(
        &'a mut self,
        request: &'a Request,
        reply: &'a mut OwnedReply,
    ) -> BoxFuture<'a, Result<(), Failure>>;
}

/// A [`Reply`] that holds its documents.
#[derive(Debug, Default, Clone)]
pub struct OwnedReply {
    /// The same as in [`Reply`].
    pub returned: u64,
    pub matched: u64,
    pub modified: u64,
    pub bytes: u64,
    pub first: Option<RawDocumentBuf>,
    pub body: Option<RawDocumentBuf>,
}

impl OwnedReply {
    /// Returns the reply as actors see it.
    pub fn as_reply(&self) -> Reply<'_> {
        Reply {
            returned: self.returned,
            matched: self.matched,
            modified: self.modified,
            bytes: self.bytes,
            first: self.first.as_deref(),
            body: self.body.as_deref(),
        }
    }
}
