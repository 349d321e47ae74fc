//! Divides one data set among several clients.

/// One of several clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSlice {
    /// Number of the client, from 0.
    pub index: u64,
    pub count: u64,
}

impl Default for ClientSlice {
    /// Returns the only client.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl ClientSlice {
    /// Creates the slice; `None` unless the index is below the count.
    pub fn new(index: u64, count: u64) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Returns what this client loads of `records` rows: `insertstart` and `insertcount`. Slices differ by at
    /// most one row; the first are the longer ones.
    pub fn load(self, records: u64) -> (u64, u64) {
        let (share, rest) = (records / self.count, records % self.count);
        let start = self.index * share + self.index.min(rest);
        (start, share + u64::from(self.index < rest))
    }

    /// Returns the record of this client's insert number `ordinal` (from 0) in a run: from `first_insert` on,
    /// clients take turns, so that none waits for another and none uses another's key. Loaded rows are read
    /// by all clients.
    #[inline]
    pub fn inserted_record(self, first_insert: u64, ordinal: u64) -> u64 {
        first_insert
            .saturating_add(ordinal.saturating_mul(self.count))
            .saturating_add(self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_everything_once() {
        for (records, count) in [(10, 3), (2, 5), (1_000, 1), (0, 2)] {
            let mut next = 0;
            for index in 0..count {
                let (start, length) = ClientSlice::new(index, count).unwrap().load(records);
                assert_eq!(start, next);
                next += length;
            }
            assert_eq!(next, records);
        }
        assert!(ClientSlice::new(2, 2).is_none());
    }

    #[test]
    fn inserts_take_turns() {
        let mut records: Vec<u64> = (0..3)
            .flat_map(|index| {
                let slice = ClientSlice::new(index, 3).unwrap();
                (0..5).map(move |ordinal| slice.inserted_record(100, ordinal))
            })
            .collect();
        records.sort_unstable();
        assert!(records.into_iter().eq(100..115));
    }
}
