//! Plays a recorded I/O pattern again on another file or disk.
//!
//! Read [`recording`] (which files there are, and where each goes on the target), [`plan`] (the
//! list of operations per thread), `pace` (when each is due), [`threads`] and `player` (playing it)
//! and [`outcome`] (the two sides compared), in this order.
//!
//! A replay keeps the order and kind of operations of each recorded thread, their offsets and
//! lengths and, unless played at full speed, their times. It cannot reproduce that one thread
//! waited for another, nor the memory pressure of the host where the recording was made.

mod facts;
pub mod outcome;
mod pace;
pub mod plan;
mod player;
pub mod recording;
mod streams;
mod tallies;
pub mod threads;

pub use facts::{Adjusted, PlanFacts, RecordedCache, Skipped};
pub use outcome::{LatencyRatios, OperationComparison, ReplayOutcome, Side};
pub use plan::{Action, Op, Plan, Planner};
pub use recording::{FileTotals, Recording, Regions};
pub use streams::Stream;
pub use threads::{Ended, PlayOptions, ReplaySecond, play};

/// The most threads; recorded threads beyond that share one.
pub const THREADS_MAX: usize = 256;

/// Whether operations use the page cache of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Direct if the recorded call was.
    AsRecorded,
    /// All direct, bypassing the page cache.
    Direct,
    /// All through the page cache.
    Buffered,
}

/// When a thread starts its next operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loop {
    /// Once its last one has completed and the recorded time between the two has passed.
    Closed,
    /// The recorded time, whether or not the disk keeps up; a thread that is late starts at once.
    Open,
}
