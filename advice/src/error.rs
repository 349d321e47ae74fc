//! Why no advice could be given.

use std::io;
use std::path::PathBuf;

use seekscope_run::{ErrorKind, Kinded, visible};
use seekscope_server::{LocalServerError, PageCacheError, ServerError, WorkspaceError};

/// Why a collection was not examined to its end.
#[derive(Debug, thiserror::Error)]
pub enum AdviceError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error("the private server for the trial: {0}")]
    Private(#[from] LocalServerError),
    #[error("the private server for the trial: {0}")]
    Trial(ServerError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    PageCache(#[from] PageCacheError),
    #[error("{} holds no documents", visible(namespace))]
    Empty { namespace: String },
    #[error("{}: {source}", visible(&.path.to_string_lossy()))]
    Files { path: PathBuf, source: io::Error },
    /// The server of the trial says nothing of single files.
    #[error(
        "the server of the trial does not count the blocks that it reads of each file: name a mongod with \
         --server-binary"
    )]
    NoCounters,
    /// The trial made other documents of the sample, or asks for others.
    #[error(
        "its queries returned {returned:.0} documents, and another way has {expected:.0} for the same queries"
    )]
    OtherAnswers { returned: f64, expected: f64 },
}

impl AdviceError {
    /// Says of an error on the private server that it was there, and not on the user's.
    pub fn of_trial(self) -> Self {
        match self {
            Self::Server(error) => Self::Trial(error),
            other => other,
        }
    }
}

impl Kinded for AdviceError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Server(error) => error.kind(),
            Self::Private(error) => error.kind(),
            // It is ours: the user's server has neither gone nor refused anything.
            Self::Trial(_) => None,
            Self::Workspace(_) | Self::PageCache(_) | Self::OtherAnswers { .. } => None,
            Self::Empty { .. } | Self::NoCounters => Some(ErrorKind::Usage),
            Self::Files { source, .. } => ErrorKind::of_named_path(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_and_give_no_orders_to_a_terminal() {
        let empty = AdviceError::Empty {
            namespace: "shop.a\u{1b}[2J\nb".into(),
        };
        assert_eq!(empty.to_string(), "shop.a\\u{1b}[2J\\nb holds no documents");
    }
}
