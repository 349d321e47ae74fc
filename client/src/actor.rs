//! What a workload is to the engine.

use std::fmt;

use crate::{Failure, Reply, Request};

/// Index into [`Workload::operations`].
pub type OperationId = u16;

/// A kind of operation that is counted and timed by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// As in results: "READ", "READ-MODIFY-WRITE", "point select".
    pub name: String,
    /// True for what consists of several requests, such as a read and the write that follows. Its time
    /// is that from the first request's start to the last one's end.
    pub is_transaction: bool,
}

/// What is sent: shared by all actors, and free of any connection.
pub trait Workload: Send + Sync + fmt::Debug {
    /// Every kind of operation it can make, in the order of results.
    fn operations(&self) -> &[Operation];

    /// The virtual user at a place. Users differ in their random draws and share counters.
    fn actor(&self, place: ActorPlace) -> Box<dyn Actor>;
}

/// Which of how many virtual users, over all threads of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActorPlace {
    pub index: usize,
    pub count: usize,
}

/// One virtual user. The engine calls `begin`, then `request` and `reply` in turn until `request` has
/// nothing more, then `begin` again.
pub trait Actor: Send {
    /// Begins the next transaction. `None`: nothing is left to do (all rows are loaded).
    ///
    /// The result is the operation that the whole transaction counts as, where it is one of several
    /// requests ([`Operation::is_transaction`]), otherwise the same that its only request returns.
    fn begin(&mut self) -> Option<OperationId>;

    /// Writes the next request of the present transaction, which may depend on earlier replies; `None`
    /// when the transaction is complete. The request comes cleared.
    fn request(&mut self, request: &mut Request) -> Option<OperationId>;

    /// What became of the latest request.
    fn reply(&mut self, outcome: Result<&Reply<'_>, &Failure>) -> Verdict;
}

/// How an actor judges an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be. Counts as done.
    Good,
    /// The server answered, but not as it should have; the text is the name it is counted under, such
    /// as "NOT_FOUND". Never counts as throughput.
    Bad(&'static str),
    /// As `Bad` (or a [`Failure`], whose own name is then used), and the rest of the transaction is left
    /// out.
    Abort(&'static str),
}
