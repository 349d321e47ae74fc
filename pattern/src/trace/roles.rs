//! What a thread is there for.

use serde::{Deserialize, Serialize};

/// What a thread of a database server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadRole {
    /// Answers clients, builds indexes: someone waits for it.
    Application,
    /// Makes room in the cache.
    Eviction,
    /// Writes the tables at intervals.
    Checkpoint,
    /// Writes the log.
    Journal,
    /// Anything else: monitors, expiry, the kernel's own threads.
    Background,
}

impl ThreadRole {
    pub const ALL: [ThreadRole; 5] = [
        Self::Application,
        Self::Eviction,
        Self::Checkpoint,
        Self::Journal,
        Self::Background,
    ];

    /// The word itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Eviction => "eviction",
            Self::Checkpoint => "checkpoint",
            Self::Journal => "journal",
            Self::Background => "background",
        }
    }
}
