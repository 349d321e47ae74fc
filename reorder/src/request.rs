//! Defines what can be requested.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use bson::Document;
use futures_util::future::BoxFuture;
use seekscope_server::Namespace;

/// One reordering.
pub struct Request {
    pub namespace: Namespace,
    /// The order of the copy. [`crate::resume`] keeps the one it finds recorded.
    pub by: By,
    /// The most bytes of documents copied per second; at least 1 MB/s, since a cursor that is not read for half
    /// an hour is closed by the server. [`crate::resume`] keeps the recorded value if this is `None`.
    pub max_rate_bytes_per_s: Option<u64>,
    pub writers: Writers,
    /// When the copy pauses for the sake of others; never if it is `None`.
    pub guard: Option<GuardLimits>,
    /// The copy takes the original's place whatever its order. [`crate::resume`] keeps the recorded value.
    pub force: bool,
    /// Says whether the copy is worth the original's place; it always is if this is `None`. Not asked if
    /// `force` is set, nor about a copy in the order of an index: its documents stay neighbours whatever
    /// happens to its leaves.
    pub judge: Option<Box<dyn Judge>>,
    /// An existing folder on whose filesystem the keys of documents that change while they are copied are kept, in
    /// files without names: nothing stays there.
    pub spool: PathBuf,
}

/// The order of documents in the copy.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// Order of record ids: the order in which a collection scan and an index build read.
    Natural,
    /// Order of the index with this key pattern, so that its neighbours are stored side by side.
    Index(Document),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Natural => f.write_str("natural"),
            Self::Index(keys) => write!(f, "{keys}"),
        }
    }
}

/// How writers are kept away during the last moment, in which the copy becomes equal to the original and
/// takes its name.
pub enum Writers {
    /// The user promises that nobody writes to the collection. Any write that is detected ends the
    /// reordering. On a standalone server the promise is for the whole time, otherwise for the last moment.
    Quiesced,
    /// `setUserWriteBlockMode` (mongod since 6.0): the server refuses everybody else's writes.
    BlockedByServer,
    /// The given control stops them when asked.
    Paused(Box<dyn WriterControl>),
}

impl fmt::Debug for Writers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quiesced => "Quiesced",
            Self::BlockedByServer => "BlockedByServer",
            Self::Paused(_) => "Paused",
        })
    }
}

/// Stops and restarts the writers of a collection, e.g. by a command of the user's. The error is a sentence
/// for people.
pub trait WriterControl: Send {
    /// Stops writers; returns when no write is in progress any more and none will begin.
    fn stop(&mut self) -> BoxFuture<'_, Result<(), String>>;

    /// Lets writers continue. Called once after each `stop`, also after one that failed, except for
    /// [`crate::ReorderError::SwapUnknown`]; and by [`crate::resume`] for one that was interrupted.
    fn go_on(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

/// Judges the copy when all is done but the swap, before writers are stopped. Where others write much, their
/// changes may have undone its order by then.
pub trait Judge: Send + Sync {
    /// Judges the copy after `changes` documents that others changed were copied. The error is a sentence for
    /// people, and everything is rolled back.
    fn judge<'a>(
        &'a mut self,
        copy: &'a Namespace,
        changes: u64,
    ) -> BoxFuture<'a, Result<(), String>>;
}

/// When the copy pauses for the sake of others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardLimits {
    /// How many times as long as before the copy a read of one document by its `_id` may take, in the median
    /// over a window.
    pub latency_ratio: f64,
    /// A median shorter than this never pauses the copy.
    pub latency_floor: Duration,
    /// Highest share (0..=1) of the time in which all tasks of this host waited for I/O; checked only where
    /// the server runs on this host.
    pub io_pressure: Option<f64>,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self {
            latency_ratio: 3.0,
            latency_floor: Duration::from_millis(20),
            io_pressure: None,
        }
    }
}
