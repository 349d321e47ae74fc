//! The loop of one thread: an offset, a read, a write, a pause.
//!
//! A thread has counters of its own, on a cache line of their own, and records latencies in
//! histograms of its own, which it hands over when a step has ended. Operations that complete
//! between two steps, while threads are being added, belong to neither and are in no histogram.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use seekscope_run::latency_histogram;
use seekscope_run::units::nanoseconds;
use seekscope_stats::SplitMix64;

use super::access::Access;
use crate::buffer::AlignedBuffer;
use crate::offsets::thread_seed;
use crate::pacing::sleep_exactly;
use crate::{DiskError, random_bytes};

/// How often a sleeping thread checks whether it is to end.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// The step number between steps.
pub(crate) const NO_STEP: usize = usize::MAX;

/// A message from a thread to the one that prints.
#[derive(Debug)]
pub(crate) enum Event {
    Started,
    Synced { elapsed: Duration },
    Failed(DiskError),
}

/// What every thread does in a round.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Bytes of one operation.
    pub(crate) operation_bytes: usize,
    /// Offsets are multiples of this, bytes.
    pub(crate) offset_step_bytes: u64,
    /// The multiples are from 0 to one less than this.
    pub(crate) offset_steps: u64,
    pub(crate) sleep: Duration,
    pub(crate) sleep_shared: bool,
    pub(crate) zero_fill: bool,
    pub(crate) seed: u64,
}

impl Load {
    /// Returns the pause after a round when this many threads are running.
    fn sleep_of_each(&self, threads: u32) -> Duration {
        if !self.sleep_shared {
            return self.sleep;
        }
        // Whole microseconds, as in the old program: a share below one is no pause at all.
        let share_us = self.sleep.as_micros() / u128::from(threads.max(1));
        Duration::from_micros(u64::try_from(share_us).unwrap_or(u64::MAX))
    }
}

/// Operations of one thread since it started. Only that thread writes these counters.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
}

/// Latencies of one step, ns. Histograms are large, so none are created before the first operation.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) reads: Option<Histogram<u64>>,
    pub(crate) writes: Option<Histogram<u64>>,
}

impl Latencies {
    fn add(&mut self, other: Self) {
        add(&mut self.reads, other.reads);
        add(&mut self.writes, other.writes);
    }
}

fn add(sum: &mut Option<Histogram<u64>>, other: Option<Histogram<u64>>) {
    match (sum, other) {
        (_, None) => {}
        (sum @ None, other) => *sum = other,
        (Some(sum), Some(other)) => {
            // This fails only for values out of bounds, and the bounds are the same.
            let _ = sum.add(other);
        }
    }
}

/// State shared by all threads.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) access: &'a Access<'a>,
    pub(crate) file_bytes: u64,
    pub(crate) load: Load,
    pub(crate) stop: AtomicBool,
    /// The number of the present step, from 0, or [`NO_STEP`].
    pub(crate) step: AtomicUsize,
    pub(crate) threads_running: AtomicU32,
    /// One for each thread of the last step.
    pub(crate) counters: Vec<Counters>,
    /// One for each step.
    pub(crate) latencies: Mutex<Vec<Latencies>>,
}

impl Shared<'_> {
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Sleeps, but not beyond the end of the run.
    fn pause(&self, duration: Duration) {
        let mut rest = duration;
        while !rest.is_zero() && !self.stopped() {
            let slice = rest.min(STOP_CHECK);
            std::thread::sleep(slice);
            rest -= slice;
        }
    }
}

/// Runs one thread until the run is stopped or an operation fails.
pub(crate) fn work(shared: &Shared<'_>, number: u32, events: &Sender<Event>) {
    sleep_exactly();
    let outcome = Worker::new(shared, number).and_then(|mut worker| {
        // The receiver lives until all threads have ended.
        let _ = events.send(Event::Started);
        let outcome = worker.run();
        worker.hand_over();
        outcome
    });
    if let Err(error) = outcome {
        let _ = events.send(Event::Failed(error));
    }
}

