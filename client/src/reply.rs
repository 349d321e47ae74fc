//! The outcome of a request.

use bson::RawDocument;

/// A server's answer that is not a failure. A command that succeeded in part (some documents of a batch were
/// refused) is a [`Failure`] with `done` above zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reply<'a> {
    /// Documents returned, in all batches of the cursor together.
    pub returned: u64,
    /// The reply's `n`: documents matched, inserted or deleted.
    pub matched: u64,
    /// The reply's `nModified`.
    pub modified: u64,
    /// Bytes of the replies on the wire, or of the documents if the client does not know that.
    pub bytes: u64,
    /// The first document returned, if any; kept only if the client has it whole.
    pub first: Option<&'a RawDocument>,
    /// The whole reply of the first round trip, for commands without a cursor.
    pub body: Option<&'a RawDocument>,
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The server's error code, where it gave one.
    pub code: Option<i32>,
    /// A short and stable name for counting: the server's `codeName`, otherwise a name such as
    /// "ConnectionReset".
    pub name: String,
    /// The message, for people; holds no credentials.
    pub message: String,
    /// Documents or statements of the batch that were done nevertheless.
    pub done: u64,
}

/// The kind of a failure, for error policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The connection could not be made or broke; the request may or may not have been done.
    Connection,
    /// No answer within the limit.
    Timeout,
    /// A duplicate key.
    Duplicate,
    /// The member is not the primary, or is stepping down or shutting down: worth another attempt.
    NotPrimary,
    /// A conflict that the server says may be temporary (label `TransientTransactionError`, write conflicts).
    Transient,
    /// The write was done but its write concern was not met, so that it may be taken back.
    WriteConcern,
    /// Wrong password, or not permitted to do this.
    Unauthorised,
    /// The client's own limits: file descriptors, memory.
    Client,
    /// The server's disk is full.
    NoSpace,
    /// The reply breaks the protocol.
    Malformed,
    /// The client cannot send this.
    Unsupported,
    /// Any other error that the server gave.
    Server,
}

impl Failure {
    /// Returns whether it leaves unknown if the server did, and keeps, what it was asked.
    pub fn leaves_doubt(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Connection
                | FailureKind::Timeout
                | FailureKind::Malformed
                | FailureKind::WriteConcern
        )
    }

    /// Returns a failure without a server's code.
    pub fn of(kind: FailureKind, name: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            name: name.into(),
            message: message.into(),
            done: 0,
        }
    }
}
