//! Counts a replay. Each thread records its operations in a list of its own and hands it over now
//! and then, so that nothing is shared, locked or allocated per operation, and histograms exist
//! only once, not per thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;
use seekscope_run::{LatencySummary, latency_histogram};

use super::{OperationComparison, ReplayOutcome, Side};
use crate::recorder::Operation;

/// The number of samples at which a thread hands over.
const SAMPLES_MAX: usize = 512;

/// One operation that was played.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) operation: Operation,
    pub(super) failed: bool,
    pub(super) bytes: u32,
    pub(super) recorded_ns: u64,
    /// When it ended in the recording.
    pub(super) recorded_end_ns: u64,
    pub(super) service_ns: u64,
    /// Time from the intended start.
    pub(super) response_ns: u64,
    /// How long before its thread was free it had been due.
    pub(super) late_ns: u64,
    /// When it was done, CLOCK_MONOTONIC ns.
    pub(super) done_ns: u64,
}

/// Figures of one kind of operation.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) recorded: Histogram<u64>,
    pub(super) service: Histogram<u64>,
    /// Response times, for open loops only.
    pub(super) response: Option<Histogram<u64>>,
}

impl Figures {
    fn new(open: bool) -> Self {
        Self {
            errors: 0,
            bytes: 0,
            recorded: latency_histogram(),
            service: latency_histogram(),
            response: open.then(latency_histogram),
        }
    }

    fn record(&mut self, sample: &Sample) {
        if sample.failed {
            self.errors += 1;
            return;
        }
        self.bytes += u64::from(sample.bytes);
        self.recorded.saturating_record(sample.recorded_ns);
        self.service.saturating_record(sample.service_ns);
        if let Some(response) = &mut self.response {
            response.saturating_record(sample.response_ns);
        }
    }

    /// All histograms have the same bounds, so no value can be out of range.
    fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.bytes += other.bytes;
        let _ = self.recorded.add(&other.recorded);
        let _ = self.service.add(&other.service);
        if let (Some(mine), Some(others)) = (&mut self.response, &other.response) {
            let _ = mine.add(others);
        }
    }

    fn comparison(&self) -> OperationComparison {
        let side = |histogram: &Histogram<u64>| Side {
            count: histogram.len(),
            errors: 0,
            bytes: self.bytes,
            latency: LatencySummary::of_any(histogram),
            response: None,
        };
        let replayed = Side {
            errors: self.errors,
            response: self.response.as_ref().and_then(LatencySummary::of_any),
            ..side(&self.service)
        };
        OperationComparison::new(side(&self.recorded), replayed)
    }
}

#[derive(Debug, Default)]
struct Totals {
    /// Figures by [`Operation`]: since the last second was taken out, and before that. Created when
    /// the first operation of its kind comes.
    second: [Option<Figures>; 3],
    total: [Option<Figures>; 3],
    late_starts: u64,
    latest_start_ns: u64,
    recorded_end_ns: u64,
    done_ns: u64,
}

/// The place where threads hand over.
#[derive(Debug)]
pub(super) struct Ledger {
    open: bool,
    totals: Mutex<Totals>,
}

impl Ledger {
    /// `open`: also count from the intended start.
    pub(super) fn new(open: bool) -> Self {
        Self {
            open,
            totals: Mutex::default(),
        }
    }

    fn totals(&self) -> MutexGuard<'_, Totals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, samples: &mut Vec<Sample>) {
        let mut totals = self.totals();
        for sample in samples.drain(..) {
            totals.late_starts += u64::from(sample.late_ns > 0);
            totals.latest_start_ns = totals.latest_start_ns.max(sample.late_ns);
            totals.recorded_end_ns = totals.recorded_end_ns.max(sample.recorded_end_ns);
            totals.done_ns = totals.done_ns.max(sample.done_ns);
            totals.second[sample.operation as usize]
                .get_or_insert_with(|| Figures::new(self.open))
                .record(&sample);
        }
    }

    /// Passes on what has come in since the last call, by kind, even if it is nothing: a stall is a
    /// second without operations. Threads that hand over meanwhile are not blocked.
    pub(super) fn take_second(&self, mut each: impl FnMut(Operation, &Figures)) {
        let second = std::mem::take(&mut self.totals().second);
        for (operation, figures) in Operation::ALL.into_iter().zip(second) {
            let kind = operation as usize;
            let stalled = || {
                let seen = self.totals().total[kind].is_some();
                seen.then(|| Figures::new(self.open))
            };
            let Some(figures) = figures.or_else(stalled) else {
                continue;
            };
            each(operation, &figures);
            match &mut self.totals().total[kind] {
                Some(total) => total.add(&figures),
                none => *none = Some(figures),
            }
        }
    }

    /// Returns everything taken out so far, as an outcome that began at `base_ns`.
    pub(super) fn outcome(&self, base_ns: u64) -> ReplayOutcome {
        let totals = self.totals();
        let comparison = |operation: Operation| {
            let figures = totals.total[operation as usize].as_ref();
            figures.map(Figures::comparison).unwrap_or_default()
        };
        ReplayOutcome {
            reads: comparison(Operation::Read),
            writes: comparison(Operation::Write),
            syncs: comparison(Operation::Sync),
            recorded_elapsed_ns: totals.recorded_end_ns,
            elapsed_ns: totals.done_ns.saturating_sub(base_ns),
            late_starts: totals.late_starts,
            latest_start_ns: totals.latest_start_ns,
            ..ReplayOutcome::default()
        }
        .with_rates()
    }
}

/// One thread's list.
#[derive(Debug)]
pub(super) struct Samples<'a> {
    ledger: &'a Ledger,
    samples: Vec<Sample>,
    handed_over_ns: u64,
}

impl<'a> Samples<'a> {
    pub(super) fn new(ledger: &'a Ledger, now_ns: u64) -> Self {
        Self {
            ledger,
            samples: Vec::with_capacity(SAMPLES_MAX),
            handed_over_ns: now_ns,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, sample: Sample) {
        self.samples.push(sample);
        if self.samples.len() == SAMPLES_MAX {
            self.hand_over(sample.done_ns);
        }
    }

    /// Hands over samples older than `age_ns`; to be called before long waits.
    #[inline]
    pub(super) fn hand_over_after(&mut self, age_ns: u64, now_ns: u64) {
        if now_ns >= self.handed_over_ns.saturating_add(age_ns) {
            self.hand_over(now_ns);
        }
    }

    #[cold]
    fn hand_over(&mut self, now_ns: u64) {
        self.ledger.take(&mut self.samples);
        self.handed_over_ns = now_ns;
    }
}

impl Drop for Samples<'_> {
    fn drop(&mut self) {
        self.ledger.take(&mut self.samples);
    }
}
