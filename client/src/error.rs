//! Errors that keep a stretch of work from beginning or going on.

use std::io;

use seekscope_run::{ErrorKind, Kinded};

use crate::{Failure, FailureKind};

/// An error that ends the whole work, as opposed to a single request's failure.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{text}")]
    Uri { text: String },
    #[error("{text}; check the address, and that the server is running")]
    Unreachable { text: String },
    /// The server answers, but not in the way we need.
    #[error("{host}: {text}")]
    Refused { host: String, text: String },
    #[error(
        "this process may open {limit} files (`ulimit -n`), but {in_flight} operations in flight \
         need about {need}: raise the limit with `ulimit -n {need}`, or keep fewer operations in \
         flight"
    )]
    FileDescriptors {
        limit: u64,
        need: u64,
        in_flight: usize,
    },
    #[error("the job cannot be done: {text}")]
    Job { text: String },
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    /// The failure reported by a client's library when it was to connect.
    #[error("{}", .0.message)]
    Connect(Failure),
    #[error("stopped before the work began")]
    Stopped,
}

impl Kinded for ClientError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Uri { .. } | Self::Job { .. } => Some(ErrorKind::Usage),
            Self::Unreachable { .. } | Self::Refused { .. } => Some(ErrorKind::Target),
            Self::Connect(Failure { kind, .. }) => Some(match kind {
                FailureKind::Client => ErrorKind::Failed,
                FailureKind::Unsupported => ErrorKind::Usage,
                _ => ErrorKind::Target,
            }),
            Self::FileDescriptors { .. } => Some(ErrorKind::NotPermitted),
            Self::Stopped => Some(ErrorKind::Interrupted),
            Self::System { .. } => None,
        }
    }
}
