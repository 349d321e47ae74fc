//! The thread that made an event.

use serde::{Deserialize, Serialize};

/// One thread seen in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ThreadRecord {
    /// Thread id, as in [`crate::IoEvent::tid`].
    pub tid: u32,
    /// Its process, as in [`crate::IoEvent::pid`].
    pub pid: u32,
    /// Its name when last checked (`comm`, at most 15 bytes; lossy UTF-8). Empty if it ended before it could be
    /// read.
    pub name: String,
}
