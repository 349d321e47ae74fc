//! What an applier waits for at the moment, for people who wait with it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shared with whoever shows it; clones are of the same wait.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<Mutex<Option<(&'static str, Instant)>>>);

impl Waiting {
    /// Returns what is waited for, and for how long by now; `None` where nothing is.
    pub fn now(&self) -> Option<(&'static str, Duration)> {
        let wait = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wait.map(|(what, since)| (what, since.elapsed()))
    }

    /// Notes what is waited for until the guard is dropped.
    pub(super) fn begin(&self, what: &'static str) -> Wait {
        self.set(Some((what, Instant::now())));
        Wait(self.clone())
    }

    fn set(&self, wait: Option<(&'static str, Instant)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wait;
    }
}

/// A wait under way.
pub(super) struct Wait(Waiting);

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_known_as_long_as_it_is() {
        let waiting = Waiting::default();
        let shown = waiting.clone();
        assert_eq!(shown.now(), None);
        let wait = waiting.begin("a server");
        assert_eq!(shown.now().unwrap().0, "a server");
        drop(wait);
        assert_eq!(shown.now(), None);
    }
}
