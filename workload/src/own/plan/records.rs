//! Tracks which records of a collection exist, and which this process writes.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use seekscope_stats::SplitMix64;

use crate::generators::AcknowledgedCounter;

/// One process (from 0) of those that run the same workload together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub number: u64,
    pub count: u64,
}

/// The records of a collection, shared by all roles.
#[derive(Debug)]
pub(crate) struct Records {
    /// Number of records that loading inserts, over all processes.
    pub(crate) loaded: u64,
    slice: Slice,
    /// The next record to load.
    load_next: AtomicU64,
    /// Number of documents whose loading was acknowledged.
    load_done: AtomicU64,
    /// Further inserts; `None` if no operation inserts.
    inserted: Option<AcknowledgedCounter>,
    insert_done: AtomicU64,
}

impl Records {
    pub(super) fn new(loaded: u64, slice: Slice, grows: bool) -> Self {
        Self {
            loaded,
            slice,
            load_next: AtomicU64::new(part(loaded, slice.number, slice.count)),
            load_done: AtomicU64::new(0),
            insert_done: AtomicU64::new(0),
            inserted: grows.then(AcknowledgedCounter::default),
        }
    }

    /// Returns the records that this process loads.
    fn own_part(&self) -> Range<u64> {
        let Slice { number, count } = self.slice;
        part(self.loaded, number, count)..part(self.loaded, number + 1, count)
    }

    /// Claims the next records to load, at most `batch`.
    pub(crate) fn claim_load(&self, batch: u64) -> Option<Range<u64>> {
        let end = self.own_part().end;
        let claimed = self
            .load_next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < end).then(|| next.saturating_add(batch).min(end))
            });
        claimed
            .ok()
            .map(|start| start..start.saturating_add(batch).min(end))
    }

    /// Counts that many documents of a batch as loaded.
    pub(crate) fn loaded(&self, count: u64) {
        self.load_done.fetch_add(count, Ordering::Relaxed);
    }

    /// Claims an ordinal to insert; [`Self::number`] is its record.
    pub(crate) fn claim_insert(&self) -> Option<u64> {
        self.inserted.as_ref()?.claim()
    }

    /// Returns an ordinal's record. Processes take turns, so that none needs to know of the others.
    pub(crate) fn number(&self, ordinal: u64) -> u64 {
        self.loaded + ordinal * self.slice.count + self.slice.number
    }

    /// Records the outcome of an inserted ordinal.
    pub(crate) fn inserted(&self, ordinal: u64, is_done: bool) {
        let Some(counter) = &self.inserted else {
            return;
        };
        if is_done {
            self.insert_done.fetch_add(1, Ordering::Relaxed);
            counter.acknowledge(ordinal);
        } else {
            counter.fail(ordinal);
        }
    }

    /// Returns how many records can be chosen: those that exist, as far as this process knows.
    pub(crate) fn choosable(&self) -> u64 {
        let own = self
            .inserted
            .as_ref()
            .map_or(0, AcknowledgedCounter::done_below);
        self.loaded + own
    }

    /// Returns the record at a position below [`Self::choosable`].
    pub(crate) fn at(&self, place: u64) -> u64 {
        match place.checked_sub(self.loaded) {
            Some(ordinal) => self.number(ordinal),
            None => place,
        }
    }

    /// Returns whether this is the only process that writes to the collection.
    pub(crate) fn is_alone(&self) -> bool {
        self.slice.count == 1
    }

    /// Returns the number of documents whose existence was acknowledged to this process.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.load_done.load(Ordering::Relaxed) + self.insert_done.load(Ordering::Relaxed)
    }

    /// Returns a record whose existence was acknowledged to this process. Where loading failed in part, it is
    /// unknown which of its records exist.
    pub(crate) fn draw_acknowledged(&self, random: &mut SplitMix64) -> Option<u64> {
        let part = self.own_part();
        let own = part.end - part.start;
        let loaded = if self.load_done.load(Ordering::Relaxed) == own {
            own
        } else {
            0
        };
        let inserted = self
            .inserted
            .as_ref()
            .map_or(0, AcknowledgedCounter::done_below);
        let has_failed = |ordinal| {
            self.inserted
                .as_ref()
                .is_none_or(|counter| counter.has_failed(ordinal))
        };
        let place = (0..TRIES)
            .map(|_| random.below(loaded + inserted))
            .find(|place| {
                place
                    .checked_sub(loaded)
                    .is_none_or(|ordinal| !has_failed(ordinal))
            })
            .filter(|_| loaded + inserted > 0)?;
        Some(match place.checked_sub(loaded) {
            Some(ordinal) => self.number(ordinal),
            None => part.start + place,
        })
    }
}

/// The most draws, as some may fall on inserts that failed.
const TRIES: usize = 1_000;

/// Returns where the part of process `number` begins.
fn part(records: u64, number: u64, count: u64) -> u64 {
    let start = u128::from(records) * u128::from(number) / u128::from(count.max(1));
    u64::try_from(start).unwrap_or(u64::MAX)
}
