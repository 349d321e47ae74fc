//! Where a scan is, from the reads of a server: a scan reads leaf after leaf in key order, possibly
//! leaving out some that its server has in memory, while other reads are anywhere.

/// A scan leaves out at most so many leaves at once.
const STEP_MAX: usize = 64;
/// Steps forward that make a scan of a reader: by chance, in a file of 10,000 leaves, one reader of
/// random leaves makes five in a row once in 10¹¹ reads.
const STEPS_MIN: u64 = 5;
/// Readers that are told apart.
const READERS: usize = 8;
/// A reader that was not seen during so many reads of the file is no scan any more.
const FORGOTTEN_AFTER: u64 = 4096;

#[derive(Debug, Clone, Copy)]
struct Reader {
    /// The last leaf it read.
    ordinal: usize,
    steps: u64,
    /// When, counted in reads.
    seen: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ScanPosition {
    readers: Vec<Reader>,
    reads: u64,
}

impl ScanPosition {
    /// A leaf was read.
    pub fn read(&mut self, ordinal: usize) {
        self.reads += 1;
        let reads = self.reads;
        self.readers
            .retain(|reader| reads - reader.seen < FORGOTTEN_AFTER);
        let ahead = |reader: &Reader| ordinal.checked_sub(reader.ordinal);
        let follows = |reader: &&mut Reader| ahead(reader).is_some_and(|step| step <= STEP_MAX);
        let nearest = self
            .readers
            .iter_mut()
            .filter(follows)
            .min_by_key(|reader| ordinal - reader.ordinal);
        if let Some(reader) = nearest {
            // The same leaf again is no progress.
            reader.steps += u64::from(ordinal > reader.ordinal);
            reader.ordinal = ordinal;
            reader.seen = reads;
            return;
        }
        if self.readers.len() == READERS {
            let weakest =
                (0..READERS).min_by_key(|&i| (self.readers[i].steps, self.readers[i].seen));
            self.readers.swap_remove(weakest.unwrap_or(0));
        }
        self.readers.push(Reader {
            ordinal,
            steps: 0,
            seen: reads,
        });
    }

    /// The leaf that the scan read last; of several scans, that of the one that has come furthest.
    pub fn last_read(&self) -> Option<usize> {
        let scans = self.readers.iter().filter(|r| r.steps >= STEPS_MIN);
        scans.max_by_key(|reader| reader.steps).map(|r| r.ordinal)
    }

    /// The tree has changed: places are to be learnt anew.
    pub fn forget(&mut self) {
        self.readers.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use seekscope_stats::SplitMix64;

    use super::*;

    #[test]
    fn a_few_reads_are_no_scan() {
        let mut position = ScanPosition::default();
        for ordinal in [900, 3, 4, 5, 6, 7] {
            position.read(ordinal);
        }
        assert_eq!(position.last_read(), None);
        position.read(8);
        assert_eq!(position.last_read(), Some(8));
        position.forget();
        assert_eq!(position.last_read(), None);
    }

    #[test]
    fn a_new_scan_replaces_one_that_has_ended() {
        let mut position = ScanPosition::default();
        (0..5000).for_each(|ordinal| position.read(ordinal));
        assert_eq!(position.last_read(), Some(4999));
        (0..5000).for_each(|ordinal| position.read(ordinal));
        assert_eq!(position.last_read(), Some(4999));
        position.read(9_000);
        (0..4200).for_each(|ordinal| position.read(ordinal));
        assert_eq!(position.last_read(), Some(4199));
    }

    proptest! {
        /// A scan that leaves out leaves is found among as many random reads.
        #[test]
        fn a_scan_among_other_reads(seed: u64, steps in prop::collection::vec(1usize..20, 60..200)) {
            let mut random = SplitMix64::new(seed);
            let mut position = ScanPosition::default();
            let mut ordinal = 0;
            for step in steps {
                ordinal += step;
                position.read(ordinal);
                // Not just ahead of the scan, where a read might as well be the scan's.
                position.read(10_000 + usize::try_from(random.below(1_000_000)).unwrap());
            }
            let found = position.last_read().unwrap();
            prop_assert_eq!(found, ordinal);
        }
    }
}
