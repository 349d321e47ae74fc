//! Which records of a collection there are, and which are this process's to write.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::generators::AcknowledgedCounter;

/// Which of how many processes that run the same workload together; from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub number: u64,
    pub count: u64,
}

/// Shared by all roles.
#[derive(Debug)]
pub(crate) struct Records {
    /// What loading inserts, over all processes.
    pub(crate) loaded: u64,
    slice: Slice,
    /// The next to load.
    load_next: AtomicU64,
    /// Inserted beyond; `None` where no operation inserts.
    inserted: Option<AcknowledgedCounter>,
}

impl Records {
    pub(super) fn new(loaded: u64, slice: Slice, grows: bool) -> Self {
        Self {
            loaded,
            slice,
            load_next: AtomicU64::new(part(loaded, slice.number, slice.count)),
            inserted: grows.then(AcknowledgedCounter::default),
        }
    }

    /// The next records to load, at most `batch`.
    pub(crate) fn claim_load(&self, batch: u64) -> Option<std::ops::Range<u64>> {
        let end = part(self.loaded, self.slice.number + 1, self.slice.count);
        let claimed = self
            .load_next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < end).then(|| next.saturating_add(batch).min(end))
            });
        claimed
            .ok()
            .map(|start| start..start.saturating_add(batch).min(end))
    }

    /// An ordinal to insert; [`Self::number`] is its record.
    pub(crate) fn claim_insert(&self) -> Option<u64> {
        self.inserted.as_ref()?.claim()
    }

    /// Processes take turns, so that none needs to know of the others.
    pub(crate) fn number(&self, ordinal: u64) -> u64 {
        self.loaded + ordinal * self.slice.count + self.slice.number
    }

    /// What became of an inserted ordinal.
    pub(crate) fn inserted(&self, ordinal: u64, is_done: bool) {
        let Some(counter) = &self.inserted else {
            return;
        };
        if is_done {
            counter.acknowledge(ordinal);
        } else {
            counter.fail(ordinal);
        }
    }

    /// How many can be chosen: those that are there, as far as this process knows.
    pub(crate) fn choosable(&self) -> u64 {
        let own = self
            .inserted
            .as_ref()
            .map_or(0, AcknowledgedCounter::done_below);
        self.loaded + own
    }

    /// The record at a place below [`Self::choosable`].
    pub(crate) fn at(&self, place: u64) -> u64 {
        match place.checked_sub(self.loaded) {
            Some(ordinal) => self.number(ordinal),
            None => place,
        }
    }
}

/// Where the part of process `number` begins.
fn part(records: u64, number: u64, count: u64) -> u64 {
    let start = u128::from(records) * u128::from(number) / u128::from(count.max(1));
    u64::try_from(start).unwrap_or(u64::MAX)
}
