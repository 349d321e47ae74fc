//! Defines errors in a user's workload.

/// A position in the text, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {}{message}", at(.path))]
pub struct OwnError {
    /// The file as given by the caller: a path, or the name of a built-in workload.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The field, e.g. `phases[1].roles[0].users`; empty if the text is not TOML at all.
    pub path: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

fn at(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}: ")
    }
}

/// An error at a field; [`super::language::Source::error`] finds its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) path: String,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}
