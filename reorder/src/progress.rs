//! What a reordering tells about itself while it runs.

use std::fmt;

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Definition, space, and whether changes can be followed are looked at. Nothing is changed.
    Checking,
    /// Options and indexes are tried on an empty collection, which is removed again.
    Trying,
    Copying,
    /// The copy is read and compared with what was read from the original.
    Verifying,
    BuildingIndexes,
    /// What others wrote meanwhile is brought over.
    CatchingUp,
    /// Writers are stopped from here …
    LastMoment,
    /// The copy takes the original's name. Not to be stopped any more.
    Swapping,
    /// … to here.
    CleaningUp,
    RollingBack,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checking => "checking",
            Self::Trying => "trying options and indexes",
            Self::Copying => "copying",
            Self::Verifying => "verifying the copy",
            Self::BuildingIndexes => "building indexes",
            Self::CatchingUp => "catching up",
            Self::LastMoment => "stopping writers",
            Self::Swapping => "swapping",
            Self::CleaningUp => "cleaning up",
            Self::RollingBack => "rolling back",
        })
    }
}

/// Why the guard paused the copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PauseReason {
    /// Median time of a small read, ms, and the limit that it went over.
    Latency { median_ms: f64, limit_ms: f64 },
    /// Share of the time in which all tasks of the host waited for I/O.
    IoPressure { share: f64, limit: f64 },
}

impl fmt::Display for PauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency {
                median_ms,
                limit_ms,
            } => write!(
                f,
                "small reads take {median_ms:.1} ms (limit {limit_ms:.1} ms)"
            ),
            Self::IoPressure { share, limit } => write!(
                f,
                "all tasks wait for I/O {:.0} % of the time (limit {:.0} %)",
                share * 100.0,
                limit * 100.0
            ),
        }
    }
}

/// Receives what happens. Called between batches, so it may be slow but should not wait.
pub trait Progress: Send + Sync {
    fn step(&self, _step: Step) {}

    /// So far, and how many documents the server counted before.
    fn copied(&self, _documents: u64, _bytes: u64, _expected_documents: u64) {}

    /// The same for the reading of the copy.
    fn verified(&self, _documents: u64, _expected_documents: u64) {}

    /// A round of catching up has ended.
    fn caught_up(&self, _round: u32, _changes: u64, _seconds: f64) {}

    /// The guard paused the copy, or (`None`) lets it go on.
    fn paused(&self, _reason: Option<PauseReason>) {}
}

/// Tells nobody.
impl Progress for () {}
