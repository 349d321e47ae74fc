//! What is counted of a stretch of time.

use seekscope_run::{CacheOutcome, IoEvent, IoKind};

/// Calls of one or all files, or requests of one disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) writes: u64,
    pub(super) write_bytes: u64,
    pub(super) syncs: u64,
    /// Reads of which it is known whether the page cache had the bytes, and those where it had.
    pub(super) cache_known: u64,
    pub(super) cache_hits: u64,
    /// Sum of all latencies, ns.
    pub(super) latency_ns: u64,
}

impl Counts {
    /// Counts an event of whichever layer; layers are kept apart by who counts.
    pub(super) fn count(&mut self, event: &IoEvent) {
        match event.op.kind() {
            IoKind::Read => {
                self.reads += 1;
                self.read_bytes += event.bytes();
            }
            IoKind::Write => {
                self.writes += 1;
                self.write_bytes += event.bytes();
            }
            IoKind::Sync => self.syncs += 1,
            IoKind::Discard => {}
        }
        if let Some(outcome) = event.cache_outcome() {
            self.cache_known += 1;
            self.cache_hits += u64::from(outcome == CacheOutcome::Hit);
        }
        self.latency_ns = self.latency_ns.saturating_add(event.latency_ns);
    }

    fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.read_bytes += other.read_bytes;
        self.writes += other.writes;
        self.write_bytes += other.write_bytes;
        self.syncs += other.syncs;
        self.cache_known += other.cache_known;
        self.cache_hits += other.cache_hits;
        self.latency_ns = self.latency_ns.saturating_add(other.latency_ns);
    }
}

/// [`Counts`] by time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// Per second.
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) syncs: f64,
    pub(super) read_bytes: f64,
    pub(super) write_bytes: f64,
    /// Share of the reads that the page cache had; `None` where it is not known of any.
    pub(super) hit_share: Option<f64>,
    /// Reads that it had not, per second, of those of which it is known.
    pub(super) misses: Option<f64>,
    /// How many were under way at a time, on average (Little's law: arrivals times time each).
    pub(super) in_flight: f64,
}

impl Rates {
    /// Of slices that together took `span_s` seconds.
    pub(super) fn of<'a>(slices: impl Iterator<Item = &'a Counts>, span_s: f64) -> Self {
        let mut sum = Counts::default();
        slices.for_each(|slice| sum.add(slice));
        let per_s = |count: u64| count as f64 / span_s;
        Self {
            reads: per_s(sum.reads),
            writes: per_s(sum.writes),
            syncs: per_s(sum.syncs),
            read_bytes: per_s(sum.read_bytes),
            write_bytes: per_s(sum.write_bytes),
            hit_share: (sum.cache_known > 0)
                .then(|| sum.cache_hits as f64 / sum.cache_known as f64),
            misses: (sum.cache_known > 0).then(|| per_s(sum.cache_known - sum.cache_hits)),
            in_flight: per_s(sum.latency_ns) / 1e9,
        }
    }

    /// Bytes read and written per second.
    pub(super) fn bytes(&self) -> f64 {
        self.read_bytes + self.write_bytes
    }

    /// Calls per second of all kinds.
    pub(super) fn calls(&self) -> f64 {
        self.reads + self.writes + self.syncs
    }
}
