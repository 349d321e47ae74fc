//! How long to wait before a broken connection is reopened.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(1);

/// A delay that doubles with each failure, from 10 ms to 1 s; the first attempt is not delayed.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Records another failure to connect, and returns how long to wait.
    pub(super) fn failed(&mut self) -> Duration {
        let doubled = FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        doubled.min(LONGEST)
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_up_to_a_second() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..40).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(waits[..8], [10, 20, 40, 80, 160, 320, 640, 1000]);
        assert!(waits[8..].iter().all(|&wait| wait == 1000));
        backoff.succeeded();
        assert_eq!(backoff.failed(), FIRST);
    }
}
