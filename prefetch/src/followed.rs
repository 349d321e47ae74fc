//! What was seen of the scan: its reads, and how far it came in what time.

use std::time::Instant;

use crate::gain::Progress;
use crate::run::nanoseconds;
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

    /// Share of the time from the first to the last that they took; `None` where there were none.
    pub(crate) fn time_share(&self) -> Option<f64> {
        let span_ns = self.last_ns.saturating_sub(self.first_ns?);
        Some((self.read_ns as f64 / span_ns.max(1) as f64).min(1.0))
    }
}

/// From where to where the scan was followed.
#[derive(Debug)]
pub(crate) struct Followed {
    /// When the user began to wait: for a command of his, when we began.
    began: Option<Instant>,
    /// The first leaf that the scan was seen at.
    first: Option<usize>,
    /// When the scan was last seen to move.
    last: Option<Instant>,
}

impl Followed {
    pub(crate) fn new(began: Option<Instant>) -> Self {
        Self {
            began,
            first: began.map(|_| 0),
            last: None,
        }
    }

    pub(crate) fn scan_at(&mut self, ordinal: usize) {
        let now = Instant::now();
        self.began.get_or_insert(now);
        self.first.get_or_insert(ordinal);
        self.last = Some(now);
    }

    /// Since the user began to wait; 0 before that.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.began.map_or(0, |began| nanoseconds(began.elapsed()))
    }

    pub(crate) fn has_moved(&self) -> bool {
        self.last.is_some()
    }

    pub(crate) fn progress(&self, sweep: &Sweep) -> Progress {
        let (Some(began), Some(first), Some(last)) = (self.began, self.first, self.last) else {
            return Progress::default();
        };
        let position = sweep.position();
        Progress {
            elapsed_ns: nanoseconds(last.saturating_duration_since(began)),
            passed_bytes: sweep
                .bytes_before(position)
                .saturating_sub(sweep.bytes_before(first)),
            passed_leaves: position.saturating_sub(first) as u64,
            held_bytes: sweep.held_bytes(),
        }
    }
}
