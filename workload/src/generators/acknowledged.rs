//! Hands out numbers of records to insert, and tracks up to which all are done, so that readers never request
//! one that is still in flight.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The most numbers that can be in flight at once.
const RING: usize = 1 << 20;
/// The most failed numbers that are stored; with more the counter stops advancing.
const FAILED_MAX: usize = 1 << 20;

/// Ordinals from 0. Shared by all virtual users; only failures wait for a lock.
#[derive(Debug)]
pub struct AcknowledgedCounter {
    next: AtomicU64,
    /// All ordinals below this are done.
    done_below: AtomicU64,
    /// Whether an ordinal is done, at its position modulo the ring's size.
    done: Box<[AtomicBool]>,
    advancing: AtomicBool,
    failed: Mutex<HashSet<u64>>,
    failed_count: AtomicUsize,
}

impl Default for AcknowledgedCounter {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(0),
            done_below: AtomicU64::new(0),
            done: (0..RING).map(|_| AtomicBool::new(false)).collect(),
            advancing: AtomicBool::new(false),
            failed: Mutex::new(HashSet::new()),
            failed_count: AtomicUsize::new(0),
        }
    }
}

impl AcknowledgedCounter {
    /// Returns the next ordinal; `None` while a whole ring of later ones waits for one that is not done.
    #[inline]
    pub fn claim(&self) -> Option<u64> {
        self.next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                let first = self.done_below.load(Ordering::Acquire);
                // `next` may be older than what was done since; the exchange then fails.
                (next < first + RING as u64).then_some(next + 1)
            })
            .ok()
    }

    /// Returns how many were handed out.
    pub fn claimed(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Returns the ordinal below which all are done, or have failed.
    #[inline]
    pub fn done_below(&self) -> u64 {
        self.done_below.load(Ordering::Acquire)
    }

    /// Marks a claimed ordinal as done.
    #[inline]
    pub fn acknowledge(&self, ordinal: u64) {
        self.slot(ordinal).store(true, Ordering::SeqCst);
        // A flag set while another thread was advancing is seen by that thread's last check, or handled here.
        while self.slot(self.done_below()).load(Ordering::SeqCst) {
            if self.advancing.swap(true, Ordering::SeqCst) {
                return;
            }
            let mut at = self.done_below.load(Ordering::Relaxed);
            while self.slot(at).swap(false, Ordering::SeqCst) {
                at += 1;
                self.done_below.store(at, Ordering::Release);
            }
            self.advancing.store(false, Ordering::SeqCst);
        }
    }

    /// Marks a claimed ordinal as not done, or unknown: it is skipped, and [`Self::has_failed`].
    pub fn fail(&self, ordinal: u64) {
        let remembered = {
            let mut failed = self.failed.lock().unwrap_or_else(|e| e.into_inner());
            let room = failed.len() < FAILED_MAX;
            if room {
                failed.insert(ordinal);
                self.failed_count.store(failed.len(), Ordering::Release);
            }
            room
        };
        if remembered {
            self.acknowledge(ordinal);
        }
    }

    /// Returns whether this ordinal was passed to [`Self::fail`].
    #[inline]
    pub fn has_failed(&self, ordinal: u64) -> bool {
        self.failed_count.load(Ordering::Acquire) > 0
            && self
                .failed
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .contains(&ordinal)
    }

    /// Returns how many were passed to [`Self::fail`].
    pub fn failed(&self) -> u64 {
        self.failed_count.load(Ordering::Acquire) as u64
    }

    fn slot(&self, ordinal: u64) -> &AtomicBool {
        // The remainder is below the ring's size.
        &self.done[usize::try_from(ordinal % RING as u64).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_contiguous_part() {
        let counter = AcknowledgedCounter::default();
        let claimed: Vec<u64> = (0..4).filter_map(|_| counter.claim()).collect();
        assert_eq!(claimed, [0, 1, 2, 3]);
        counter.acknowledge(1);
        counter.acknowledge(2);
        assert_eq!(counter.done_below(), 0);
        counter.acknowledge(0);
        assert_eq!(counter.done_below(), 3);
        counter.fail(3);
        assert_eq!(counter.done_below(), 4);
        assert!(counter.has_failed(3) && !counter.has_failed(2));
    }

    #[test]
    fn refuses_more_than_a_ring_in_flight() {
        let counter = AcknowledgedCounter::default();
        for _ in 0..RING {
            assert!(counter.claim().is_some());
        }
        assert_eq!(counter.claim(), None);
        counter.acknowledge(0);
        assert_eq!(counter.claim(), Some(RING as u64));
        assert_eq!(counter.claim(), None);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const EACH: u64 = 200_000;
        let counter = AcknowledgedCounter::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..EACH {
                        // A thread that is suspended while it holds an ordinal fills the ring.
                        let ordinal = loop {
                            match counter.claim() {
                                Some(ordinal) => break ordinal,
                                None => std::thread::yield_now(),
                            }
                        };
                        assert!(counter.done_below() <= ordinal);
                        counter.acknowledge(ordinal);
                    }
                });
            }
        });
        assert_eq!(counter.claimed(), 4 * EACH);
        assert_eq!(counter.done_below(), 4 * EACH);
    }
}
