//! What is written down on the server before each step takes effect.

use serde::{Deserialize, Serialize};

/// How far a reordering has come, as recorded. A phase is recorded when everything before it is done
/// and durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The copy is incomplete; it is made anew on resume.
    Copying,
    /// All documents are in the copy.
    Copied,
    /// The copy holds what was read, and has its indexes.
    Indexed,
    /// The copy took the original's name, or is about to.
    Swapping,
}

impl Phase {
    /// As it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copying => "copying",
            Self::Copied => "copied",
            Self::Indexed => "indexed",
            Self::Swapping => "swapping",
        }
    }
}
