//! When the next read may be made: never after the user has asked to stop, and no more often than
//! allowed, however many threads read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::LayoutError;

/// Sleeps are cut into pieces of this length, so that a request to stop is noticed.
const SLEEP_MAX: Duration = Duration::from_millis(20);

/// A gate shared by all threads that read for one walk.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    stop: &'a AtomicBool,
    /// The time between two reads and when the next is due, if the rate is limited.
    pace: Option<(Duration, Mutex<Instant>)>,
}

impl<'a> Gate<'a> {
    /// A rate of 0 counts as 1.
    pub(crate) fn new(stop: &'a AtomicBool, reads_per_s: Option<u64>) -> Self {
        let pace = reads_per_s.map(|rate| {
            let gap = Duration::from_nanos(1_000_000_000 / rate.max(1));
            (gap, Mutex::new(Instant::now()))
        });
        Self { stop, pace }
    }

    /// Waits for this read's turn. Returns [`LayoutError::Interrupted`] once the stop flag is set.
    pub(crate) fn pass(&self) -> Result<(), LayoutError> {
        let Some((gap, due)) = &self.pace else {
            return self.check();
        };
        let turn = {
            let mut due = due.lock().unwrap_or_else(PoisonError::into_inner);
            // Unused turns are not saved up, so there are no bursts.
            let turn = (*due).max(Instant::now());
            *due = turn + *gap;
            turn
        };
        self.sleep(turn.saturating_duration_since(Instant::now()))
    }

    /// Sleeps while watching the stop flag.
    pub(crate) fn sleep(&self, duration: Duration) -> Result<(), LayoutError> {
        let end = Instant::now() + duration;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(SLEEP_MAX));
        }
    }

    pub(crate) fn check(&self) -> Result<(), LayoutError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LayoutError::Interrupted);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_no_faster_than_allowed_and_never_after_stop() {
        let stop = AtomicBool::new(false);
        let gate = Gate::new(&stop, Some(1000));
        let started = Instant::now();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..25).for_each(|_| gate.pass().unwrap()));
            }
        });
        // 100 reads have 99 gaps. A slow machine only takes longer.
        assert!(started.elapsed() >= Duration::from_millis(99));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(gate.pass(), Err(LayoutError::Interrupted)));
        let long = gate.sleep(Duration::from_secs(3600));
        assert!(matches!(long, Err(LayoutError::Interrupted)));
        let unlimited = Gate::new(&stop, None);
        assert!(matches!(unlimited.pass(), Err(LayoutError::Interrupted)));
    }
}
