//! The workload as the engine sees it.

use std::fmt;

use crate::{Failure, Reply, Request};

/// Index into [`Workload::operations`].
pub type OperationId = u16;

/// A kind of operation that is counted and timed separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Its name in results: "READ", "READ-MODIFY-WRITE", "point select".
    pub name: String,
    /// Whether it consists of several requests, such as a read and the write that follows. Its time runs from
    /// the start of the first request to the end of the last.
    pub is_transaction: bool,
}

/// What is sent: shared by all actors, and independent of any connection.
pub trait Workload: Send + Sync + fmt::Debug {
    /// Returns every kind of operation it can make, in the order of results.
    fn operations(&self) -> &[Operation];

    /// Returns the virtual user at a place. Users differ in their random draws and share counters.
    fn actor(&self, place: ActorPlace) -> Box<dyn Actor>;
}

/// The number of a virtual user and the number of users, over all threads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorPlace {
    pub index: usize,
    pub count: usize,
}

/// One virtual user. The engine calls `begin`, then `request` and `reply` in turn until `request` returns
/// `None`, then `begin` again.
pub trait Actor: Send {
    /// Begins the next transaction. `None`: nothing is left to do (all rows are loaded).
    ///
    /// Returns the operation that the whole transaction counts as, if it consists of several requests
    /// ([`Operation::is_transaction`]), otherwise the one that its only request returns.
    fn begin(&mut self) -> Option<OperationId>;

    /// Writes the next request of the current transaction, which may depend on earlier replies; returns `None`
    /// when the transaction is complete. The request is passed in cleared.
    fn request(&mut self, request: &mut Request) -> Option<OperationId>;

    /// Receives the outcome of the latest request.
    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict;
}

/// How an actor judges an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The reply was as expected. Counts as done.
    Good,
    /// The server answered, but not as it should have; the text is the name it is counted under, such as
    /// "NOT_FOUND". Never counts as throughput.
    Bad(&'static str),
    /// Like `Bad` (or a [`Failure`], whose own name is then used), and the rest of the transaction is skipped.
    Abort(&'static str),
}
