//! What was seen of the scan: its reads, and how far it came in how much time.

use crate::gain::Progress;
use crate::server_reads::ServerRead;
use crate::sweep::Sweep;

/// The scan's reads of the file.
#[derive(Debug, Default)]
pub(crate) struct ScanReads {
    pub(crate) reads: u64,
    pub(crate) misses: u64,
    read_ns: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl ScanReads {
    pub(crate) fn add(&mut self, read: &ServerRead) {
        self.reads += 1;
        self.misses += u64::from(read.missed);
        self.read_ns += read.latency_ns;
        self.first_ns.get_or_insert(read.t_ns);
        self.last_ns = self.last_ns.max(read.t_ns + read.latency_ns);
    }

    /// Returns the share of the time from the first read to the last that the reads took; `None` if
    /// there were none.
    pub(crate) fn time_share(&self) -> Option<f64> {
        let span_ns = self.last_ns.saturating_sub(self.first_ns?);
        Some((self.read_ns as f64 / span_ns.max(1) as f64).min(1.0))
    }
}

/// A scan whose next leaf lies at least this many leaves before its last one is another scan. Where
/// others read leaves just before the scan, its place may be wrong by less.
const BACK_MIN: usize = 256;
/// In a small tree, one that is back in the first half of what was passed, by at least this many: it
/// has come some way by the time that it is followed.
const BACK_HALF_MIN: usize = 64;

/// How far the scan was followed. Times are CLOCK_MONOTONIC ns.
#[derive(Debug)]
pub(crate) struct Followed {
    /// When the user began to wait; for a command of the user's, when we began.
    began_ns: Option<u64>,
    /// Whether that is when we began.
    pub(crate) from_start: bool,
    /// The first leaf at which the scan was seen.
    first: Option<usize>,
    /// The last leaf, as leaves are numbered now.
    last: Option<usize>,
    /// When the scan was last seen to move.
    moved_ns: Option<u64>,
}

impl Followed {
    /// `began_ns`: when the user's command began or will begin.
    pub(crate) fn new(began_ns: Option<u64>) -> Self {
        Self {
            began_ns,
            from_start: began_ns.is_some(),
            first: began_ns.map(|_| 0),
            last: None,
            moved_ns: None,
        }
    }

    /// Notes that the scan came to a leaf. Returns whether it is another scan, which begins now:
    /// the command has a second one, or somebody has started theirs again.
    pub(crate) fn scan_at(&mut self, ordinal: usize, now_ns: u64) -> bool {
        let is_another = self.last.is_some_and(|last| {
            ordinal + BACK_MIN <= last || ordinal * 2 < last && ordinal + BACK_HALF_MIN <= last
        });
        if is_another {
            (self.began_ns, self.first) = (None, None);
            self.from_start = false;
        }
        self.began_ns.get_or_insert(now_ns);
        self.first.get_or_insert(ordinal);
        self.last = Some(ordinal);
        self.moved_ns = Some(now_ns);
        is_another
    }

    /// Forgets the place, because leaves are numbered differently now or the same scan is followed
    /// in a better way: what it was thought to have reached says nothing.
    pub(crate) fn place_is_unknown(&mut self) {
        self.last = None;
    }

    /// Returns the time since the user began to wait; 0 before that.
    pub(crate) fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.began_ns
            .map_or(0, |began_ns| now_ns.saturating_sub(began_ns))
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.moved_ns.is_some()
    }

    pub(crate) fn progress(&self, sweep: &Sweep) -> Progress {
        let (Some(began_ns), Some(first), Some(moved_ns)) =
            (self.began_ns, self.first, self.moved_ns)
        else {
            return Progress::default();
        };
        let position = sweep.position();
        Progress {
            elapsed_ns: moved_ns.saturating_sub(began_ns),
            passed_bytes: sweep
                .bytes_before(position)
                .saturating_sub(sweep.bytes_before(first)),
            passed_leaves: position.saturating_sub(first) as u64,
            held_bytes: sweep.held_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use seekscope_wiredtiger::{Leaf, LeafKind};

    use super::*;

    const LEAF: u32 = 4096;

    fn sweep() -> Sweep {
        let leaf = |i: u64| Leaf {
            offset: i * u64::from(LEAF),
            length: LEAF,
            kind: LeafKind::Plain,
        };
        let leaves: Vec<Leaf> = (0..10_000).map(leaf).collect();
        Sweep::new(&leaves, u64::MAX).unwrap()
    }

    fn progress(followed: &Followed, sweep: &mut Sweep, position: usize) -> (u64, u64) {
        sweep.advance(position);
        let progress = followed.progress(sweep);
        (progress.elapsed_ns, progress.passed_leaves)
    }

    #[test]
    fn a_second_scan_has_a_clock_of_its_own() {
        let (mut sweep, mut followed) = (sweep(), Followed::new(Some(1_000)));
        assert!(!followed.scan_at(10, 3_000));
        assert!(!followed.scan_at(9_000, 50_000));
        assert!(followed.from_start);
        assert_eq!(progress(&followed, &mut sweep, 9_000), (49_000, 9_000));
        assert!(followed.scan_at(5, 60_000));
        assert!(!followed.from_start);
        assert!(!followed.scan_at(905, 61_000));
        assert_eq!(progress(&followed, &mut sweep, 905), (1_000, 900));
        assert_eq!(followed.elapsed_ns(62_000), 2_000);
    }

    #[test]
    fn a_second_scan_of_a_small_tree_is_told_from_the_first() {
        let mut followed = Followed::new(None);
        assert!(!followed.scan_at(364, 3_000));
        assert!(!followed.scan_at(300, 4_000), "a mistaken place");
        assert!(!followed.scan_at(364, 5_000));
        assert!(followed.scan_at(126, 6_000));
        assert!(!followed.scan_at(100, 7_000));
    }

    #[test]
    fn a_place_that_was_mistaken_makes_no_other_scan() {
        let mut followed = Followed::new(None);
        assert_eq!((followed.elapsed_ns(7), followed.has_moved()), (0, false));
        assert!(!followed.scan_at(5_000, 10));
        assert!(!followed.scan_at(4_900, 20));
        // Counted until now, with the counter ahead of the scan.
        followed.place_is_unknown();
        assert!(!followed.scan_at(100, 30));
        assert_eq!(followed.elapsed_ns(40), 30);
    }
}
