//! What was interrupted is carried on or undone, from what is recorded on the server.

use std::future::Future;

use seekscope_run::Reordered;
use seekscope_server::{Namespace, Server};

use crate::{Phase, Progress, ReorderError, Request};

/// A reordering that did not come to its end, or still runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    pub namespace: Namespace,
    pub phase: Phase,
    /// "natural" or the key pattern.
    pub by: String,
    /// Host, process and seekscope version of who works or worked on it.
    pub worker: String,
    /// Does that process seem to be at work still?
    pub alive: bool,
    /// Are writes to the server blocked by it?
    pub writes_blocked: bool,
}

/// What [`rollback`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolledBack {
    /// The copy is gone and the original as it was.
    Original,
    /// The swap had taken place: only what was recorded has been removed.
    AlreadySwapped,
}

/// What is recorded for a collection, or (`None`) in all databases.
pub async fn pending(
    _server: &Server,
    _namespace: Option<&Namespace>,
) -> Result<Vec<Pending>, ReorderError> {
    Ok(Vec::new())
}

/// Carries on from what is recorded; order and definition are those recorded. Stops and fails as
/// [`crate::apply`] does.
pub async fn resume(
    _server: &Server,
    _request: &mut Request,
    _progress: &dyn Progress,
    _stop: impl Future<Output = ()> + Send,
) -> Result<Reordered, ReorderError> {
    Err(ReorderError::Stopped)
}

/// Removes the copy and what is recorded; never touches the original.
pub async fn rollback(
    _server: &Server,
    _namespace: &Namespace,
    _progress: &dyn Progress,
) -> Result<RolledBack, ReorderError> {
    Err(ReorderError::Stopped)
}
