//! Defines what a reordering reports while it runs.

use std::fmt;

/// The current step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Definition, space, and whether changes can be followed are checked. Nothing is changed.
    Checking,
    /// The server still works on a write or an index build of the interrupted run.
    AwaitingServer,
    /// Options and indexes are tried on an empty collection, which is removed again.
    Trying,
    Copying,
    /// The copy is read and compared with what was read from the original.
    Verifying,
    BuildingIndexes,
    /// Changes that others wrote meanwhile are applied.
    CatchingUp,
    /// The requester's judge checks whether the copy is any better.
    Judging,
    /// Writers are stopped from this step to the last one.
    LastMoment,
    /// The copy takes the original's name. This cannot be stopped any more.
    Swapping,
    /// The last step in which writers are stopped.
    CleaningUp,
    RollingBack,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checking => "checking",
            Self::AwaitingServer => "waiting for what the interrupted run had asked of the server",
            Self::Trying => "trying options and indexes",
            Self::Copying => "copying",
            Self::Verifying => "verifying the copy",
            Self::BuildingIndexes => "building indexes",
            Self::CatchingUp => "catching up",
            Self::Judging => "looking at the copy's order",
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
    /// Median time of a small read, ms, and the limit that it exceeded.
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

/// Time for which writers can be stopped while what is left is applied.
const LAST_ROUND_S: f64 = 1.0;

/// A round of catching up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaughtUp {
    /// Counted from 1.
    pub round: u32,
    /// Changes that were applied.
    pub changes: u64,
    /// Changes that others made meanwhile.
    pub came: u64,
    pub seconds: f64,
}

impl CaughtUp {
    /// Returns the changes that can be applied, per second.
    pub fn changes_per_s(&self) -> f64 {
        self.changes as f64 / self.seconds.max(1e-6)
    }

    /// Returns the changes that others make, per second.
    pub fn came_per_s(&self) -> f64 {
        self.came as f64 / self.seconds.max(1e-6)
    }

    /// Returns whether it was short enough to be the last one with active writers.
    pub fn is_last(&self) -> bool {
        self.seconds <= LAST_ROUND_S
    }

    /// Returns how long all further rounds take if both rates stay the same: each is shorter than the one
    /// before by the ratio of the rate of arrival to that of application. `None`: they never end.
    pub fn remaining_s(&self) -> Option<f64> {
        if self.is_last() {
            return Some(0.0);
        }
        let ratio = self.came as f64 / self.changes.max(1) as f64;
        (ratio < 1.0).then(|| self.seconds * ratio / (1.0 - ratio))
    }
}

/// Receives progress. Called between batches, so it may be slow but should not block.
pub trait Progress: Send + Sync {
    fn step(&self, _step: Step) {}

    /// Reports the progress of copying, and how many documents the server counted before.
    fn copied(&self, _documents: u64, _bytes: u64, _expected_documents: u64) {}

    /// Reports the same for reading the copy.
    fn verified(&self, _documents: u64, _expected_documents: u64) {}

    /// Reports the end of a round of catching up.
    fn caught_up(&self, _round: CaughtUp) {}

    /// Reports that the guard paused the copy, or (`None`) lets it continue.
    fn paused(&self, _reason: Option<PauseReason>) {}

    /// Reports that the copy of an earlier run was dropped and everything is copied anew, and how many documents it
    /// had, if that is known.
    fn begun_anew(&self, _dropped_documents: Option<u64>) {}

    /// Reports that everything was rolled back: the original is as it was, and the copy is removed. Writers that had
    /// been stopped were let go on if `_writers_let_go`; else none had been stopped by then.
    fn undone(&self, _writers_let_go: bool) {}
}

/// Ignores all progress.
impl Progress for () {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_end_where_changes_come_more_slowly() {
        let mut round = CaughtUp {
            round: 1,
            changes: 6_000,
            came: 3_000,
            seconds: 2.0,
        };
        assert_eq!(
            (round.changes_per_s(), round.came_per_s()),
            (3_000.0, 1_500.0)
        );
        // 1 s, 0.5 s, 0.25 s, and so on.
        assert_eq!(round.remaining_s(), Some(2.0));
        round.came = 6_000;
        assert_eq!(round.remaining_s(), None);
        round.changes = 0;
        assert_eq!(round.remaining_s(), None);
        // Nothing was to be done, and one change arrived.
        (round.came, round.seconds) = (1, 0.3);
        assert_eq!(round.remaining_s(), Some(0.0));
    }
}
