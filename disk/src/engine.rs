//! Engines: how accesses reach the kernel. Each thread of a job prepares an engine (files, memory,
//! ring) and then runs it until the time is over.

mod mapped;
mod null;
mod one_at_a_time;
mod sync;
mod uring;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use seekscope_run::{EngineKind, monotonic_ns};
use seekscope_stats::SplitMix64;

pub(crate) use mapped::Mapping;
pub use mapped::end_process_on_bus_error;
pub use uring::is_available as uring_is_available;

use crate::error::full;
use crate::job::Job;
use crate::offsets::Offsets;
use crate::pacing::{Pacing, sleep_until};
use crate::recorder::{Collector, Recorder};
use crate::{DiskError, TestFile};

/// What may end a job early.
#[derive(Debug)]
pub(crate) struct Stop<'a> {
    /// Set when the user cancels.
    pub(crate) cancel: &'a AtomicBool,
    /// Set when the step has ended early.
    pub(crate) ended: &'a AtomicBool,
}

impl Stop<'_> {
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.ended.load(Ordering::Relaxed)
    }
}

/// One thread's view of the running job.
pub(crate) struct Worker<'a> {
    pub(crate) job: &'a Job,
    pub(crate) offsets: Offsets,
    pub(crate) pacing: Option<Pacing>,
    pub(crate) recorder: Recorder<'a>,
    /// Source of stamps that make written data unique.
    pub(crate) stamps: SplitMix64,
    pub(crate) stop: Stop<'a>,
    pub(crate) end_ns: u64,
}

impl Worker<'_> {
    /// Waits until the next access is due. Returns when it was due and when it is called; `None`
    /// when the time is over. `now_ns` is the clock as last read: without a rate there is no wait
    /// and the clock is not read again.
    #[inline]
    pub(crate) fn wait(&mut self, now_ns: u64) -> Option<(u64, u64)> {
        if now_ns >= self.end_ns || self.stop.is_asked() {
            return None;
        }
        match &mut self.pacing {
            None => Some((now_ns, now_ns)),
            Some(pacing) => {
                let due_ns = pacing.next_ns();
                let mut now_ns = now_ns;
                while now_ns < due_ns.min(self.end_ns) {
                    sleep_until(due_ns.min(self.end_ns), now_ns);
                    now_ns = monotonic_ns();
                    if self.stop.is_asked() {
                        return None;
                    }
                }
                if now_ns >= self.end_ns {
                    return None;
                }
                pacing.advance();
                Some((due_ns, now_ns))
            }
        }
    }
}

/// An engine, prepared by the thread that runs it.
pub(crate) trait Engine {
    /// Runs until the worker says stop. Returns true if the job was finished early.
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<bool, DiskError>;
}

/// Opens what the job's engine needs. Features that it cannot use are added to the collector's
/// notes.
pub(crate) fn prepare<'a>(
    job: &Job,
    file: &'a TestFile,
    collector: &Collector,
) -> Result<Box<dyn Engine + 'a>, DiskError> {
    Ok(match job.facts.engine {
        EngineKind::Sync => Box::new(sync::SyncEngine::prepare(job, file)?),
        EngineKind::Uring => Box::new(uring::UringEngine::prepare(job, file, collector)?),
        EngineKind::Mmap => Box::new(mapped::MmapEngine::prepare(job, file)?),
        EngineKind::Null => Box::new(null::NullEngine),
    })
}

/// Returns the error for a call that failed or transferred less than a block.
pub(crate) fn incomplete(
    operation: &'static str,
    offset: u64,
    result: io::Result<usize>,
) -> DiskError {
    match result {
        Ok(_) if operation == "read" => DiskError::Shrunk { offset },
        // A short write has run out of space.
        Ok(_) => DiskError::FullMeanwhile {
            why: "a write was cut short",
        },
        Err(source) => match full(&source) {
            Some(why) => DiskError::FullMeanwhile { why },
            None => DiskError::Device {
                operation,
                offset,
                source,
            },
        },
    }
}
