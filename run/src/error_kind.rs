//! What an error means to whoever called the program. Each error type says it itself.

use std::error::Error;
use std::io;

/// What an error means to the caller, whatever failed. The exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A failure that no other kind describes.
    Failed,
    /// The call is wrong: another one would do.
    Usage,
    /// What is to be examined or changed cannot be reached, or refuses.
    Target,
    /// A permission is missing.
    NotPermitted,
    /// Data contradict themselves or what was promised.
    Inconsistent,
    /// The user's threshold was missed.
    ThresholdMissed,
    /// The user ended the work.
    Interrupted,
    /// The exit code of another program, which this one takes over.
    Code(u8),
}

impl ErrorKind {
    /// Returns what it means that the system refused a path which the caller named; `None` for a failure that no other
    /// name would have avoided.
    pub fn of_named_path(error: &io::Error) -> Option<Self> {
        match error.kind() {
            io::ErrorKind::NotFound => Some(Self::Usage),
            io::ErrorKind::PermissionDenied => Some(Self::NotPermitted),
            _ => None,
        }
    }
}

/// An error type that tells its kind.
pub trait Kinded: Error {
    /// Returns the error's kind; `None` leaves that to its cause.
    fn kind(&self) -> Option<ErrorKind>;
}
