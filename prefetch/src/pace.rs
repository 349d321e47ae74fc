//! Following the scan: by the server's reads of the file, otherwise by how much the server has
//! read, otherwise at the pace at which an engine consumes what is in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use seekscope_run::clock::monotonic_ns;
use seekscope_run::units::nanoseconds;
use seekscope_run::{PrefetchPace, proc_io_counter};
use seekscope_trace::TraceError;

use crate::position::ScanPosition;
use crate::server_reads::{ServerRead, ServerReads};
use crate::sweep::Sweep;

/// Counts the bytes that read calls have returned to a process.
const READ_CALLS_BYTES: &str = "rchar";

/// How a scan is followed.
pub enum Pace {
    Traced {
        reads: Box<ServerReads>,
        position: ScanPosition,
    },
    Counted {
        /// `/proc/PID/io`.
        counters: PathBuf,
        /// The counter's value when the scan was at the first leaf, bytes.
        zero: u64,
    },
    Own {
        started: Instant,
        ns_per_byte: f64,
    },
}

/// The scan came to a leaf at a certain time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanAt {
    pub ordinal: usize,
    /// CLOCK_MONOTONIC ns.
    pub t_ns: u64,
}

/// What was seen since the last look.
#[derive(Debug, Default)]
pub struct Seen {
    /// The leaf that the scan will read next, if it is known.
    pub next: Option<usize>,
    /// Reads of the server in all files; only where it is traced.
    pub reads: Vec<ServerRead>,
    /// Where the scan was at what time.
    pub scanned: Vec<ScanAt>,
    /// The scanned file was read, or may have been.
    pub active: bool,
}

impl Seen {
    fn of_reads(reads: Vec<ServerRead>, position: &mut ScanPosition, sweep: &Sweep) -> Self {
        let (mut active, mut scanned) = (false, Vec::new());
        for read in &reads {
            let Some(offset) = read.offset else { continue };
            active = true;
            let Some(ordinal) = sweep.ordinal_at(offset) else {
                continue;
            };
            if position.read(ordinal) {
                let t_ns = read.t_ns;
                scanned.push(ScanAt { ordinal, t_ns });
            }
        }
        Self {
            next: position.last_read().map(|ordinal| ordinal + 1),
            reads,
            scanned,
            active,
        }
    }

    /// The scan should have come this far; it only goes forward.
    fn forward_to(next: usize, sweep: &Sweep) -> Self {
        let next = next.max(sweep.position());
        let active = next > sweep.position();
        let scan_at = ScanAt {
            ordinal: next,
            t_ns: monotonic_ns(),
        };
        Self {
            next: Some(next),
            reads: Vec::new(),
            scanned: if active { vec![scan_at] } else { Vec::new() },
            active,
        }
    }
}

impl Pace {
    /// Follows the scan by the server's reads, from now on.
    pub fn traced(reads: ServerReads) -> Self {
        Self::Traced {
            reads: Box::new(reads),
            position: ScanPosition::default(),
        }
    }

    /// Follows the scan by a process's counters; `None` if they may not be read.
    pub fn counted(pid: u32) -> Option<Self> {
        let counters = PathBuf::from(format!("/proc/{pid}/io"));
        let zero = io_counter(&counters, READ_CALLS_BYTES)?;
        Some(Self::Counted { counters, zero })
    }

    /// Follows the scan at a pace of our own that begins now; `ns_per_byte` is what the engine
    /// spends on a leaf's bytes.
    pub fn own(ns_per_byte: f64) -> Self {
        Self::Own {
            started: Instant::now(),
            ns_per_byte,
        }
    }

    /// Returns the kind for the record.
    pub fn kind(&self) -> PrefetchPace {
        match self {
            Self::Traced { .. } => PrefetchPace::Traced,
            Self::Counted { .. } => PrefetchPace::Counted,
            Self::Own { .. } => PrefetchPace::Own,
        }
    }

    /// Notes that the scan begins now: earlier reads do not count.
    pub fn scan_begins(&mut self) {
        match self {
            Self::Traced { .. } => {}
            Self::Counted { counters, zero } => {
                *zero = io_counter(counters, READ_CALLS_BYTES).unwrap_or(*zero);
            }
            Self::Own { started, .. } => *started = Instant::now(),
        }
    }

