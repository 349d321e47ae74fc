//! Defines the errors of a reordering.

use std::io;
use std::path::PathBuf;

use seekscope_run::units::format_bytes;
use seekscope_run::{ErrorKind, Kinded, visible};
use seekscope_server::ServerError;

/// Why a collection was not reordered. In every case the original is complete, unless the text says
/// otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ReorderError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("{} cannot be reordered: {why}", visible(namespace))]
    Refused { namespace: String, why: String },
    #[error(
        "{} cannot be reordered: there is no collection of that name",
        visible(namespace)
    )]
    NoCollection { namespace: String },
    #[error(
        "{} is being reordered by {worker}, last heard of {age_s} s ago; wait for its end",
        visible(namespace)
    )]
    Busy {
        namespace: String,
        worker: String,
        age_s: u64,
    },
    #[error(
        "{} has a reordering whose record is still there, because it was not finished or a command after it \
         failed: --resume goes on with it, --rollback removes what is left of it",
        visible(namespace)
    )]
    Unfinished { namespace: String },
    #[error(
        "{} has no reordering that could be resumed or rolled back",
        visible(namespace)
    )]
    NothingPending { namespace: String },
    #[error("{} was not reordered: {why}", visible(namespace))]
    Aborted { namespace: String, why: String },
    /// The requester's judge finds the copy not worth the original's place.
    #[error("{} was not reordered: {why}", visible(namespace))]
    NoBetter { namespace: String, why: String },
    #[error(
        "the server's disk is too full: {} are free, {} are needed; make room, or reorder another collection first",
        format_bytes(*free_bytes),
        format_bytes(*needed_bytes)
    )]
    NoSpace { free_bytes: u64, needed_bytes: u64 },
    #[error("stopped on request")]
    Stopped,
    /// The original was replaced, but somebody wrote to it at that moment although nobody should have.
    #[error(
        "{} was swapped, but {count} writes reached the original at that moment and are \
         lost, to documents with _id {ids}; writers were not stopped as promised",
        visible(namespace)
    )]
    WrittenDuringSwap {
        namespace: String,
        count: usize,
        ids: String,
    },
    #[error("{path}: {source}; keys of changed documents are kept there, so it must be writable")]
    Spool { path: PathBuf, source: io::Error },
    /// The unfinished reordering is recorded on the server, and remains there.
    #[error(
        "{uri} went away while {} was being reordered ({why}); once it answers again, go on with \
         --resume, or undo it with --rollback",
        visible(namespace)
    )]
    ServerGone {
        namespace: String,
        uri: String,
        why: String,
    },
    /// The server went away at the swap, and answered again in time for what was begun to be undone.
    #[error(
        "{uri} went away before {} was swapped ({why}); the original is in its place, what was begun is \
         undone, and nothing is pending",
        visible(namespace)
    )]
    GoneBeforeSwap {
        namespace: String,
        uri: String,
        why: String,
    },
    /// Something failed, and rolling back failed too.
    #[error("{first}; rolling back failed too: {second}; use --rollback once the server is well")]
    NotRolledBack {
        first: Box<ReorderError>,
        second: Box<ReorderError>,
    },
    /// The server went away while it swapped. Where a rename is not atomic, the name may belong to nobody
    /// now, and a write would create a new collection with that name.
    #[error(
        "{why}; whether {} was swapped is not known, so its writers are still stopped: once the \
         server is well again, --resume finishes the swap and lets them go on",
        visible(namespace)
    )]
    SwapUnknown {
        namespace: String,
        why: Box<ReorderError>,
    },
    /// The work ended, but writers could not be told to continue, as the record says.
    #[error(
        "writers could not be told to go on: {why}; let them continue yourself, and have what is recorded of \
         it removed by --rollback"
    )]
    WritersStillStopped { why: String },
}

impl Kinded for ReorderError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Server(error) => error.kind(),
            Self::NoCollection { .. } => Some(ErrorKind::Usage),
            Self::Refused { .. }
            | Self::Busy { .. }
            | Self::Unfinished { .. }
            | Self::NothingPending { .. }
            | Self::NoBetter { .. }
            | Self::ServerGone { .. }
            | Self::GoneBeforeSwap { .. } => Some(ErrorKind::Target),
            // Differing sums, unexpected writes, a collection that others dropped.
            Self::Aborted { .. } | Self::WrittenDuringSwap { .. } => Some(ErrorKind::Inconsistent),
            Self::Stopped => Some(ErrorKind::Interrupted),
            Self::NotRolledBack { first: why, .. } | Self::SwapUnknown { why, .. } => why.kind(),
            Self::NoSpace { .. } | Self::Spool { .. } | Self::WritersStillStopped { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_starts_no_line_of_an_error() {
        let error = ReorderError::NothingPending {
            namespace: "shop.a\nseekscope: all is well".into(),
        };
        assert!(error.to_string().starts_with(r"shop.a\nseekscope"));
    }
}
