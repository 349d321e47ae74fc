//! How many system calls all processes of the host make, counted in a sample of the time.
//!
//! Programs on the classic tracepoints of some calls do not see the others, each of which takes a little longer
//! nevertheless. To count them all the time would cost them more than that.

use std::time::{Duration, Instant};

use crate::error::TraceError;
use crate::loader::{Backend, Programs};

/// The time from the beginning of one window to that of the next. Beginning or ending one changes code on all CPUs,
/// and the calls within a window take longer.
const INTERVAL: Duration = Duration::from_secs(4);
/// The shortest window. The reader looks less often than that, and a window lasts from one look to the next.
const WINDOW: Duration = Duration::from_millis(10);

/// The count so far.
#[derive(Debug, Default)]
pub(crate) struct HostCalls {
    window: Option<Window>,
    /// When the last window began.
    began: Option<Instant>,
    calls: u64,
    watched: Duration,
    /// The kernel refuses.
    refused: bool,
}

#[derive(Debug)]
struct Window {
    began: Instant,
    /// The kernel's counter then.
    counted: u64,
}

impl HostCalls {
    /// Begins or ends a window if it is time to. To be called after each drain.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub(crate) fn look(&mut self, programs: &mut Programs) -> Result<(), TraceError> {
        if programs.backend() == Backend::TpBtf || self.refused {
            return Ok(());
        }
        match &self.window {
            Some(window) if window.began.elapsed() >= WINDOW => self.end(programs),
            None if self.began.is_none_or(|began| began.elapsed() >= INTERVAL) => {
                self.begin(programs)
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, programs: &mut Programs) -> Result<(), TraceError> {
        self.refused = programs.count_host_calls(true).is_err();
        let began = Instant::now();
        self.began = Some(began);
        self.window = Some(Window {
            began,
            counted: programs.counters()?.host_calls,
        });
        Ok(())
    }

    /// Ends a window that is open.
    ///
    /// # Errors
    /// When the counters cannot be read.
    pub(crate) fn end(&mut self, programs: &mut Programs) -> Result<(), TraceError> {
        let Some(window) = self.window.take() else {
            return Ok(());
        };
        let counted = programs.counters()?.host_calls;
        self.watched += window.began.elapsed();
        self.calls += counted.saturating_sub(window.counted);
        self.refused |= programs.count_host_calls(false).is_err();
        Ok(())
    }

    /// Returns the calls per second; `None` where they were not counted.
    pub(crate) fn per_s(&self) -> Option<f64> {
        let seconds = self.watched.as_secs_f64();
        (seconds > 0.0 && !self.refused).then(|| self.calls as f64 / seconds)
    }
}
