//! Counts of calls and their latencies.

use seekscope_run::{CacheOutcome, IoEvent};

use super::result::{BytesBySource, LatencyByOutcome, SyncCalls};
use super::sketch::Sketch;
use crate::{CacheCounts, Transfers};

/// Reads or writes.
#[derive(Debug, Clone)]
pub(crate) struct TransferCounter {
    calls: u64,
    bytes: u64,
    errors: u64,
    latency_ns: Sketch,
}

impl TransferCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        Self {
            calls: 0,
            bytes: 0,
            errors: 0,
            latency_ns: Sketch::new(exact_max),
        }
    }

    pub(crate) fn add(&mut self, event: &IoEvent) {
        self.calls += 1;
        self.bytes += event.bytes();
        self.errors += u64::from(event.result < 0);
        self.latency_ns.add(event.latency_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.latency_ns.merge(&other.latency_ns);
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn transfers(&self) -> Transfers {
        Transfers {
            calls: self.calls,
            bytes: self.bytes,
            errors: self.errors,
            latency_ns: self.latency_ns.quantiles(),
        }
    }

    pub(crate) fn sync_calls(&self) -> SyncCalls {
        SyncCalls {
            calls: self.calls,
            errors: self.errors,
            latency_ns: self.latency_ns.quantiles(),
        }
    }
}

/// Reads, writes and syncs.
#[derive(Debug, Clone)]
pub(crate) struct CallCounter {
    pub(crate) reads: TransferCounter,
    pub(crate) writes: TransferCounter,
    pub(crate) syncs: TransferCounter,
}

impl CallCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        let empty = || TransferCounter::new(exact_max);
        Self {
            reads: empty(),
            writes: empty(),
            syncs: empty(),
        }
    }

    /// Counts an event of the file layer.
    pub(crate) fn add(&mut self, event: &IoEvent) {
        if event.op.is_read() {
            self.reads.add(event);
        } else if event.op.is_write() {
            self.writes.add(event);
        } else {
            self.syncs.add(event);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.syncs.merge(&other.syncs);
    }
}

/// Reads by cache outcome.
#[derive(Debug, Clone)]
pub(crate) struct CacheCounter {
    counts: CacheCounts,
    bytes: BytesBySource,
    hit_ns: Sketch,
    miss_ns: Sketch,
    waited_ns: Sketch,
    direct_ns: Sketch,
}

impl CacheCounter {
    pub(crate) fn new(exact_max: usize) -> Self {
        let empty = || Sketch::new(exact_max);
        Self {
            counts: CacheCounts::default(),
            bytes: BytesBySource::default(),
            hit_ns: empty(),
            miss_ns: empty(),
            waited_ns: empty(),
            direct_ns: empty(),
        }
    }

    /// Counts a read of the file layer.
    pub(crate) fn add(&mut self, event: &IoEvent) {
        self.counts.add(event);
        let bytes = event.bytes();
        self.bytes.asked_bytes += bytes;
        self.bytes.device_read_bytes += u64::from(event.device_read_bytes);
        let (source, latency_ns) = match event.cache_outcome() {
            Some(CacheOutcome::Hit) => (&mut self.bytes.hit_bytes, &mut self.hit_ns),
            Some(CacheOutcome::Miss) => (&mut self.bytes.miss_bytes, &mut self.miss_ns),
            Some(CacheOutcome::WaitedForOthers) => {
                (&mut self.bytes.waited_bytes, &mut self.waited_ns)
            }
            Some(CacheOutcome::Direct) => (&mut self.bytes.direct_bytes, &mut self.direct_ns),
            None => {
                self.bytes.unknown_bytes += bytes;
                return;
            }
        };
        *source += bytes;
        latency_ns.add(event.latency_ns);
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        self.counts
    }

    pub(crate) fn bytes(&self) -> BytesBySource {
        self.bytes
    }

    pub(crate) fn latency(&self) -> LatencyByOutcome {
        LatencyByOutcome {
            hit_ns: self.hit_ns.quantiles(),
            miss_ns: self.miss_ns.quantiles(),
            waited_ns: self.waited_ns.quantiles(),
            direct_ns: self.direct_ns.quantiles(),
        }
    }
}

impl CacheCounts {
    /// Counts a read; those that cannot tell are left out.
    pub(crate) fn add(&mut self, event: &IoEvent) {
        let Some(outcome) = event.cache_outcome() else {
            return;
        };
        self.device_read_bytes += u64::from(event.device_read_bytes);
        *match outcome {
            CacheOutcome::Hit => &mut self.hits,
            CacheOutcome::Miss => &mut self.misses,
            CacheOutcome::WaitedForOthers => &mut self.waited_for_others,
            CacheOutcome::Direct => &mut self.direct,
        } += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.waited_for_others += other.waited_for_others;
        self.direct += other.direct;
        self.device_read_bytes += other.device_read_bytes;
    }
}
