//! What can be asked for.

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
    /// Bytes of documents copied per second at most; at least 1 MB/s, since a cursor that is not read
    /// for half an hour is closed by the server.
    pub max_rate_bytes_per_s: Option<u64>,
    pub writers: Writers,
    /// When the copy pauses for the sake of others; never, where it is `None`.
    pub guard: Option<GuardLimits>,
    /// The copy takes the original's place whatever its order. [`crate::resume`] keeps to it where it is
    /// recorded.
    pub force: bool,
    /// Says whether the copy is worth the original's place; it always is, where this is `None`. Not asked where
    /// it is forced, nor of a copy in the order of an index: its documents stay neighbours whatever becomes of
    /// its leaves.
    pub judge: Option<Box<dyn Judge>>,
    /// An existing private folder for the keys of documents that change while they are copied. What is
    /// left there is of no use to a later run.
    pub spool: PathBuf,
}

/// The order of documents in the copy.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// That of record ids: the order in which a collection scan and an index build read.
    Natural,
    /// That of the index with this key pattern, so that its neighbours lie side by side.
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

/// How writers are kept away during the last moment, in which the copy becomes equal to the original
/// and takes its name.
pub enum Writers {
    /// The user promises that nobody writes to the collection. Any write seen ends the reordering.
    /// On a standalone server the promise is for the whole time, else for the last moment.
    Quiesced,
    /// `setUserWriteBlockMode` (mongod since 6.0): the server refuses everybody else's writes.
    BlockedByServer,
    /// Somebody stops them when asked.
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

/// Stops and restarts the writers of a collection, such as by a command of the user's. The error is a
/// sentence for people.
pub trait WriterControl: Send {
    /// Returns when no write is under way any more and none will begin.
    fn stop(&mut self) -> BoxFuture<'_, Result<(), String>>;

    /// Writers may go on. Called once after each `stop`, also after one that failed, but for
    /// [`crate::ReorderError::SwapUnknown`]; and by [`crate::resume`] for one that was interrupted.
    fn go_on(&mut self) -> BoxFuture<'_, Result<(), String>>;
}

/// Looks at the copy when all is done but the swap, before writers are stopped. Where others write much, their
/// changes may have undone its order by then.
pub trait Judge: Send + Sync {
    /// `changes`: so many documents that others changed were brought over. The error is a sentence for people,
    /// and everything is rolled back.
    fn judge<'a>(
        &'a mut self,
        copy: &'a Namespace,
        changes: u64,
    ) -> BoxFuture<'a, Result<(), String>>;
}

/// When the copy pauses for the sake of others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GuardLimits {
    /// A read of one document by its `_id` may take so many times what it took before the copy, in the
    /// median over a window, …
    pub latency_ratio: f64,
    /// … but a shorter one than this never pauses the copy.
    pub latency_floor: Duration,
    /// Share (0..=1) of the time in which all tasks of this host waited for I/O; looked at only where
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
