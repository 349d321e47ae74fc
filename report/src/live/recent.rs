//! Keeps the most recent slices of time, each with its counts.

use std::collections::VecDeque;

/// Slices are numbered by time; empty ones take no room.
#[derive(Debug, Clone)]
pub(super) struct Recent<T> {
    kept: u64,
    slices: VecDeque<(u64, T)>,
}

impl<T: Default> Recent<T> {
    /// Creates a store of `kept` slices of time, the current one included.
    pub(super) fn new(kept: u64) -> Self {
        Self {
            kept,
            slices: VecDeque::new(),
        }
    }

    /// Returns the slice with that number. Events come in the order of their completion, which different CPUs
    /// see slightly differently: an event of a slice that is over counts for the one after.
    pub(super) fn at(&mut self, number: u64) -> &mut T {
        if self.slices.back().is_none_or(|(last, _)| *last < number) {
            self.slices.push_back((number, T::default()));
            self.forget_before(number.saturating_sub(self.kept - 1));
        }
        let first_not_before = self.slices.partition_point(|(slice, _)| *slice < number);
        let index = first_not_before.min(self.slices.len() - 1);
        &mut self.slices[index].1
    }

    fn forget_before(&mut self, number: u64) {
        while self
            .slices
            .front()
            .is_some_and(|(slice, _)| *slice < number)
        {
            self.slices.pop_front();
        }
    }

    /// Returns the slices from that number on, oldest first, with their numbers.
    pub(super) fn since(&self, number: u64) -> impl Iterator<Item = (u64, &T)> {
        let slices = self.slices.iter();
        slices
            .filter(move |(slice, _)| *slice >= number)
            .map(|(slice, counted)| (*slice, counted))
    }

    /// Returns all slices that are kept.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slices.iter_mut().map(|(_, counted)| counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_slices_go_and_late_events_stay_counted() {
        let mut recent: Recent<u32> = Recent::new(3);
        for number in [10, 10, 11, 13, 10, 12] {
            *recent.at(number) += 1;
        }
        // 10 is over when 13 begins: the late one counts for 11. 12 had nothing and counts for 13.
        let kept: Vec<(u64, u32)> = recent.since(0).map(|(n, count)| (n, *count)).collect();
        assert_eq!(kept, [(11, 2), (13, 2)]);
        assert_eq!(recent.since(12).count(), 1);
    }
}
