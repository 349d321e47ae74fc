//! Counts events of a stretch of time.

use seekscope_run::{CacheOutcome, IoEvent, IoKind};

/// Calls of one or all files, or requests of one disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) writes: u64,
    pub(super) write_bytes: u64,
    pub(super) syncs: u64,
    /// Number of reads with known page-cache outcome, and of those served by it.
    pub(super) cache_known: u64,
    pub(super) cache_hits: u64,
    /// Sum of all latencies, ns.
    pub(super) latency_ns: u64,
}

impl Counts {
    /// Counts an event of any layer; the caller keeps layers apart.
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

/// [`Counts`] per unit of time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    /// Reads per second.
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) syncs: f64,
    pub(super) read_bytes: f64,
    pub(super) write_bytes: f64,
    /// Share of the reads that the page cache served; `None` where no outcome is known.
    pub(super) hit_share: Option<f64>,
    /// Reads per second that it did not serve, among those with known outcome.
    pub(super) misses: Option<f64>,
    /// Mean number in flight (Little's law: arrival rate times mean time).
    pub(super) in_flight: f64,
}

impl Rates {
    /// Computes rates for slices that together took `span_s` seconds.
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

    /// Returns bytes read and written per second.
    pub(super) fn bytes(&self) -> f64 {
        self.read_bytes + self.write_bytes
    }

    /// Returns calls per second of all kinds.
    pub(super) fn calls(&self) -> f64 {
        self.reads + self.writes + self.syncs
    }
}
