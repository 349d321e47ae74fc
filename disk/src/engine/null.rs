//! Everything except the I/O: measures what the generator itself can do, with histograms on.

use seekscope_run::monotonic_ns;

use super::{Engine, Worker};
use crate::DiskError;
use crate::recorder::Operation;

pub(super) struct NullEngine;

impl Engine for NullEngine {
    fn run(&mut self, worker: &mut Worker<'_>) -> Result<bool, DiskError> {
        let depth = worker.job.facts.depth;
        let mut now_ns = monotonic_ns();
        while let Some((due_ns, called_ns)) = worker.wait(now_ns) {
            // As with io_uring, the clock is read once for all accesses that are made together.
            let batch = if worker.pacing.is_some() { 1 } else { depth };
            now_ns = monotonic_ns();
            for _ in 0..batch {
                let Some(access) = worker.offsets.next() else {
                    return Ok(true);
                };
                let operation = match std::hint::black_box(access).is_write {
                    true => Operation::Write,
                    false => Operation::Read,
                };
                worker.recorder.record(operation, due_ns, called_ns, now_ns);
            }
        }
        Ok(false)
    }
}
