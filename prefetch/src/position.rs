//! Where a scan is, judged by a server's reads: a scan reads leaf after leaf in key order, possibly
//! leaving out some that its server has in memory, while other reads are anywhere.
//!
//! One scan is followed until another has made many steps without it. Then the first has ended,
//! stands still, or never was a scan, its steps being reads of others that happened to lie in
//! ascending order. If the other goes on further ahead, the leaves between were in the server's
//! memory.

/// The most leaves that a scan leaves out at once. Reads of random leaves this close ahead of it
/// are taken for its own; ten of them for each of its own move it by less than a leaf.
pub(crate) const STEP_MAX: usize = 32;
/// The same limit for a reader that is not yet a scan.
const FIRST_STEP_MAX: usize = 16;
/// Forward steps after which a reader is a scan. Each step is given so little time that a reader of
/// random leaves makes one in eight attempts: all of them, once in 10⁷ reads.
const STEPS_MIN: u64 = 8;
const CHANCES: usize = 8;
/// Reads of the file within which a reader must make its next step, maximum and minimum.
const PATIENCE_MAX: usize = 64;
const PATIENCE_MIN: usize = 2;
/// Another scan is followed once it has made this many steps more than the present one.
const LEAD_MAX: u64 = 128;
/// Readers that are tracked separately.
const READERS: usize = 96;
/// A scan that was not seen during this many reads of the file no longer counts.
const FORGOTTEN_AFTER: u64 = 4096;

#[derive(Debug, Clone, Copy)]
struct Reader {
    /// The last leaf it read.
    ordinal: usize,
    steps: u64,
    /// When it was first and last seen, counted in reads.
    met: u64,
    seen: u64,
}

impl Reader {
    fn is_scan(&self) -> bool {
        self.steps >= STEPS_MIN
    }

    /// Returns whether `ordinal` may be the leaf it reads next.
    fn leads_to(&self, ordinal: usize) -> bool {
        let step_max = match self.is_scan() {
            true => STEP_MAX,
            false => FIRST_STEP_MAX,
        };
        let step = ordinal.checked_sub(self.ordinal);
        step.is_some_and(|step| step <= step_max)
    }
}

/// The position of the scan that is followed.
#[derive(Debug, Default)]
pub struct ScanPosition {
    readers: Vec<Reader>,
    reads: u64,
    /// Number of leaves known to exist, from those read.
    leaves: usize,
    /// The `met` of the scan that is followed, which no two readers share.
    followed: Option<u64>,
    /// How many steps another scan may make before it is followed instead.
    lead: u64,
}

impl ScanPosition {
    /// Notes that a leaf was read. Returns whether the scan read it.
    pub fn read(&mut self, ordinal: usize) -> bool {
        self.reads += 1;
        self.leaves = self.leaves.max(ordinal + 1);
        let reads = self.reads;
        let patience = self.leaves / FIRST_STEP_MAX / CHANCES;
        let patience = patience.clamp(PATIENCE_MIN, PATIENCE_MAX) as u64;
        self.readers.retain(|reader| match reader.is_scan() {
            true => reads - reader.seen < FORGOTTEN_AFTER,
            false => reads - reader.seen <= patience,
        });
        let follows = |reader: &&mut Reader| reader.leads_to(ordinal);
        let followed = self.followed;
        // A scan passes places where others were; they must not take its reads from it.
        let rank = |reader: &&mut Reader| {
            let is_followed = Some(reader.met) == followed;
            (!is_followed, !reader.is_scan(), ordinal - reader.ordinal)
        };
        let nearest = self.readers.iter_mut().filter(follows).min_by_key(rank);
        if let Some(reader) = nearest {
            // Reading the same leaf again is no progress, and reads of random leaves make a step
            // now and then.
            let has_moved = ordinal > reader.ordinal && reads - reader.seen <= patience;
            reader.steps += u64::from(ordinal > reader.ordinal);
            reader.ordinal = ordinal;
            reader.seen = reads;
            let reader = *reader;
            return self.is_by_the_scan(reader, has_moved);
        }
        if self.readers.len() == READERS {
            let is_followed = |i: usize| Some(self.readers[i].met) == followed;
            let weakest = (0..READERS).min_by_key(|&i| {
                let reader = self.readers[i];
                (is_followed(i), reader.steps, reader.seen)
            });
            self.readers.swap_remove(weakest.unwrap_or(0));
        }
        self.readers.push(Reader {
            ordinal,
            steps: 0,
            met: reads,
            seen: reads,
        });
        false
    }