    /// Looks up where the scan is.
    ///
    /// # Errors
    /// When the tracer fails; the trace is then over.
    pub fn look(&mut self, sweep: &Sweep) -> Result<Seen, TraceError> {
        match self {
            Self::Traced { reads, position } => {
                let reads = reads.take()?;
                Ok(Seen::of_reads(reads, position, sweep))
            }
            Self::Counted { counters, zero } => {
                let bytes = io_counter(counters, READ_CALLS_BYTES);
                let bytes = bytes.map(|bytes| bytes.saturating_sub(*zero));
                let next = bytes.map(|bytes| sweep.ordinal_after(bytes));
                // The server's other reads count as the scan's, so the scan is never further on
                // than this.
                Ok(next.map_or_else(Seen::default, |next| Seen::forward_to(next, sweep)))
            }
            Self::Own {
                started,
                ns_per_byte,
            } => {
                let elapsed = started.elapsed().div_f64(ns_per_byte.max(1e-3));
                let bytes = nanoseconds(elapsed);
                let could_be = sweep.ordinal_after(bytes);
                Ok(Seen::forward_to(could_be.min(sweep.first_unread()), sweep))
            }
        }
    }

    /// Notes that leaves are numbered differently now.
    pub fn tree_changed(&mut self) {
        if let Self::Traced { position, .. } = self {
            position.forget();
        }
    }
}

/// Returns a counter of a process, from its `/proc/PID/io`; `None` if it may not be read.
pub(crate) fn io_counter(counters: &Path, name: &str) -> Option<u64> {
    proc_io_counter(&fs::read_to_string(counters).ok()?, name)
}

#[cfg(test)]
mod tests {
    use seekscope_stats::SplitMix64;
    use seekscope_wiredtiger::{Leaf, LeafKind};

    use super::*;

    const LEAF: u32 = 4096;

    fn sweep(leaves: u64) -> Sweep {
        let leaf = |i: u64| Leaf {
            offset: i * u64::from(LEAF),
            length: LEAF,
            kind: LeafKind::Plain,
        };
        let leaves: Vec<Leaf> = (0..leaves).map(leaf).collect();
        Sweep::new(&leaves, u64::MAX).unwrap()
    }

    fn read(leaf: u64, t_ns: u64) -> ServerRead {
        ServerRead {
            offset: Some(leaf * u64::from(LEAF)),
            t_ns,
            latency_ns: 1,
            missed: true,
            direct: false,
        }
    }

    /// Otherwise they would end pauses and look like a scan that is very fast.
    #[test]
    fn point_reads_of_the_scanned_file_are_not_the_scan() {
        let (sweep, mut position) = (sweep(10_000), ScanPosition::default());
        let mut random = SplitMix64::new(1);
        let reads = (0..200).flat_map(|leaf| {
            let others = 300 + random.below(9_000);
            [read(leaf, leaf * 10), read(others, leaf * 10 + 1)]
        });
        let seen = Seen::of_reads(reads.collect(), &mut position, &sweep);
        assert!(seen.active && seen.reads.len() == 400);
        assert_eq!(seen.next, Some(200));
        assert!(seen.scanned.len() > 180, "{}", seen.scanned.len());
        for at in seen.scanned {
            assert_eq!(at.ordinal as u64 * 10, at.t_ns);
        }
    }

    #[test]
    fn without_a_scan_nothing_is_scanned() {
        let (sweep, mut position) = (sweep(10_000), ScanPosition::default());
        let mut random = SplitMix64::new(2);
        let reads = (0..500).map(|at| read(random.below(10_000), at));
        let seen = Seen::of_reads(reads.collect(), &mut position, &sweep);
        assert_eq!((seen.next, seen.scanned, seen.active), (None, vec![], true));
    }

    #[test]
    fn by_counters_it_goes_forward_only() {
        let mut sweep = sweep(100);
        sweep.advance(50);
        let seen = Seen::forward_to(20, &sweep);
        assert_eq!(
            (seen.next, seen.scanned, seen.active),
            (Some(50), vec![], false)
        );
        let seen = Seen::forward_to(51, &sweep);
        assert_eq!((seen.next, seen.active), (Some(51), true));
        assert_eq!(seen.scanned[0].ordinal, 51);
    }
}
