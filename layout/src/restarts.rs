//! Starting again when a running server has moved on: always from the metadata as it is then, a
//! bounded number of times, and not at all if the server cannot be the cause.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::LayoutError;
use crate::data_directory::DataDirectory;
use crate::gate::Gate;
use crate::snapshot::{Snapshot, Source};

/// A walk is restarted at most this often.
const RESTARTS_MAX: u32 = 10;
/// A failure that recurs although the server has not taken a checkpoint is not a race but damage,
/// since the turtle is replaced before any block of the former checkpoint is reused. The limit is
/// one more than that reasoning needs, and a few more where a server is known to run.
const FAILURES_WITHOUT_CHANGE: u32 = 2;
const FAILURES_WITHOUT_CHANGE_LIVE: u32 = 4;
const BACK_OFF: Duration = Duration::from_millis(10);
const BACK_OFF_MAX: Duration = Duration::from_millis(500);

impl DataDirectory {
    /// Returns the metadata as last read.
    pub(crate) fn held_snapshot(&self) -> Option<Arc<Snapshot>> {
        let held = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        held.clone()
    }

    /// Returns the present metadata, which is read again only if it has changed.
    fn present_snapshot(
        &self,
        source: Source,
        gate: &Gate<'_>,
    ) -> Result<Arc<Snapshot>, LayoutError> {
        if let Some(held) = self.held_snapshot().filter(|held| held.source == source) {
            return Ok(held);
        }
        let new = Arc::new(Snapshot::read(self.path(), source, gate, &self.cache)?);
        let mut held = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(Arc::clone(&new));
        Ok(new)
    }

    /// Makes attempts, each from the metadata as it is then, until the server does not overtake
    /// one. Also returns the number of restarts. `file` is what an error is about.
    pub(crate) fn with_restarts<T>(
        &self,
        gate: &Gate<'_>,
        file: &str,
        mut attempt: impl FnMut(Arc<Snapshot>) -> Result<T, LayoutError>,
    ) -> Result<(T, u32), LayoutError> {
        let (mut restarts, mut without_change) = (0, 0);
        let failures_max = if self.may_move_on() {
            FAILURES_WITHOUT_CHANGE_LIVE
        } else {
            FAILURES_WITHOUT_CHANGE
        };
        loop {
            gate.check()?;
            let source = Source::of(self.path())?;
            let result = self.present_snapshot(source.clone(), gate);
            let error = match result.and_then(&mut attempt) {
                Ok(value) => return Ok((value, restarts)),
                Err(error) if !error.may_be_stale() => return Err(error),
                Err(error) => error,
            };
            let changed = Source::of(self.path()).is_ok_and(|now| now != source);
            without_change = if changed { 0 } else { without_change + 1 };
            if without_change == failures_max {
                return Err(error.lasting(file));
            }
            if restarts == RESTARTS_MAX {
                return Err(LayoutError::MovedOn {
                    file: file.into(),
                    restarts,
                    source: Box::new(error),
                });
            }
            restarts += 1;
            gate.sleep(back_off(restarts))?;
        }
    }
}

/// 10, 20, 40 … 500 ms.
fn back_off(time: u32) -> Duration {
    BACK_OFF
        .saturating_mul(1 << (time - 1).min(16))
        .min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn waits_grow_up_to_half_a_second() {
        let waits: Vec<_> = (1..9).map(|n| back_off(n).as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 500, 500]);
        assert_eq!(back_off(u32::MAX), BACK_OFF_MAX);
    }

    /// A directory with one file that was never written, like that of a backup.
    fn directory() -> (tempfile::TempDir, DataDirectory) {
        let folder = tempfile::tempdir().unwrap();
        next_checkpoint(folder.path(), 0);
        let directory = DataDirectory::open(folder.path(), &AtomicBool::new(false)).unwrap();
        (folder, directory)
    }

    fn next_checkpoint(folder: &Path, number: usize) {
        let text = format!("file:a.wt\ncheckpoint=(){}\n", " ".repeat(number));
        std::fs::write(folder.join("WiredTiger.backup"), text).unwrap();
    }

    fn stale() -> Result<(), LayoutError> {
        let (path, offset, length) = (PathBuf::new(), 4096, 4096);
        Err(LayoutError::ShortRead {
            path,
            offset,
            length,
        })
    }

    #[test]
    fn a_server_that_always_moves_on_ends_the_walk() {
        let (folder, directory) = directory();
        let stop = AtomicBool::new(false);
        let mut attempts = 0;
        let result = directory.with_restarts(&Gate::new(&stop, None), "a.wt", |_| {
            attempts += 1;
            next_checkpoint(folder.path(), attempts);
            stale()
        });
        let error = result.unwrap_err();
        assert!(
            matches!(
                error,
                LayoutError::MovedOn {
                    restarts: RESTARTS_MAX,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(attempts, 11);
        let mut attempts = 0;
        let result = directory.with_restarts(&Gate::new(&stop, None), "a.wt", |_| {
            attempts += 1;
            next_checkpoint(folder.path(), 100 + attempts);
            if attempts < 4 { stale() } else { Ok(()) }
        });
        assert_eq!(result.unwrap().1, 3);
    }

    #[test]
    fn damage_is_no_server_and_stop_ends_the_waiting() {
        let (_folder, directory) = directory();
        let stop = AtomicBool::new(false);
        let mut attempts = 0;
        let result = directory.with_restarts(&Gate::new(&stop, None), "a.wt", |_| {
            attempts += 1;
            stale()
        });
        assert!(matches!(result, Err(LayoutError::Damaged { .. })));
        assert_eq!(attempts, FAILURES_WITHOUT_CHANGE);
        let result = directory.with_restarts(&Gate::new(&stop, None), "a.wt", |_| {
            stop.store(true, Ordering::Relaxed);
            stale()
        });
        assert!(matches!(result, Err(LayoutError::Interrupted)));
    }
}