    /// Returns whether `reader` is the scan; it may become the one that is followed.
    fn is_by_the_scan(&mut self, reader: Reader, has_moved: bool) -> bool {
        if !reader.is_scan() {
            return false;
        }
        if self.followed == Some(reader.met) {
            self.lead = (self.lead + u64::from(has_moved)).min(LEAD_MAX);
            return true;
        }
        if let Some(&scan) = self.scan() {
            let goes_on = scan.ordinal < reader.ordinal && scan.seen < reader.met;
            self.lead = self.lead.saturating_sub(u64::from(has_moved));
            if self.lead > 0 && !goes_on {
                return false;
            }
            let former = self.followed;
            self.readers.retain(|reader| Some(reader.met) != former);
        }
        self.followed = Some(reader.met);
        self.lead = reader.steps.min(LEAD_MAX);
        true
    }

    fn scan(&self) -> Option<&Reader> {
        let is_followed = |reader: &&Reader| Some(reader.met) == self.followed;
        self.readers.iter().find(is_followed)
    }

    /// Returns the leaf that the scan read last.
    pub fn last_read(&self) -> Option<usize> {
        self.scan().map(|reader| reader.ordinal)
    }

    /// Forgets all places, because the tree has changed.
    pub fn forget(&mut self) {
        self.readers.clear();
        self.followed = None;
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
        for ordinal in [900, 3, 4, 5, 6, 7, 7, 9, 10, 11] {
            assert!(!position.read(ordinal));
        }
        assert_eq!(position.last_read(), None);
        assert!(position.read(12));
        assert_eq!(position.last_read(), Some(12));
        position.forget();
        assert_eq!(position.last_read(), None);
    }

    fn scanned(position: &mut ScanPosition, ordinals: std::ops::Range<usize>) {
        for ordinal in ordinals {
            position.read(ordinal);
        }
    }

    #[test]
    fn a_new_scan_replaces_one_that_has_ended() {
        let mut position = ScanPosition::default();
        scanned(&mut position, 0..1000);
        assert_eq!(position.last_read(), Some(999));
        scanned(&mut position, 0..100);
        assert_eq!(position.last_read(), Some(999), "it may go on yet");
        scanned(&mut position, 100..200);
        assert_eq!(position.last_read(), Some(199));
        // It passes where the first ended, which is no reason to lose it.
        scanned(&mut position, 200..1500);
        assert_eq!(position.last_read(), Some(1499));
    }

    #[test]
    fn a_range_that_was_read_before_the_scan_does_not_hold_it_up() {
        let mut position = ScanPosition::default();
        scanned(&mut position, 700..710);
        assert_eq!(position.last_read(), Some(709));
        scanned(&mut position, 0..20);
        assert_eq!(position.last_read(), Some(19));
    }

    #[test]
    fn a_scan_goes_on_behind_what_its_server_had_in_memory() {
        let mut position = ScanPosition::default();
        scanned(&mut position, 0..1000);
        scanned(&mut position, 3000..3020);
        assert_eq!(position.last_read(), Some(3019));
    }

    #[test]
    fn of_two_scans_the_first_is_followed_while_it_moves() {
        let mut position = ScanPosition::default();
        scanned(&mut position, 0..200);
        for step in 0..400 {
            assert!(position.read(200 + step));
            assert!(!position.read(5_000 + step));
        }
        assert_eq!(position.last_read(), Some(599));
    }

    #[test]
    fn reads_of_random_leaves_are_no_scan() {
        for leaves in [300, 3_000, 30_000] {
            let mut random = SplitMix64::new(leaves);
            let mut position = ScanPosition::default();
            for _ in 0..20_000 {
                position.read(usize::try_from(random.below(leaves)).unwrap());
                assert_eq!(position.last_read(), None, "{leaves}");
            }
        }
    }

    /// A leaf just ahead of the scan that another reads is taken for the scan's; many such reads
    /// would carry the position away from the scan if that were not noticed.
    #[test]
    fn reads_of_others_do_not_run_away_with_it() {
        let mut random = SplitMix64::new(5);
        let mut position = ScanPosition::default();
        let mut errors = Vec::new();
        for ordinal in 0..14_000 {
            position.read(ordinal);
            for _ in 0..10 {
                position.read(usize::try_from(random.below(14_000)).unwrap());
            }
            errors.push(position.last_read().unwrap_or(0).abs_diff(ordinal));
        }
        let far = errors.iter().filter(|error| **error > 256).count();
        assert!(far < errors.len() / 20, "{far}");
    }

    proptest! {
        /// A scan that leaves out leaves is found among as many random reads.
        #[test]
        fn a_scan_among_other_reads(seed: u64, steps in prop::collection::vec(1usize..=16, 60..200)) {
            let mut random = SplitMix64::new(seed);
            let mut position = ScanPosition::default();
            let mut ordinal = 0;
            for step in steps {
                ordinal += step;
                position.read(ordinal);
                // Not just ahead of the scan, where a read might as well be the scan's.
                let other = 10_000 + usize::try_from(random.below(1_000_000)).unwrap();
                prop_assert!(!position.read(other));
            }
            let found = position.last_read().unwrap();
            prop_assert_eq!(found, ordinal);
        }
    }
}
