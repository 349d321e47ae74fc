//! Counts of calls and their latencies.

use seekscope_run::{CacheOutcome, IoEvent};

use super::result::SyncCalls;
use super::sketch::Sketch;
use crate::{CacheCounts, Transfers};

/// Counter of reads or of writes.
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

/// Counter of reads, writes and syncs.
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

impl CacheCounts {
    /// Counts a read, unless its outcome is unknown.
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
