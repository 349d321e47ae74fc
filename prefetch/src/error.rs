//! What can go wrong when reading ahead.

use std::io;
use std::path::PathBuf;

use seekscope_layout::LayoutError;
use seekscope_run::{ErrorKind, Kinded};

/// Why nothing can be read ahead.
#[derive(Debug, thiserror::Error)]
pub enum PrefetchError {
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("{} cannot be read ahead: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{file} has too many leaves to be numbered (2^32 or more)")]
    TooManyLeaves { file: String },
    #[error("a reading thread cannot be started: {source}")]
    Thread { source: io::Error },
}

impl Kinded for PrefetchError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::Layout(error) => error.kind(),
            Self::Read { source, .. } => ErrorKind::of_named_path(source),
            Self::TooManyLeaves { .. } | Self::Thread { .. } => None,
        }
    }
}
