//! Why a stretch of work could not begin or go on.

use std::io;

use crate::Failure;

/// What is not a single request's failure but ends the whole.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{text}")]
    Uri { text: String },
    #[error("{text}; check the address and that the server runs")]
    Unreachable { text: String },
    /// The server answers, but not as we need it.
    #[error("{host}: {text}")]
    Refused { host: String, text: String },
    #[error(
        "this process may open {limit} files (`ulimit -n`), but {in_flight} operations in flight need \
         about {need}: raise the limit with `ulimit -n {need}`, or lower the number in flight"
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
    /// What a client's library said when it was to connect.
    #[error("{}", .0.message)]
    Connect(Failure),
    #[error("stopped before the work began")]
    Stopped,
}
