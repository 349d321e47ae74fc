//! Latencies of one direction, by cache outcome and by the step that led to the access.

use seekscope_run::{CacheOutcome, IoEvent};

use super::result::{BytesBySource, LatencyByOutcome};
use super::sketch::Sketch;
use super::steps::Step;

/// Number of outcomes, the last of which is "cannot tell".
const OUTCOMES: usize = 5;

/// Number of kinds of step: sequential, other, and none, as for the first access and failed calls.
const STEPS: usize = 3;

/// Puts each latency into exactly one of 15 sketches, so one event costs one addition; every split
/// that is needed is a sum of some of them.
#[derive(Default)]
pub(crate) struct LatencyGrid {
    cells: [Option<Box<Sketch>>; OUTCOMES * STEPS],
}

impl LatencyGrid {
    pub(crate) fn add(
        &mut self,
        outcome: Option<CacheOutcome>,
        step: Option<Step>,
        latency_ns: u64,
        exact_max: usize,
    ) {
        let row = outcome.map_or(OUTCOMES - 1, |outcome| outcome as usize);
        let column = step.map_or(STEPS - 1, |step| usize::from(!step.is_sequential()));
        self.cells[row * STEPS + column]
            .get_or_insert_with(|| Box::new(Sketch::new(exact_max)))
            .add(latency_ns);
    }

    /// Returns the sum of all cells with these outcomes and steps.
    fn sum(&self, wanted: impl Fn(usize, usize) -> bool) -> Sketch {
        let mut cells = self.cells.iter().enumerate().filter_map(|(i, cell)| {
            let cell = cell.as_deref()?;
            wanted(i / STEPS, i % STEPS).then_some(cell)
        });
        let Some(first) = cells.next() else {
            return Sketch::new(0);
        };
        let mut sum = first.clone();
        cells.for_each(|cell| sum.merge(cell));
        sum
    }

    pub(crate) fn all(&self) -> Sketch {
        self.sum(|_, _| true)
    }

    pub(crate) fn sequential(&self) -> Sketch {
        self.sum(|_, step| step == 0)
    }

    pub(crate) fn seeks(&self) -> Sketch {
        self.sum(|_, step| step == 1)
    }

    pub(crate) fn by_outcome(&self) -> LatencyByOutcome {
        let with = |wanted: CacheOutcome| {
            self.sum(|outcome, _| outcome == wanted as usize)
                .quantiles()
        };
        LatencyByOutcome {
            hit_ns: with(CacheOutcome::Hit),
            miss_ns: with(CacheOutcome::Miss),
            waited_ns: with(CacheOutcome::WaitedForOthers),
            direct_ns: with(CacheOutcome::Direct),
        }
    }
}

impl BytesBySource {
    /// Counts a read of the file layer.
    pub(crate) fn add(&mut self, event: &IoEvent) {
        let bytes = event.bytes();
        self.asked_bytes += bytes;
        self.device_read_bytes += u64::from(event.device_read_bytes);
        *match event.cache_outcome() {
            Some(CacheOutcome::Hit) => &mut self.hit_bytes,
            Some(CacheOutcome::Miss) => &mut self.miss_bytes,
            Some(CacheOutcome::WaitedForOthers) => &mut self.waited_bytes,
            Some(CacheOutcome::Direct) => &mut self.direct_bytes,
            None => &mut self.unknown_bytes,
        } += bytes;
    }
}
