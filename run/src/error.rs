//! Errors of a run directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::document;
use crate::error_kind::{ErrorKind, Kinded};

/// An error of a run directory. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is not a run directory: {}", path.display(), if path.is_file() { "it is a file; if it is a bundle, unpack it into a run with seekscope report FILE --out DIR" } else { "it holds no run.json" })]
    NotARun { path: PathBuf },
    #[error("{} is damaged: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} was written by a newer version of seekscope (its schema is {found}, and this version reads up to {}); update seekscope to open it", path.display(), document::SCHEMA)]
    TooNew { path: PathBuf, found: String },
    #[error("{} exists and is not empty, and seekscope does not write into folders that it did not create; choose another one with --out", path.display())]
    Occupied { path: PathBuf },
    #[error("{} is not a folder, and a run needs one; choose another one with --out", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{} is in use: its run is still in progress; wait until it ends, or stop it", path.display())]
    InUse { path: PathBuf },
    #[error("cannot write {}: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
}

impl Kinded for RunError {
    fn kind(&self) -> Option<ErrorKind> {
        match self {
            Self::NotARun { .. } | Self::Occupied { .. } | Self::NotAFolder { .. } => {
                Some(ErrorKind::Usage)
            }
            Self::InUse { .. } => Some(ErrorKind::Target),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(ErrorKind::NotPermitted)
            }
            Self::Damaged { .. } => Some(ErrorKind::Inconsistent),
            Self::Io { .. } | Self::TooNew { .. } | Self::Write { .. } => None,
        }
    }
}

impl RunError {
    /// Returns, for `map_err`, the error of an action on a path that the system refused.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Returns, for `map_err`, the error of content that could not be written to a path.
    pub(crate) fn write<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        move |reason| Self::Write {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }

    /// Returns, for `map_err`, the error of a path whose content cannot be understood.
    pub(crate) fn damaged<E: ToString>(path: &Path) -> impl Fn(E) -> Self {
        move |reason| Self::Damaged {
            path: path.to_path_buf(),
            reason: reason.to_string(),
        }
    }
}