/// Flushes a mapping to the disk repeatedly, with a pause in between.
pub(crate) fn flush_regularly(shared: &Shared<'_>, delay: Duration, events: &Sender<Event>) {
    let Access::Mapped(mapping) = shared.access else {
        return;
    };
    while !shared.stopped() {
        let started = Instant::now();
        let event = match mapping.sync(0, shared.file_bytes) {
            Ok(()) => Event::Synced {
                elapsed: started.elapsed(),
            },
            Err(source) => Event::Failed(DiskError::Device {
                operation: "sync the mapping, of which the first byte is",
                offset: 0,
                source,
            }),
        };
        let _ = events.send(event);
        shared.pause(delay);
    }
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    counters: &'a Counters,
    random: SplitMix64,
    buffer: AlignedBuffer,
    /// Whether written data must be neither compressible nor repetitive.
    random_data: bool,
    /// Latencies of `step`.
    latencies: Latencies,
    step: usize,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared<'a>, number: u32) -> Result<Self, DiskError> {
        let mut random = SplitMix64::new(thread_seed(shared.load.seed, number));
        let mut buffer = AlignedBuffer::new(shared.load.operation_bytes)?;
        // A mapping uses only the buffer's length; if it is never touched, it takes no memory.
        let random_data = !shared.load.zero_fill && !matches!(shared.access, Access::Mapped(_));
        if random_data {
            random_bytes::fill(buffer.bytes(), random.next_u64());
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            shared,
            counters: &shared.counters[index],
            random,
            buffer,
            random_data,
            latencies: Latencies::default(),
            step: NO_STEP,
        })
    }

    fn run(&mut self) -> Result<(), DiskError> {
        let load = &self.shared.load;
        while !self.shared.stopped() {
            if load.reads {
                let offset = self.random_offset();
                let started = Instant::now();
                self.shared.access.read(self.buffer.bytes(), offset)?;
                let latency = started.elapsed();
                count(&self.counters.reads);
                self.record(latency, |latencies| &mut latencies.reads);
            }
            if load.writes {
                let offset = self.random_offset();
                if self.random_data {
                    self.make_distinct();
                }
                let started = Instant::now();
                self.shared.access.write(self.buffer.bytes(), offset)?;
                let latency = started.elapsed();
                count(&self.counters.writes);
                self.record(latency, |latencies| &mut latencies.writes);
            }
            self.pause();
        }
        Ok(())
    }

    fn random_offset(&mut self) -> u64 {
        let load = &self.shared.load;
        self.random.below(load.offset_steps) * load.offset_step_bytes
    }

    /// Makes each block of the buffer different from all that were written before.
    fn make_distinct(&mut self) {
        random_bytes::make_distinct(self.buffer.bytes(), &mut self.random);
    }

    fn record(&mut self, latency: Duration, of: fn(&mut Latencies) -> &mut Option<Histogram<u64>>) {
        let step = self.shared.step.load(Ordering::Relaxed);
        if step != self.step {
            self.hand_over();
            self.step = step;
        }
        if step != NO_STEP {
            let latency_ns = nanoseconds(latency);
            let histogram = of(&mut self.latencies).get_or_insert_with(latency_histogram);
            histogram.saturating_record(latency_ns);
        }
    }

    /// Adds the recorded latencies to the histograms of their step.
    fn hand_over(&mut self) {
        if self.step == NO_STEP {
            return;
        }
        let recorded = std::mem::take(&mut self.latencies);
        let steps = self.shared.latencies.lock();
        let mut steps = steps.unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = steps.get_mut(self.step) {
            step.add(recorded);
        }
    }

    fn pause(&self) {
        let threads = self.shared.threads_running.load(Ordering::Relaxed);
        self.shared.pause(self.shared.load.sleep_of_each(threads));
    }
}

/// Increments a counter that no other thread writes.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn load() -> Load {
        Load {
            reads: true,
            writes: false,
            operation_bytes: 8192,
            offset_step_bytes: 4096,
            offset_steps: 255,
            sleep: Duration::from_micros(1000),
            sleep_shared: false,
            zero_fill: false,
            seed: 5,
        }
    }

    fn shared<'a>(access: &'a Access<'a>) -> Shared<'a> {
        Shared {
            access,
            file_bytes: 1 << 20,
            load: load(),
            stop: AtomicBool::new(false),
            step: AtomicUsize::new(NO_STEP),
            threads_running: AtomicU32::new(1),
            counters: (0..2).map(|_| Counters::default()).collect(),
            latencies: Mutex::new(vec![Latencies::default()]),
        }
    }

    #[test]
    fn offsets_are_a_function_of_seed_and_thread_and_leave_room_for_the_operation() {
        let access = Access::Cached(tempfile::tempfile().unwrap());
        let shared = shared(&access);
        let offsets = |number| {
            let mut worker = Worker::new(&shared, number).unwrap();
            (0..5000)
                .map(|_| worker.random_offset())
                .collect::<Vec<_>>()
        };
        assert_eq!(offsets(0), offsets(0));
        assert_ne!(offsets(0), offsets(1));
        let distinct: HashSet<u64> = offsets(0).into_iter().collect();
        assert_eq!(distinct.len(), 255, "each possible place is drawn");
        assert!(distinct.iter().all(|offset| offset % 4096 == 0));
        assert_eq!(distinct.iter().max(), Some(&((1 << 20) - 8192)));
    }

    #[test]
    fn no_two_blocks_written_are_alike() {
        let access = Access::Cached(tempfile::tempfile().unwrap());
        let shared = shared(&access);
        let mut worker = Worker::new(&shared, 0).unwrap();
        let mut seen = HashSet::new();
        for _ in 0..100 {
            worker.make_distinct();
            for block in worker.buffer.bytes().chunks(random_bytes::DISTINCT_BYTES) {
                assert!(seen.insert(block.to_vec()));
            }
        }
    }

    #[test]
    fn latencies_belong_to_the_step_in_which_the_operation_completed() {
        let access = Access::Cached(tempfile::tempfile().unwrap());
        let shared = shared(&access);
        let mut worker = Worker::new(&shared, 0).unwrap();
        let record = |worker: &mut Worker<'_>, us| {
            worker.record(Duration::from_micros(us), |latencies| &mut latencies.reads);
        };
        record(&mut worker, 900);
        shared.step.store(0, Ordering::Relaxed);
        record(&mut worker, 10);
        record(&mut worker, 20);
        shared.step.store(NO_STEP, Ordering::Relaxed);
        record(&mut worker, 900);
        worker.hand_over();
        let steps = shared.latencies.lock().unwrap();
        let reads = steps[0].reads.as_ref().unwrap();
        assert_eq!(reads.len(), 2);
        assert!(reads.max() < 21_000);
        assert!(steps[0].writes.is_none());
    }

    #[test]
    fn threads_share_the_sleep_only_when_asked_to() {
        let mut load = load();
        assert_eq!(load.sleep_of_each(8), Duration::from_micros(1000));
        load.sleep_shared = true;
        assert_eq!(load.sleep_of_each(1), Duration::from_micros(1000));
        assert_eq!(load.sleep_of_each(3), Duration::from_micros(333));
        assert_eq!(load.sleep_of_each(1001), Duration::ZERO);
        assert_eq!(load.sleep_of_each(0), Duration::from_micros(1000));
    }
}
